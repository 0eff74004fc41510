//! Chunks in the card's memory: pointers in, pointers out.
#![allow(unsafe_code)] // Addresses in a card's memory are the caller's word.

use codec::conformance::noise;
use codec::{Code, CodeError};
use codec_cuda::{Codec, CudaError, Matrix, Place, Stripe};

use crate::card;

/// Stripes one after the other in one buffer, with a byte between chunks that must not change; every second stripe misaligned.
struct Places {
    stripes: Vec<Stripe>,
    starts: Vec<Vec<usize>>,
    len: usize,
}

fn places(base: u64, roles: (usize, usize), lens: &[usize]) -> Places {
    let (mut at, mut stripes, mut starts) = (0_usize, vec![], vec![]);
    for (i, len) in lens.iter().enumerate() {
        let of_stripe: Vec<usize> = (0..roles.0 + roles.1)
            .map(|_| {
                let start = at.next_multiple_of(16) + i % 2;
                at = start + len + 1;
                start
            })
            .collect();
        let addresses: Vec<u64> = of_stripe.iter().map(|start| base + *start as u64).collect();
        let (sources, outputs) = addresses.split_at(roles.0);
        stripes.push(Stripe { sources: sources.to_vec(), outputs: outputs.to_vec(), len: *len as u64 });
        starts.push(of_stripe);
    }
    Places { stripes, starts, len: at + 32 }
}

#[test]
fn many_stripes_of_any_length_are_one_launch() {
    let Some(device) = card() else { return };
    let lens = [4096, 0, 1, 70_000, 17, 0, 16, 4097, 8192, 0];
    let code = Code::rs(5, 3).unwrap();
    let delta = Matrix::delta(&code, 2).unwrap();
    for (matrix, compiled) in
        [(Matrix::encode(&code).unwrap(), true), (Matrix::encode(&code).unwrap(), false), (delta, true)]
    {
        let roles = (matrix.columns(), matrix.rows());
        let len = places(0, roles, &lens).len;
        let mut buffer = device.allocate(len).unwrap();
        let mut expected = noise(3, len);
        buffer.write(0, &expected).unwrap();
        let places = places(buffer.address(), roles, &lens);
        let combination = if compiled { device.compile(&matrix) } else { device.load(&matrix) }.unwrap();
        // SAFETY: all chunks are in the buffer, apart from each other.
        let seconds = unsafe { combination.run_on_device(&places.stripes) }.unwrap();
        assert!(seconds > 0.0);
        for (starts, len) in places.starts.iter().zip(lens) {
            combine(&matrix, &mut expected, starts, len);
        }
        let mut found = vec![0; len];
        buffer.read(0, &mut found).unwrap();
        assert!(found == expected, "{}, adding: {}", combination.method(), matrix.adds());
    }
}

/// The same on the processor.
pub(crate) fn combine(matrix: &Matrix, bytes: &mut [u8], starts: &[usize], len: usize) {
    let sources: Vec<Vec<u8>> =
        starts[..matrix.columns()].iter().map(|at| bytes[*at..at + len].to_vec()).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    for (row, at) in matrix.coefficients().chunks(matrix.columns()).zip(&starts[matrix.columns()..]) {
        let output = &mut bytes[*at..at + len];
        let run = if matrix.adds() { codec::Kernel::combine_add } else { codec::Kernel::combine };
        run(codec::kernel(), row, &sources, &mut [output]).unwrap();
    }
}

#[test]
fn a_batch_is_described_once_and_run_again() {
    let Some(device) = card() else { return };
    let code = Code::rs(3, 2).unwrap();
    let delta = Matrix::delta(&code, 1).unwrap();
    let len = 10_000;
    let mut buffer = device.allocate(3 * len).unwrap();
    let mut expected = noise(4, 3 * len);
    buffer.write(0, &expected).unwrap();
    let at = |chunk: usize| buffer.address_of(chunk * len, len);
    let stripe = Stripe { sources: vec![at(0)], outputs: vec![at(1), at(2)], len: len as u64 };
    let mut batch = device.compile(&delta).unwrap().batch(&[stripe]).unwrap();
    for _ in 0..3 {
        // SAFETY: all chunks are in the buffer, apart from each other.
        assert!(unsafe { batch.run() }.unwrap() > 0.0);
        combine(&delta, &mut expected, &[0, len, 2 * len], len);
    }
    let mut found = vec![0; 3 * len];
    buffer.read(0, &mut found).unwrap();
    assert!(found == expected);
}

#[test]
fn an_object_on_the_card_is_encoded_there_and_read_out_chunk_by_chunk() {
    let Some(device) = card() else { return };
    let codec = Codec::with_device(Ok(device.clone()), Codec::all_threads());
    let code = Code::rs(4, 2).unwrap();
    let len = 5000;
    let object = noise(8, 4 * len);
    let mut buffer = device.allocate(6 * len).unwrap();
    buffer.write(0, &object).unwrap();
    let chunks: Vec<u64> = (0..6).map(|chunk| buffer.address_of(chunk * len, len)).collect();
    // SAFETY: all chunks are in the buffer, apart from each other.
    let place = unsafe { codec.encode_device(&code, &chunks[..4], &chunks[4..], len) }.unwrap();
    assert_eq!(place, Place::Card);
    // Parities first: the ranges are in the caller's order.
    let ranges = [(chunks[4], 2 * len), (chunks[0], len)];
    let into = device.allocate_pinned(3 * len + 5).unwrap();
    // SAFETY: the ranges are in the buffer, which stays.
    let readout = unsafe { device.read_out(&ranges, into) }.unwrap();
    let _ = readout.is_over().unwrap();
    let read = readout.wait().unwrap();
    let data: Vec<&[u8]> = object.chunks(len).collect();
    let mut parity = [vec![0; len], vec![0; len]];
    let [p, q] = &mut parity;
    code.encode(&data, &mut [p, q]).unwrap();
    assert!(
        read.bytes()[..3 * len] == [parity[0].clone(), parity[1].clone(), object[..len].to_vec()].concat()
    );
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let Some(device) = card() else { return };
    let combination = device.load(&Matrix::new(1, vec![2]).unwrap()).unwrap();
    // SAFETY: there is no byte in them.
    let seconds = unsafe {
        combination.run_on_device(&[]).unwrap()
            + combination.run_on_device(&[Stripe { sources: vec![0], outputs: vec![0], len: 0 }]).unwrap()
    };
    assert!(seconds < 0.1);
}

#[test]
fn stripes_of_another_shape_are_refused() {
    let Some(device) = card() else { return };
    let combination = device.load(&Matrix::new(2, vec![2, 3]).unwrap()).unwrap();
    let stripe = Stripe { sources: vec![0], outputs: vec![0], len: 1 };
    // SAFETY: it is refused before anything is touched.
    let refused = unsafe { combination.run_on_device(&[stripe]) };
    assert!(matches!(refused, Err(CudaError::Code(CodeError::Count { .. }))));
}

#[test]
fn more_memory_than_there_is_is_refused_and_nothing_is_lost() {
    let Some(device) = card() else { return };
    let (free, all) = device.memory().unwrap();
    assert!(free <= all);
    let refused = device.allocate(all + 1).unwrap_err();
    assert!(matches!(refused, CudaError::OutOfMemory { place: "device", .. }), "{refused}");
    assert!(!refused.is_final());
    device.allocate(1 << 20).unwrap();
}
