//! Room for large items and spans of several runs: a window of neighbouring runs is emptied and kept for the next of them.
//!
//! Where items may be evicted, a window costs what is read in it, not its bytes: however few they are, items that are read
//! outweigh large ones that are not. Those that lie in the window all the same move elsewhere, if there is room.
//!
//! An extent that is to go back is such a window too, and the highest one that can be emptied: parities keep an extent for as long as
//! one of their data roles has it, so all give up the same ones. It is not chosen by what is read in it, so items elsewhere that are
//! colder than those make room for them.

use std::ops::Range;

use smallvec::SmallVec;

use super::clock::Hand;
use super::ground::{Ground, Reclaim};
use crate::alloc::{Allocator, Hold, RUNS_PER_EXTENT, Run, SlotState};
use crate::data_store::config::Eviction;
use crate::data_store::slots::Slots;
use types::class::{SPAN_RUNS, is_slotted, slot_bytes, slots_in_span, span_of};
use types::{Addr, EXTENT_BYTES, RUN_BYTES, RunClass};

/// Windows that are compared.
const MAX_WINDOWS: usize = 32;
/// Places that are looked at to find them.
const MAX_PLACES: u32 = 4096;
/// Calls of `reclaim` after which a window is given up.
const PATIENCE: u32 = 256;
/// What an item counts that was not read since the hand came by, and what each of its reads adds.
const COLD_COST: usize = 1;
const READ_COST: usize = 16;

/// The window that is being emptied, and where the next one is looked for.
#[derive(Debug, Default)]
pub(super) struct Windows {
    window: Option<Window>,
    /// What was last to go elsewhere for the window, at most a batch.
    going: Vec<Addr>,
    /// Next place to look at.
    hand: u32,
}

/// Runs `first .. first + count`, on their way to being free.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: u32,
    count: u32,
    patience: u32,
    /// Bytes of slots that may yet be freed elsewhere for items of it that are read.
    elsewhere_bytes: usize,
}

impl Window {
    fn new(first: u32, count: u32) -> Self {
        Self { first, count, patience: PATIENCE, elsewhere_bytes: 0 }
    }

    fn runs(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    fn suits(self, span: u32, align: u32) -> bool {
        self.count >= span && self.first.is_multiple_of(align)
    }
}

impl Windows {
    /// Items of the window that is being emptied, or of a new one of at least `span` runs from a multiple of `align` on.
    pub(super) fn empty(&mut self, ground: &mut Ground<'_>, span: u32, align: u32) -> Option<Reclaim> {
        if self.window.is_some_and(|window| !window.suits(span, align)) {
            self.release(ground.slots);
        }
        if self.window.is_none() {
            let window = self.cheapest(ground, span, align)?;
            self.hold(ground.slots, window);
        }
        self.go_on(ground)
    }

    /// Items of the extent that is being emptied, or of the highest one that can be; or colder ones elsewhere, which `clock` finds. Where
    /// nothing is evicted all of them move.
    pub(super) fn empty_extent(&mut self, ground: &mut Ground<'_>, clock: &mut Hand) -> Option<Reclaim> {
        if self.window.is_none() {
            let window = extent_to_empty(ground)?;
            self.hold(ground.slots, window);
        }
        let proposal = self.make_room_elsewhere(ground, clock).or_else(|| self.go_on(ground))?;
        // As long as it goes on it is not in vain, however many items there are.
        self.window = self.window.map(|window| Window { patience: PATIENCE, ..window });
        Some(proposal)
    }

    /// Items elsewhere that go so that others of the window can move, if all that are left in it are read and none has room: a batch at a
    /// time, and no more of them than the window is long.
    fn make_room_elsewhere(&mut self, ground: &mut Ground<'_>, clock: &mut Hand) -> Option<Reclaim> {
        let window = self.window.as_mut().filter(|window| window.elsewhere_bytes > 0)?;
        let class = class_without_room(ground, window.runs())?;
        if self.going.iter().any(|addr| is_claimed(ground, *addr)) {
            return Some(Reclaim::Nothing);
        }
        let victims = clock.batch_in(ground, class);
        self.going = victims.iter().map(|victim| victim.addr).collect();
        // Where there are none, there will be none for the others.
        let bytes = if victims.is_empty() { EXTENT_BYTES } else { victims.len() * slot_bytes(class) };
        window.elsewhere_bytes = window.elsewhere_bytes.saturating_sub(bytes);
        (!victims.is_empty()).then_some(Reclaim::Remove(victims))
    }

