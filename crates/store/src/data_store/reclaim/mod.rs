//! Making room: expired items, compaction, eviction.
//!
//! [`DataStore::reclaim`] proposes a bounded batch; the protocol logs it as ordinary records, and only when these are
//! applied is anything free. What was proposed is *claimed* and not proposed again until applied or given back.
//!
//! In order of preference: items that have expired; moving the few items of a sparse run to other runs of its class, if these
//! have room, so that the run becomes free for any class; evicting by CLOCK. The hand goes over all runs in
//! the order of their addresses, whatever their class: items of a size that is no longer written are never read into
//! safety, so their runs empty one after the other and change class. For a large item, and for the first items of a class of
//! spans of several runs, a window of neighbouring runs is chosen, kept out of allocation and emptied.
//!
//! While pages are absent nothing is moved: the slots to move to may be absent, too. Only what can be read is evicted, and a store
//! that may not evict waits for repair instead (`Shortage::Absent`).

mod clock;
mod compact;
mod expire;
mod window;

use cluster::{KeyHash, UnixSeconds};

use super::{DataStore, Eviction};
use crate::alloc::SlotState;
use crate::class::{SPAN_RUNS, class_in_one_run, runs_of_large, span_of};
use crate::{Addr, IndexHash, RUN_BYTES, RunClass};
use window::Window;

/// Items in one batch.
const MAX_BATCH: usize = 64;
/// Bytes of slots in one batch of evictions, but for the last item.
const MAX_BATCH_BYTES: usize = SPAN_RUNS as usize * RUN_BYTES;
/// Items that are proposed and not yet applied, and bytes of their slots, beyond which nothing more is.
const MAX_CLAIMED: usize = 4 * MAX_BATCH;
const MAX_CLAIMED_BYTES: usize = 2 * MAX_BATCH_BYTES;

const _: () = assert!(MAX_BATCH <= MAX_CLAIMED);

/// An item that is to be removed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Bits of its key's hash.
    pub hash: IndexHash,
    /// Its slot.
    pub addr: Addr,
}

/// What to do to make room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Remove these items (at most 64).
    Remove(Vec<Victim>),
    /// Write these items (at most 64) anew, unchanged, into slots from `allocate`, and replace the old by the new. An
    /// item for which there is no slot after all: [`DataStore::unreclaim`].
    Move(Vec<Victim>),
    /// There is nothing (more) to give way now; what was proposed before may still make room.
    Nothing,
}

/// Where a [`DataStore::crawl`] goes on; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrawlCursor(u32);

/// Where the search for room stands.
#[derive(Debug, Default)]
pub(super) struct Reclaimer {
    clock: clock::Hand,
    /// Next run to look at for expired items.
    expiry_run: u32,
    /// Runs that are being emptied by compaction.
    compacting: Vec<u32>,
    window: Option<Window>,
    /// Next place to look at for a window.
    window_hand: u32,
}

impl DataStore {
    /// Makes room for an item of `len_bytes`, after `allocate` answered `Shortage::Reclaim`.
    pub fn reclaim(&mut self, len_bytes: usize, now: UnixSeconds) -> Reclaim {
        self.set_now(now);
        self.tend_holds();
        let totals = self.allocator.totals();
        if totals.claimed >= MAX_CLAIMED || totals.claimed_bytes >= MAX_CLAIMED_BYTES {
            return Reclaim::Nothing;
        }
        let class = match self.config.eviction {
            Eviction::Clock => self.class_for(len_bytes),
            // Where there is no span, whole runs will do.
            Eviction::None => class_in_one_run(len_bytes),
        };
        let proposal = match self.expired_batch(now) {
            Some(expired) => Some(Reclaim::Remove(expired)),
            None if !self.index_has_room() => self.evict(),
            None if class == RunClass::LARGE => self.empty_window(runs_of_large(len_bytes), 1),
            None if !self.absent.is_empty() => self.evict(),
            None if self.wants_span(class) => {
                self.empty_window(SPAN_RUNS, SPAN_RUNS).or_else(|| self.evict())
            }
            None => self.compact().or_else(|| self.evict()),
        };
        proposal.unwrap_or(Reclaim::Nothing)
    }

    /// Whether a span must be emptied for items of `class`. Once they fill most of the memory it is they that give way to each
    /// other.
    fn wants_span(&self, class: RunClass) -> bool {
        let rare = self.allocator.span_bytes_of(class) * 2 < self.area.committed_bytes();
        span_of(class) == SPAN_RUNS && rare
    }

    /// The protocol did not remove or move this item after all.
    pub fn unreclaim(&mut self, addr: Addr) {
        self.allocator.unclaim(addr);
    }

    fn evict(&mut self) -> Option<Reclaim> {
        if self.config.eviction == Eviction::None {
            return None;
        }
        let victims = self.clock_batch();
        (!victims.is_empty()).then_some(Reclaim::Remove(victims))
    }

    /// Claims the item at `addr`; none if it must stay for now.
    fn claim(&mut self, addr: Addr) -> Option<Victim> {
        if !self.is_claimable(addr) {
            return None;
        }
        let victim = Victim { hash: self.hash_of(addr)?, addr };
        self.allocator.claim(addr);
        Some(victim)
    }

    /// Claims up to a batch of `items`.
    fn claim_batch(&mut self, items: Vec<Addr>) -> Option<Vec<Victim>> {
        let victims: Vec<Victim> =
            items.into_iter().filter_map(|addr| self.claim(addr)).take(MAX_BATCH).collect();
        (!victims.is_empty()).then_some(victims)
    }

    /// Whether the item at `addr` is neither claimed nor pinned.
    pub(super) fn is_claimable(&self, addr: Addr) -> bool {
        let live = self.allocator.slot(addr).is_some_and(|slot| slot.state() == SlotState::Live);
        live && !self.is_pinned(addr)
    }

    /// The bits under which the index knows the item at `addr`. None if it cannot be read.
    fn hash_of(&self, addr: Addr) -> Option<IndexHash> {
        let item = self.try_item(addr)?;
        let hash = IndexHash::from(KeyHash::of(self.config.cluster, item.key));
        self.replica.index().contains(hash, addr).then_some(hash)
    }
}
