//! The primary's slot allocator: which slot of which run is free, handed out, or in the index.
//!
//! Allocation and commit are two steps. A slot is *pending* from `take` to `commit`; only then may it be freed by a
//! later record. A span whose last slot is freed returns its runs to the pool of free runs, and they may get another class. Runs
//! of extents that are not committed here (a stand-in's) are known, but *dormant*: in no list and not in the pool. The slots of
//! a span of several runs are those of its first run; such a span lies in one extent.
//!
//! Invariants: a span's first run is in a fullness list if and only if it is active, not held, and partly used; it is in the pool if
//! and only if it is active, not held for a window, and free.

mod check;
mod lists;
mod run;

pub(crate) use lists::Lists;
pub(crate) use run::{Hold, Run, Slot, SlotState};

use types::UnixSeconds;

use crate::growing::grown_capacity;
use crate::{Budget, Category, Charge, PageSet, Replica};
use types::class::{SPAN_RUNS, is_slotted, slot_bytes, span_of};
use types::{Addr, PageRange, RUN_BYTES, Reach, RunClass};

pub(crate) use types::RUNS_PER_EXTENT;

// A span of several runs lies in one extent.
const _: () = assert!(RUNS_PER_EXTENT.is_multiple_of(SPAN_RUNS));

/// Runs that a search for a slot on present pages looks at.
const MAX_PRESENT_SEARCH: usize = 64;

/// A slot: the first run of its span, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotAt {
    pub(crate) run: u32,
    pub(crate) slot: u16,
}

/// Sums over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Live slots, claimed ones included.
    pub(crate) live: usize,
    /// Handed out and not yet in the index.
    pub(crate) pending: usize,
    /// Live slots that are handed out to be removed or moved.
    pub(crate) claimed: usize,
    /// Bytes of their slots.
    pub(crate) claimed_bytes: usize,
    /// Bytes of slots that are not free.
    pub(crate) slot_bytes: usize,
    /// Bytes of live items.
    pub(crate) item_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Allocator {
    runs: Vec<Run>,
    lists: Lists,
    pool: PageSet,
    /// Runs that may be used.
    active: PageSet,
    totals: Totals,
    /// Spans in use by class.
    spans_of: Box<[u32; 256]>,
    slot_words_bytes: usize,
    charge: Charge,
}

impl Allocator {
    pub(crate) fn new(budget: Budget) -> Self {
        let mut allocator = Self {
            runs: Vec::new(),
            lists: Lists::new(),
            pool: PageSet::new(),
            active: PageSet::new(),
            totals: Totals::default(),
            spans_of: Box::new([0; 256]),
            slot_words_bytes: 0,
            charge: Charge::empty(budget, Category::Index),
        };
        allocator.recharge();
        allocator
    }

    /// The allocator of a stand-in: slots in the index are live, all others are free; all runs are dormant. None if the
    /// index and the run table contradict each other.
    pub(crate) fn from_replica(replica: &Replica, budget: Budget) -> Option<Self> {
        let mut allocator = Self::new(budget);
        for (_, addr) in replica.index().iter() {
            allocator.occupy(replica, addr)?;
        }
        for run in &mut allocator.runs {
            run.thread_free_slots();
        }
        allocator.recharge();
        Some(allocator)
    }

    /// Marks the slot at `addr` as live.
    fn occupy(&mut self, replica: &Replica, addr: Addr) -> Option<()> {
        let run = (addr.byte() / RUN_BYTES) as u32;
        let at = if replica.class(run) == RunClass::SPAN_CONTINUED { span_start(run) } else { run };
        let offset = addr.byte() - at as usize * RUN_BYTES;
        self.grow(at + 1);
        let class = replica.class(at);
        if self.runs[at as usize].class == RunClass::FREE {
            let run = match class {
                RunClass::LARGE => Run::of_large(u16::try_from(large_span(replica, at)).ok()?),
                class if is_slotted(class) => Run::of_class(class),
                _ => return None,
            };
            let continued = run.continued().class;
            let mut others = at + 1..at + u32::from(run.span);
            // `locate` finds the beginning of such a span by its address alone.
            let aligned = continued != RunClass::SPAN_CONTINUED || at.is_multiple_of(span_of(class));
            if !aligned || !others.all(|other| replica.class(other) == continued) {
                return None;
            }
            self.start(at, run)?;
        }
        let slot = slot_number(class, offset)?;
        self.runs[at as usize].occupy(slot).then_some(())?;
        // Nobody has read yet when it expires.
        self.runs[at as usize].min_expiry = 0;
        let bytes = self.slot_bytes(at);
        // The true length lies in a slot that may be absent: counted in full until the run has been read.
        self.runs[at as usize].item_bytes += bytes as u32;
        self.totals.live += 1;
        self.totals.slot_bytes += bytes;
        self.totals.item_bytes += bytes;
        Some(())
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(crate) fn run(&self, at: u32) -> Option<&Run> {
        self.runs.get(at as usize)
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }

    pub(crate) fn pool(&self) -> &PageSet {
        &self.pool
    }

    /// The runs that may be used.
    pub(crate) fn active(&self) -> impl Iterator<Item = u32> + '_ {
        self.active.iter()
    }

