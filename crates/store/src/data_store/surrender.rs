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

use super::slots::Slots;
use crate::alloc::RUNS_PER_EXTENT;
use crate::{Area, PageSet};
use types::{Addr, EXTENT_BYTES};

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

    /// Spares `extent` once; whether it was not spared before.
    pub(super) fn spare(&mut self, extent: u32) -> bool {
        self.spared.insert(extent)
    }

    /// Something in `addr`'s extent was read.
    pub(super) fn note_use(&mut self, area: &Area, addr: Addr) {
        let extent = (addr.byte() / EXTENT_BYTES) as u32;
        // The bitmap reaches as far as any extent that was ever committed, so this costs no memory.
        if area.is_committed(extent) {
            self.spared.insert(extent);
        }
    }

    /// The next extent that can go now, other than `keep`, if the turn of one has come; else the next call goes on.
    pub(super) fn next(&mut self, area: &Area, slots: &Slots, keep: u32) -> Option<Option<u32>> {
        let extent = area.next_committed(self.next).or_else(|| area.next_committed(0))?;
        self.next = extent + 1;
        let stays = extent == keep || self.spared.remove(extent) || is_in_use(slots, extent);
        Some((!stays).then_some(extent))
    }
}

/// Whether an uncommitted record or a proposal refers to bytes of `extent`.
fn is_in_use(slots: &Slots, extent: u32) -> bool {
    let runs = runs_of(extent);
    let reaching_in = slots.allocator().head_of(runs.start);
    slots.is_in_use(reaching_in) || runs.into_iter().any(|at| slots.is_in_use(at))
}

pub(super) fn runs_of(extent: u32) -> Range<u32> {
    extent * RUNS_PER_EXTENT..(extent + 1) * RUNS_PER_EXTENT
}
