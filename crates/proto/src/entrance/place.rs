//! A place that is taken: while the coordinator says that another process has the id, a process asks again at every
//! heartbeat. Mostly that other one is its own former process, which nobody has seen end, and whose lease has to run out.

use types::{Epoch, Time};

/// For how many leases of the cluster a process waits for its place, under one coordinator.
///
/// A dead one gives its place up one lease after its last heartbeat, or two leases after the election of this coordinator,
/// which all nodes have one lease to find. The rest is for a coordinator that is itself away now and then: nobody's silence
/// counts for that time. A living one keeps its place for ever, and whoever started the second one has to hear of it.
const PATIENCE_LEASES: u64 = 5;

/// What a process knows of its place in the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    wait: Option<Wait>,
    /// What was said last has not been answered by a new registration yet.
    asks: bool,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    /// By the newest coordinator that said so.
    told_by: Epoch,
    told: Time,
    waited_us: u64,
}

/// What follows from [`Place::occupied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The wait begins; as long as this coordinator answers it lasts for so many microseconds at most.
    Begins(u64),
    /// It goes on.
    Lasts,
    /// It is over: the other process lives.
    Ends,
}

impl Place {
    /// The coordinator of `epoch` says that another process has the id, and that leases last for `lease_us`.
    pub(super) fn occupied(&mut self, now: Time, lease_us: u64, epoch: Epoch) -> Patience {
        self.asks = true;
        let most_us = lease_us.saturating_mul(PATIENCE_LEASES);
        let begun = Wait { told_by: epoch, told: now, waited_us: 0 };
        let Some(wait) = &mut self.wait else {
            self.wait = Some(begun);
            return Patience::Begins(most_us);
        };
        if wait.told_by < epoch {
            *wait = begun;
            return Patience::Lasts;
        }
        // In the time beyond that the coordinator was away, and the other process could not be heard either.
        let counted_us = now.since(wait.told).min(lease_us / 4);
        wait.waited_us = wait.waited_us.saturating_add(counted_us);
        wait.told = now;
        if wait.waited_us < most_us { Patience::Lasts } else { Patience::Ends }
    }

    /// The coordinator counts this process as one of its nodes. Returns whether it had to wait for that.
    pub(super) fn admitted(&mut self) -> bool {
        self.asks = false;
        self.wait.take().is_some()
    }

    /// Whether this heartbeat is to be a registration instead.
    pub(super) fn asks_again(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: u64 = 1_000_000;
    const BEAT: u64 = LEASE / 5;

    fn told(entrance: &mut Place, at: u64) -> Patience {
        entrance.occupied(Time(at), LEASE, Epoch(1))
    }

    /// Told at every heartbeat of this time.
    fn told_from(entrance: &mut Place, from: u64, until: u64) -> Option<Patience> {
        (from..until).step_by(BEAT as usize).map(|at| told(entrance, at)).last()
    }

    #[test]
    fn a_process_whose_place_is_taken_registers_again_until_it_is_admitted() {
        let mut entrance = Place::default();
        assert!(!entrance.asks_again());
        assert_eq!(told(&mut entrance, 7), Patience::Begins(5 * LEASE));
        assert!(entrance.asks_again());
        assert!(!entrance.asks_again(), "once for every time that it is told");
        assert_eq!(told(&mut entrance, 7 + BEAT), Patience::Lasts);
        assert!(entrance.admitted());
        assert!(!entrance.asks_again() && !entrance.admitted());
    }

    #[test]
    fn it_waits_for_five_leases_and_no_longer() {
        let mut entrance = Place::default();
        assert_eq!(told_from(&mut entrance, 0, 5 * LEASE), Some(Patience::Lasts));
        assert_eq!(told(&mut entrance, 5 * LEASE), Patience::Ends);
    }

    #[test]
    fn time_without_a_coordinator_hardly_counts() {
        let mut entrance = Place::default();
        let patience: Vec<_> = (0..=20).map(|time| told(&mut entrance, time * 100 * LEASE)).collect();
        assert!(patience[1..20].iter().all(|patience| *patience == Patience::Lasts));
        assert_eq!(patience[20], Patience::Ends, "an end there is all the same");
    }

    #[test]
    fn under_a_new_coordinator_the_wait_begins_anew() {
        let mut entrance = Place::default();
        told_from(&mut entrance, 0, 5 * LEASE);
        assert_eq!(entrance.occupied(Time(5 * LEASE), LEASE, Epoch(2)), Patience::Lasts);
        // What the former one had sent still counts as time.
        assert_eq!(told_from(&mut entrance, 5 * LEASE, 10 * LEASE), Some(Patience::Lasts));
        assert_eq!(told(&mut entrance, 10 * LEASE), Patience::Ends);
    }

    #[test]
    fn after_it_was_admitted_a_wait_begins_anew() {
        let mut entrance = Place::default();
        told_from(&mut entrance, 0, 4 * LEASE);
        entrance.admitted();
        assert_eq!(told(&mut entrance, 9 * LEASE), Patience::Begins(5 * LEASE));
    }

    #[test]
    fn no_lease_is_too_long_or_too_short_to_count_with() {
        for (lease, expected) in [(0, Patience::Ends), (u64::MAX, Patience::Lasts)] {
            let mut entrance = Place::default();
            entrance.occupied(Time(0), lease, Epoch(1));
            assert_eq!(entrance.occupied(Time(u64::MAX / 2), lease, Epoch(1)), expected);
        }
    }
}
