//! How fast this host rebuilds in the background: a bucket of bytes that all members here draw from.

use cluster::{RepairSettings, Time};

/// Parts of a second for which unused bytes are kept.
const BURST_DIVISOR: u64 = 8;

/// See the module. Nothing that a request waits for asks it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    paused: bool,
    /// This worker's share of the node's rate; 0 = no limit.
    bytes_per_second: u64,
    /// Most memory of the node that open repairs take; 0 = no limit.
    memory_bytes: u64,
    /// What may go now; below 0 after a piece that was larger than what was left.
    left_bytes: i64,
    filled_at: Time,
}

impl Pace {
    /// The operators want it so from now on; the rate is shared by `shards` workers.
    pub(crate) fn set(&mut self, settings: RepairSettings, shards: u16) {
        let share = settings.bytes_per_second.div_ceil(u64::from(shards.max(1)));
        self.left_bytes = self.left_bytes.min(burst(share));
        (self.paused, self.bytes_per_second) = (settings.paused, share);
        self.memory_bytes = settings.memory_bytes;
    }

    /// Whether a piece of background work may begin.
    pub(crate) fn allows(&mut self, now: Time) -> bool {
        if self.paused || self.bytes_per_second == 0 {
            return !self.paused;
        }
        let elapsed_us = now.since(self.filled_at);
        let earned = u128::from(elapsed_us) * u128::from(self.bytes_per_second) / 1_000_000;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.left_bytes = self.left_bytes.saturating_add(earned).min(burst(self.bytes_per_second));
            self.filled_at = now;
        }
        self.left_bytes > 0
    }

    /// A piece of `bytes` has begun.
    pub(crate) fn spend(&mut self, bytes: usize) {
        if self.bytes_per_second > 0 {
            self.left_bytes = self.left_bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Whether repairs that hold `used` bytes of this node may take `more`.
    pub(crate) fn has_memory(&self, used: u64, more: usize) -> bool {
        self.memory_bytes == 0 || used.saturating_add(more as u64) <= self.memory_bytes
    }
}

/// Most bytes that may go at once.
fn burst(bytes_per_second: u64) -> i64 {
    i64::try_from((bytes_per_second / BURST_DIVISOR).max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 64 << 10;

    /// Bytes that go in a second if somebody asks every 10 ms.
    fn in_one_second(pace: &mut Pace, start: Time) -> usize {
        let mut gone = 0;
        for ms in (0..1000).step_by(10) {
            while pace.allows(start + ms * 1000) && gone < 1 << 30 {
                pace.spend(PIECE);
                gone += PIECE;
            }
        }
        gone
    }

    #[test]
    fn a_limit_holds_and_none_does_not() {
        let mut pace = Pace::default();
        assert!(in_one_second(&mut pace, Time(0)) >= 1 << 30, "no limit");
        let settings = RepairSettings { bytes_per_second: 8 << 20, ..RepairSettings::default() };
        pace.set(settings, 2);
        let gone = in_one_second(&mut pace, Time(5_000_000));
        let share = 4 << 20;
        assert!((share / 2..share + share / 4).contains(&gone), "{gone} of {share}");
        let after_a_pause = in_one_second(&mut pace, Time(500_000_000));
        assert!(after_a_pause < share + share / 4, "a long pause is no excuse: {after_a_pause}");
    }

    #[test]
    fn a_piece_larger_than_the_bucket_is_paid_back() {
        let mut pace = Pace::default();
        pace.set(RepairSettings { bytes_per_second: 64 << 10, ..RepairSettings::default() }, 1);
        assert!(pace.allows(Time(1_000_000)));
        pace.spend(PIECE);
        assert!(!pace.allows(Time(1_500_000)));
        assert!(pace.allows(Time(2_000_000)));
    }

    #[test]
    fn a_pause_stops_all_and_memory_has_its_bound() {
        let mut pace = Pace::default();
        pace.set(RepairSettings { paused: true, bytes_per_second: 0, memory_bytes: 1 << 20 }, 1);
        assert!(!pace.allows(Time(1)));
        assert!(pace.has_memory(960 << 10, PIECE) && !pace.has_memory(961 << 10, PIECE));
        pace.set(RepairSettings::default(), 1);
        assert!(pace.allows(Time(2)) && pace.has_memory(u64::MAX, PIECE));
    }
}