    pub(crate) fn is_active(&self, run: u32) -> bool {
        self.active.contains(run)
    }

    /// Bytes of the spans of `class` that are in use.
    pub(crate) fn span_bytes_of(&self, class: RunClass) -> usize {
        (self.spans_of[usize::from(class.0)] * span_of(class)) as usize * RUN_BYTES
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Makes the runs of an extent usable so far.
    pub(crate) fn activate(&mut self, reach: Reach) {
        if self.is_active(reach.0) {
            return;
        }
        self.grow(reach.0 + 1);
        for at in reach.runs() {
            if !self.active.insert(at) {
                continue;
            }
            let run = &self.runs[at as usize];
            if run.class != RunClass::FREE {
                self.lists.link(&mut self.runs, at);
            } else if run.hold != Hold::Window {
                self.pool.insert(at);
            }
        }
        self.recharge();
    }

    /// The inverse of [`Self::activate`]: the runs of `extent` keep their slots and are dormant.
    pub(crate) fn deactivate(&mut self, extent: u32) {
        for at in Reach::whole(extent).runs() {
            if self.active.remove(at) {
                self.lists.unlink(&mut self.runs, at);
                self.pool.remove(at);
            }
        }
    }

    /// The first run of the span or the large item that run `at` is part of; `at` itself if it is part of none.
    pub(crate) fn head_of(&self, at: u32) -> u32 {
        // A large item has few runs, so this is a short walk.
        let continues = |at: &u32| self.run(*at).is_some_and(|run| run.class == RunClass::LARGE_CONTINUED);
        match self.run(at).map(|run| run.class) {
            Some(RunClass::SPAN_CONTINUED) => span_start(at),
            _ => (1..=at).rev().take_while(continues).last().map_or(at, |first| first - 1),
        }
    }

    /// A free slot of `class` in a run that is in use already.
    pub(crate) fn take(&mut self, class: RunClass) -> Option<SlotAt> {
        let run = self.lists.fullest_first(&self.runs, class).next()?;
        self.take_in(run, Run::take)
    }

    /// As [`Self::take`], only slots none of whose pages is in `absent`. Looks at a bounded number of runs.
    pub(crate) fn take_present(&mut self, class: RunClass, absent: &PageSet) -> Option<SlotAt> {
        // Collected, because a run that gives a slot moves to another list.
        let candidates: Vec<u32> =
            self.lists.fullest_first(&self.runs, class).take(MAX_PRESENT_SEARCH).collect();
        let bytes = slot_bytes(class);
        candidates.into_iter().find_map(|run| {
            let present = |slot: u16| !absent.contains_any(slot_pages(run, slot, bytes));
            self.take_in(run, |taken| taken.take_where(present))
        })
    }

    /// Pages of a free slot of `class` in a run that is in use.
    pub(crate) fn free_slot_pages(&self, class: RunClass) -> Option<PageRange> {
        let run = self.lists.fullest_first(&self.runs, class).next()?;
        self.free_slot_pages_in(run)
    }

    /// Pages of a free slot of run `at`, which is cut into slots.
    pub(crate) fn free_slot_pages_in(&self, at: u32) -> Option<PageRange> {
        let run = self.run(at)?;
        Some(slot_pages(at, run.peek()?, slot_bytes(run.class)))
    }

    /// Cuts a span of free runs from `first` on into slots of `class` and takes the first one. They are in the pool, or held for
    /// a window.
    pub(crate) fn open(&mut self, first: u32, class: RunClass) -> Option<SlotAt> {
        self.open_as(first, Run::of_class(class))
    }

    /// Takes `span` runs from `first` on for a large item. They are free: in the pool, or held for a window.
    pub(crate) fn open_large(&mut self, first: u32, span: u32) -> Option<SlotAt> {
        self.open_as(first, Run::of_large(u16::try_from(span).ok()?))
    }

    fn open_as(&mut self, first: u32, run: Run) -> Option<SlotAt> {
        // Runs of a window are in no pool; then this does nothing.
        for at in first..first + u32::from(run.span) {
            self.pool.remove(at);
        }
        self.start(first, run)?;
        self.recharge();
        self.take_in(first, Run::take)
    }

    /// The pending slot at `addr` is in the index now and holds an item of `len_bytes`.
    pub(crate) fn commit(&mut self, addr: Addr, len_bytes: usize, expiry: u32, now: UnixSeconds) {
        let Some(SlotAt { run: at, slot }) = self.locate(addr) else { return };
        let run = &mut self.runs[at as usize];
        let word = &mut run.slots[usize::from(slot)];
        debug_assert_eq!(word.state(), SlotState::Pending, "{addr} was never allocated");
        if word.state() != SlotState::Pending {
            return;
        }
        *word = word.with_state(SlotState::Live).written_at(now);
        run.pending -= 1;
        run.item_bytes += len_bytes as u32;
        if expiry != 0 {
            run.min_expiry = run.min_expiry.min(expiry);
        }
        self.totals.pending -= 1;
        self.totals.live += 1;
        self.totals.item_bytes += len_bytes;
    }

    /// An item in the run of `addr` expires at `expiry`; 0 = never.
    pub(crate) fn note_expiry(&mut self, addr: Addr, expiry: u32) {
        if expiry == 0 {
            return;
        }
        let at = self.head_of((addr.byte() / RUN_BYTES) as u32);
        if let Some(run) = self.runs.get_mut(at as usize) {
            run.min_expiry = run.min_expiry.min(expiry);
        }
    }

    /// There may be something to look for in the run of `addr`.
    pub(crate) fn look_at(&mut self, addr: Addr) {
        let at = self.head_of((addr.byte() / RUN_BYTES) as u32);
        if let Some(run) = self.runs.get_mut(at as usize) {
            run.min_expiry = 0;
        }
    }

    /// Frees the slot at `addr`, live or pending; `len_bytes` of the item if known. A run without used slots becomes
    /// free.
    pub(crate) fn free(&mut self, addr: Addr, len_bytes: Option<usize>) {
        let Some(SlotAt { run: at, slot }) = self.locate(addr) else { return };
        let state = self.runs[at as usize].slots[usize::from(slot)].state();
        debug_assert_ne!(state, SlotState::Free, "{addr} is freed twice");
        // The list that it is in is known by how full it is, so it leaves before a slot changes.
        self.lists.unlink(&mut self.runs, at);
        match state {
            // Only where assertions are off: what is free stays free, once.
            SlotState::Free => return self.link(at),
            SlotState::Pending => self.totals.pending -= 1,
            SlotState::Live | SlotState::Claimed => self.forget_item(at, len_bytes),
        }
        let bytes = self.slot_bytes(at);
        if state == SlotState::Claimed {
            self.totals.claimed -= 1;
            self.totals.claimed_bytes -= bytes;
        }
        self.totals.slot_bytes -= bytes;
        self.runs[at as usize].release(slot);
        if self.runs[at as usize].used == 0 { self.retire(at) } else { self.link(at) }
    }

    /// One item less in run `at`. Where its length is not known (absent), the average keeps the sum plausible.
    fn forget_item(&mut self, at: u32, len_bytes: Option<usize>) {
        let run = &mut self.runs[at as usize];
        let (all, live) = (run.item_bytes as usize, run.live());
        let len = if live == 1 { all } else { len_bytes.unwrap_or(all / live).min(all) };
        run.item_bytes -= len as u32;
        self.totals.item_bytes -= len;
        self.totals.live -= 1;
    }

    /// Every run may have items that are to go, whatever it knew of their expiry.
    pub(crate) fn look_everywhere(&mut self) {
        self.runs.iter_mut().filter(|run| run.live() > 0).for_each(|run| run.min_expiry = 0);
    }

    /// Frees all slots that are in the index.
    pub(crate) fn clear(&mut self) {
        for at in 0..self.runs.len() as u32 {
            match &self.runs[at as usize] {
                // Run by run where nothing is pending, so that a flush does not touch every slot.
                run if run.live() == 0 => {}
                run if run.pending == 0 => self.clear_run(at),
                _ => self.clear_slots(at),
            }
        }
    }

    /// Frees run `at` as a whole; none of its slots is pending.
    fn clear_run(&mut self, at: u32) {
        let bytes = self.slot_bytes(at);
        self.lists.unlink(&mut self.runs, at);
        let run = &self.runs[at as usize];
        let claimed = run.slots.iter().filter(|slot| slot.state() == SlotState::Claimed).count();
        self.totals.live -= run.live();
        self.totals.claimed -= claimed;
        self.totals.claimed_bytes -= claimed * bytes;
        self.totals.slot_bytes -= run.live() * bytes;
        self.totals.item_bytes -= run.item_bytes as usize;
        self.retire(at);
    }

    fn clear_slots(&mut self, at: u32) {
        let bytes = self.slot_bytes(at);
        for slot in 0..self.runs[at as usize].slots.len() {
            if self.runs[at as usize].slots[slot].is_live() {
                self.free(addr_of(at, slot, bytes), None);
            }
        }
    }

    /// State and access bits of the slot at `addr`.
    pub(crate) fn slot(&self, addr: Addr) -> Option<Slot> {
        let SlotAt { run, slot } = self.locate(addr)?;
        Some(self.runs[run as usize].slots[usize::from(slot)])
    }

    pub(crate) fn slot_mut(&mut self, addr: Addr) -> Option<&mut Slot> {
        let SlotAt { run, slot } = self.locate(addr)?;
        Some(&mut self.runs[run as usize].slots[usize::from(slot)])
    }

    pub(crate) fn run_mut(&mut self, at: u32) -> &mut Run {
        &mut self.runs[at as usize]
    }

    /// Hands a live slot out to be removed or moved; whether it was live and not yet handed out.
    pub(crate) fn claim(&mut self, addr: Addr) -> bool {
        let Some(SlotAt { run: at, slot }) = self.locate(addr) else { return false };
        let word = &mut self.runs[at as usize].slots[usize::from(slot)];
        let free_to_claim = word.state() == SlotState::Live;
        if free_to_claim {
            *word = word.with_state(SlotState::Claimed);
            self.totals.claimed += 1;
            self.totals.claimed_bytes += self.slot_bytes(at);
        }
        free_to_claim
    }

    /// Takes [`Self::claim`] back.
    pub(crate) fn unclaim(&mut self, addr: Addr) {
        let Some(SlotAt { run: at, slot }) = self.locate(addr) else { return };
        let run = &mut self.runs[at as usize];
        let word = &mut run.slots[usize::from(slot)];
        if word.state() == SlotState::Claimed {
            *word = word.with_state(SlotState::Live);
            run.min_expiry = 0;
            self.totals.claimed -= 1;
            self.totals.claimed_bytes -= self.slot_bytes(at);
        }
    }

    /// Keeps run `at` out of allocation, or lets it in again.
    pub(crate) fn set_hold(&mut self, at: u32, hold: Hold) {
        self.lists.unlink(&mut self.runs, at);
        self.runs[at as usize].hold = hold;
        if self.runs[at as usize].class != RunClass::FREE {
            self.link(at);
        } else if hold == Hold::Window {
            self.pool.remove(at);
        } else if self.is_active(at) {
            self.pool.insert(at);
            // It may be the first of its neighbours that was ever free.
            self.recharge();
        }
    }

    /// Sets the sum of item lengths of a run once all of it can be read.
    pub(crate) fn set_item_bytes(&mut self, at: u32, item_bytes: u32) {
        let run = &mut self.runs[at as usize];
        self.totals.item_bytes = self.totals.item_bytes - run.item_bytes as usize + item_bytes as usize;
        run.item_bytes = item_bytes;
    }

    /// Address of a slot.
    pub(crate) fn addr(&self, at: SlotAt) -> Addr {
        addr_of(at.run, usize::from(at.slot), self.slot_bytes(at.run))
    }

    /// Bytes of the slot that begins at `addr`; none if there is no slot.
    pub(crate) fn slot_len(&self, addr: Addr) -> Option<usize> {
        self.locate(addr).map(|at| self.slot_bytes(at.run))
    }

    /// Addresses of the live slots of the span that run `at` starts.
    pub(crate) fn live_addrs(&self, at: u32) -> impl Iterator<Item = Addr> + '_ {
        let slots = self.run(at).map_or(&[][..], |run| &run.slots);
        let bytes = if slots.is_empty() { 0 } else { self.slot_bytes(at) };
        let live = slots.iter().enumerate().filter(|(_, slot)| slot.is_live());
        live.map(move |(slot, _)| Addr::from_byte(at as usize * RUN_BYTES + slot * bytes))
    }

