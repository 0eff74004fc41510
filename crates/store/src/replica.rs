//! What a parity host keeps for one data role, and what a stand-in starts from: the index, the class of every run, the
//! pages that were ever written, and a scheduled flush.
//!
//! It changes only by applied records, so two replicas that applied the same records are equal; the primary's own copy
//! is one of them. A run's class stays in the table when its last slot is freed: only a further `Assign` changes it. One of
//! `FREE` comes with the record that has made the run zero again: its pages are untouched from then on.
//! Large items are the exception: their runs become free with them, so that `LARGE` followed by
//! `LARGE_CONTINUED` always spells the length of a live item.

use types::UnixSeconds;

use crate::{Budget, Category, Charge, Index, PageSet};
use types::class::{MIN_SLOT_BYTES, is_slotted};
use types::{Addr, IndexHash, IndexOp, MAX_AREA_BYTES, PAGE_BYTES, PageRange, RUN_BYTES, RunClass};

const MAX_HASH: u64 = 0xff_ffff_ffff;
/// Runs of the longest area.
pub(crate) const MAX_RUNS: usize = MAX_AREA_BYTES / RUN_BYTES;

/// Index, run table and touched pages of one data role.
#[derive(Debug)]
pub struct Replica {
    index: Index,
    classes: Vec<RunClass>,
    touched: PageSet,
    flush_at: Option<UnixSeconds>,
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
            flush_at: None,
            charge: Charge::empty(budget, Category::Index),
        }
    }

    /// Whether `op` names only what can exist in some area. A peer's operation that does not is an attack or a bug: check
    /// it on arrival, since [`Self::apply`] cannot refuse.
    #[must_use]
    pub fn accepts(op: &IndexOp) -> bool {
        match *op {
            IndexOp::Assign { run, class } => (run as usize) < MAX_RUNS && is_run_class(class),
            IndexOp::Insert { hash, addr } | IndexOp::Remove { hash, addr } => is_entry(hash, addr),
            IndexOp::Replace { hash, old, new } => is_entry(hash, old) && is_entry(hash, new),
            IndexOp::Clear | IndexOp::FlushAt(_) => true,
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
            IndexOp::Insert { hash, addr } => self.index.insert(hash, addr),
            IndexOp::Replace { hash, old, new } => self.replace(hash, old, new),
            IndexOp::Remove { hash, addr } => self.remove(hash, addr),
            IndexOp::Clear => self.clear(),
            IndexOp::FlushAt(at) => self.flush_at = (at.0 != 0).then_some(at),
        }
    }

    /// Applies one operation at a learner that has got only the index's segments below `known` yet: what is said of the
    /// others has no effect on the index, since they will come as they are then.
    pub fn learn(&mut self, op: &IndexOp, known: usize) {
        if !Self::accepts(op) {
            return;
        }
        match *op {
            IndexOp::Insert { hash, .. } if Index::segment_of(hash) >= known => {}
            // The classes of all runs are known from the beginning of a lesson, so the runs of large items are freed even where
            // the entry itself is not here yet.
            IndexOp::Replace { hash, old, new } if Index::segment_of(hash) >= known => {
                if old != new {
                    self.free_large(old);
                }
            }
            IndexOp::Remove { hash, addr } if Index::segment_of(hash) >= known => self.free_large(addr),
            _ => self.apply(op),
        }
    }

    /// Hints that `op` will be applied soon.
    pub fn prefetch(&self, op: &IndexOp) {
        match *op {
            IndexOp::Insert { hash, .. } | IndexOp::Replace { hash, .. } | IndexOp::Remove { hash, .. } => {
                self.index.prefetch(hash);
            }
            IndexOp::Assign { .. } | IndexOp::Clear | IndexOp::FlushAt(_) => {}
        }
    }

    /// Notes that `len` bytes at `addr` were written. No effect beyond the longest area.
    pub fn touch(&mut self, addr: Addr, len: usize) {
        if is_in_reach(addr, len) {
            self.touched.insert_range(PageRange::covering(addr.byte(), len));
            self.recharge();
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

    /// When all keys will be gone.
    #[must_use]
    pub fn flush_at(&self) -> Option<UnixSeconds> {
        self.flush_at
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

    fn replace(&mut self, hash: IndexHash, old: Addr, new: Addr) {
        if self.index.replace(hash, old, new) && old != new {
            self.free_large(old);
        }
    }

    fn remove(&mut self, hash: IndexHash, addr: Addr) {
        if self.index.remove(hash, addr) {
            self.free_large(addr);
        }
    }

    /// All slots are free: no item is large any more. Classes of slots stay, records under way may name them.
    fn clear(&mut self) {
        self.index.clear();
        self.flush_at = None;
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
        self.classes[first] = RunClass::FREE;
        let rest = self.classes[first + 1..].iter_mut();
        rest.take_while(|class| **class == RunClass::LARGE_CONTINUED)
            .for_each(|class| *class = RunClass::FREE);
    }

    fn recharge(&mut self) {
        self.charge.set(self.heap_bytes());
    }

    fn heap_bytes(&self) -> usize {
        self.classes.capacity() + self.touched.memory_bytes()
    }

    /// That the index is sound, and that every item lies in a run that was assigned, on pages that were written.
    pub fn check_invariants(&self) {
        self.index.check_invariants();
        self.touched.check_invariants();
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
        self.flush_at == other.flush_at
            && self.classes() == other.classes()
            && self.touched == other.touched
            && self.index.len() == other.index.len()
            && self.index.iter().eq(other.index.iter())
    }
}

fn is_entry(hash: IndexHash, addr: Addr) -> bool {
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
    use super::*;

    const RUN_UNITS: u32 = (RUN_BYTES / 8) as u32;

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
        replica.apply(&IndexOp::Insert { hash, addr });
        replica.apply(&IndexOp::Replace { hash, old: addr, new: addr });
        assert_eq!(replica.class(2), more);
        replica.apply(&IndexOp::Replace { hash, old: addr, new: Addr(3 * RUN_UNITS) });
        let free = RunClass::FREE;
        assert_eq!(replica.classes(), [free, free, free, large, more, RunClass(3)]);
        replica.apply(&IndexOp::Clear);
        assert_eq!(replica.classes(), [free, free, free, free, free, RunClass(3)]);
    }

    #[test]
    fn a_flush_can_be_called_off_and_ends_with_the_clear() {
        let mut replica = replica();
        replica.apply(&IndexOp::FlushAt(UnixSeconds(9)));
        assert_eq!(replica.flush_at(), Some(UnixSeconds(9)));
        replica.apply(&IndexOp::FlushAt(UnixSeconds(0)));
        assert_eq!(replica.flush_at(), None);
        replica.apply(&IndexOp::FlushAt(UnixSeconds(9)));
        replica.apply(&IndexOp::Clear);
        assert_eq!(replica.flush_at(), None);
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
            IndexOp::Insert { hash: IndexHash(1 << 40), addr: Addr(0) },
            IndexOp::Insert { hash: IndexHash(MAX_HASH), addr: end },
            IndexOp::Replace { hash: IndexHash(1), old: Addr(0), new: end },
        ];
        for op in wild {
            assert!(!Replica::accepts(&op));
            replica.apply(&op);
        }
        replica.apply(&IndexOp::Remove { hash: IndexHash(1), addr: Addr(0) });
        replica.apply(&IndexOp::Replace { hash: IndexHash(1), old: Addr(0), new: Addr(8) });
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
        replica.apply(&IndexOp::Insert { hash: IndexHash(1), addr: Addr(0) });
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
            replica
                .apply(&IndexOp::Insert { hash: IndexHash(u64::from(i) << 30), addr: Addr(i * RUN_UNITS) });
            replica.touch(Addr(i * RUN_UNITS), 100);
        }
        assert_eq!(budget.used(Category::Index), replica.memory_bytes() as u64);
        drop(replica);
        assert_eq!(budget.total_used(), 0);
    }
}
