//! What takes turns in a round.

use std::hint::black_box;
use std::time::{Duration, Instant};

use codec_cuda::Span;

use crate::BenchError;
use crate::memory::Memory;
use crate::report::Parts;

/// A contestant: a library, one of our kernels, or a limit of the machine.
pub trait Side {
    /// What it is called in reports.
    fn name(&self) -> String;

    /// Does its work on `memory` for about `time`: bytes a second.
    ///
    /// # Errors
    /// `Unable` for a job that it cannot do, `Wrong` if it gave wrong bytes.
    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError>;

    /// Where the time went, for those who copy from and to a card.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// GB/s that a card's copies would allow at most, if there is such a limit.
    fn allowed_by_copies(&self) -> Option<f64> {
        None
    }

    /// What a card did when, in the last call.
    fn trace(&self) -> Vec<Span> {
        Vec::new()
    }
}

/// Runs `call` on all of `calls` in turn for about `time`, and gives bytes a second, `bytes` each. The first call of all is not
/// counted: it brings code and chunks into the caches.
pub fn timed<C>(
    calls: &mut [C],
    bytes: usize,
    time: Duration,
    mut call: impl FnMut(&mut C) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let mut next = 0;
    let mut run = |count: usize| {
        for _ in 0..count {
            call(black_box(&mut calls[next]))?;
            next = if next + 1 == calls.len() { 0 } else { next + 1 };
        }
        Ok::<(), BenchError>(())
    };
    run(1)?;
    // The clock is read between batches that double until they are a noticeable part of the time.
    let (mut batch, mut done) = (1, 0);
    let begun = Instant::now();
    loop {
        run(batch)?;
        done += batch;
        let elapsed = begun.elapsed();
        if elapsed >= time {
            return Ok((done * bytes) as f64 / elapsed.as_secs_f64());
        }
        if elapsed < time / 16 {
            batch *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_are_used_in_turn() {
        let mut uses = [0_u64; 3];
        let rate = timed(&mut uses, 1, Duration::from_millis(2), |count| {
            *count += 1;
            Ok(())
        });
        assert!(rate.unwrap() > 0.0);
        assert!(uses[0] - uses[2] <= 1 && uses[2] > 0, "{uses:?}");
    }

    #[test]
    fn a_failing_call_ends_the_round() {
        let failed = timed(&mut [()], 1, Duration::from_millis(1), |()| Err(BenchError::Job("no".into())));
        assert_eq!(failed.unwrap_err().to_string(), "no");
    }
}