    /// Bytes of each slot in the span that run `at` starts.
    pub(crate) fn slot_bytes(&self, at: u32) -> usize {
        let run = &self.runs[at as usize];
        if run.class == RunClass::LARGE { usize::from(run.span) * RUN_BYTES } else { slot_bytes(run.class) }
    }

    fn locate(&self, addr: Addr) -> Option<SlotAt> {
        let mut at = (addr.byte() / RUN_BYTES) as u32;
        let mut run = self.run(at)?;
        if run.class == RunClass::SPAN_CONTINUED {
            at = span_start(at);
            run = self.run(at)?;
        }
        let slot = slot_number(run.class, addr.byte() - at as usize * RUN_BYTES)?;
        (slot < run.slots.len()).then_some(SlotAt { run: at, slot: slot as u16 })
    }

    fn take_in(&mut self, at: u32, take: impl FnOnce(&mut Run) -> Option<u16>) -> Option<SlotAt> {
        self.lists.unlink(&mut self.runs, at);
        let slot = take(&mut self.runs[at as usize]);
        self.link(at);
        let slot = slot?;
        self.totals.pending += 1;
        self.totals.slot_bytes += self.slot_bytes(at);
        Some(SlotAt { run: at, slot })
    }

    fn link(&mut self, at: u32) {
        if self.is_active(at) {
            self.lists.link(&mut self.runs, at);
        }
    }

