//! When a coordinator was there, and heard enough: silence of others counts only while it did.

use types::Time;

/// See the module. All times are of the coordinator's own clock.
pub(super) struct Attention {
    /// When it last did anything, and the end of its last absence.
    last_active: Option<Time>,
    away_until: Time,
    /// Whether it hears enough for what it decides to be in force, and since when.
    decides: bool,
    decides_since: Time,
    /// When it was last able to decide anything.
    presided: Time,
    /// Whether most processes are silent, and since when they are not: nobody is given up meanwhile.
    hears_few: bool,
    hears_most_since: Time,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            last_active: None,
            away_until: Time(0),
            decides: true,
            decides_since: Time(0),
            presided: Time(0),
            hears_few: false,
            hears_most_since: Time(0),
        }
    }
}

impl Attention {
    /// It begins now, and has heard nobody yet.
    pub(super) fn begin(&mut self, now: Time) {
        self.last_active = Some(now);
        self.away_until = now;
        self.decides = false;
    }

    /// It does something. If it had done nothing for more than `most_us` beyond `watch_us`, after which it wants to be asked, it
    /// was away: for how long.
    pub(super) fn wake(&mut self, now: Time, watch_us: u64, most_us: u64) -> Option<u64> {
        let late_us = self.last_active.map_or(0, |at| now.since(at).saturating_sub(watch_us));
        self.last_active = Some(now);
        if self.decides {
            self.presided = now;
        }
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

    /// When it wants to be asked, so that an absence shows.
    pub(super) fn due(&self, watch_us: u64) -> Time {
        self.last_active.map_or(Time(0), |at| at + watch_us)
    }

    /// For how long it has not been away.
    pub(super) fn awake_us(&self, now: Time) -> u64 {
        now.since(self.away_until)
    }

    /// It hears too few for anything to be in force.
    pub(super) fn note_undecided(&mut self) {
        self.decides = false;
    }

    /// It is able to decide.
    pub(super) fn note_decides(&mut self, now: Time) {
        if !self.decides {
            (self.decides, self.decides_since) = (true, now);
        }
        self.presided = now;
    }

    /// Most processes are silent.
    pub(super) fn note_few(&mut self) {
        self.hears_few = true;
    }

    /// Most of them are not.
    pub(super) fn note_most(&mut self, now: Time) {
        if self.hears_few {
            (self.hears_few, self.hears_most_since) = (false, now);
        }
    }

    /// Whether it was able to decide when it looked last.
    pub(super) fn decides(&self) -> bool {
        self.decides
    }

    /// Whether most processes were silent when it looked last.
    pub(super) fn hears_few(&self) -> bool {
        self.hears_few
    }

    /// When it was last able to decide anything.
    pub(super) fn presided(&self) -> Time {
        self.presided
    }

    /// From when on silence makes a lease run out: the first of many that come back together is heard before the others are.
    pub(super) fn leases_count_from(&self) -> Time {
        self.decides_since
    }

    /// From when on silence makes a process be given up.
    pub(super) fn losses_count_from(&self) -> Time {
        self.hears_most_since.max(self.decides_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_what_is_longer_than_it_wanted_to_sleep_and_a_little() {
        let mut attention = Attention::default();
        assert_eq!(attention.wake(Time(1_000), 50, 200), None, "it has only begun");
        assert_eq!(attention.due(50), Time(1_050));
        assert_eq!(attention.wake(Time(1_250), 50, 200), None);
        assert_eq!(attention.wake(Time(2_000), 50, 200), Some(700));
        assert_eq!(attention.awake_us(Time(2_100)), 100);
    }

    #[test]
    fn silence_counts_from_when_enough_were_heard_again() {
        let mut attention = Attention::default();
        attention.note_decides(Time(5));
        assert_eq!((attention.leases_count_from(), attention.presided()), (Time(0), Time(5)));
        attention.note_undecided();
        attention.wake(Time(8), 50, 200);
        assert!(!attention.decides() && attention.presided() == Time(5));
        attention.note_decides(Time(10));
        attention.note_few();
        attention.note_most(Time(20));
        attention.note_most(Time(30));
        assert!(attention.decides() && !attention.hears_few());
        assert_eq!((attention.leases_count_from(), attention.losses_count_from()), (Time(10), Time(20)));
    }
}
