//! What a parity host keeps for one data role, and what a stand-in starts from: the index, the class of every run, the
//! pages that were ever written, whose items there are, and clients' sessions.
//!
//! It changes only by applied records, so two replicas that applied the same records are equal; the primary's own copy
//! is one of them. A run's class stays in the table when its last slot is freed: only a further `Assign` changes it. One of
//! `FREE` comes with the record that has made the run zero again: its pages are untouched from then on.
//! Large items are the exception: their runs become free with them, so that `LARGE` followed by
//! `LARGE_CONTINUED` always spells the length of a live item.

use crate::cohorts::{Flushed, ROW_BYTES};
use crate::growing::grown_capacity;
use crate::{Budget, Category, Charge, Cohorts, Index, PageSet, Sessions};
use types::class::{MIN_SLOT_BYTES, SPAN_RUNS, is_slotted, slot_bytes};
use types::{
    Addr, Cohort, IndexHash, IndexOp, MAX_AREA_BYTES, NamespaceId, PAGE_BYTES, PageRange, RUN_BYTES, RunClass,
};

const MAX_HASH: u64 = 0xff_ffff_ffff;
/// Runs of the longest area.
pub(crate) const MAX_RUNS: usize = MAX_AREA_BYTES / RUN_BYTES;

/// Index, run table and touched pages of one data role.
#[derive(Debug)]
pub struct Replica {
    index: Index,
    classes: Vec<RunClass>,
    touched: PageSet,
    cohorts: Cohorts,
    sessions: Sessions,
    charge: Charge,
}