    fn hold(&mut self, slots: &mut Slots, window: Window) {
        for at in window.runs() {
            slots.allocator_mut().set_hold(at, Hold::Window);
        }
        self.window = Some(window);
    }

    fn go_on(&mut self, ground: &mut Ground<'_>) -> Option<Reclaim> {
        let items = claimable_over(ground, self.window.into_iter().flat_map(Window::runs));
        let is_stuck = !items.is_empty();
        let proposal = match ground.eviction {
            Eviction::Clock => evict_or_move(ground, items),
            Eviction::None => ground.claim_batch(items).map(Reclaim::Move),
        };
        // What is there may neither go nor move: another window may have less of that.
        if proposal.is_none() && is_stuck {
            self.release(ground.slots);
        }
        proposal
    }

    /// Lets go of the extent that was to be emptied, if it is empty.
    pub(super) fn take_extent(&mut self, slots: &mut Slots) -> Option<u32> {
        self.take(slots, RUNS_PER_EXTENT, RUNS_PER_EXTENT).map(|first| first / RUNS_PER_EXTENT)
    }

    /// Takes the window for `span` runs from a multiple of `align` on, if it is empty and suits.
    pub(super) fn take(&mut self, slots: &mut Slots, span: u32, align: u32) -> Option<u32> {
        let window = self.window.filter(|window| window.suits(span, align))?;
        let free = |at: u32| slots.allocator().run(at).is_some_and(|run| run.class == RunClass::FREE);
        if !window.runs().all(free) {
            return None;
        }
        self.release(slots);
        Some(window.first)
    }

    /// Gives the window up if it has room for an item of `class`; whether it has.
    pub(super) fn release_for(&mut self, slots: &mut Slots, class: RunClass) -> bool {
        let useful = |run: &Run| run.class == RunClass::FREE || run.class == class && run.free_slots() > 0;
        let runs = self.window.into_iter().flat_map(Window::runs);
        let found = runs.filter_map(|at| slots.allocator().run(at)).any(useful);
        if found {
            self.release(slots);
        }
        found
    }

    /// Gives the window up if it lies over any of `runs`.
    pub(super) fn release_over(&mut self, slots: &mut Slots, runs: Range<u32>) {
        let over = |window: Window| window.runs().start < runs.end && runs.start < window.runs().end;
        if self.window.is_some_and(over) {
            self.release(slots);
        }
    }

    /// Gives the window up when it has taken too long.
    pub(super) fn tend(&mut self, slots: &mut Slots) {
        let Some(window) = &mut self.window else { return };
        window.patience -= 1;
        if window.patience == 0 {
            self.release(slots);
        }
    }

    /// Whether run `at` is part of the window.
    pub(super) fn covers(&self, at: u32) -> bool {
        self.window.is_some_and(|window| window.runs().contains(&at))
    }

    /// That the window lies in the area, and ends some time.
    pub(super) fn check_invariants(&self, allocator: &Allocator) {
        let Some(window) = self.window else { return };
        let runs = allocator.runs().len();
        assert!(
            window.runs().end as usize <= runs,
            "{window:?} reaches beyond the {runs} runs that there are"
        );
        assert!(window.patience > 0, "{window:?} should have been given up");
    }

    fn release(&mut self, slots: &mut Slots) {
        let Some(window) = self.window.take() else { return };
        for at in window.runs() {
            slots.allocator_mut().set_hold(at, Hold::None);
        }
    }

