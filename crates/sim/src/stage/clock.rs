//! A node's own clocks: the monotonic one starts anywhere and runs a little fast or slow; that of the wall is ahead or
//! behind, and steps.

use proto::Now;
use rng::Rng;
use types::{Time, UnixSeconds};

use crate::options::{Options, purpose};

/// Wall time at the start.
const FIRST_SECOND: u32 = 1_000_000;
/// Parts in which a drift is given.
const PPM: i64 = 1_000_000;

/// Maps virtual time to what one node reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    offset: u64,
    drift_ppm: i64,
}

/// How far clocks of the wall are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClocks {
    /// Most seconds by which one is ahead or behind.
    pub spread: u32,
    /// How long it stays so, in virtual time; then it steps.
    pub steady_us: u64,
}

impl WallClocks {
    /// All show the right time.
    pub const EXACT: Self = Self { spread: 0, steady_us: u64::MAX };
}

impl Clock {
    /// By how much the clock of the wall is off at virtual time `at`.
    pub(crate) fn wall_is_off(&self, at: u64, clocks: WallClocks) -> i32 {
        if clocks.spread == 0 {
            return 0;
        }
        // With the offset, so that the clocks do not all step at one moment. The step is the seed of its own draw:
        // whoever asks, and however often, is told the same.
        let step = (self.offset + at) / clocks.steady_us;
        let off = Rng::new(self.offset ^ step, purpose::WALL).below(2 * u64::from(clocks.spread) + 1);
        off as i32 - clocks.spread as i32
    }

    pub(crate) fn new(offset: u64, drift_ppm: i64) -> Self {
        debug_assert!(drift_ppm.abs() < PPM / 10);
        Self { offset, drift_ppm }
    }

    /// A clock of a new process.
    pub(crate) fn draw(rng: &mut Rng, drift_ppm: i64) -> Self {
        let drift = rng.below(2 * drift_ppm as u64 + 1) as i64 - drift_ppm;
        // Offsets of up to twelve days: a time of one process, taken for one of another, goes
        // wrong by so much that it shows.
        Self::new(rng.below(1 << 40), drift)
    }

    /// What the clock shows at virtual time `at`.
    pub(crate) fn read(&self, at: u64) -> Time {
        Time(self.offset + at.wrapping_add_signed(at as i64 * self.drift_ppm / PPM))
    }

    /// The first virtual time, not before `now`, at which the clock shows `time` or later; none if that is never.
    pub(crate) fn when(&self, time: Time, now: u64) -> Option<u64> {
        if time.0 == u64::MAX {
            return None;
        }
        if self.read(now) >= time {
            return Some(now);
        }
        let shown = time.0.saturating_sub(self.offset);
        let mut at = (u128::from(shown) * PPM as u128 / (PPM + self.drift_ppm) as u128) as u64;
        // Both divisions round, here and in `read`, so the first guess may be a little too early.
        while self.read(at) < time {
            at += 1;
        }
        Some(at.max(now))
    }
}

/// The true wall time at virtual time `at`.
pub(crate) fn unix_at(options: &Options, at: u64) -> UnixSeconds {
    UnixSeconds(FIRST_SECOND + (at / options.second_us) as u32)
}

/// The least that any clock of the wall shows from virtual time `at` on, and the most that any has shown until then.
pub(crate) fn unix_bounds(options: &Options, at: u64) -> (UnixSeconds, UnixSeconds) {
    let UnixSeconds(second) = unix_at(options, at);
    (UnixSeconds(second - options.wall.spread), UnixSeconds(second + options.wall.spread))
}

/// Both clocks, as a process reads them at virtual time `at`.
pub(crate) fn now_at(options: &Options, clock: &Clock, at: u64) -> Now {
    let unix = unix_at(options, at).0.saturating_add_signed(clock.wall_is_off(at, options.wall));
    Now { time: clock.read(at), unix: UnixSeconds(unix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_the_wall_steps_within_its_bounds() {
        let (clock, clocks) = (Clock::new(77, 0), WallClocks { spread: 2, steady_us: 1_000 });
        let off: std::collections::BTreeSet<i32> =
            (0..100).map(|step| clock.wall_is_off(step * 1_000, clocks)).collect();
        assert_eq!(off.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
        assert!((0..100_000).all(|at| clock.wall_is_off(at, WallClocks::EXACT) == 0));
    }

    #[test]
    fn a_deadline_is_never_reached_too_early() {
        for drift in [-10_000, -1, 0, 100, 10_000] {
            let clock = Clock::new(77, drift);
            for deadline in [0, 77, 78, 1_000, 123_456_789, 1 << 40] {
                let at = clock.when(Time(deadline), 5).unwrap();
                assert!(clock.read(at) >= Time(deadline) && at >= 5);
                assert!(at <= 5 || clock.read(at - 2) < Time(deadline), "{drift} {deadline}");
            }
            assert_eq!(clock.when(Time(u64::MAX), 5), None);
        }
    }
}
