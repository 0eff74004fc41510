//! What every way to combine must do, wherever it runs: the bytes of the scalar kernel, for every length, alignment and coefficient, and
//! not a byte beyond.

use crate::{Kernel, kernels};

/// A way to combine.
pub trait Combine {
    /// What failures are reported of.
    fn name(&self) -> String;

    /// `outputs[o] = sum_s coefficients[o * sources.len() + s] * sources[s]`, or `^=` that if it `adds`.
    fn combine(&mut self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]], adds: bool);
}

impl Combine for Kernel {
    fn name(&self) -> String {
        Self::name(*self).to_owned()
    }

    fn combine(&mut self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]], adds: bool) {
        let run = if adds { Self::combine_add } else { Self::combine };
        run(*self, coefficients, sources, outputs).expect("chunks of one length");
    }
}

/// Around every vector width in use, the block length of the processor's kernels, and the tile of a card's.
pub const LENGTHS: [usize; 21] =
    [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 4095, 4096, 4097, 8192, 8209];

/// Numbers of sources and outputs: one, few, more than registers hold, more than a pass.
pub const SHAPES: [(usize, usize); 7] = [(1, 1), (1, 5), (2, 4), (7, 3), (10, 4), (33, 2), (70, 9)];

/// Bytes between outputs that must not change.
const GUARD: usize = 37;

/// Bytes without structure, different for each `salt`.
#[must_use]
pub fn noise(salt: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(167) ^ (i >> 5).wrapping_mul(31) ^ salt.wrapping_mul(89)) as u8)
        .collect()
}

/// Checks `subject` with every length of [`LENGTHS`] for each of `shapes`: replacing and adding, chunks at any alignment.
///
/// # Panics
/// If it does not conform.
pub fn check(subject: &mut dyn Combine, shapes: &[(usize, usize)]) {
    for (k, m) in shapes {
        check_coefficients(subject, *k, &coefficients(*k, *m));
    }
}

/// Checks `subject` with every product of two bytes.
///
/// # Panics
/// If it does not conform.
pub fn check_products(subject: &mut dyn Combine) {
    let source: Vec<u8> = (0..=255).collect();
    for c in 0..=255 {
        let expected: Vec<u8> = source.iter().map(|byte| crate::gf::mul(c, *byte)).collect();
        let mut found = vec![0x77; 256];
        subject.combine(&[c], &[&source], &mut [&mut found], false);
        assert!(found == expected, "{}: products with {c}", subject.name());
    }
}

/// As [`check`], for one matrix of `k` columns.
///
/// # Panics
/// If it does not conform.
pub fn check_coefficients(subject: &mut dyn Combine, k: usize, coefficients: &[u8]) {
    let longest = LENGTHS[LENGTHS.len() - 1];
    let buffers: Vec<Vec<u8>> = (0..k).map(|source| noise(source, longest + 67)).collect();
    for adds in [false, true] {
        for len in LENGTHS {
            for misaligned in [0, 1] {
                let at = |source: usize| misaligned * (source % 67);
                let sources: Vec<&[u8]> =
                    buffers.iter().enumerate().map(|(source, bytes)| &bytes[at(source)..][..len]).collect();
                let place = (len, misaligned, adds);
                let expected = run(&mut scalar(), coefficients, &sources, place);
                let found = run(subject, coefficients, &sources, place);
                let m = coefficients.len() / k;
                assert!(
                    found == expected,
                    "{}: {k} to {m}, {len} bytes, misaligned {misaligned}, adding {adds}",
                    subject.name()
                );
            }
        }
    }
}

/// Coefficients of all kinds: the first row ones, zeros and ones among the others.
#[must_use]
pub fn coefficients(k: usize, m: usize) -> Vec<u8> {
    let mut all = noise(k, k * m);
    all[..k].fill(1);
    all.iter_mut().skip(k).step_by(5).for_each(|c| *c = 0);
    all.iter_mut().skip(k + 1).step_by(7).for_each(|c| *c = 1);
    all
}

fn scalar() -> Kernel {
    *kernels().last().expect("the scalar kernel is always there")
}

/// Outputs, guards and all.
fn run(
    subject: &mut dyn Combine,
    coefficients: &[u8],
    sources: &[&[u8]],
    (len, misaligned, adds): (usize, usize, bool),
) -> Vec<u8> {
    let pitch = (len + GUARD).next_multiple_of(16) + misaligned;
    let mut bytes = noise(9, coefficients.len() / sources.len() * pitch);
    let mut outputs: Vec<&mut [u8]> = bytes.chunks_mut(pitch).map(|chunk| &mut chunk[..len]).collect();
    subject.combine(coefficients, sources, &mut outputs, adds);
    bytes
}
