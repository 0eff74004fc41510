//! Room for large items and spans of several runs: a window of neighbouring runs is emptied and kept for the next of them.
//!
//! Where items may be evicted, a window costs what is read in it, not its bytes: however few they are, items that are read
//! outweigh large ones that are not. Those that lie in the window all the same move elsewhere, if there is room.

use std::ops::Range;

use smallvec::SmallVec;

use super::Reclaim;
use crate::alloc::{Hold, Run, SlotState};
use crate::class::{SPAN_RUNS, is_slotted, slot_bytes, slots_in_span, span_of};
use crate::data_store::{DataStore, Eviction};
use crate::{Addr, RUN_BYTES, RunClass};

/// Windows that are compared.
const MAX_WINDOWS: usize = 32;
/// Places that are looked at to find them.
const MAX_PLACES: u32 = 4096;
/// Calls of `reclaim` after which a window is given up.
const PATIENCE: u32 = 256;
/// What an item counts that was not read since the hand came by, and what each of its reads adds.
const COLD_COST: usize = 1;
const READ_COST: usize = 16;

/// Runs `first .. first + count`, on their way to being free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    first: u32,
    count: u32,
    patience: u32,
}

impl Window {
    fn runs(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    fn suits(self, span: u32, align: u32) -> bool {
        self.count >= span && self.first.is_multiple_of(align)
    }
}

/// Slots for items that move, counted before any of them is taken.
struct Room<'a> {
    store: &'a DataStore,
    free_runs: usize,
    /// Free slots of each class that was asked for.
    slots: SmallVec<[(RunClass, usize); 8]>,
}

impl Room<'_> {
    /// A slot for the item at `addr`, if there is one left in a single run.
    fn take(&mut self, addr: Addr) -> bool {
        let len = self.store.header(addr).map(|header| header.len_bytes());
        let class = len.map(|len| self.store.class_for(len)).filter(|class| span_of(*class) == 1);
        let Some(class) = class.filter(|_| self.store.absent.is_empty()) else { return false };
        let at = self.slots.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
            self.slots.push((class, self.store.allocator.lists().free_slots(class)));
            self.slots.len() - 1
        });
        let slots = &mut self.slots[at].1;
        if *slots == 0 && self.free_runs > 0 {
            self.free_runs -= 1;
            *slots = slots_in_span(class);
        }
        let taken = *slots > 0;
        *slots -= usize::from(taken);
        taken
    }
}

impl DataStore {
    /// Items of the window that is being emptied, or of a new one of at least `span` runs from a multiple of `align` on.
    pub(super) fn empty_window(&mut self, span: u32, align: u32) -> Option<Reclaim> {
        if self.reclaimer.window.is_some_and(|window| !window.suits(span, align)) {
            self.release_window();
        }
        if self.reclaimer.window.is_none() {
            let window = self.cheapest_window(span, align)?;
            for at in window.runs() {
                self.allocator.set_hold(at, Hold::Window);
            }
            self.reclaimer.window = Some(window);
        }
        let runs = self.reclaimer.window.into_iter().flat_map(Window::runs);
        let items: Vec<Addr> = runs.flat_map(|at| self.items_over(at)).collect();
        match self.config.eviction {
            Eviction::Clock => self.evict_or_move(items),
            Eviction::None => self.claim_batch(items).map(Reclaim::Move),
        }
    }

    /// Those of `items` go that are not read; then the others move, and go only where there is no room for them.
    fn evict_or_move(&mut self, items: Vec<Addr>) -> Option<Reclaim> {
        let is_read = |addr: &Addr| self.allocator.slot(*addr).is_some_and(|slot| slot.frequency() > 0);
        let (read, cold): (Vec<Addr>, Vec<Addr>) = items.into_iter().partition(is_read);
        if let Some(victims) = self.claim_batch(cold) {
            return Some(Reclaim::Remove(victims));
        }
        let movable = self.movable(&read);
        if let Some(moved) = self.claim_batch(movable) {
            return Some(Reclaim::Move(moved));
        }
        self.claim_batch(read).map(Reclaim::Remove)
    }

    /// As many of `items` as there are slots for outside of the window.
    fn movable(&self, items: &[Addr]) -> Vec<Addr> {
        let mut room =
            Room { store: self, free_runs: self.allocator.pool().count() as usize, slots: SmallVec::new() };
        items.iter().copied().filter(|addr| room.take(*addr)).collect()
    }

    /// Takes the window for `span` runs from a multiple of `align` on, if it is empty and suits.
    pub(in crate::data_store) fn take_window(&mut self, span: u32, align: u32) -> Option<u32> {
        let window = self.reclaimer.window.filter(|window| window.suits(span, align))?;
        let free = |at: u32| self.allocator.run(at).is_some_and(|run| run.class == RunClass::FREE);
        if !window.runs().all(free) {
            return None;
        }
        self.release_window();
        Some(window.first)
    }

    /// Lets held runs that have room for an item of `class` take items again; whether there were any.
    pub(in crate::data_store) fn release_hold_for(&mut self, class: RunClass) -> bool {
        self.tend_compacting();
        if self.release_compacting(class) {
            return true;
        }
        let useful = |run: &Run| run.class == RunClass::FREE || run.class == class && run.free_slots() > 0;
        let runs = self.reclaimer.window.into_iter().flat_map(Window::runs);
        let found = runs.filter_map(|at| self.allocator.run(at)).any(useful);
        if found {
            self.release_window();
        }
        found
    }

