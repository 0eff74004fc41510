//! When a coordinator was there, and heard enough: silence of others counts only while it did.

use types::Time;

/// See the module. All times are of the coordinator's own clock.
#[derive(Default)]
pub(super) struct Attention {
    last_tick: Option<Time>,
    /// When it last did anything, and the end of its last absence.
    last_active: Option<Time>,
    away_until: Time,
    /// When most processes were silent last: nobody is given up then.
    heard_too_few: Time,
    /// When it heard too few for anything to be in force last.
    undecided: Time,
    /// When it was last able to decide anything.
    presided: Time,
}

impl Attention {
    /// It begins now, and has heard nobody yet.
    pub(super) fn begin(&mut self, now: Time) {
        self.last_active = Some(now);
        self.away_until = now;
    }

    /// It does something. For how much longer than `tick_us` it had done nothing, if that is more than `most_us`: it was away.
    pub(super) fn wake(&mut self, now: Time, tick_us: u64, most_us: u64) -> Option<u64> {
        let late_us = self.last_active.map_or(0, |at| now.since(at).saturating_sub(tick_us));
        self.last_active = Some(now);
        let away = late_us > most_us;
        if away {
            self.away_until = now;
        }
        away.then_some(late_us)
    }

    /// When it last did anything.
    pub(super) fn last_active(&self) -> Option<Time> {
        self.last_active
    }

    pub(super) fn note_tick(&mut self, now: Time) {
        self.last_tick = Some(now);
    }

    /// When the next tick is due.
    pub(super) fn next_tick(&self, tick_us: u64) -> Time {
        self.last_tick.map_or(Time(0), |at| at + tick_us)
    }

    /// For how long it has not been away.
    pub(super) fn awake_us(&self, now: Time) -> u64 {
        now.since(self.away_until)
    }

    /// It hears too few for anything to be in force.
    pub(super) fn note_undecided(&mut self, now: Time) {
        self.undecided = now;
    }

    /// It is able to decide.
    pub(super) fn note_presided(&mut self, now: Time) {
        self.presided = now;
    }

    /// Most processes are silent.
    pub(super) fn note_too_few(&mut self, now: Time) {
        self.heard_too_few = now;
    }

    /// Whether it was able to decide when it looked last.
    pub(super) fn presides(&self) -> bool {
        self.presided >= self.undecided
    }

    /// When it was last able to decide anything.
    pub(super) fn presided(&self) -> Time {
        self.presided
    }

    /// From when on silence makes a lease run out: the first of many that come back together is heard before the others are.
    pub(super) fn leases_count_from(&self) -> Time {
        self.undecided
    }

    /// From when on silence makes a process be given up.
    pub(super) fn losses_count_from(&self) -> Time {
        self.heard_too_few.max(self.undecided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_what_is_longer_than_a_tick_and_a_little() {
        let mut attention = Attention::default();
        assert_eq!(attention.wake(Time(1_000), 50, 200), None, "it has only begun");
        assert_eq!(attention.wake(Time(1_250), 50, 200), None);
        assert_eq!(attention.wake(Time(2_000), 50, 200), Some(700));
        assert_eq!(attention.awake_us(Time(2_100)), 100);
    }

    #[test]
    fn silence_counts_from_when_it_was_heard_that_there_was_some() {
        let mut attention = Attention::default();
        attention.note_presided(Time(5));
        attention.note_undecided(Time(10));
        assert!(!attention.presides());
        attention.note_presided(Time(11));
        attention.note_too_few(Time(20));
        assert!(attention.presides());
        assert_eq!((attention.leases_count_from(), attention.losses_count_from()), (Time(10), Time(20)));
    }
}
