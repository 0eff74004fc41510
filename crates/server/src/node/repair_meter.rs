//! How repair goes on: what is done, what is left, and how fast.

use types::Time;

/// Weight of the newest sample in the rate, as a divisor.
const SMOOTHING: u64 = 4;

/// What workers count, added up. `done` may fall when a member leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub done_bytes: u64,
    pub left_bytes: u64,
}

/// Follows one node's repair from sample to sample.
#[derive(Debug, Default)]
pub(crate) struct RepairMeter {
    last: Option<(Time, Sample)>,
    reading: Reading,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Since there was last nothing to do.
    pub done_bytes: u64,
    pub left_bytes: u64,
    pub bytes_per_second: u64,
}

impl RepairMeter {
    /// One more sample.
    pub(crate) fn read(&mut self, now: Time, sample: Sample) -> Reading {
        let before = self.last.replace((now, sample));
        let Some((at, before)) = before else {
            self.reading.left_bytes = sample.left_bytes;
            return self.reading;
        };
        if before.left_bytes == 0 && sample.left_bytes > 0 {
            self.reading = Reading::default();
        }
        let moved = sample.done_bytes.saturating_sub(before.done_bytes);
        self.reading.done_bytes += moved;
        self.reading.left_bytes = sample.left_bytes;
        let elapsed_us = now.since(at).max(1);
        let rate = u128::from(moved) * 1_000_000 / u128::from(elapsed_us);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        let known = self.reading.bytes_per_second;
        // An average that began at 0 would be too low for long.
        self.reading.bytes_per_second =
            if known == 0 { rate } else { known - known / SMOOTHING + rate / SMOOTHING };
        self.reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_from_the_beginning_of_a_repair() {
        let mut meter = RepairMeter::default();
        let mut read =
            |ms, done_bytes, left_bytes| meter.read(Time::from_millis(ms), Sample { done_bytes, left_bytes });
        read(0, 500, 0);
        assert_eq!(read(100, 500, 1000), Reading { done_bytes: 0, left_bytes: 1000, bytes_per_second: 0 });
        let half = read(1100, 1000, 500);
        assert_eq!(half, Reading { done_bytes: 500, left_bytes: 500, bytes_per_second: 500 });
        let fallen = read(2100, 200, 500);
        assert_eq!((fallen.done_bytes, fallen.bytes_per_second), (500, 375), "a member has left");
        let whole = read(3100, 700, 0);
        assert_eq!((whole.done_bytes, whole.left_bytes), (1000, 0));
        let next = read(4100, 700, 10);
        assert_eq!((next.done_bytes, next.left_bytes), (0, 10));
    }
}
