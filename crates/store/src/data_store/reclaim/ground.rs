//! What reclaiming looks at, what it proposes, and the bounds of one proposal.

use types::class::SPAN_RUNS;
use types::{Addr, Cohort, IndexHash, NamespaceId, RUN_BYTES};

use crate::alloc::Allocator;
use crate::data_store::config::Eviction;
use crate::data_store::contents::Contents;
use crate::data_store::slots::Slots;
use crate::data_store::tenants::Tenants;
use crate::{CohortUse, Item};

/// Items in one batch.
pub(super) const MAX_BATCH: usize = 64;

/// Bytes of slots in one batch of evictions, but for the last item.
pub(super) const MAX_BATCH_BYTES: usize = SPAN_RUNS as usize * RUN_BYTES;

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
    /// item for which there is no slot after all: [`super::Reclaiming::give_back`].
    Move(Vec<Victim>),
    /// There is nothing (more) to give way now; what was proposed before may still make room.
    Nothing,
}

/// Where a [`super::Reclaiming::crawl`] goes on; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrawlCursor(pub(super) u32);

/// What reclaiming looks at, and the slots that it claims.
pub(in crate::data_store) struct Ground<'a> {
    pub slots: &'a mut Slots,
    pub contents: &'a Contents,
    pub tenants: &'a Tenants,
    /// Whether anything may be evicted.
    pub eviction: Eviction,
    /// Whether some items are garbage.
    pub has_garbage: bool,
}

impl Ground<'_> {
    pub(super) fn allocator(&self) -> &Allocator {
        self.slots.allocator()
    }

    /// Claims the item at `addr`; none if it must stay for now.
    pub(super) fn claim(&mut self, addr: Addr) -> Option<Victim> {
        if !self.slots.is_claimable(addr) {
            return None;
        }
        let victim = Victim { hash: self.contents.hash_of(self.allocator(), addr)?, addr };
        self.slots.allocator_mut().claim(addr);
        Some(victim)
    }

    /// Whether the item at `addr` may be evicted, as far as that depends on whose it is.
    pub(super) fn may_evict(&self, addr: Addr) -> bool {
        if !self.tenants.differ() {
            return true;
        }
        let item = self.contents.read(self.allocator(), addr);
        item.is_ok_and(|item| self.tenants.may_evict(item.cohort().namespace()))
    }

    /// Whether the item at `addr` is one of `namespace`.
    pub(super) fn is_of(&self, addr: Addr, namespace: NamespaceId) -> bool {
        let item = self.contents.read(self.allocator(), addr);
        item.is_ok_and(|item| item.cohort().namespace() == namespace)
    }

    /// Whether there are items that may be evicted: to look for them where there are none would take long.
    pub(super) fn has_evictable(&self) -> bool {
        let may_go = |(cohort, _): (Cohort, CohortUse)| self.tenants.may_evict(cohort.namespace());
        !self.tenants.differ() || self.contents.replica().cohorts().uses().any(may_go)
    }

    /// Whether nobody will ask for the item any more: its namespace is gone, or was flushed.
    pub(super) fn is_garbage(&self, item: &Item<'_>) -> bool {
        self.has_garbage && self.tenants.is_garbage(self.contents.replica().cohorts(), item.cohort())
    }

    /// Claims up to a batch of `items`.
    pub(super) fn claim_batch(&mut self, items: Vec<Addr>) -> Option<Vec<Victim>> {
        let victims: Vec<Victim> =
            items.into_iter().filter_map(|addr| self.claim(addr)).take(MAX_BATCH).collect();
        (!victims.is_empty()).then_some(victims)
    }
}
