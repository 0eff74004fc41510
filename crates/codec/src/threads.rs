//! Combinations by several threads. Nothing else in this crate starts a thread, and this only when asked to.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::chunks::Chunks;
use crate::kernel::Matrix;

/// Ranges begin at multiples of this: no two threads write to one cache line of an aligned chunk.
const ALIGN: usize = 64;
/// Fewest bytes of each chunk that are worth a thread.
const MIN_RANGE_LEN: usize = 16 << 10;

/// A range of all sources and outputs.
type Job<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

/// [`Matrix::combine`], cut into as many ranges as there are threads. Each thread takes ranges until none is left, so
/// that all is done even where a thread cannot be started.
pub(crate) fn combine(matrix: &Matrix, chunks: Chunks<'_, '_, '_>, threads: NonZeroUsize) {
    matrix.combine_by(&|chunks, past| combine_as(matrix, chunks, past, threads), chunks);
}

/// [`Matrix::combine_as`]. Threads share the last cache: where results are stored is decided for all of them.
fn combine_as(matrix: &Matrix, mut chunks: Chunks<'_, '_, '_>, past: bool, threads: NonZeroUsize) {
    let jobs = Mutex::new(cut(chunks.sources(), chunks.outputs(), threads));
    let count = lock(&jobs).len();
    let work = || {
        while let Some((sources, mut outputs)) = next(&jobs) {
            if let Ok(chunks) = Chunks::new(&sources, &mut outputs) {
                matrix.combine_as(chunks, past);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // What nobody takes is left to those that run, this thread among them.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

fn lock<'a, 'b>(jobs: &'a Mutex<Vec<Job<'b>>>) -> MutexGuard<'a, Vec<Job<'b>>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next<'a>(jobs: &Mutex<Vec<Job<'a>>>) -> Option<Job<'a>> {
    lock(jobs).pop()
}

fn cut<'a>(sources: &[&'a [u8]], outputs: &'a mut [&mut [u8]], threads: NonZeroUsize) -> Vec<Job<'a>> {
    let len = outputs.first().map_or(0, |output| output.len());
    let range_len = range_len(len, threads);
    let mut pieces: Vec<_> = outputs.iter_mut().map(|output| output.chunks_mut(range_len)).collect();
    let range = |start: usize| start..len.min(start + range_len);
    let mut job = |start: usize| {
        let sources = sources.iter().map(|source| &source[range(start)]).collect();
        (sources, pieces.iter_mut().filter_map(Iterator::next).collect())
    };
    (0..len).step_by(range_len).map(&mut job).collect()
}

/// How much of each chunk one thread takes.
fn range_len(len: usize, threads: NonZeroUsize) -> usize {
    len.div_ceil(threads.get()).max(MIN_RANGE_LEN).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_aligned_and_no_more_than_the_threads() {
        for len in [1, 63, MIN_RANGE_LEN, MIN_RANGE_LEN + 1, 1 << 20, (1 << 20) + 7, 77_777_777] {
            for count in [1, 2, 3, 7, 64, usize::MAX] {
                let range = range_len(len, NonZeroUsize::new(count).unwrap());
                assert!(range.is_multiple_of(ALIGN) && len.div_ceil(range) <= count, "{len} by {count}");
            }
        }
    }
}