    /// Run `first` is `run` from now on, and those after it continue it as far as its span goes. None if one of these is not
    /// free.
    fn start(&mut self, first: u32, run: Run) -> Option<()> {
        let end = first + u32::from(run.span);
        self.grow(end);
        for at in first + 1..end {
            if self.runs[at as usize].class != RunClass::FREE {
                return None;
            }
            self.runs[at as usize] = run.continued();
        }
        self.slot_words_bytes += run.heap_bytes();
        self.spans_of[usize::from(run.class.0)] += 1;
        self.runs[first as usize] = run;
        Some(())
    }

    /// Returns run `at`, and those that continue it, to the pool.
    fn retire(&mut self, at: u32) {
        let run = &self.runs[at as usize];
        self.slot_words_bytes -= run.heap_bytes();
        self.spans_of[usize::from(run.class.0)] -= 1;
        let span = u32::from(run.span);
        for at in at..at + span {
            let hold = self.runs[at as usize].hold;
            self.runs[at as usize] = Run::default();
            // It was emptied for somebody who has not come yet.
            if hold == Hold::Window {
                self.runs[at as usize].hold = hold;
            } else if self.is_active(at) {
                self.pool.insert(at);
            }
        }
        self.recharge();
    }

    fn grow(&mut self, runs: u32) {
        if runs as usize > self.runs.len() {
            let runs = (runs as usize).next_multiple_of(RUNS_PER_EXTENT as usize);
            self.runs.resize_with(runs, Run::default);
        }
    }

