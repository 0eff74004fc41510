//! What holds in the run table, its lists, the pool and the sums, walked as a whole.

use super::{Allocator, Hold, Run, SlotState, Totals};
use types::RunClass;
use types::class::CLASS_COUNT;

impl Allocator {
    /// That every slot is counted once, and that whatever may be given out is found, and nothing else.
    pub(crate) fn check_invariants(&self) {
        let listed = self.check_lists();
        let (mut totals, mut words, mut spans_of) = (Totals::default(), 0, [0; 256]);
        for (at, run) in (0..).zip(&self.runs) {
            run.check_invariants(at);
            self.check_place(at, run, listed[at as usize]);
            totals.add(run, self.slot_bytes(at));
            spans_of[usize::from(run.class.0)] += u32::from(run.span > 0);
            words += run.heap_bytes();
        }
        assert_eq!(self.totals, totals, "the sums are those of the runs");
        assert_eq!(*self.spans_of, spans_of, "the spans of each class are counted");
        assert_eq!(self.slot_words_bytes, words, "the memory of the slots is counted");
        assert_eq!(self.charge.bytes(), self.heap_bytes(), "the memory of the allocator is paid for");
        self.pool.check_invariants();
        self.active.check_invariants();
        self.check_sums();
    }

    /// What of this can be seen in the sums.
    pub(crate) fn check_sums(&self) {
        let Totals { live, pending, claimed, claimed_bytes, slot_bytes, .. } = self.totals;
        assert!(claimed <= live && claimed_bytes <= slot_bytes, "what is claimed is live: {:?}", self.totals);
        assert_eq!(live + pending == 0, slot_bytes == 0, "bytes are of slots in use: {:?}", self.totals);
        let runs = self.runs.len();
        assert!(self.pool.count() as usize <= runs, "a free run is one of the {runs} that there are");
        assert!(self.active.count() as usize <= runs, "active runs are in the table");
    }

    /// That each list has the runs of its class and fullness; which runs are in one.
    fn check_lists(&self) -> Vec<bool> {
        let mut listed = vec![false; self.runs.len()];
        for class in (1..=CLASS_COUNT as u8).map(RunClass) {
            let mut free_slots = 0;
            for at in self.lists.fullest_first(&self.runs, class) {
                assert!(!std::mem::replace(&mut listed[at as usize], true), "run {at} is in two lists");
                let run = &self.runs[at as usize];
                assert_eq!(run.class, class, "run {at} is in a list of another class");
                let before = run.previous.map(|before| self.runs[before as usize].next);
                assert!(before.is_none_or(|next| next == Some(at)), "the list of run {at} is torn");
                free_slots += run.free_slots();
            }
            assert_eq!(self.lists.free_slots(class), free_slots, "the free slots of {class:?} are counted");
        }
        listed
    }

    /// That run `at` can be found if and only if it may be used, and that its span has a beginning.
    fn check_place(&self, at: u32, run: &Run, is_listed: bool) {
        let (free, active) = (run.class == RunClass::FREE, self.is_active(at));
        let partly_used = run.used > 0 && run.free_slots() > 0;
        assert_eq!(is_listed, active && partly_used && run.hold == Hold::None, "run {at} in its list");
        assert_eq!(is_listed, run.list.is_some(), "run {at} knows its list");
        let in_pool = active && free && run.hold != Hold::Window;
        assert_eq!(self.pool.contains(at), in_pool, "run {at} in the pool");
        let continues = [RunClass::LARGE_CONTINUED, RunClass::SPAN_CONTINUED].contains(&run.class);
        assert!(free || continues || run.used > 0, "run {at} is not retired");
        if continues {
            let head = self.head_of(at);
            let span = u32::from(self.runs[head as usize].span);
            assert!(head < at && at < head + span && run.slots.is_empty(), "run {at} has no head");
        }
    }
}

impl Totals {
    fn add(&mut self, run: &Run, slot_bytes: usize) {
        let claimed = run.slots.iter().filter(|slot| slot.state() == SlotState::Claimed).count();
        self.live += run.live();
        self.pending += usize::from(run.pending);
        self.claimed += claimed;
        self.claimed_bytes += claimed * slot_bytes;
        self.slot_bytes += usize::from(run.used) * slot_bytes;
        self.item_bytes += run.item_bytes as usize;
    }
}