    /// The window of `span` runs or a little more that is the cheapest to empty, among the next ones.
    fn cheapest(&mut self, ground: &Ground<'_>, span: u32, align: u32) -> Option<Window> {
        // The hand goes on where it stopped, so that in the end every place has its turn, however large the area is.
        let starts = (ground.allocator().runs().len() as u32).checked_sub(span)? / align + 1;
        let mut found: Vec<(usize, u32, u32)> = Vec::new();
        for _ in 0..starts.min(MAX_PLACES) {
            let start = self.hand % starts;
            self.hand = start + 1;
            let first = start * align;
            let Some(count) = whole_spans(ground.allocator(), first, span) else { continue };
            found.extend(cost(ground, first, count).map(|cost| (cost, first, count)));
            if found.len() == MAX_WINDOWS {
                break;
            }
        }
        let (_, first, count) = found.into_iter().min()?;
        Some(Window::new(first, count))
    }
}

/// An extent as a window: the highest one that can be emptied; where nothing is evicted that with the least to be moved, among the highest
/// ones.
fn extent_to_empty(ground: &Ground<'_>) -> Option<Window> {
    let extents = ground.allocator().runs().len() as u32 / RUNS_PER_EXTENT;
    let firsts = (0..extents).rev().map(|extent| extent * RUNS_PER_EXTENT);
    let there = firsts.filter(|first| ground.allocator().is_active(*first)).take(MAX_WINDOWS);
    // One into which something reaches from below, or out of which something reaches, is passed over.
    let whole =
        |first: &u32| whole_spans(ground.allocator(), *first, RUNS_PER_EXTENT) == Some(RUNS_PER_EXTENT);
    let possible = |first| Some((cost(ground, first, RUNS_PER_EXTENT)?, first));
    let mut possible = there.filter(whole).filter_map(possible);
    let (found, elsewhere_bytes) = match ground.eviction {
        Eviction::Clock => (possible.next(), EXTENT_BYTES),
        Eviction::None => (possible.min_by_key(|(cost, _)| *cost), 0),
    };
    let (_, first) = found?;
    Some(Window { elsewhere_bytes, ..Window::new(first, RUNS_PER_EXTENT) })
}

/// Slots for items that move, counted before any of them is taken.
struct Room<'a> {
    ground: &'a Ground<'a>,
    free_runs: usize,
    /// Free slots of each class that was asked for.
    slots: SmallVec<[(RunClass, usize); 8]>,
}