impl Replica {
    /// That of a role which has written nothing.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self {
            index: Index::new(budget.clone()),
            classes: Vec::new(),
            touched: PageSet::new(),
            cohorts: Cohorts::default(),
            sessions: Sessions::default(),
            charge: Charge::empty(budget, Category::Index),
        }
    }

    /// Whether `op` names only what can exist in some area. A peer's operation that does not is an attack or a bug: check
    /// it on arrival, since [`Self::apply`] cannot refuse.
    #[must_use]
    pub fn accepts(op: &IndexOp) -> bool {
        match *op {
            IndexOp::Assign { run, class } => (run as usize) < MAX_RUNS && is_run_class(class),
            IndexOp::Insert { hash, addr, cohort } | IndexOp::Remove { hash, addr, cohort } => {
                is_entry(hash, addr) && cohort <= Cohort::MAX
            }
            IndexOp::Replace { hash, old, new, cohort } => {
                is_entry(hash, old) && is_entry(hash, new) && cohort <= Cohort::MAX
            }
            IndexOp::Flush { namespace } | IndexOp::FlushAt { namespace, .. } => {
                namespace <= NamespaceId::MAX
            }
            IndexOp::SessionBegins { .. }
            | IndexOp::SessionEnds { .. }
            | IndexOp::WriteDone { .. }
            | IndexOp::WriteCounted { .. } => op.is_possible_of_sessions(),
        }
    }

    /// Applies one operation of a committed record. Never fails: index memory is charged past the limit if need be,
    /// and what [`Self::accepts`] refuses has no effect.
    pub fn apply(&mut self, op: &IndexOp) {
        if !Self::accepts(op) {
            return;
        }
        match *op {
            IndexOp::Assign { run, class } => self.assign(run, class),
            IndexOp::Insert { hash, addr, cohort } => {
                self.index.insert(hash, addr);
                self.count_in(cohort, addr);
            }
            IndexOp::Replace { hash, old, new, cohort } => {
                if self.index.replace(hash, old, new) {
                    self.count_move(cohort, old, new);
                }
            }
            IndexOp::Remove { hash, addr, cohort } => {
                if self.index.remove(hash, addr) {
                    self.count_out(cohort, addr);
                }
            }
            IndexOp::Flush { namespace } => self.flush(namespace),
            IndexOp::FlushAt { namespace, at } => {
                self.cohorts.schedule(namespace, at);
                self.recharge();
            }
            IndexOp::SessionBegins { .. }
            | IndexOp::SessionEnds { .. }
            | IndexOp::WriteDone { .. }
            | IndexOp::WriteCounted { .. } => {
                self.sessions.apply(op);
                self.recharge();
            }
        }
    }

    /// Applies one operation at a learner that has got only the index's segments below `known` yet: what is said of the
    /// others has no effect on the index, since they will come as they are then.
    pub fn learn(&mut self, op: &IndexOp, known: usize) {
        if !Self::accepts(op) {
            return;
        }
        match *op {
            // The classes of all runs are known from the beginning of a lesson, and so is whose items there are: both go on even
            // where the entry itself is not here yet.
            IndexOp::Insert { hash, addr, cohort } if Index::segment_of(hash) >= known => {
                self.count_in(cohort, addr);
            }
            IndexOp::Replace { hash, old, new, cohort } if Index::segment_of(hash) >= known => {
                self.count_move(cohort, old, new);
            }
            IndexOp::Remove { hash, addr, cohort } if Index::segment_of(hash) >= known => {
                self.count_out(cohort, addr);
            }
            _ => self.apply(op),
        }
    }

    /// Hints that `op` will be applied soon.
    pub fn prefetch(&self, op: &IndexOp) {
        match *op {
            IndexOp::Insert { hash, .. } | IndexOp::Replace { hash, .. } | IndexOp::Remove { hash, .. } => {
                self.index.prefetch(hash);
            }
            IndexOp::Assign { .. }
            | IndexOp::Flush { .. }
            | IndexOp::FlushAt { .. }
            | IndexOp::SessionBegins { .. }
            | IndexOp::SessionEnds { .. }
            | IndexOp::WriteDone { .. }
            | IndexOp::WriteCounted { .. } => {}
        }
    }

    /// Notes that `len` bytes at `addr` were written. No effect beyond the longest area.
    pub fn touch(&mut self, addr: Addr, len: usize) {
        if is_in_reach(addr, len) {
            let before = self.touched.memory_bytes();
            self.touched.insert_range(PageRange::covering(addr.byte(), len));
            if self.touched.memory_bytes() != before {
                self.recharge();
            }
        }
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The pages that were ever written; all others are zero.
    #[must_use]
    pub fn touched(&self) -> &PageSet {
        &self.touched
    }

    /// Whose items there are, and what was flushed.
    #[must_use]
    #[inline]
    pub fn cohorts(&self) -> &Cohorts {
        &self.cohorts
    }

    /// Clients' sessions, and what came of their writes.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The rows of the tables of cohorts and sessions, and how many there are.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [u8; ROW_BYTES]> {
        self.cohorts.rows().chain(self.sessions.rows())
    }

    pub(crate) fn row_count(&self) -> usize {
        self.cohorts.row_count() + self.sessions.row_count()
    }

    /// The next of these rows (a part of an encoding); false if there can be no such row.
    pub(crate) fn push_row(&mut self, row: &[u8; ROW_BYTES]) -> bool {
        let is_possible = if Sessions::is_row(row) {
            self.sessions.push_row(row)
        } else {
            self.sessions.is_empty() && self.cohorts.push_row(row)
        };
        self.recharge();
        is_possible
    }

    /// An entry whose cohort has been counted (a part of an encoding).
    pub(crate) fn insert_counted(&mut self, hash: IndexHash, addr: Addr) {
        self.index.insert(hash, addr);
    }

    /// Class of run `run`.
    #[must_use]
    pub fn class(&self, run: u32) -> RunClass {
        self.classes.get(run as usize).copied().unwrap_or(RunClass::FREE)
    }

    /// The classes of all runs up to the last one that is not free.
    #[must_use]
    pub fn classes(&self) -> &[RunClass] {
        let used = self.classes.iter().rposition(|class| *class != RunClass::FREE).map_or(0, |last| last + 1);
        &self.classes[..used]
    }

    /// Bytes in use, all charged to [`Category::Index`].
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.charge.bytes()
    }

    /// Bytes of the run table and the touched pages: all of [`Self::memory_bytes`] but the index.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Sets 64 touched pages at once (a part of an encoding).
    pub(crate) fn set_touched_word(&mut self, at: usize, bits: u64) {
        self.touched.set_word(at, bits);
        self.recharge();
    }

    fn assign(&mut self, run: u32, class: RunClass) {
        if class == RunClass::FREE {
            // The record that says so has written zeros over all of it.
            self.touched.remove_range(PageRange::covering(run as usize * RUN_BYTES, RUN_BYTES));
        }
        let run = run as usize;
        if run >= self.classes.len() {
            self.classes.resize(run + 1, RunClass::FREE);
            self.recharge();
        }
        self.classes[run] = class;
    }

    fn count_in(&mut self, cohort: Cohort, addr: Addr) {
        let before = self.cohorts.memory_bytes();
        self.cohorts.add(cohort, self.slot_len(addr));
        if self.cohorts.memory_bytes() != before {
            self.recharge();
        }
    }

    fn count_move(&mut self, cohort: Cohort, old: Addr, new: Addr) {
        let class_at = |addr: Addr| self.class((addr.byte() / RUN_BYTES) as u32);
        let class = class_at(old);
        // From one slot to another one of the class, as nearly always: that changes nothing.
        if class == class_at(new) && is_slotted(class) {
            return;
        }
        if old != new {
            self.cohorts.resize(cohort, self.slot_len(old), self.slot_len(new));
            self.free_large(old);
        }
    }

    fn count_out(&mut self, cohort: Cohort, addr: Addr) {
        self.cohorts.remove(cohort, self.slot_len(addr));
        self.free_large(addr);
    }

    /// Bytes of the slot at `addr`; 0 if no run says so.
    fn slot_len(&self, addr: Addr) -> usize {
        let run = (addr.byte() / RUN_BYTES) as u32;
        match self.class(run) {
            // A span begins at a multiple of its runs.
            RunClass::SPAN_CONTINUED => slot_bytes(self.class(run / SPAN_RUNS * SPAN_RUNS)),
            RunClass::LARGE => (1 + self.continued(run as usize)) * RUN_BYTES,
            class => slot_bytes(class),
        }
    }

    /// Further runs of the large item that begins in run `first`.
    fn continued(&self, first: usize) -> usize {
        let rest = self.classes.get(first + 1..).unwrap_or_default().iter();
        rest.take_while(|class| **class == RunClass::LARGE_CONTINUED).count()
    }

    /// What `namespace` has is found no more. If nobody else has anything its entries go at once; else one by one, when the primary
    /// comes by.
    fn flush(&mut self, namespace: NamespaceId) {
        if self.cohorts.flush(namespace) == Flushed::All {
            self.clear();
        }
        self.recharge();
    }

    /// All slots are free: no item is large any more. Classes of slots stay, records under way may name them.
    fn clear(&mut self) {
        self.index.clear();
        let large = |class: RunClass| class == RunClass::LARGE || class == RunClass::LARGE_CONTINUED;
        for class in self.classes.iter_mut().filter(|class| large(**class)) {
            *class = RunClass::FREE;
        }
    }

    /// Frees the runs of the item at `addr` if it is a large one.
    fn free_large(&mut self, addr: Addr) {
        let first = addr.byte() / RUN_BYTES;
        if self.class(first as u32) != RunClass::LARGE {
            return;
        }
        let end = first + 1 + self.continued(first);
        self.classes[first..end].fill(RunClass::FREE);
    }

    fn recharge(&mut self) {
        self.charge.set(self.heap_bytes());
    }

    /// What the tables of a replica take, all but its index, of an area whose first `runs` runs are in use.
    pub(crate) fn grown_table_bytes(runs: u32) -> usize {
        let runs = runs as usize;
        grown_capacity(runs) + PageSet::grown_bytes(runs * (RUN_BYTES / PAGE_BYTES))
    }

    fn heap_bytes(&self) -> usize {
        self.classes.capacity()
            + self.touched.memory_bytes()
            + self.cohorts.memory_bytes()
            + self.sessions.memory_bytes()
    }

    /// That the index is sound, and that every item lies in a run that was assigned, on pages that were written.
    pub fn check_invariants(&self) {
        self.index.check_invariants();
        self.touched.check_invariants();
        self.cohorts.check_invariants(self.index.len());
        self.sessions.check_invariants();
        assert_eq!(self.charge.bytes(), self.heap_bytes(), "the tables of a replica are paid for");
        for (hash, addr) in self.index.iter() {
            let (run, page) = (addr.byte() / RUN_BYTES, addr.byte() / PAGE_BYTES);
            assert_ne!(self.class(run as u32), RunClass::FREE, "{addr} ({hash:?}) lies in a free run");
            assert!(self.touched.contains(page as u32), "{addr} ({hash:?}) lies where nothing was written");
        }
    }
}

