//! The only place that reads clocks: state machines get the time as an argument.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cluster::{Incarnation, Time, UnixSeconds};
use proto::Now;

/// Monotonic time since the node's start, and wall time. Cheap to copy; all threads of a node share one origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

/// Where a node's monotonic time starts: above 0, so that "before the start" can be expressed.
const ORIGIN_US: u64 = 1_000_000_000;

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Monotonic time.
    pub(crate) fn time(&self) -> Time {
        Time(ORIGIN_US + micros(self.origin.elapsed().as_micros()))
    }

    /// Both clocks.
    pub(crate) fn now(&self) -> Now {
        Now { time: self.time(), unix: unix_seconds() }
    }

    /// The runtime's instant for `time`, none if it lies beyond any sensible future.
    pub(crate) fn instant(&self, time: Time) -> Option<tokio::time::Instant> {
        let after = std::time::Duration::from_micros(time.0.saturating_sub(ORIGIN_US));
        self.origin.checked_add(after).map(tokio::time::Instant::from_std)
    }

    /// Seconds since the start.
    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.origin.elapsed().as_secs()
    }
}

/// Wall time in seconds.
pub(crate) fn unix_seconds() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds(u32::try_from(since.as_secs()).unwrap_or(u32::MAX))
}

/// A number for this start of a node, larger than that of any start before it.
pub(crate) fn new_incarnation() -> Incarnation {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Incarnation(micros(since.as_micros()))
}

fn micros(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_the_inverse_of_a_time() {
        let clock = Clock::start();
        let later = clock.time() + 5_000_000;
        let wait =
            clock.instant(later).expect("five seconds from now").duration_since(tokio::time::Instant::now());
        assert!((4.0..=5.0).contains(&wait.as_secs_f64()), "{wait:?}");
        assert_eq!(clock.instant(Time(u64::MAX)).map(|_| ()), clock.instant(Time(u64::MAX - 1)).map(|_| ()));
    }

    #[test]
    fn incarnations_grow() {
        let first = new_incarnation();
        while new_incarnation() == first {}
        assert!(new_incarnation() > first);
    }
}
