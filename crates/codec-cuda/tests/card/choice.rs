//! The choice between card and processor, and what happens when a card fails.

use std::num::NonZeroUsize;

use codec::Code;
use codec::conformance::noise;
use codec_cuda::{Codec, CudaError, HostStripe, Matrix, Place, Residence, Stripe};

use crate::{card, in_a_process_of_the_card, in_another_process};

const LEN: usize = 100_000;

fn codec() -> Codec {
    Codec::new(0, NonZeroUsize::MIN)
}

/// Encodes and repairs with `codec`, checks the bytes, and says where that was done.
fn use_it(codec: &Codec) -> [Place; 2] {
    let code = Code::rs(4, 2).unwrap();
    let data: Vec<Vec<u8>> = (0..4).map(|i| noise(i, LEN)).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut expected = vec![vec![0; LEN]; 2];
    code.encode(&data, &mut borrow(&mut expected)).unwrap();
    let mut found = vec![vec![0xa5; LEN]; 2];
    let encoded = codec.encode(&code, &data, &mut borrow(&mut found)).unwrap();
    assert!(found == expected, "encoded on {}", encoded.name());

    let plan = code.plan(&[1, 2, 4, 5], &[0, 3]).unwrap();
    let sources: Vec<&[u8]> = plan
        .sources()
        .iter()
        .map(|role| if *role < 4 { data[*role] } else { &expected[*role - 4] })
        .collect();
    let mut lost = vec![vec![0xa5; LEN]; 2];
    let repaired = codec.reconstruct(&plan, &sources, &mut borrow(&mut lost)).unwrap();
    assert!(lost[0] == data[0] && lost[1] == data[3], "repaired on {}", repaired.name());
    [encoded, repaired]
}

fn borrow(chunks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(Vec::as_mut_slice).collect()
}

#[test]
fn a_card_gives_the_same_bytes() {
    let used = use_it(&codec().always_on_card());
    let expected = if card().is_some() { Place::Card } else { Place::Cpu };
    assert_eq!(used, [expected; 2]);
}

#[test]
fn little_is_left_to_the_processor_and_what_is_on_the_card_stays_there() {
    let codec = codec();
    let matrix = Matrix::encode(&Code::rs(4, 2).unwrap()).unwrap();
    let few = codec.choose(&matrix, 1000, Residence::Host);
    assert_eq!(few.place, Place::Cpu);
    if card().is_some() {
        assert!(few.why.contains("less than"), "{}", few.why);
        assert_eq!(codec.choose(&matrix, 1, Residence::Device).place, Place::Card);
    } else {
        assert!(few.why.contains("no CUDA"), "{}", few.why);
        assert_eq!(codec.choose(&matrix, 1 << 30, Residence::Device).place, Place::Cpu);
    }
}

#[test]
fn callers_mistakes_are_the_processors_errors() {
    let code = Code::rs(2, 1).unwrap();
    let codec = codec().always_on_card();
    let mut parity = [0; 2];
    let few = codec.encode(&code, &[&[1, 2]], &mut [&mut parity]).unwrap_err();
    let unequal = codec.encode(&code, &[&[1, 2], &[3]], &mut [&mut parity]).unwrap_err();
    let empty =
        codec.encode_batch(&code, &mut [HostStripe { sources: &[&[], &[]], outputs: &mut [&mut []] }]);
    assert!(few.to_string().contains("data chunks") && unequal.to_string().contains("bytes"));
    assert_eq!(empty, Err(codec::CodeError::Empty));
}

fn with_failing_card(name: &str, options: &str) {
    in_another_process(&format!("choice::{name}"), |child, _| child.env("GESTALT_EMULATED_CUDA", options));
}

