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
    let seconds = best_time(&Matrix::new(kernel, columns, coefficients), len);
    Calibration { kernel, bytes_per_second: (columns * len) as f64 / seconds }
}

/// Whether `a` takes less time than `b`, for chunks that stay in cache.
pub(super) fn is_faster(a: &Matrix, b: &Matrix) -> bool {
    let len = SHAPE.2;
    best_time(a, len) < best_time(b, len)
}

/// Seconds of one combination of chunks of `len` bytes.
fn best_time(matrix: &Matrix, len: usize) -> f64 {
    let stride = len + GAP;
    let data = vec![0x5a; matrix.columns() * stride];
    let sources: Vec<&[u8]> = data.chunks(stride).map(|chunk| &chunk[..len]).collect();
    let mut results = vec![0; matrix.rows() * stride];
    let mut outputs: Vec<&mut [u8]> = results.chunks_mut(stride).map(|chunk| &mut chunk[..len]).collect();
    let mut time = || {
        let begun = Instant::now();
        for _ in 0..RUNS {
            if let Ok(chunks) = Chunks::new(&sources, &mut outputs) {
                matrix.combine(chunks);
            }
        }
        begun.elapsed().as_secs_f64() / f64::from(RUNS)
    };
    (0..TRIES).map(|_| time()).fold(f64::INFINITY, f64::min)
}
