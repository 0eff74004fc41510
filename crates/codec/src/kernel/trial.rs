//! Trials of both ways to store results: through the caches and past them.

use std::sync::atomic::{AtomicI8, AtomicU32, Ordering};

use super::stopwatch::{Way, past_to_through};
use crate::chunks::Chunks;

/// More than this is stored past the caches untried: no core of today has so much cache.
const LARGEST: usize = 128 << 20;

/// How many trials can be ahead of the others: a machine may change, and then it has to show.
const MAX_LEAD: i8 = 3;

/// After so many times as many calls there is another trial, if the last one has a vote that those before do not share,
const SOON: u32 = 2;

/// and otherwise.
const LATER: u32 = 8;

/// What a back end has found out, by the bytes of all chunks together, in doublings.
pub(super) struct Trials([Trial; LARGEST.ilog2() as usize]);

impl Trials {
    pub(super) const fn new() -> Self {
        Self([const { Trial::new() }; LARGEST.ilog2() as usize])
    }

    #[cold]
    pub(super) fn run(&self, bytes: usize, chunks: Chunks<'_, '_, '_>, way: Way<'_>) {
        match self.0.get((bytes - 1).ilog2() as usize) {
            None => way(chunks, true),
            Some(trial) if trial.is_due() => trial.note(past_to_through(chunks, way)),
            Some(trial) => way(chunks, trial.is_for_past()),
        }
    }
}

/// What was found for one size.
struct Trial {
    calls: AtomicU32,
    /// The call that is the next trial; none while there is one.
    next: AtomicU32,
    /// How many trials more were for storing past the caches than against it.
    lead: AtomicI8,
}

impl Trial {
    const fn new() -> Self {
        Self { calls: AtomicU32::new(0), next: AtomicU32::new(1), lead: AtomicI8::new(0) }
    }

    /// Whether this call is a trial, which [`Trial::note`] ends. The first two are, unless the first is a draw, so that no
    /// single one decides.
    fn is_due(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let next = self.next.load(Ordering::Relaxed);
        // Whoever takes it leaves none to be taken until it has been noted: two trials at a time would disturb each other.
        let taken = || self.next.compare_exchange(next, u32::MAX, Ordering::Relaxed, Ordering::Relaxed);
        call >= next && taken().is_ok()
    }

    /// Notes that it took `ratio` times as long past the caches. A draw is no vote: not all loops can store past them.
    fn note(&self, ratio: f64) {
        let vote = match ratio {
            ..0.95 => 1,
            1.05.. => -1,
            _ => 0,
        };
        // Only one trial is under way, so nobody else writes in between.
        let before = self.lead.load(Ordering::Relaxed);
        self.lead.store((before + vote).clamp(-MAX_LEAD, MAX_LEAD), Ordering::Relaxed);
        let factor = if vote != 0 && before * vote <= 0 { SOON } else { LATER };
        self.next.store(self.calls.load(Ordering::Relaxed).saturating_mul(factor), Ordering::Relaxed);
    }

    fn is_for_past(&self) -> bool {
        self.lead.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Where the results of a call on `bytes` were stored, each time.
    fn stores(trials: &Trials, bytes: usize) -> Vec<bool> {
        let seen = RefCell::new(Vec::new());
        let mut output = [0; 8];
        let mut outputs = [&mut output[..]];
        let chunks = Chunks::new(&[], &mut outputs).unwrap();
        trials.run(bytes, chunks, &|_, past| seen.borrow_mut().push(past));
        seen.into_inner()
    }

    #[test]
    fn what_no_cache_holds_is_stored_past_them_untried() {
        assert_eq!(stores(&Trials::new(), LARGEST + 1), [true]);
    }

    #[test]
    fn every_size_is_tried_both_ways_and_decided_by_itself() {
        let trials = Trials::new();
        for bytes in [1 << 21, LARGEST] {
            let tried = stores(&trials, bytes);
            assert!(tried.contains(&true) && tried.contains(&false), "{bytes}");
        }
        let place = |bytes: usize| &trials.0[(bytes - 1).ilog2() as usize];
        (0..9).for_each(|_| place(1 << 21).note(2.0));
        (0..9).for_each(|_| place(1 << 22).note(0.5));
        stores(&trials, 1 << 21);
        assert_eq!(stores(&trials, 1 << 21), [false]);
        assert!(place((1 << 21) + 1).is_for_past());
    }

    #[test]
    fn trials_become_rare() {
        let due = |ratios: &[f64]| {
            let (trial, last) = (Trial::new(), ratios[ratios.len() - 1]);
            let mut ratios = ratios.iter().copied();
            let mut note = || trial.note(ratios.next().unwrap_or(last));
            let tried = |_: &u32| trial.is_due() && (note(), true).1;
            (1..=2000).filter(tried).collect::<Vec<u32>>()
        };
        assert_eq!(due(&[1.3]), [1, 2, 16, 128, 1024]);
        assert_eq!(due(&[1.0]), [1, 8, 64, 512], "draws");
        assert_eq!(due(&[0.5, 1.3]), [1, 2, 4, 8, 64, 512], "the first one was wrong");
    }

    #[test]
    fn no_two_threads_try_at_a_time() {
        let trial = Trial::new();
        assert!(trial.is_due());
        assert!((0..100).all(|_| !trial.is_due()));
        trial.note(1.3);
        assert!((0..808).any(|_| trial.is_due()), "whatever was called meanwhile");
    }

    #[test]
    fn a_wrong_trial_is_outvoted_and_a_machine_that_changes_is_noticed() {
        let trial = Trial::new();
        trial.note(0.5);
        assert!(trial.is_for_past());
        trial.note(1.3);
        assert!(!trial.is_for_past(), "a tie: through the caches");
        (0..100).for_each(|_| trial.note(1.3));
        (0..4).for_each(|_| trial.note(0.5));
        assert!(trial.is_for_past());
        trial.note(1.01);
        assert!(trial.is_for_past(), "a draw is no vote");
    }
}
