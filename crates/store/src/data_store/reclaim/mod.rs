//! Making room: expired items, compaction, eviction.
//!
//! [`Reclaiming::propose`] answers with a bounded batch; the protocol logs it as ordinary records, and only when these are
//! applied is anything free. What was proposed is *claimed* and not proposed again until applied or given back.
//!
//! In order of preference: items that have expired; moving the few items of a sparse run to other runs of its class, if these
//! have room, so that the run becomes free for any class; evicting by CLOCK. The hand goes over all runs in
//! the order of their addresses, whatever their class: items of a size that is no longer written are never read into
//! safety, so their runs empty one after the other and change class. For a large item, and for the first items of a class of
//! spans of several runs, a window of neighbouring runs is chosen, kept out of allocation and emptied. So is an extent that is to go
//! back to the node, which is short of memory for chunks ([`Reclaiming::propose_extent`]).
//!
//! A namespace at its quota gives up items of its own: the same hand, which passes those of others by ([`Reclaiming::propose_of`]).
//!
//! While pages are absent nothing is moved: the slots to move to may be absent, too. Only what can be read is evicted, and a store
//! that may not evict waits for repair instead (`Shortage::Absent`).

mod clock;
mod compact;
mod expire;
mod ground;
mod window;

pub(super) use ground::Ground;
pub use ground::{CrawlCursor, Reclaim, Victim};

use std::ops::Range;

use types::UnixSeconds;

use super::config::Eviction;
use super::slots::Slots;
use crate::alloc::Hold;
use compact::Compaction;
use ground::{MAX_BATCH, MAX_BATCH_BYTES};
use types::class::{SPAN_RUNS, class_in_one_run, runs_of_large, span_of};
use types::{Addr, NamespaceId, RunClass};
use window::Windows;

/// Items that are proposed and not yet applied, and bytes of their slots, beyond which nothing more is.
const MAX_CLAIMED: usize = 4 * MAX_BATCH;
const MAX_CLAIMED_BYTES: usize = 2 * MAX_BATCH_BYTES;

const _: () = assert!(MAX_BATCH <= MAX_CLAIMED);

/// Makes room for items, and finds those that have expired.
pub struct Reclaiming<'a> {
    reclaimer: &'a mut Reclaimer,
    ground: Ground<'a>,
}

impl<'a> Reclaiming<'a> {
    pub(super) fn new(reclaimer: &'a mut Reclaimer, ground: Ground<'a>) -> Self {
        Self { reclaimer, ground }
    }

    /// What would make room for an item of `len_bytes`, after `allocate` answered `Shortage::Reclaim`.
    pub fn propose(&mut self, len_bytes: usize, now: UnixSeconds) -> Reclaim {
        self.ground.slots.set_now(now);
        self.reclaimer.reclaim(&mut self.ground, len_bytes, now)
    }

    /// What empties an extent, so that it can go back ([`super::DataStore::take_emptied`]).
    pub fn propose_extent(&mut self, now: UnixSeconds) -> Reclaim {
        self.ground.slots.set_now(now);
        self.reclaimer.reclaim_extent(&mut self.ground).unwrap_or(Reclaim::Nothing)
    }

    /// Items of `namespace`, at most 64, that were not read lately: after them `bytes` more of its slots are free, if it has as many.
    /// None while enough of what was proposed is on its way.
    pub fn propose_of(&mut self, namespace: NamespaceId, bytes: usize, now: UnixSeconds) -> Vec<Victim> {
        self.ground.slots.set_now(now);
        self.reclaimer.reclaim_of(&mut self.ground, namespace, bytes)
    }

    /// Goes on from `cursor` over at most `limit` runs, and hands out the expired items in them, at most 64. The next
    /// cursor is the beginning again after the last run.
    pub fn crawl(&mut self, cursor: CrawlCursor, limit: u32, now: UnixSeconds) -> (Vec<Victim>, CrawlCursor) {
        self.ground.slots.set_now(now);
        expire::crawl(&mut self.ground, cursor, limit, now)
    }

    /// This item is to go, or to be moved; none if it has to stay for now.
    pub fn claim(&mut self, addr: Addr) -> Option<Victim> {
        self.ground.claim(addr)
    }

    /// The protocol did not remove or move this item after all.
    pub fn give_back(&mut self, addr: Addr) {
        self.ground.slots.allocator_mut().unclaim(addr);
    }
}

/// Where the search for room stands.
#[derive(Debug, Default)]
pub(super) struct Reclaimer {
    clock: clock::Hand,
    /// Next run to look at for expired items.
    expiry_run: u32,
    compaction: Compaction,
    windows: Windows,
    /// The extent that is to go back: nothing that looks for room may have it.
    leaving: Windows,
}