impl Room<'_> {
    /// A slot for the item at `addr`, if there is one left in a single run.
    fn take(&mut self, addr: Addr) -> bool {
        let Ground { slots, contents, .. } = self.ground;
        let Some(class) = movable_class(self.ground, addr).filter(|_| contents.is_whole()) else {
            return false;
        };
        let at = self.slots.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
            self.slots.push((class, slots.allocator().lists().free_slots(class)));
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

/// The class of an item in `runs` that is to move; none if some are not read and go first, or if any has room.
fn class_without_room(ground: &Ground<'_>, runs: Range<u32>) -> Option<RunClass> {
    let items = claimable_over(ground, runs);
    if items.iter().any(|addr| ground.may_evict(*addr) && !is_read(ground, *addr)) {
        return None;
    }
    let class = items.iter().find_map(|addr| movable_class(ground, *addr))?;
    movable(ground, &items).is_empty().then_some(class)
}

/// The class of the slot that the item at `addr` would move to; none if it takes more than a run.
fn movable_class(ground: &Ground<'_>, addr: Addr) -> Option<RunClass> {
    let len = ground.contents.header(addr).map(|header| header.len_bytes())?;
    Some(ground.contents.class_for(len)).filter(|class| span_of(*class) == 1)
}

fn is_claimed(ground: &Ground<'_>, addr: Addr) -> bool {
    ground.allocator().slot(addr).is_some_and(|slot| slot.state() == SlotState::Claimed)
}

fn is_read(ground: &Ground<'_>, addr: Addr) -> bool {
    ground.allocator().slot(addr).is_some_and(|slot| slot.frequency() > 0)
}

/// Those of `items` go that are not read; then the others move, and go only where there is no room for them.
fn evict_or_move(ground: &mut Ground<'_>, items: Vec<Addr>) -> Option<Reclaim> {
    let (evictable, kept): (Vec<Addr>, Vec<Addr>) =
        items.into_iter().partition(|addr| ground.may_evict(*addr));
    let (read, cold): (Vec<Addr>, Vec<Addr>) = evictable.into_iter().partition(|addr| is_read(ground, *addr));
    if let Some(victims) = ground.claim_batch(cold) {
        return Some(Reclaim::Remove(victims));
    }
    let movable = movable(ground, &[read.clone(), kept].concat());
    if let Some(moved) = ground.claim_batch(movable) {
        return Some(Reclaim::Move(moved));
    }
    ground.claim_batch(read).map(Reclaim::Remove)
}

/// As many of `items` as there are slots for outside of the window.
fn movable(ground: &Ground<'_>, items: &[Addr]) -> Vec<Addr> {
    let free_runs = ground.allocator().pool().count() as usize;
    let mut room = Room { ground, free_runs, slots: SmallVec::new() };
    items.iter().copied().filter(|addr| room.take(*addr)).collect()
}

/// Items of the spans over `runs` that may be claimed, the large one that continues there included.
fn claimable_over(ground: &Ground<'_>, runs: impl Iterator<Item = u32>) -> Vec<Addr> {
    let items = runs.flat_map(|at| ground.allocator().live_addrs(ground.allocator().head_of(at)));
    items.filter(|addr| ground.slots.is_claimable(*addr)).collect()
}

/// Length of a window of at least `span` runs from `first` on that ends where a span ends; none if it would begin within one.
fn whole_spans(allocator: &Allocator, first: u32, span: u32) -> Option<u32> {
    let continues = |at: u32| allocator.run(at).is_some_and(|run| run.class == RunClass::SPAN_CONTINUED);
    let end = first + span;
    let end = if continues(end) { end.next_multiple_of(SPAN_RUNS) } else { end };
    (!continues(first)).then_some(end - first)
}

/// What it costs to empty the window; none if it cannot be emptied.
fn cost(ground: &Ground<'_>, first: u32, count: u32) -> Option<usize> {
    let allocator = ground.allocator();
    let mut cost = 0;
    for at in first..first + count {
        if !is_usable(ground, at) {
            return None;
        }
        cost += match ground.eviction {
            Eviction::Clock => reads_lost(allocator, at, first),
            Eviction::None => bytes_moved(allocator, at)?,
        };
    }
    let movable = ground.eviction == Eviction::Clock || fits_elsewhere(allocator, first, count);
    movable.then_some(cost)
}

fn is_usable(ground: &Ground<'_>, at: u32) -> bool {
    let is_free = |run: &Run| run.hold == Hold::None && run.pending == 0;
    ground.allocator().is_active(at)
        && ground.allocator().run(at).is_some_and(is_free)
        && ground.contents.absent_within(at as usize * RUN_BYTES, RUN_BYTES).is_none()
}

/// Of the items in run `at` of a window from `first` on. One that begins before the window counts in its first run.
fn reads_lost(allocator: &Allocator, at: u32, first: u32) -> usize {
    let head = if at == first { allocator.head_of(at) } else { at };
    let slots = allocator.run(head).map_or(&[][..], |run| &run.slots);
    let live = slots.iter().filter(|slot| slot.state() != SlotState::Free);
    live.map(|slot| COLD_COST + READ_COST * slot.frequency() as usize).sum()
}

/// None for a part of a large item, which finds no other place.
fn bytes_moved(allocator: &Allocator, at: u32) -> Option<usize> {
    let run = allocator.run(at)?;
    let large = run.class == RunClass::LARGE || run.class == RunClass::LARGE_CONTINUED;
    (!large).then(|| run.live() * slot_bytes(run.class))
}

/// Whether the other runs of the same classes, and free runs, have room for all items of the window.
fn fits_elsewhere(allocator: &Allocator, first: u32, count: u32) -> bool {
    let window: Vec<&Run> = (first..first + count).filter_map(|at| allocator.run(at)).collect();
    let free_runs = window.iter().filter(|run| run.class == RunClass::FREE).count();
    let mut classes: Vec<RunClass> =
        window.iter().map(|run| run.class).filter(|class| is_slotted(*class)).collect();
    classes.sort_unstable();
    classes.dedup();
    let wanted: usize = classes.iter().map(|class| further_runs(allocator, *class, &window)).sum();
    wanted + free_runs <= allocator.pool().count() as usize
}

/// Runs that must be opened outside of the window to hold its items of `class`. Instead of a span of several runs, each item
/// may have to take whole ones.
fn further_runs(allocator: &Allocator, class: RunClass, window: &[&Run]) -> usize {
    let inside = || window.iter().filter(|run| run.class == class);
    let live: usize = inside().map(|run| run.live()).sum();
    let free_inside: usize = inside().filter(|run| run.list.is_some()).map(|run| run.free_slots()).sum();
    let free = allocator.lists().free_slots(class) - free_inside;
    let homeless = live.saturating_sub(free);
    if span_of(class) == SPAN_RUNS {
        homeless * slot_bytes(class).div_ceil(RUN_BYTES)
    } else {
        homeless.div_ceil(slots_in_span(class))
    }
}
