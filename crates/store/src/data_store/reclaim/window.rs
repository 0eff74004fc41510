//! Room for large items and spans of several runs: a window of neighbouring runs is emptied and kept for the next of them.

use std::ops::Range;

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
        let victims = self.claim_batch(runs.flat_map(|at| self.items_over(at)).collect())?;
        Some(match self.config.eviction {
            Eviction::Clock => Reclaim::Remove(victims),
            Eviction::None => Reclaim::Move(victims),
        })
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

    /// The window of `span` runs or a little more whose items are the fewest and coldest, among the next ones.
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

    /// Bytes to evict or move, hot ones counted more; none if the window cannot be emptied.
    fn window_cost(&self, first: u32, count: u32) -> Option<usize> {
        let mut cost = 0;
        for at in first..first + count {
            cost += self.run_cost(at)?;
        }
        let movable = self.config.eviction == Eviction::Clock || self.fits_elsewhere(first, count);
        movable.then_some(cost)
    }

    fn run_cost(&self, at: u32) -> Option<usize> {
        let run = self.allocator.run(at)?;
        let usable = self.allocator.is_active(at) && run.hold == Hold::None && run.pending == 0;
        let usable = usable && self.absent_within(at as usize * RUN_BYTES, RUN_BYTES).is_none();
        let large = run.class == RunClass::LARGE || run.class == RunClass::LARGE_CONTINUED;
        if !usable || large && self.config.eviction == Eviction::None {
            return None;
        }
        if large {
            return Some(RUN_BYTES);
        }
        let bytes = slot_bytes(run.class);
        let live = run.slots.iter().filter(|slot| slot.state() != SlotState::Free);
        Some(match self.config.eviction {
            Eviction::Clock => live.map(|slot| (1 + slot.frequency() as usize) * bytes).sum(),
            Eviction::None => run.live() * bytes,
        })
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
