//! Which values a client codes itself.
//!
//! `Auto` does so as long as that goes well. Each value that had to go through a node after all is a reason to leave the next ones to
//! nodes for a while, which doubles; one that went well ends that. A value that a node says lies whole at one member, or has to, is a
//! reason not to ask about shorter ones. Among what may be tried the [`Choice`] is made by how long it takes.

use types::Time;

use super::choice::{By, Choice, Estimate, Trip};
use super::pace::Pace;

/// First pause, and how often it doubles.
const PAUSE_US: u64 = 250_000;
const DOUBLINGS: u32 = 7;

/// Who codes values in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// A node.
    Server,
    /// This client.
    Client,
    /// This client, unless that did not go well, or takes longer.
    #[default]
    Auto,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    coding: Coding,
    /// Failures in a row, and until when nothing is tried.
    failed: u32,
    pauses_until: Time,
    /// Values up to this length are not asked about until then.
    packed_up_to: u64,
    packed_until: Time,
    choice: Choice,
}

impl Policy {
    pub(crate) fn new(coding: Coding) -> Self {
        let (pauses_until, packed_until, choice) = (Time(0), Time(0), Choice::default());
        Self { coding, failed: 0, pauses_until, packed_up_to: 0, packed_until, choice }
    }

    /// Whether a value is to be read, or one of `len` bytes to be written, here; and its trip, where that is measured.
    pub(crate) fn begin(&mut self, now: Time, len: Option<u64>, pace: &Pace) -> (bool, Option<Trip>) {
        if self.coding != Coding::Auto || self.is_short(now, len) {
            return (self.tries(now, len), None);
        }
        let trip = self.choice.begin(now, len, self.tries(now, len), pace);
        (trip.by == By::Client, Some(trip))
    }

    /// A value of so many bytes has come to its end, which says how long such values take if `is_sample`.
    pub(crate) fn end(&mut self, now: Time, trip: Trip, len: u64, is_sample: bool) {
        self.choice.end(now, trip, len, is_sample);
    }

    /// How often the way of values was changed.
    pub(crate) fn turns(&self) -> u64 {
        self.choice.turns()
    }

    /// How long values take by either way.
    pub(crate) fn estimates(&self) -> Vec<Estimate> {
        self.choice.estimates().collect()
    }

    /// Whether it may be tried.
    fn tries(&self, now: Time, len: Option<u64>) -> bool {
        match self.coding {
            Coding::Server => false,
            Coding::Client => !self.is_short(now, len),
            Coding::Auto => !self.is_short(now, len) && now >= self.pauses_until,
        }
    }

    fn is_short(&self, now: Time, len: Option<u64>) -> bool {
        len.is_some_and(|len| len <= self.packed_up_to) && now < self.packed_until
    }

    /// The same of a value that the caller feeds, of `len` bytes: by what is known of values that were there as a whole. How long it takes
    /// says more of its caller than of its way, so it tries none, and its trip is no sample.
    pub(crate) fn begin_fed(&mut self, now: Time, len: u64, pace: &Pace) -> (bool, Option<Trip>) {
        let tries = self.tries(now, Some(len));
        if self.coding != Coding::Auto || self.is_short(now, Some(len)) {
            return (tries, None);
        }
        let trip = self.choice.begin_fed(now, len, tries, pace);
        (trip.by == By::Client, Some(trip))
    }

    /// One has gone well.
    pub(crate) fn goes_well(&mut self) {
        self.failed = 0;
    }

    /// One has to go through a node after all.
    pub(crate) fn fails(&mut self, now: Time) {
        self.pauses_until = now + (PAUSE_US << self.failed.min(DOUBLINGS));
        self.failed += 1;
    }

    /// One of so many bytes is not to be put into chunks.
    pub(crate) fn is_not_direct(&mut self, now: Time, len: u64) {
        let known = if now < self.packed_until { self.packed_up_to } else { 0 };
        self.packed_up_to = len.max(known);
        self.packed_until = now + (PAUSE_US << DOUBLINGS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Policy {
        fn begins(&mut self, now: u64, len: Option<u64>) -> bool {
            self.begin(Time(now), len, &Pace::default()).0
        }
    }

    #[test]
    fn what_does_not_go_well_is_left_to_nodes_for_longer_and_longer() {
        let mut policy = Policy::new(Coding::Auto);
        assert!(policy.begins(1, None));
        policy.fails(Time(1));
        policy.fails(Time(1));
        let until = 1 + 2 * PAUSE_US;
        assert_eq!([until - 1, until].map(|now| policy.begins(now, None)), [false, true]);
        policy.goes_well();
        policy.fails(Time(0));
        assert!(policy.begins(PAUSE_US, None));
        let mut client = Policy::new(Coding::Client);
        client.fails(Time(1));
        assert!(client.begins(1, None), "whoever wants it has it");
        assert!(!Policy::new(Coding::Server).begins(1, None));
    }

    #[test]
    fn what_is_fed_is_left_to_nodes_after_a_failure_too() {
        let mut policy = Policy::new(Coding::Auto);
        let fed = |policy: &mut Policy, now| policy.begin_fed(Time(now), 1_000_000, &Pace::default()).0;
        assert!(fed(&mut policy, 1));
        policy.fails(Time(1));
        assert_eq!([PAUSE_US, 1 + PAUSE_US].map(|now| fed(&mut policy, now)), [false, true]);
        policy.is_not_direct(Time(1 + PAUSE_US), 1_000_000);
        assert!(!fed(&mut policy, 2 + PAUSE_US));
        let ways = [Coding::Server, Coding::Client].map(|coding| fed(&mut Policy::new(coding), 1));
        assert_eq!(ways, [false, true]);
    }

    #[test]
    fn short_values_are_not_asked_about_again_and_again() {
        let mut policy = Policy::new(Coding::Client);
        policy.is_not_direct(Time(1), 100_000);
        assert_eq!([100_000, 100_001].map(|len| policy.begins(2, Some(len))), [false, true]);
        assert!(policy.begins(1 + (PAUSE_US << DOUBLINGS), Some(1)), "the namespace may have another rule");
    }
}
