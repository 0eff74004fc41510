//! Times of ways to the same bytes, taken in turns.
#![expect(
    clippy::disallowed_methods,
    reason = "what is fastest is found with a clock; the bytes are the same whatever it says"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::chunks::Chunks;

/// Bytes between chunks. Chunks whose distance is a multiple of a page get into each other's way in the cache.
const GAP: usize = 576;

/// Bytes of a cache line.
const LINE: usize = 64;

/// How often something is tried, and how often it is done in a try. The best counts: others had the processor meanwhile.
pub(super) type Effort = (usize, u32);

/// For what takes microseconds.
pub(super) const SMALL: Effort = (7, 4);

/// One of several ways to the same sums.
type ToSums<'a> = &'a dyn Fn(Chunks<'_, '_, '_>);

/// Seconds of one combination of so many sources to so many outputs, chunks of so many bytes, in each of `ways`. They take turns,
/// so that what slows the machine for a while slows all of them.
pub(super) fn best_times<const N: usize>(
    (columns, rows, len): (usize, usize, usize),
    (tries, runs): Effort,
    ways: [ToSums<'_>; N],
) -> [f64; N] {
    let mut memory = vec![0x5a; (columns + rows) * (len + GAP) + LINE];
    // Wherever the allocator puts them, chunks begin at lines: else luck would choose.
    let begin = memory.as_ptr().align_offset(LINE).min(LINE);
    let mut chunks = memory[begin..].chunks_exact_mut(len + GAP).map(|chunk| &mut chunk[..len]);
    let sources: Vec<&[u8]> = chunks.by_ref().take(columns).map(|chunk| &*chunk).collect();
    let mut outputs: Vec<&mut [u8]> = chunks.take(rows).collect();
    let mut time = |way: ToSums<'_>| {
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

/// Combines chunks, with the results stored past the caches or not.
pub(super) type Way<'a> = &'a dyn Fn(Chunks<'_, '_, '_>, bool);

/// How often a call is tried both ways, and how long: it is tried once whatever that takes.
const CALL: (usize, Duration) = (3, Duration::from_millis(1));

/// How many times as long it takes to combine `chunks` and to read the results if these are stored past the caches. The results are
/// there when it ends.
pub(super) fn past_to_through(mut chunks: Chunks<'_, '_, '_>, way: Way<'_>) -> f64 {
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

fn seconds_with_reading(chunks: &mut Chunks<'_, '_, '_>, past: bool, way: Way<'_>) -> f64 {
    let begun = Instant::now();
    way(chunks.reborrow(), past);
    for output in &*chunks.outputs() {
        output.iter().step_by(LINE).for_each(|byte| _ = black_box(*byte));
    }
    begun.elapsed().as_secs_f64()
}