#[test]
fn without_a_card_the_processor_does_it() {
    with_failing_card("no_card", "devices=0");
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn no_card() {
    let codec = codec().always_on_card();
    assert!(codec.device().is_err_and(|error| error.is_final()));
    assert_eq!(use_it(&codec), [Place::Cpu; 2]);
}

#[test]
fn without_a_compiler_the_shipped_kernels_do_it() {
    in_another_process("choice::no_compiler", |child, dir| {
        child.env("LD_LIBRARY_PATH", dir.join("without-compiler"))
    });
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn no_compiler() {
    let codec = codec().always_on_card();
    assert_eq!(use_it(&codec), [Place::Card; 2]);
    let (device, matrix) = (codec.device().unwrap(), Matrix::new(2, vec![3, 4]).unwrap());
    assert_eq!(device.compile(&matrix).unwrap_err(), CudaError::NoCompiler);
    assert_eq!(device.best(&matrix).unwrap().method(), "generic");
}

#[test]
fn without_memory_the_processor_does_it() {
    with_failing_card("no_memory", "memory=1000000");
    // Less than what a measurement wants for each chunk.
    with_failing_card("no_memory", "memory=100000");
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn no_memory() {
    let codec = codec().always_on_card();
    assert!(codec.device().is_ok());
    assert_eq!(use_it(&codec), [Place::Cpu; 2]);
    assert_eq!(use_it(&codec), [Place::Cpu; 2]);
}

#[test]
fn chunks_on_a_full_card_are_combined_by_the_processor() {
    // Room for the chunks, and not for what a launch needs beside them.
    with_failing_card("full_card", "memory=24576");
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
#[allow(unsafe_code)] // Addresses in a card's memory are the caller's word.
fn full_card() {
    let codec = codec();
    let device = codec.device().unwrap();
    let code = Code::rs(4, 2).unwrap();
    let data: Vec<Vec<u8>> = (0..4).map(|i| noise(i, 4096)).collect();
    let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut expected = vec![vec![0; 4096]; 2];
    code.encode(&slices, &mut borrow(&mut expected)).unwrap();
    let mut buffer = device.allocate(6 * 4096).unwrap();
    buffer.write(0, &data.concat()).unwrap();
    let chunks: Vec<u64> = (0..6).map(|chunk| buffer.address_of(chunk * 4096, 4096)).collect();
    let stripe = Stripe { sources: chunks[..4].to_vec(), outputs: chunks[4..].to_vec(), len: 4096 };
    let matrix = Matrix::encode(&code).unwrap();
    // SAFETY: all chunks are in the buffer, apart from each other.
    let place = unsafe { codec.combine_on_device(&matrix, &[stripe]) }.unwrap();
    assert_eq!(place, Place::Cpu);
    let mut found = vec![0; 2 * 4096];
    buffer.read(4 * 4096, &mut found).unwrap();
    assert!(found == expected.concat());
}

#[test]
fn what_has_begun_on_a_card_is_not_done_once_more_by_the_processor() {
    // Twelve parities are two kernels: without memory for the first nothing was added, without memory for the second something was.
    with_failing_card("not_begun", "full-at=1");
    with_failing_card("half_done", "full-at=2");
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn not_begun() {
    assert_eq!(add_on_device(), Ok(Place::Cpu));
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn half_done() {
    assert!(matches!(add_on_device(), Err(CudaError::Driver { .. })));
}

/// A delta to twelve parities, all of them zero before, and right afterwards if it is done.
#[allow(unsafe_code)] // Addresses in a card's memory are the caller's word.
fn add_on_device() -> Result<Place, CudaError> {
    let (codec, code) = (codec(), Code::rs(2, 12).unwrap());
    let len = 4096;
    let delta = noise(3, len);
    let mut buffer = codec.device().unwrap().allocate(13 * len).unwrap();
    buffer.write(0, &[&delta[..], &vec![0; 12 * len]].concat()).unwrap();
    let chunks: Vec<u64> = (0..13).map(|chunk| buffer.address_of(chunk * len, len)).collect();
    let stripe = Stripe { sources: chunks[..1].to_vec(), outputs: chunks[1..].to_vec(), len: len as u64 };
    // SAFETY: all chunks are in the buffer, apart from each other.
    let place = unsafe { codec.combine_on_device(&Matrix::delta(&code, 1).unwrap(), &[stripe]) }?;
    let mut expected = vec![vec![0; len]; 12];
    code.update(1, &delta, &mut borrow(&mut expected)).unwrap();
    let mut found = vec![0; 12 * len];
    buffer.read(len, &mut found).unwrap();
    assert!(found == expected.concat());
    Ok(place)
}

#[test]
fn when_the_context_is_lost_the_processor_goes_on() {
    with_failing_card("lost_context", "");
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
#[allow(unsafe_code)] // Changes the environment.
fn lost_context() {
    let codec = codec().always_on_card();
    assert_eq!(use_it(&codec), [Place::Card; 2]);
    // SAFETY: this process runs this test alone, and no other thread looks.
    unsafe { std::env::set_var("GESTALT_EMULATED_CUDA", "lost-after=1") };
    assert_eq!(use_it(&codec), [Place::Cpu; 2]);
    let matrix = Matrix::encode(&Code::rs(4, 2).unwrap()).unwrap();
    let choice = codec.choose(&matrix, 1 << 30, Residence::Host);
    assert_eq!((choice.place, choice.why.as_str()), (Place::Cpu, "the card was lost"));
}

#[test]
fn a_real_context_that_is_lost_is_left_for_the_processor() {
    in_a_process_of_the_card("choice::wild_address");
}

#[test]
#[ignore = "its process has no card afterwards: run by the test above"]
#[allow(unsafe_code)] // An address that is none.
fn wild_address() {
    let codec = codec().always_on_card();
    assert_eq!(use_it(&codec), [Place::Card; 2]);
    let matrix = Matrix::encode(&Code::rs(4, 2).unwrap()).unwrap();
    let stripe = Stripe { sources: vec![16; 4], outputs: vec![16; 2], len: 4096 };
    // SAFETY: none: the card refuses the address, which is what is asked for.
    let error = unsafe { codec.combine_on_device(&matrix, &[stripe]) }.unwrap_err();
    assert!(error.is_final(), "{error}");
    assert_eq!(use_it(&codec), [Place::Cpu; 2]);
}

#[test]
#[ignore = "takes all memory of a card, which other tests need: run it alone"]
fn when_others_have_all_memory_of_a_card_the_processor_does_it() {
    let Some(device) = card() else { return };
    let mut taken = Vec::new();
    let mut len = 1 << 36;
    while len >= 1 << 20 {
        match device.allocate(len) {
            Ok(buffer) => taken.push(buffer),
            Err(error) => {
                assert!(matches!(error, CudaError::OutOfMemory { .. }), "{error}");
                len /= 2;
            }
        }
    }
    // What is left is less than a slot. The processor takes over; so it does in another process.
    assert_eq!(use_it(&codec().always_on_card()), [Place::Cpu; 2]);
    in_a_process_of_the_card("choice::little_memory");
    drop(taken);
    assert_eq!(use_it(&codec().always_on_card()), [Place::Card; 2]);
}

#[test]
#[ignore = "needs a card whose memory is taken: run by the test above"]
fn little_memory() {
    assert_eq!(use_it(&codec().always_on_card()), [Place::Cpu; 2]);
}