    /// What the allocator of an area takes whose first `runs` runs were cut into `slots` slots.
    pub(crate) fn grown_bytes(runs: u32, slots: usize) -> usize {
        let empty = Self::new(Budget::new(u64::MAX)).memory_bytes();
        let runs = runs.next_multiple_of(RUNS_PER_EXTENT) as usize;
        let bitmaps = 2 * PageSet::grown_bytes(runs);
        empty + bitmaps + grown_capacity(runs) * size_of::<Run>() + slots * size_of::<Slot>()
    }

    fn recharge(&mut self) {
        self.charge.set(self.heap_bytes());
    }

    fn heap_bytes(&self) -> usize {
        let bitmaps = self.pool.memory_bytes() + self.active.memory_bytes();
        let runs = self.runs.capacity() * size_of::<Run>() + self.slot_words_bytes;
        bitmaps + runs + self.lists.heap_bytes() + size_of_val(&*self.spans_of)
    }
}

/// Where the span of several runs begins that run `at` is part of.
fn span_start(at: u32) -> u32 {
    at / SPAN_RUNS * SPAN_RUNS
}

/// Number of the slot that begins at `offset` of a span of `class`.
fn slot_number(class: RunClass, offset: usize) -> Option<usize> {
    match slot_bytes(class) {
        0 => (class == RunClass::LARGE && offset == 0).then_some(0),
        bytes => offset.is_multiple_of(bytes).then_some(offset / bytes),
    }
}

fn addr_of(run: u32, slot: usize, slot_bytes: usize) -> Addr {
    Addr::from_byte(run as usize * RUN_BYTES + slot * slot_bytes)
}

fn slot_pages(run: u32, slot: u16, slot_bytes: usize) -> PageRange {
    PageRange::covering(addr_of(run, usize::from(slot), slot_bytes).byte(), slot_bytes)
}

/// Runs of the large item that starts at run `first`.
fn large_span(replica: &Replica, first: u32) -> u32 {
    let rest = replica.classes().iter().skip(first as usize + 1);
    1 + rest.take_while(|class| **class == RunClass::LARGE_CONTINUED).count() as u32
}

#[cfg(test)]
mod tests;
