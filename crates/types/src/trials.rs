//! Which of two ways is the faster one for values of about one length: what is kept where that is measured by the values themselves.
//!
//! A way is measured by values that it alone has carried: elapsed time by all bytes that went by it meanwhile, so it does not matter how many
//! are under way at once. The other way is tried now and then by a few values, the more seldom the longer that changes nothing, and for a
//! sixteenth of the time at most. Two trials in a row have to be for a change. What makes a way better, and when it is worth a trial, is
//! the business of whoever chooses.

use crate::Time;

/// Lengths: up to 256 KiB, then four times as long, and whatever is longer.
pub const CLASSES: usize = 5;
const SHORTEST_CLASS: u64 = 256 * 1024;
/// Values by which a way is known, and the newest ones that are looked at.
const ENOUGH: usize = 3;
const RECENT: usize = 9;
/// A trial is over after so many values; then so many times as long as it took there is none.
const TRIAL_VALUES: u32 = 128;
const REST: u64 = 16;
/// Times are counted in these for each byte.
const PICOS: u64 = 1_000_000;

/// To which class of lengths `len` belongs.
#[must_use]
pub fn class_of(len: u64) -> usize {
    (0..CLASSES).find(|class| len <= longest(*class)).unwrap_or(CLASSES - 1)
}

/// The longest of a class, in bytes; `u64::MAX` of the last.
#[must_use]
pub fn longest(class: usize) -> u64 {
    if class + 1 < CLASSES { SHORTEST_CLASS << (2 * class) } else { u64::MAX }
}

/// The newest times of a way, in picoseconds for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    times: [u64; RECENT],
    count: usize,
}

impl Recent {
    /// Another one.
    pub fn add(&mut self, picos: u64) {
        self.times.rotate_right(1);
        self.times[0] = picos;
        self.count = (self.count + 1).min(RECENT);
    }

    /// None before it is known.
    #[must_use]
    pub fn median(&self) -> Option<u64> {
        let mut known = self.times;
        let known = &mut known[..self.count];
        known.sort_unstable();
        (known.len() >= ENOUGH).then(|| known[known.len() / 2])
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the oldest give way.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == RECENT
    }
}

/// What goes by each of two ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    ways: [Way; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Way {
    begun: u64,
    under_way: u64,
    /// Bytes of those that have come to a good end.
    done_bytes: u64,
}

/// A value that is on its way.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    way: usize,
    began: Time,
    done_bytes: u64,
    /// How many of the other way had begun, if none of them was under way.
    others: Option<u64>,
}

impl Traffic {
    /// A value begins by the first way (0) or the second one (1).
    ///
    /// # Panics
    /// If it is another one.
    pub fn begin(&mut self, now: Time, way: usize) -> Mark {
        let others = self.ways[1 - way];
        let others = (others.under_way == 0).then_some(others.begun);
        let own = &mut self.ways[way];
        (own.begun, own.under_way) = (own.begun + 1, own.under_way + 1);
        Mark { way, began: now, done_bytes: own.done_bytes, others }
    }

    /// It is not under way any more.
    pub fn end(&mut self, mark: Mark) {
        self.ways[mark.way].under_way -= 1;
    }

    /// It has come to a good end: what a byte has taken, in picoseconds, if nothing went by the other way meanwhile.
    pub fn arrive(&mut self, now: Time, mark: Mark, len: u64) -> Option<u64> {
        let others_begun = self.ways[1 - mark.way].begun;
        let own = &mut self.ways[mark.way];
        own.done_bytes += len;
        let picos = (now.since(mark.began).max(1) * PICOS).checked_div(own.done_bytes - mark.done_bytes);
        picos.filter(|_| mark.others == Some(others_begun))
    }

    /// Values that have begun by a way.
    #[must_use]
    pub fn begun(&self, way: usize) -> u64 {
        self.ways[way].begun
    }
}

/// How long trials may take, and pauses between them, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// A trial is over then in any case.
    pub trial_us: u64,
    /// Before the first trial, and between two of which the first one was for a change.
    pub pause_us: u64,
    /// Where trials change nothing.
    pub longest_pause_us: u64,
}

/// Trials of the way that is not gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trials {
    trial: Option<Trial>,
    /// The last one was over then, or the first value began.
    since: Option<Time>,
    pause_us: u64,
    /// Whether the last one was for a change.
    wavers: bool,
    count: u64,
    turns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    began: Time,
    values: u32,
}