impl PartialEq for Replica {
    fn eq(&self, other: &Self) -> bool {
        self.cohorts == other.cohorts
            && self.sessions == other.sessions
            && self.classes() == other.classes()
            && self.touched == other.touched
            && self.index.len() == other.index.len()
            && self.index.iter().eq(other.index.iter())
    }
}

pub(crate) fn is_entry(hash: IndexHash, addr: Addr) -> bool {
    hash.0 <= MAX_HASH && is_in_reach(addr, MIN_SLOT_BYTES)
}

fn is_in_reach(addr: Addr, len: usize) -> bool {
    addr.byte().checked_add(len).is_some_and(|end| end <= MAX_AREA_BYTES)
}

fn is_run_class(class: RunClass) -> bool {
    let others = [RunClass::FREE, RunClass::SPAN_CONTINUED, RunClass::LARGE, RunClass::LARGE_CONTINUED];
    is_slotted(class) || others.contains(&class)
}

#[cfg(test)]
mod tests {
    use types::UnixSeconds;

    use super::*;

    const RUN_UNITS: u32 = (RUN_BYTES / 8) as u32;
    const ANY: Cohort = Cohort(0);

    fn replica() -> Replica {
        Replica::new(Budget::new(1 << 30))
    }

    fn assign(replica: &mut Replica, first: u32, classes: &[RunClass]) {
        for (run, class) in (first..).zip(classes) {
            replica.apply(&IndexOp::Assign { run, class: *class });
        }
    }

