//! Choices between ways to the same bytes, by measurement.
#![expect(
    clippy::disallowed_methods,
    reason = "what is fastest is found with a clock; the bytes are the same whatever it says"
)]

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{Kernel, Matrix, cache, kernels};
use crate::chunks::Chunks;

/// Sources, outputs and length of what is measured: an object in the first-level cache, as most are.
const SHAPE: (usize, usize, usize) = (4, 2, 4096);
/// Bytes between chunks. Chunks whose distance is a multiple of a page get into each other's way in the cache.
const GAP: usize = 576;
/// Bytes of a cache line.
const LINE: usize = 64;
/// How often something is tried, and how often it is done in a try. The best counts: others had the processor meanwhile.
type Effort = (usize, u32);
/// For what takes microseconds.
const SMALL: Effort = (7, 4);
/// How often a call is tried both ways, and how long: it is tried once whatever that takes.
const CALL: (usize, Duration) = (3, Duration::from_millis(1));

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

/// Whether `a` takes less time than `b`, a matrix of the same shape, for chunks that stay in cache.
pub(super) fn is_faster(a: &Matrix, b: &Matrix) -> bool {
    let shape = (a.columns(), a.rows(), SHAPE.2);
    let [of_a, of_b] = best_times(shape, SMALL, [&|chunks| a.combine(chunks), &|chunks| b.combine(chunks)]);
    of_a < of_b
}

/// How many times as long it takes to combine `chunks` and to read the results if these are stored past the caches. The results are
/// there when it ends.
pub(super) fn past_to_through(mut chunks: Chunks<'_, '_, '_>, way: cache::Way<'_>) -> f64 {
    let (tries, time) = CALL;
    let mut best = [f64::INFINITY; 2];
    let begun = Instant::now();
    for _ in 0..tries {
        for (best, past) in best.iter_mut().zip([false, true]) {
            // The first time finds what the other way left in the caches, or what the caller did.
            for _ in 0..2 {
                *best = best.min(seconds_with_reading(&mut chunks, past, way));
            }
        }
        if begun.elapsed() > time {
            break;
        }
    }
    best[1] / best[0]
}

fn seconds_with_reading(chunks: &mut Chunks<'_, '_, '_>, past: bool, way: cache::Way<'_>) -> f64 {
    let begun = Instant::now();
    way(chunks.reborrow(), past);
    for output in &*chunks.outputs() {
        output.iter().step_by(LINE).for_each(|byte| _ = black_box(*byte));
    }
    begun.elapsed().as_secs_f64()
}

/// One of several ways to the same sums.
type Way<'a> = &'a dyn Fn(Chunks<'_, '_, '_>);

/// Seconds of one combination of so many sources to so many outputs, chunks of so many bytes, in each of `ways`. They take turns,
/// so that what slows the machine for a while slows all of them.
fn best_times<const N: usize>(
    (columns, rows, len): (usize, usize, usize),
    (tries, runs): Effort,
    ways: [Way<'_>; N],
) -> [f64; N] {
    let mut memory = vec![0x5a; (columns + rows) * (len + GAP) + LINE];
    // Wherever the allocator puts them, chunks begin at lines: else luck would choose.
    let begin = memory.as_ptr().align_offset(LINE).min(LINE);
    let mut chunks = memory[begin..].chunks_exact_mut(len + GAP).map(|chunk| &mut chunk[..len]);
    let sources: Vec<&[u8]> = chunks.by_ref().take(columns).map(|chunk| &*chunk).collect();
    let mut outputs: Vec<&mut [u8]> = chunks.take(rows).collect();
    let mut time = |way: Way<'_>| {
        let begun = Instant::now();
        for _ in 0..runs {
            if let Ok(chunks) = Chunks::new(&sources, &mut outputs) {
                way(chunks);
            }
        }
        begun.elapsed().as_secs_f64() / f64::from(runs)
    };
    let mut best = [f64::INFINITY; N];
    for _ in 0..tries {
        for (best, way) in best.iter_mut().zip(ways) {
            *best = best.min(time(way));
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
