//! When a machine's timers are due: one time for each kind.
//!
//! A part says what it waits for next; the machine sets up its table anew by that whenever a batch of events is over. So a timer is
//! never cancelled, and what is due is only ever asked of the table.

use types::Time;

/// The kinds of timers of one machine.
pub(crate) trait Kind: Copy + 'static {
    /// All of them, in the order in which they run if several are due; each at the place that is its [`Kind::index`].
    const ALL: &'static [Self];

    /// Its place in the table.
    fn index(self) -> usize;
}

/// When each of the `N` timers of a machine is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerTable<const N: usize> {
    due: [Time; N],
    /// The first of them.
    first: Time,
}

impl<const N: usize> Default for TimerTable<N> {
    fn default() -> Self {
        Self { due: [Time::NEVER; N], first: Time::NEVER }
    }
}

impl<const N: usize> TimerTable<N> {
    /// `timer`, which was not set yet, is due at `at`.
    #[inline]
    pub(crate) fn set(&mut self, timer: impl Kind, at: Time) {
        self.due[timer.index()] = at;
        self.first = self.first.min(at);
    }

    /// `timer` is due at `at`, whatever it was before.
    #[inline]
    pub(crate) fn set_again(&mut self, timer: impl Kind, at: Time) {
        let before = std::mem::replace(&mut self.due[timer.index()], at);
        if at < self.first {
            self.first = at;
        } else if before == self.first {
            // It was the first one, and any other may be that now.
            self.first = self.due.iter().copied().min().unwrap_or(Time::NEVER);
        }
    }

    /// `timer` is due at `at`, unless it is sooner.
    pub(crate) fn set_at_the_latest(&mut self, timer: impl Kind, at: Time) {
        let due = &mut self.due[timer.index()];
        *due = at.min(*due);
        self.first = self.first.min(at);
    }

    /// The first timer, by its place, that is due later than in `other`. Earlier does no harm: then there is nothing to do yet.
    pub(crate) fn later_than(&self, other: &Self) -> Option<usize> {
        self.due.iter().zip(&other.due).position(|(own, other)| own > other)
    }

    /// When the first one is due.
    pub(crate) fn next(&self) -> Time {
        self.first
    }

    /// Whether `timer` is due.
    pub(crate) fn is_due(&self, timer: impl Kind, now: Time) -> bool {
        self.due[timer.index()] <= now
    }

    /// Those that are due. Each is set anew after it has run.
    pub(crate) fn due<K: Kind>(&self, now: Time) -> impl Iterator<Item = K> + use<K, N> {
        let due = self.due;
        K::ALL.iter().copied().filter(move |timer| due[timer.index()] <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Pot {
        Tea,
        Eggs,
    }

    impl Kind for Pot {
        const ALL: &'static [Self] = &[Self::Tea, Self::Eggs];

        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn what_is_due_runs_in_its_order_and_the_first_one_counts() {
        let mut timers = TimerTable::<2>::default();
        assert_eq!(timers.next(), Time::NEVER);
        timers.set(Pot::Eggs, Time(5));
        timers.set(Pot::Tea, Time(3));
        assert_eq!(timers.next(), Time(3));
        assert_eq!(timers.due(Time(2)).collect::<Vec<Pot>>(), []);
        assert_eq!(timers.due(Time(5)).collect::<Vec<Pot>>(), [Pot::Tea, Pot::Eggs]);
        timers.set_again(Pot::Tea, Time::NEVER);
        assert_eq!(timers.next(), Time(5));
        timers.set_at_the_latest(Pot::Eggs, Time(6));
        assert_eq!((timers.next(), timers.is_due(Pot::Eggs, Time(5))), (Time(5), true));
        timers.set_at_the_latest(Pot::Eggs, Time(4));
        assert_eq!((timers.next(), timers.is_due(Pot::Tea, Time(5))), (Time(4), false));
        assert_eq!(timers.due(Time(9)).collect::<Vec<Pot>>(), [Pot::Eggs]);
    }
}