    #[test]
    fn the_runs_of_a_large_item_are_free_with_it() {
        let (large, more) = (RunClass::LARGE, RunClass::LARGE_CONTINUED);
        let mut replica = replica();
        assign(&mut replica, 0, &[large, more, more, large, more, RunClass(3)]);
        let (hash, addr) = (IndexHash(1), Addr(0));
        replica.apply(&IndexOp::Insert { hash, addr, cohort: ANY });
        replica.apply(&IndexOp::Replace { hash, old: addr, new: addr, cohort: ANY });
        assert_eq!(replica.class(2), more);
        replica.apply(&IndexOp::Replace { hash, old: addr, new: Addr(3 * RUN_UNITS), cohort: ANY });
        let free = RunClass::FREE;
        assert_eq!(replica.classes(), [free, free, free, large, more, RunClass(3)]);
        replica.apply(&IndexOp::Flush { namespace: NamespaceId::DEFAULT });
        assert_eq!(replica.classes(), [free, free, free, free, free, RunClass(3)]);
    }

    #[test]
    fn a_flush_can_be_called_off() {
        let mut replica = replica();
        let namespace = NamespaceId(3);
        replica.apply(&IndexOp::FlushAt { namespace, at: UnixSeconds(9) });
        assert_eq!(replica.cohorts().scheduled(namespace), Some(UnixSeconds(9)));
        replica.apply(&IndexOp::FlushAt { namespace, at: UnixSeconds(0) });
        assert_eq!(replica.cohorts().scheduled(namespace), None);
    }

