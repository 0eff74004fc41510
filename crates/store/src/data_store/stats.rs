//! Sums for metrics, status and tests.

use super::DataStore;
use crate::alloc::Allocator;
use types::RunClass;

/// What a data role holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Items in the index.
    pub items: usize,
    /// Their bytes: header, key, value. An estimate while pages are absent.
    pub item_bytes: usize,
    /// Bytes of the slots that they and pending items occupy.
    pub slot_bytes: usize,
    /// Slots handed out whose records are not applied yet.
    pub pending: usize,
    /// Items handed out by `reclaim` or `crawl` that are still there.
    pub claimed: usize,
    /// Committed bytes that no slot occupies.
    pub free_bytes: usize,
    /// Committed runs that are free.
    pub free_runs: usize,
    /// Extents of which something is committed.
    pub extents: usize,
    /// Pages that must be repaired.
    pub absent_pages: usize,
    /// Number of runs by class, of the classes that have any; all runs of a span or a large item have the class of the first.
    pub runs: Vec<(RunClass, usize)>,
    /// Memory by part.
    pub memory: Memory,
}

/// What a data role holds of one class of slots. Large items are one class, whose slots are of the size of their items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassUse {
    /// The class.
    pub class: RunClass,
    /// Runs that it has.
    pub runs: u64,
    /// Slots that these are cut into.
    pub slots: u64,
    /// Items in the index.
    pub items: u64,
    /// Their bytes: header, key, value.
    pub item_bytes: u64,
}

impl ClassUse {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.slots += other.slots;
        self.items += other.items;
        self.item_bytes += other.item_bytes;
    }
}

/// Bytes that are charged to the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Committed extents.
    pub area: usize,
    /// Index, run table and touched pages, as on every parity.
    pub replica: usize,
    /// Slot states and access words.
    pub allocator: usize,
    /// Absent pages and pins.
    pub other: usize,
}

impl Memory {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.area + self.replica + self.allocator + self.other
    }
}

impl DataStore {
    /// The sums. Takes a pass over the run table.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let totals = self.slots.allocator().totals();
        let area = self.contents.area().committed_bytes();
        Stats {
            items: self.contents.replica().index().len(),
            item_bytes: totals.item_bytes,
            slot_bytes: totals.slot_bytes,
            pending: totals.pending,
            claimed: totals.claimed,
            free_bytes: area.saturating_sub(totals.slot_bytes),
            free_runs: self.slots.allocator().pool().count() as usize,
            extents: self.contents.area().extents().count(),
            absent_pages: self.contents.absent().count() as usize,
            runs: runs_by_class(self.slots.allocator()),
            memory: self.memory(),
        }
    }

    /// What there is of each class that has runs, in the order of the runs; a class may come several times.
    pub fn classes(&self) -> impl Iterator<Item = ClassUse> + '_ {
        let begins = |run: &&crate::alloc::Run| run.class != RunClass::FREE && run.span > 0;
        self.slots.allocator().runs().iter().filter(begins).map(|run| ClassUse {
            class: run.class,
            runs: u64::from(run.span),
            slots: run.slots.len() as u64,
            items: run.live() as u64,
            item_bytes: u64::from(run.item_bytes),
        })
    }

    /// Memory by part, all of it charged to the budget.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            area: self.contents.area().committed_bytes(),
            replica: self.contents.replica().memory_bytes(),
            allocator: self.slots.allocator().memory_bytes(),
            other: self.charge.bytes(),
        }
    }
}

fn runs_by_class(allocator: &Allocator) -> Vec<(RunClass, usize)> {
    let mut counts = [0usize; 256];
    for run in allocator.runs() {
        let free = run.class == RunClass::FREE;
        counts[usize::from(run.class.0)] += if free { 1 } else { usize::from(run.span) };
    }
    let used = (1..=u8::MAX).map(|class| (RunClass(class), counts[usize::from(class)]));
    used.filter(|(_, count)| *count > 0).collect()
}
