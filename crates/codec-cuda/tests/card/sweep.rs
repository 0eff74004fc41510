//! Every family at every number of parities, lengths up to 4 MiB, chunks at any alignment, batches: what a real card is for. An emulated
//! one does a little of it.
#![allow(unsafe_code)] // Addresses in a card's memory are the caller's word.

use codec::{Code, Family, Scheme};
use codec_cuda::{Combination, Matrix, Stripe};

use crate::device::combine;
use crate::{card, is_emulated};

/// Numbers of data chunks, in turn.
const COLUMNS: [usize; 6] = [1, 2, 3, 5, 10, 20];
/// Numbers of parities whose kernels are compiled, too: the others take the generic kernel alone.
const COMPILED: [usize; 9] = [1, 2, 3, 4, 8, 12, 16, 17, 32];
const LONGEST: usize = 4 << 20;

/// The same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// Short ones, ones at the edges of a tile, and a few long ones.
    fn len(&mut self, longest: usize) -> usize {
        match self.below(8) {
            0 => 0,
            1 | 2 => self.below(40),
            3 | 4 => 4096 * (1 + self.below(3)) + self.below(3) - 1,
            5 | 6 => self.below(100_000),
            _ => self.below(longest + 1),
        }
    }
}

/// Stripes one after the other in one piece of memory, each chunk anywhere.
struct Batch {
    starts: Vec<Vec<usize>>,
    lens: Vec<usize>,
    bytes: usize,
}

impl Batch {
    fn draw(numbers: &mut Numbers, chunks: usize, longest: usize) -> Self {
        let mut batch = Self { starts: vec![], lens: vec![], bytes: 0 };
        for _ in 0..=numbers.below(4) {
            let len = numbers.len(longest);
            let start = |batch: &mut Self, numbers: &mut Numbers| {
                let start = batch.bytes.next_multiple_of(16) + numbers.below(16);
                batch.bytes = start + len;
                start
            };
            let starts = (0..chunks).map(|_| start(&mut batch, numbers)).collect();
            batch.starts.push(starts);
            batch.lens.push(len);
        }
        batch.bytes += 1;
        batch
    }

    fn stripes(&self, base: u64, columns: usize) -> Vec<Stripe> {
        let stripe = |(starts, len): (&Vec<usize>, &usize)| {
            let chunks: Vec<u64> = starts.iter().map(|start| base + *start as u64).collect();
            let (sources, outputs) = chunks.split_at(columns);
            Stripe { sources: sources.to_vec(), outputs: outputs.to_vec(), len: *len as u64 }
        };
        self.starts.iter().zip(&self.lens).map(stripe).collect()
    }
}

/// Bytes without order.
fn noise(numbers: &mut Numbers, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 4);
    while bytes.len() < len {
        bytes.extend_from_slice(&(numbers.below(1 << 31) as u32).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// That a batch comes out as on the processor, and nothing beside it changes.
fn check(combination: &Combination, numbers: &mut Numbers, longest: usize) {
    let matrix = combination.matrix();
    let batch = Batch::draw(numbers, matrix.chunks(), longest);
    let mut expected = noise(numbers, batch.bytes);
    let mut buffer = combination.device().allocate(batch.bytes).unwrap();
    buffer.write(0, &expected).unwrap();
    let stripes = batch.stripes(buffer.address(), matrix.columns());
    // SAFETY: all chunks are in the buffer, apart from each other.
    unsafe { combination.run_on_device(&stripes) }.unwrap();
    for (starts, len) in batch.starts.iter().zip(&batch.lens) {
        combine(matrix, &mut expected, starts, *len);
    }
    let mut found = vec![0; batch.bytes];
    buffer.read(0, &mut found).unwrap();
    let (k, m) = (matrix.columns(), matrix.rows());
    assert!(found == expected, "{} {k}+{m}, lengths {:?}", combination.method(), batch.lens);
}

/// All families with `parity` parities; their numbers of data chunks take turns.
fn check_families(parity: usize, numbers: &mut Numbers) {
    let Some(device) = card() else { return };
    let longest = if is_emulated() { 20_000 } else { LONGEST };
    for (turn, family) in Family::ALL.into_iter().enumerate() {
        let k = COLUMNS[(parity + turn) % COLUMNS.len()];
        // Some families have no code of this shape.
        let Ok(code) = Code::of(Scheme::Rs { family, k, m: parity }) else { continue };
        let encode = Matrix::encode(&code).unwrap();
        let delta = Matrix::delta(&code, numbers.below(k)).unwrap();
        for matrix in [&encode, &delta] {
            check(&device.load(matrix).unwrap(), numbers, longest);
        }
        if COMPILED.contains(&parity) && (!is_emulated() || parity < 3) {
            check(&device.compile(&encode).unwrap(), numbers, longest);
        }
    }
}

#[test]
fn every_family_with_up_to_eight_parities() {
    (1..=8).for_each(|parity| check_families(parity, &mut Numbers(parity as u64)));
}

#[test]
fn every_family_with_up_to_sixteen_parities() {
    (9..=16).for_each(|parity| check_families(parity, &mut Numbers(parity as u64)));
}

#[test]
fn every_family_with_up_to_thirty_two_parities() {
    (17..=32).for_each(|parity| check_families(parity, &mut Numbers(parity as u64)));
}

#[test]
fn repairs_of_any_losses() {
    let Some(device) = card() else { return };
    let mut numbers = Numbers(5);
    let code = Code::rs(10, 4).unwrap();
    for losses in 1..=4 {
        let lost: Vec<usize> = (0..losses).map(|i| 3 * i + 1).collect();
        let left: Vec<usize> = (0..14).filter(|role| !lost.contains(role)).collect();
        let matrix = Matrix::plan(&code.plan(&left, &lost).unwrap()).unwrap();
        check(&device.load(&matrix).unwrap(), &mut numbers, 50_000);
    }
}