    #[test]
    fn the_flushed_stay_in_the_index_while_somebody_else_has_items() {
        let mut replica = replica();
        assign(&mut replica, 0, &[RunClass(3), RunClass(3)]);
        let (own, other) = (NamespaceId(1), NamespaceId(2));
        for (number, namespace) in [(1, own), (2, other)] {
            let (hash, addr) = (IndexHash(number), Addr(number as u32 * RUN_UNITS / 2));
            replica.touch(addr, 100);
            replica.apply(&IndexOp::Insert { hash, addr, cohort: Cohort::of(namespace, 0) });
        }
        let slot = slot_bytes(RunClass(3)) as u64;
        assert_eq!(replica.cohorts().use_of(own), crate::CohortUse { items: 1, bytes: slot });
        replica.apply(&IndexOp::Flush { namespace: own });
        assert_eq!((replica.index().len(), replica.cohorts().use_of(own).items), (2, 0));
        replica.check_invariants();
        replica.apply(&IndexOp::Remove {
            hash: IndexHash(2),
            addr: Addr(RUN_UNITS),
            cohort: Cohort::of(other, 0),
        });
        replica.apply(&IndexOp::Flush { namespace: own });
        assert_eq!(replica.index().len(), 0, "nobody else is left");
        replica.check_invariants();
    }

    #[test]
    fn a_run_that_is_zero_again_is_as_if_it_had_never_been_written() {
        let mut replica = replica();
        assign(&mut replica, 0, &[RunClass(3), RunClass(3), RunClass(3)]);
        (0..3).for_each(|run| replica.touch(Addr(run * RUN_UNITS), RUN_BYTES));
        assign(&mut replica, 1, &[RunClass::FREE]);
        assert_eq!(replica.classes(), [RunClass(3), RunClass::FREE, RunClass(3)]);
        let touched: Vec<u32> = replica.touched().iter().collect();
        assert!(touched.into_iter().eq((0..16).chain(32..48)));
        assign(&mut replica, 0, &[RunClass::FREE, RunClass::FREE, RunClass::FREE]);
        assert_eq!(replica, self::replica());
    }

    #[test]
    fn what_cannot_exist_has_no_effect() {
        let mut replica = replica();
        let end = Addr(u32::MAX);
        let wild = [
            IndexOp::Assign { run: MAX_RUNS as u32, class: RunClass(1) },
            IndexOp::Assign { run: u32::MAX, class: RunClass(1) },
            IndexOp::Assign { run: 0, class: RunClass(200) },
            IndexOp::Insert { hash: IndexHash(1 << 40), addr: Addr(0), cohort: ANY },
            IndexOp::Insert { hash: IndexHash(MAX_HASH), addr: end, cohort: ANY },
            IndexOp::Insert { hash: IndexHash(1), addr: Addr(0), cohort: Cohort(u32::MAX) },
            IndexOp::Replace { hash: IndexHash(1), old: Addr(0), new: end, cohort: ANY },
        ];
        for op in wild {
            assert!(!Replica::accepts(&op));
            replica.apply(&op);
        }
        replica.apply(&IndexOp::Remove { hash: IndexHash(1), addr: Addr(0), cohort: ANY });
        replica.apply(&IndexOp::Replace { hash: IndexHash(1), old: Addr(0), new: Addr(8), cohort: ANY });
        replica.touch(end, 9);
        replica.touch(end, usize::MAX);
        assert_eq!(replica, self::replica());
    }

    #[test]
    #[should_panic(expected = "lies in a free run")]
    fn an_item_in_no_run_is_noticed() {
        let mut replica = replica();
        assign(&mut replica, 0, &[RunClass(3)]);
        replica.touch(Addr(0), 100);
        replica.apply(&IndexOp::Insert { hash: IndexHash(1), addr: Addr(0), cohort: ANY });
        replica.check_invariants();
        replica.apply(&IndexOp::Assign { run: 0, class: RunClass::FREE });
        replica.check_invariants();
    }

    #[test]
    fn all_memory_is_charged_and_returned() {
        let budget = Budget::new(1 << 30);
        let mut replica = Replica::new(budget.clone());
        for i in 0..1000 {
            replica.apply(&IndexOp::Assign { run: i, class: RunClass(1) });
            replica.apply(&IndexOp::Insert {
                hash: IndexHash(u64::from(i) << 30),
                addr: Addr(i * RUN_UNITS),
                cohort: ANY,
            });
            replica.touch(Addr(i * RUN_UNITS), 100);
        }
        assert_eq!(budget.used(Category::Index), replica.memory_bytes() as u64);
        drop(replica);
        assert_eq!(budget.total_used(), 0);
    }
}
