//! Where a new item goes: a free slot of its class, a free run, a window that was emptied for it. Or what is short.

use super::config::{Allocation, Eviction, Shortage};
use super::contents::Contents;
use super::growth::Growth;
use super::reclaim::Reclaimer;
use super::room::Room;
use super::slots::Slots;
use crate::Budget;
use crate::alloc::SlotAt;
use types::class::{SPAN_RUNS, class_in_one_run, runs_of_large, span_of};
use types::{MAX_ITEM_BYTES, Reach, RunClass};

/// See the module.
pub(super) struct Search<'a> {
    pub slots: &'a mut Slots,
    pub contents: &'a Contents,
    pub growth: &'a mut Growth,
    pub reclaimer: &'a mut Reclaimer,
    pub budget: &'a Budget,
    pub eviction: Eviction,
}

impl Search<'_> {
    /// A slot for an item of `len_bytes`.
    pub(super) fn slot_for(&mut self, len_bytes: usize) -> Result<Allocation, Shortage> {
        if len_bytes > MAX_ITEM_BYTES || len_bytes > self.contents.area().limit_bytes() {
            return Err(Shortage::TooLarge);
        }
        // Before a slot is looked for: a record that was logged must find room in every index.
        if !self.slots.fit_into_index(self.contents) {
            return Err(self.slots.nothing_free());
        }
        let class = self.contents.class_for(len_bytes);
        let slot = match class {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            _ if span_of(class) == SPAN_RUNS => self.take_in_span(class, len_bytes),
            _ => self.take_slot(class),
        };
        match slot {
            Some(slot) => Ok(self.slots.allocation(self.contents.replica(), slot)),
            None => Err(self.shortage(class, len_bytes)),
        }
    }

    fn room(&self) -> Room<'_> {
        Room { contents: self.contents, slots: self.slots, eviction: self.eviction }
    }

    fn take_slot(&mut self, class: RunClass) -> Option<SlotAt> {
        let allocator = self.slots.allocator_mut();
        if self.contents.is_whole() {
            let slot = allocator.take(class);
            return slot.or_else(|| self.open_run(class)).or_else(|| self.take_held(class));
        }
        let slot = allocator.take_present(class, self.contents.absent());
        slot.or_else(|| self.open_run(class))
    }

    /// A slot in a span of several runs. Where nothing may be evicted for a span, single runs are better used than left.
    fn take_in_span(&mut self, class: RunClass, len_bytes: usize) -> Option<SlotAt> {
        let slot = self.slots.allocator_mut().take(class).or_else(|| {
            let first = match self.reclaimer.take_window(self.slots, SPAN_RUNS, SPAN_RUNS) {
                Some(first) => first,
                None => self.slots.allocator().pool().first_aligned(SPAN_RUNS)?,
            };
            self.slots.allocator_mut().open(first, class)
        });
        if slot.is_some() || self.eviction == Eviction::Clock || self.next_extent(SPAN_RUNS).is_some() {
            return slot;
        }
        match class_in_one_run(len_bytes) {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            class => self.take_slot(class),
        }
    }

    /// Cuts a free run, whose pages are present, into slots of `class`.
    fn open_run(&mut self, class: RunClass) -> Option<SlotAt> {
        let run = self.room().free_run()?;
        self.slots.allocator_mut().open(run, class)
    }

    /// Where nothing may be evicted, a run that is held is better used than left.
    fn take_held(&mut self, class: RunClass) -> Option<SlotAt> {
        if self.eviction == Eviction::Clock
            || self.next_extent(1).is_some()
            || !self.reclaimer.release_hold_for(self.slots, class)
        {
            return None;
        }
        self.slots.allocator_mut().take(class).or_else(|| self.open_run(class))
    }

    fn take_large(&mut self, span: u32) -> Option<SlotAt> {
        let first = match self.reclaimer.take_window(self.slots, span, 1) {
            Some(first) => first,
            None => self.room().free_stretch(span)?,
        };
        self.slots.allocator_mut().open_large(first, span)
    }

    /// What has to be done for an item of `class`, in the order of what it costs.
    fn shortage(&mut self, class: RunClass, len_bytes: usize) -> Shortage {
        let wanted = if class == RunClass::LARGE { runs_of_large(len_bytes) } else { span_of(class) };
        // What waits for repair comes last: it holds little that is free, and a stand-in would have to ask for one such extent
        // after another.
        let unwritten = |extent| !self.contents.awaits_repair(extent);
        if let Some(reach) = self.growth.next_extent(self.contents.area(), self.budget, wanted, unwritten) {
            return Shortage::Extent(reach);
        }
        if let Some(pages) = self.room().absent(class) {
            return Shortage::Absent(pages);
        }
        if let Some(reach) = self.next_extent(wanted) {
            return Shortage::Extent(reach);
        }
        self.slots.nothing_free()
    }

    /// Where the area may grow so that `wanted` free runs come, if it may and the budget has room for it.
    fn next_extent(&mut self, wanted: u32) -> Option<Reach> {
        self.growth.next_extent(self.contents.area(), self.budget, wanted, |_| true)
    }
}