    /// Gives the window up if it lies over any of `runs`.
    pub(in crate::data_store) fn release_window_over(&mut self, runs: Range<u32>) {
        let over = |window: Window| window.runs().start < runs.end && runs.start < window.runs().end;
        if self.reclaimer.window.is_some_and(over) {
            self.release_window();
        }
    }

    pub(super) fn tend_holds(&mut self) {
        self.tend_compacting();
        let Some(window) = &mut self.reclaimer.window else { return };
        window.patience -= 1;
        if window.patience == 0 {
            self.release_window();
        }
    }

    fn release_window(&mut self) {
        let Some(window) = self.reclaimer.window.take() else { return };
        for at in window.runs() {
            self.allocator.set_hold(at, Hold::None);
        }
    }

    /// Live items of the span over run `at`, the large one that continues there included.
    fn items_over(&self, at: u32) -> Vec<Addr> {
        self.live_addrs(self.allocator.head_of(at)).collect()
    }

    /// The window of `span` runs or a little more that is the cheapest to empty, among the next ones.
    fn cheapest_window(&mut self, span: u32, align: u32) -> Option<Window> {
        let starts = (self.allocator.runs().len() as u32).checked_sub(span)? / align + 1;
        let mut found: Vec<(usize, u32, u32)> = Vec::new();
        for _ in 0..starts.min(MAX_PLACES) {
            let start = self.reclaimer.window_hand % starts;
            self.reclaimer.window_hand = start + 1;
            let first = start * align;
            let Some(count) = self.whole_spans(first, span) else { continue };
            found.extend(self.window_cost(first, count).map(|cost| (cost, first, count)));
            if found.len() == MAX_WINDOWS {
                break;
            }
        }
        let (_, first, count) = found.into_iter().min()?;
        Some(Window { first, count, patience: PATIENCE })
    }

    /// Length of a window of at least `span` runs from `first` on that ends where a span ends; none if it would begin within one.
    fn whole_spans(&self, first: u32, span: u32) -> Option<u32> {
        let continues =
            |at: u32| self.allocator.run(at).is_some_and(|run| run.class == RunClass::SPAN_CONTINUED);
        let end = first + span;
        let end = if continues(end) { end.next_multiple_of(SPAN_RUNS) } else { end };
        (!continues(first)).then_some(end - first)
    }

    /// What it costs to empty the window; none if it cannot be emptied.
    fn window_cost(&self, first: u32, count: u32) -> Option<usize> {
        let mut cost = 0;
        for at in first..first + count {
            if !self.is_usable(at) {
                return None;
            }
            cost += match self.config.eviction {
                Eviction::Clock => self.reads_lost(at, first),
                Eviction::None => self.bytes_moved(at)?,
            };
        }
        let movable = self.config.eviction == Eviction::Clock || self.fits_elsewhere(first, count);
        movable.then_some(cost)
    }

    fn is_usable(&self, at: u32) -> bool {
        let is_free = |run: &Run| run.hold == Hold::None && run.pending == 0;
        self.allocator.is_active(at)
            && self.allocator.run(at).is_some_and(is_free)
            && self.absent_within(at as usize * RUN_BYTES, RUN_BYTES).is_none()
    }

    /// Of the items in run `at` of a window from `first` on. One that begins before the window counts in its first run.
    fn reads_lost(&self, at: u32, first: u32) -> usize {
        let head = if at == first { self.allocator.head_of(at) } else { at };
        let slots = self.allocator.run(head).map_or(&[][..], |run| &run.slots);
        let live = slots.iter().filter(|slot| slot.state() != SlotState::Free);
        live.map(|slot| COLD_COST + READ_COST * slot.frequency() as usize).sum()
    }

    /// None for a part of a large item, which finds no other place.
    fn bytes_moved(&self, at: u32) -> Option<usize> {
        let run = self.allocator.run(at)?;
        let large = run.class == RunClass::LARGE || run.class == RunClass::LARGE_CONTINUED;
        (!large).then(|| run.live() * slot_bytes(run.class))
    }

    /// Whether the other runs of the same classes, and free runs, have room for all items of the window.
    fn fits_elsewhere(&self, first: u32, count: u32) -> bool {
        let window: Vec<&Run> = (first..first + count).filter_map(|at| self.allocator.run(at)).collect();
        let free_runs = window.iter().filter(|run| run.class == RunClass::FREE).count();
        let mut classes: Vec<RunClass> =
            window.iter().map(|run| run.class).filter(|class| is_slotted(*class)).collect();
        classes.sort_unstable();
        classes.dedup();
        let wanted: usize = classes.iter().map(|class| self.further_runs(*class, &window)).sum();
        wanted + free_runs <= self.allocator.pool().count() as usize
    }

    /// Runs that must be opened outside of the window to hold its items of `class`. Instead of a span of several runs, each item
    /// may have to take whole ones.
    fn further_runs(&self, class: RunClass, window: &[&Run]) -> usize {
        let inside = || window.iter().filter(|run| run.class == class);
        let live: usize = inside().map(|run| run.live()).sum();
        let free_inside: usize = inside().filter(|run| run.list.is_some()).map(|run| run.free_slots()).sum();
        let free = self.allocator.lists().free_slots(class) - free_inside;
        let homeless = live.saturating_sub(free);
        if span_of(class) == SPAN_RUNS {
            homeless * slot_bytes(class).div_ceil(RUN_BYTES)
        } else {
            homeless.div_ceil(slots_in_span(class))
        }
    }
}
