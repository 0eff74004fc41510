//! When a machine's timers are due: one time for each kind.
//!
//! A part says what it waits for next; the machine sets its timers by that whenever a batch of events is over. So a timer is never
//! cancelled, and what is due is only ever asked of the table.

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
    /// Each timer is due when `at` says, whatever it was before.
    pub(crate) fn set<K: Kind>(&mut self, mut at: impl FnMut(K) -> Time) {
        self.first = Time::NEVER;
        for timer in K::ALL {
            let at = at(*timer);
            self.due[timer.index()] = at;
            self.first = self.first.min(at);
        }
    }

    /// When the first one is due.
    pub(crate) fn next(&self) -> Time {
        self.first
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
        let pots = |tea, eggs| {
            move |pot| match pot {
                Pot::Tea => tea,
                Pot::Eggs => eggs,
            }
        };
        timers.set(pots(Time(3), Time(5)));
        assert_eq!(timers.next(), Time(3));
        assert_eq!(timers.due(Time(2)).collect::<Vec<Pot>>(), []);
        assert_eq!(timers.due(Time(5)).collect::<Vec<Pot>>(), [Pot::Tea, Pot::Eggs]);
        timers.set(pots(Time::NEVER, Time(5)));
        assert_eq!(timers.due(Time(9)).collect::<Vec<Pot>>(), [Pot::Eggs]);
    }
}
