//! Choices between ways to the same bytes, by measurement.
#![expect(
    clippy::disallowed_methods,
    reason = "what is fastest is found with a clock; the bytes are the same whatever it says"
)]

use std::sync::OnceLock;
use std::time::Instant;

use super::{Kernel, Matrix, kernels};
use crate::chunks::Chunks;

/// Sources, outputs and length of what is measured: an object in the first-level cache, as most are.
const SHAPE: (usize, usize, usize) = (4, 2, 4096);
/// Bytes between chunks. Chunks whose distance is a multiple of a page get into each other's way in the cache.
const GAP: usize = 576;
/// The best of so many tries counts: others had the processor meanwhile.
const TRIES: usize = 7;
/// Combinations a try.
const RUNS: u32 = 4;

/// How fast a kernel was.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Which.
    pub kernel: Kernel,
    /// Bytes of sources a second, of a combination of four sources to two outputs of 4 KiB each.
    pub bytes_per_second: f64,
}

/// All usable kernels with their rates, fastest first. Measured once, at the first call, which takes about a millisecond.
#[must_use]
pub fn calibrations() -> &'static [Calibration] {
    static MEASURED: OnceLock<Vec<Calibration>> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let mut all: Vec<Calibration> = kernels().iter().map(|kernel| measure(*kernel)).collect();
        all.sort_by(|a, b| b.bytes_per_second.total_cmp(&a.bytes_per_second));
        all
    })
}

fn measure(kernel: Kernel) -> Calibration {
    let (columns, rows, len) = SHAPE;
    let coefficients = (0..columns * rows).map(|i| i as u8 + 2).collect();
    let [seconds] = best_times([&Matrix::new(kernel, columns, coefficients)], len);
    Calibration { kernel, bytes_per_second: (columns * len) as f64 / seconds }
}

/// Whether `a` takes less time than `b`, for chunks that stay in cache.
pub(super) fn is_faster(a: &Matrix, b: &Matrix) -> bool {
    let [of_a, of_b] = best_times([a, b], SHAPE.2);
    of_a < of_b
}

/// Seconds of one combination of chunks of `len` bytes by each of `matrices`, which have one shape. They take turns, so that
/// what slows the machine for a while slows all of them.
fn best_times<const N: usize>(matrices: [&Matrix; N], len: usize) -> [f64; N] {
    let stride = len + GAP;
    let data = vec![0x5a; matrices[0].columns() * stride];
    let sources: Vec<&[u8]> = data.chunks(stride).map(|chunk| &chunk[..len]).collect();
    let mut results = vec![0; matrices[0].rows() * stride];
    let mut outputs: Vec<&mut [u8]> = results.chunks_mut(stride).map(|chunk| &mut chunk[..len]).collect();
    let mut time = |matrix: &Matrix| {
        let begun = Instant::now();
        for _ in 0..RUNS {
            if let Ok(chunks) = Chunks::new(&sources, &mut outputs) {
                matrix.combine(chunks);
            }
        }
        begun.elapsed().as_secs_f64() / f64::from(RUNS)
    };
    let mut best = [f64::INFINITY; N];
    for _ in 0..TRIES {
        for (best, matrix) in best.iter_mut().zip(matrices) {
            *best = best.min(time(matrix));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usable_kernel_has_a_rate_and_the_fastest_one_is_first() {
        let rates: Vec<f64> = calibrations().iter().map(|measured| measured.bytes_per_second).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b) && rates.iter().all(|rate| *rate > 0.0));
        assert_eq!(rates.len(), kernels().len());
    }
}