impl Reclaimer {
    /// Makes room for an item of `len_bytes`.
    pub(super) fn reclaim(&mut self, ground: &mut Ground<'_>, len_bytes: usize, now: UnixSeconds) -> Reclaim {
        self.compaction.tend(ground.slots);
        self.windows.tend(ground.slots);
        self.leaving.tend(ground.slots);
        if has_claimed_enough(ground) {
            return Reclaim::Nothing;
        }
        let class = match ground.eviction {
            Eviction::Clock => ground.contents.class_for(len_bytes),
            // Where there is no span, whole runs will do.
            Eviction::None => class_in_one_run(len_bytes),
        };
        let proposal = match self.expired_batch(ground, now) {
            Some(expired) => Some(Reclaim::Remove(expired)),
            None if !ground.slots.fit_into_index(ground.contents) => self.evict(ground),
            None if class == RunClass::LARGE => self.windows.empty(ground, runs_of_large(len_bytes), 1),
            None if !ground.contents.is_whole() => self.evict(ground),
            None if wants_span(ground, class) => {
                self.windows.empty(ground, SPAN_RUNS, SPAN_RUNS).or_else(|| self.evict(ground))
            }
            None => self.compaction.empty(ground).or_else(|| self.evict(ground)),
        };
        proposal.unwrap_or(Reclaim::Nothing)
    }

    /// Where nothing may be evicted, only if there are slots for all of it elsewhere.
    fn reclaim_extent(&mut self, ground: &mut Ground<'_>) -> Option<Reclaim> {
        let may_go = ground.eviction == Eviction::None || ground.has_evictable();
        if !may_go || !ground.contents.is_whole() || has_claimed_enough(ground) {
            return None;
        }
        self.leaving.tend(ground.slots);
        self.leaving.empty_extent(ground, &mut self.clock)
    }

    fn reclaim_of(&mut self, ground: &mut Ground<'_>, namespace: NamespaceId, bytes: usize) -> Vec<Victim> {
        let nothing =
            has_claimed_enough(ground) || ground.contents.replica().cohorts().use_of(namespace).items == 0;
        if nothing { Vec::new() } else { self.clock.batch_of(ground, namespace, bytes) }
    }

    fn evict(&mut self, ground: &mut Ground<'_>) -> Option<Reclaim> {
        if ground.eviction == Eviction::None || !ground.has_evictable() {
            return None;
        }
        let victims = self.clock.batch(ground);
        (!victims.is_empty()).then_some(Reclaim::Remove(victims))
    }

    /// Expired items among the next runs, if there are any.
    fn expired_batch(&mut self, ground: &mut Ground<'_>, now: UnixSeconds) -> Option<Vec<Victim>> {
        let (victims, next) = expire::crawl(ground, CrawlCursor(self.expiry_run), expire::MAX_RUNS, now);
        self.expiry_run = next.0;
        (!victims.is_empty()).then_some(victims)
    }

    /// Takes the window for `span` runs from a multiple of `align` on, if it is empty and suits.
    pub(super) fn take_window(&mut self, slots: &mut Slots, span: u32, align: u32) -> Option<u32> {
        self.windows.take(slots, span, align)
    }

    /// The extent that was to be emptied, once it is.
    pub(super) fn take_extent(&mut self, slots: &mut Slots) -> Option<u32> {
        self.leaving.take_extent(slots)
    }

    /// Lets held runs that have room for an item of `class` take items again; whether there were any.
    pub(super) fn release_hold_for(&mut self, slots: &mut Slots, class: RunClass) -> bool {
        self.compaction.tend(slots);
        self.compaction.release(slots, class) || self.windows.release_for(slots, class)
    }

    /// Gives the window up if it lies over any of `runs`.
    pub(super) fn release_window_over(&mut self, slots: &mut Slots, runs: Range<u32>) {
        self.windows.release_over(slots, runs.clone());
        self.leaving.release_over(slots, runs);
    }

    /// That whatever is held is held by somebody who will let it go: a run that nobody knows of would never be used again.
    pub(super) fn check_invariants(&self, slots: &Slots) {
        for (at, run) in (0..).zip(slots.allocator().runs()) {
            let is_known = match run.hold {
                Hold::None => !self.windows.covers(at) && !self.leaving.covers(at),
                Hold::Compacting => self.compaction.empties(at),
                Hold::Window => self.windows.covers(at) != self.leaving.covers(at),
            };
            assert!(is_known, "run {at} is held as {:?}, and nobody knows why", run.hold);
        }
        self.windows.check_invariants(slots.allocator());
        self.leaving.check_invariants(slots.allocator());
    }
}

/// What was proposed makes room soon. More at once would evict what need not go.
fn has_claimed_enough(ground: &Ground<'_>) -> bool {
    let totals = ground.allocator().totals();
    totals.claimed >= MAX_CLAIMED || totals.claimed_bytes >= MAX_CLAIMED_BYTES
}

/// Whether a span must be emptied for items of `class`. Once they fill most of the memory it is they that give way to each
/// other.
fn wants_span(ground: &Ground<'_>, class: RunClass) -> bool {
    let rare = ground.allocator().span_bytes_of(class) * 2 < ground.contents.area().committed_bytes();
    span_of(class) == SPAN_RUNS && rare
}
