//! A stand-in without memory: its present pages are a cache, and extents are taken back for others that are needed now.
//!
//! What makes this right: the area holds committed state only, and every committed record is at every parity of the view. So
//! the bytes of a page equal what parities and other members encode as of the newest committed record. A page that goes can be
//! repaired like one that never came, provided that
//!
//! - no uncommitted record writes into it or was decided by its bytes (its delta would meet other bytes when it is
//!   applied): an extent with a slot that is pending, claimed or pinned stays, and so does one into which such a large item
//!   reaches;
//! - what is put there later is not older: a repair that was begun while the page was here may bring bytes from before its
//!   last write. The protocol forgets the sessions over an extent that was surrendered. Those that follow name the commit index,
//!   and parities apply up to it before they take their copy.
//!
//! A store that is whole never gives anything up: its role counts as a full one, whose pages others read.

use std::ops::Range;

use super::DataStore;
use super::presence::PAGES_PER_EXTENT;
use crate::alloc::{RUNS_PER_EXTENT, SlotState};
use crate::{Addr, EXTENT_BYTES, PageRange, PageSet};

/// Where the search for an extent to take back goes on, round robin.
#[derive(Debug, Default)]
pub(super) struct Hand {
    next: u32,
    /// Extents in which something was read or repaired since the hand came by: spared once. What a request has just
    /// repaired thus survives until the request has all that it needs.
    spared: PageSet,
}

impl Hand {
    pub(super) fn memory_bytes(&self) -> usize {
        self.spared.memory_bytes()
    }
}

impl DataStore {
    /// Takes back the memory of one committed extent other than `keep`: its touched pages are absent again. The extent, or
    /// none if none can go now. Repair sessions over it must be forgotten. Only a store with absent pages gives anything up.
    pub fn surrender(&mut self, keep: u32) -> Option<u32> {
        if self.absent.is_empty() {
            return None;
        }
        // Two turns: the first may find only extents that it spares.
        for _ in 0..2 * self.area.committed_bytes() / EXTENT_BYTES {
            let extent = self.next_candidate()?;
            if extent == keep || self.hand.spared.remove(extent) || self.is_in_use(extent) {
                continue;
            }
            if self.take_back(extent) {
                return Some(extent);
            }
        }
        None
    }

    /// Something in `addr`'s extent was read.
    pub(super) fn note_use(&mut self, addr: Addr) {
        let extent = (addr.byte() / EXTENT_BYTES) as u32;
        // The bitmap reaches as far as any extent that was ever committed, so this costs no memory.
        if !self.absent.is_empty() && self.area.is_committed(extent) {
            self.hand.spared.insert(extent);
        }
    }

    /// `extent` was committed, or pages of it were repaired.
    pub(super) fn spare_extent(&mut self, extent: u32) {
        if !self.absent.is_empty() && self.hand.spared.insert(extent) {
            self.recharge();
        }
    }

    fn next_candidate(&mut self) -> Option<u32> {
        let extent = self.area.next_committed(self.hand.next).or_else(|| self.area.next_committed(0))?;
        self.hand.next = extent + 1;
        Some(extent)
    }

    /// Whether an uncommitted record or a proposal refers to bytes of `extent`.
    fn is_in_use(&self, extent: u32) -> bool {
        let runs = runs_of(extent);
        let reaching_in = self.allocator.head_of(runs.start);
        self.is_run_in_use(reaching_in) || runs.into_iter().any(|at| self.is_run_in_use(at))
    }

    fn is_run_in_use(&self, at: u32) -> bool {
        let Some(run) = self.allocator.run(at) else { return false };
        run.pending > 0
            || run.slots.iter().any(|slot| slot.state() == SlotState::Claimed)
            || self.live_addrs(at).any(|addr| self.is_pinned(addr))
    }

    fn take_back(&mut self, extent: u32) -> bool {
        if !self.area.decommit(extent) {
            return false;
        }
        self.release_window_over(runs_of(extent));
        self.allocator.deactivate(extent);
        self.absent_again(extent);
        self.growth.next = self.growth.next.min(extent);
        self.recharge();
        true
    }

    /// Untouched pages stay present: they are zero wherever they are.
    fn absent_again(&mut self, extent: u32) {
        let pages = PageRange { first: extent * PAGES_PER_EXTENT, count: PAGES_PER_EXTENT };
        for page in pages.iter().filter(|page| self.replica.touched().contains(*page)) {
            self.absent.insert(page);
        }
    }
}

fn runs_of(extent: u32) -> Range<u32> {
    extent * RUNS_PER_EXTENT..(extent + 1) * RUNS_PER_EXTENT
}
