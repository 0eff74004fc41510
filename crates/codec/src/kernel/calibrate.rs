//! Which kernel is the fastest here, by measurement.

use std::sync::OnceLock;

use super::instruction_set::Kernel;
use super::kernels;
use super::matrix::Matrix;
use super::stopwatch::{SMALL, best_times};

/// Sources, outputs and length of what is measured: an object in the first-level cache, as most are.
const SHAPE: (usize, usize, usize) = (4, 2, 4096);

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
    let matrix = Matrix::new(kernel, columns, (0..columns * rows).map(|i| i as u8 + 2).collect());
    let [seconds] = best_times((columns, rows, len), SMALL, [&|chunks| matrix.combine(chunks)]);
    Calibration { kernel, bytes_per_second: (columns * len) as f64 / seconds }
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
