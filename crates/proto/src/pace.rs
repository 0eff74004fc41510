//! How fast this host rebuilds in the background: a bucket of bytes that all members here draw from.

use types::{Layout, ScrubSettings, Time};

/// Parts of a second for which unused bytes are kept.
const BURST_DIVISOR: u64 = 8;

/// See the module. Nothing that a request waits for asks it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    paused: bool,
    /// Of all background work.
    all: Bucket,
    /// Most memory of the node that open repairs take; 0 = no limit.
    memory_bytes: u64,
    scrub: ScrubSettings,
    /// Of scrubs alone.
    scrubs: Bucket,
}

/// A rate.
#[derive(Debug, Default)]
struct Bucket {
    /// This worker's share of the node's rate; 0 = no limit.
    bytes_per_second: u64,
    /// What may go now; below 0 after a piece that was larger than what was left.
    left_bytes: i64,
    filled_at: Time,
}

impl Bucket {
    fn set(&mut self, bytes_per_second: u64) {
        // What was saved up under a higher rate must not go at once under a lower one.
        self.left_bytes = self.left_bytes.min(burst(bytes_per_second));
        self.bytes_per_second = bytes_per_second;
    }

    fn allows(&mut self, now: Time) -> bool {
        if self.bytes_per_second == 0 {
            return true;
        }
        let elapsed_us = now.since(self.filled_at);
        let earned = u128::from(elapsed_us) * u128::from(self.bytes_per_second) / 1_000_000;
        // Else the fraction of a byte would be lost with each question, and all of it if these are frequent.
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.left_bytes = self.left_bytes.saturating_add(earned).min(burst(self.bytes_per_second));
            self.filled_at = now;
        }
        self.left_bytes > 0
    }

    /// From when on it allows something, if nothing is spent before.
    fn resumes_at(&self, now: Time) -> Time {
        if self.bytes_per_second == 0 || self.left_bytes > 0 {
            return now;
        }
        let lacking = u128::from(self.left_bytes.unsigned_abs()) + 1;
        let us = (lacking * 1_000_000).div_ceil(u128::from(self.bytes_per_second));
        self.filled_at + u64::try_from(us).unwrap_or(u64::MAX)
    }

    fn spend(&mut self, bytes: usize) {
        if self.bytes_per_second > 0 {
            self.left_bytes = self.left_bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

impl Pace {
    /// The operators want it so from now on; rates are shared by `shards` workers.
    pub(crate) fn set(&mut self, layout: &Layout, shards: u16) {
        // Rounded up: a share of 0 would mean that there is no limit.
        let share = |rate: u64| rate.div_ceil(u64::from(shards.max(1)));
        self.all.set(share(layout.repair.bytes_per_second));
        self.scrubs.set(share(layout.scrub.bytes_per_second));
        self.paused = layout.repair.paused;
        self.memory_bytes = layout.repair.memory_bytes;
        self.scrub = layout.scrub;
    }

    /// What the operators want compared.
    pub(crate) fn scrub(&self) -> ScrubSettings {
        self.scrub
    }

    /// Whether a piece of background work may begin.
    pub(crate) fn allows(&mut self, now: Time) -> bool {
        !self.paused && self.all.allows(now)
    }

    /// From when on a piece of background work may begin, if none does before.
    pub(crate) fn resumes_at(&self, now: Time) -> Time {
        if self.paused { Time::NEVER } else { self.all.resumes_at(now) }
    }

    /// The same of a piece of a scrub.
    pub(crate) fn scrub_resumes_at(&self, now: Time) -> Time {
        self.resumes_at(now).max(self.scrubs.resumes_at(now))
    }

    /// A piece of `bytes` has begun.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.all.spend(bytes);
    }

    /// Whether a piece of a scrub may begin.
    pub(crate) fn allows_scrub(&mut self, now: Time) -> bool {
        self.allows(now) && self.scrubs.allows(now)
    }

    /// A scrub of `bytes` has begun.
    pub(crate) fn spend_scrub(&mut self, bytes: usize) {
        self.all.spend(bytes);
        self.scrubs.spend(bytes);
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
    use types::RepairSettings;

    use super::*;

    fn limited(repair: RepairSettings) -> Layout {
        Layout { repair, ..Layout::default() }
    }

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
        pace.set(&limited(settings), 2);
        let gone = in_one_second(&mut pace, Time(5_000_000));
        let share = 4 << 20;
        assert!((share / 2..share + share / 4).contains(&gone), "{gone} of {share}");
        let after_a_pause = in_one_second(&mut pace, Time(500_000_000));
        assert!(after_a_pause < share + share / 4, "a long pause is no excuse: {after_a_pause}");
    }

    #[test]
    fn a_piece_larger_than_the_bucket_is_paid_back() {
        let mut pace = Pace::default();
        pace.set(&limited(RepairSettings { bytes_per_second: 64 << 10, ..RepairSettings::default() }), 1);
        assert!(pace.allows(Time(1_000_000)));
        pace.spend(PIECE);
        assert!(!pace.allows(Time(1_500_000)));
        let resumes_at = pace.resumes_at(Time(1_500_000));
        assert!(resumes_at > Time(1_500_000) && resumes_at <= Time(2_000_000), "{resumes_at:?}");
        assert!(pace.allows(resumes_at) && pace.allows(Time(2_000_000)));
    }

    #[test]
    fn a_pause_stops_all_and_memory_has_its_bound() {
        let mut pace = Pace::default();
        pace.set(&limited(RepairSettings { paused: true, bytes_per_second: 0, memory_bytes: 1 << 20 }), 1);
        assert!(!pace.allows(Time(1)));
        assert!(pace.has_memory(960 << 10, PIECE) && !pace.has_memory(961 << 10, PIECE));
        pace.set(&Layout::default(), 1);
        assert!(pace.allows(Time(2)) && pace.has_memory(u64::MAX, PIECE));
    }

    #[test]
    fn a_scrub_has_a_rate_of_its_own_within_that_of_repair() {
        let mut pace = Pace::default();
        let repair = RepairSettings { bytes_per_second: 8 << 20, ..RepairSettings::default() };
        let scrub = ScrubSettings { bytes_per_second: 64 << 10, ..ScrubSettings::default() };
        pace.set(&Layout { scrub, ..limited(repair) }, 1);
        assert!(pace.allows_scrub(Time(1_000_000)));
        pace.spend_scrub(PIECE);
        assert!(!pace.allows_scrub(Time(1_500_000)) && pace.allows(Time(1_500_000)));
        while pace.allows(Time(3_000_000)) {
            pace.spend(PIECE);
        }
        assert!(!pace.allows_scrub(Time(3_000_000)), "repair comes first");
    }
}