impl Trials {
    /// A value begins: when the pause before the next trial began.
    pub fn since(&mut self, now: Time) -> Time {
        *self.since.get_or_insert(now)
    }

    /// Whether any value has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// Whether one is under way.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.trial.is_some()
    }

    /// A value begins while one is under way: whether it is part of it. If not the trial has to be concluded.
    pub fn takes(&mut self, now: Time, terms: &Terms) -> bool {
        let Some(trial) = &mut self.trial else { return false };
        trial.values += 1;
        trial.values <= TRIAL_VALUES && now < trial.began + terms.trial_us
    }

    /// Whether the next one is due, where the pause is `least_us` at least.
    #[must_use]
    pub fn is_due(&self, now: Time, least_us: u64) -> bool {
        self.since.is_some_and(|since| now >= since + self.pause_us.max(least_us))
    }

    /// Begins one.
    pub fn begin(&mut self, now: Time) {
        self.trial = Some(Trial { began: now, values: 1 });
        self.count += 1;
    }

    /// The next pause is the first one again, or `pause_us`.
    pub fn pause(&mut self, pause_us: u64) {
        self.pause_us = pause_us;
    }

    /// The trial is over, and was for the other way or was not: whether that is to be gone from now on.
    pub fn conclude(&mut self, now: Time, terms: &Terms, is_better: bool) -> bool {
        let Some(trial) = self.trial.take() else { return false };
        let turns = is_better && self.wavers;
        self.turns += u64::from(turns);
        self.wavers = is_better && !turns;
        let longer = (2 * self.pause_us.max(terms.pause_us)).min(terms.longest_pause_us);
        let rest_us = longer.max(REST * now.since(trial.began));
        self.pause_us = if self.wavers { terms.pause_us } else { rest_us };
        self.since = Some(now);
        turns
    }

    /// How many have begun.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How often the way was changed.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_the_first_class_that_they_fit_into() {
        assert_eq!([0, 1 << 18, (1 << 18) + 1, 1 << 24, u64::MAX].map(class_of), [0, 0, 1, 3, 4]);
        assert_eq!((longest(0), longest(CLASSES - 1)), (1 << 18, u64::MAX));
    }

    #[test]
    fn what_went_beside_the_other_way_measures_neither() {
        let mut traffic = Traffic::default();
        let one = traffic.begin(Time(0), 0);
        let two = traffic.begin(Time(0), 0);
        assert_eq!(traffic.arrive(Time(10), one, 10), Some(PICOS));
        traffic.end(one);
        // Both in the same time.
        assert_eq!(traffic.arrive(Time(10), two, 10), Some(PICOS / 2));
        traffic.end(two);
        let one = traffic.begin(Time(10), 0);
        let other = traffic.begin(Time(10), 1);
        assert_eq!((traffic.arrive(Time(20), one, 10), traffic.arrive(Time(20), other, 10)), (None, None));
    }

    #[test]
    fn two_trials_in_a_row_change_the_way_and_pauses_get_longer_where_nothing_changes() {
        let terms = Terms { trial_us: 100, pause_us: 10, longest_pause_us: 50 };
        let mut trials = Trials::default();
        trials.since(Time(0));
        let mut trial = |at: u64, is_better| {
            assert!(trials.is_due(Time(at), terms.pause_us) && !trials.is_due(Time(at - 1), terms.pause_us));
            trials.begin(Time(at));
            (trials.takes(Time(at), &terms), trials.conclude(Time(at), &terms, is_better))
        };
        assert_eq!([trial(10, true), trial(20, true)], [(true, false), (true, true)]);
        assert_eq!([trial(40, false), trial(80, false), trial(130, false)].map(|it| it.1), [false; 3]);
        assert_eq!((trials.count(), trials.turns()), (5, 1));
    }

    #[test]
    fn a_trial_ends_after_so_many_values_or_so_long_and_a_long_one_is_followed_by_a_long_pause() {
        let terms = Terms { trial_us: 100, pause_us: 10, longest_pause_us: 50 };
        let mut trials = Trials::default();
        trials.since(Time(0));
        trials.begin(Time(10));
        assert!((1..TRIAL_VALUES).all(|_| trials.takes(Time(11), &terms)) && !trials.takes(Time(11), &terms));
        assert!(!trials.conclude(Time(20), &terms, false));
        assert!(trials.is_due(Time(20 + 10 * REST), 0) && !trials.is_due(Time(19 + 10 * REST), 0));
        trials.begin(Time(200));
        assert!(!trials.takes(Time(300), &terms) && trials.is_on());
    }
}
