//! The only place that reads clocks: state machines get the time as an argument.
//!
//! Leases are counted by a clock that goes on while the machine is suspended (`CLOCK_BOOTTIME`): the others' clocks have
//! gone on, too. The runtime's timers, which do not, only wake; whoever they wake asks this clock what is due.

#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::Now;
use types::{Incarnation, Time, UnixSeconds};

/// Time since the node's start, and wall time. Cheap to copy; all threads of a node share one origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Reads the clock of the leases.
    read: fn() -> Duration,
    origin: Duration,
}

/// Where a node's time starts: above 0, so that "before the start" can be expressed.
const ORIGIN_US: u64 = 1_000_000_000;

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self::reading(since_boot)
    }

    fn reading(read: fn() -> Duration) -> Self {
        Self { read, origin: read() }
    }

    fn elapsed(&self) -> Duration {
        (self.read)().saturating_sub(self.origin)
    }

    /// Monotonic time, suspensions included.
    pub(crate) fn time(&self) -> Time {
        Time(ORIGIN_US + micros(self.elapsed().as_micros()))
    }

    /// Both clocks.
    pub(crate) fn now(&self) -> Now {
        Now { time: self.time(), unix: unix_seconds() }
    }

    /// The runtime's instant for `time`, unless the machine is suspended until then; none if it lies beyond any sensible
    /// future.
    pub(crate) fn instant(&self, time: Time) -> Option<tokio::time::Instant> {
        let wait = Duration::from_micros(time.since(self.time()));
        tokio::time::Instant::now().checked_add(wait)
    }

    /// Seconds since the start.
    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.elapsed().as_secs()
    }
}

/// Time since the machine was started, suspensions included.
#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    use nix::time::ClockId;
    // A sandbox may know the second only.
    let now = ClockId::CLOCK_BOOTTIME.now().or_else(|_| ClockId::CLOCK_MONOTONIC.now());
    now.expect("POSIX has a monotonic clock").into()
}

/// Time since the first call; whether suspensions are included is up to the system.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
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
