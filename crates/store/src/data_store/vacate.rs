//! Extents that go back: one of which every run is free may serve something else on this node, and at the parities.
//!
//! The bytes of freed slots stay, at the primary and in the sums of the parities. So an extent is first written with zeros, by
//! records like any other: [`Vacating::wipe`] says how, run by run. Each such record assigns its run `FREE`, from which all
//! replicas know that its pages are untouched again. Once every parity has applied the last one, the extent is given up; to be
//! used again it must be reserved again.

use bytes::Bytes;

use super::DataStore;
use super::contents::{Contents, PAGES_PER_EXTENT, PAGES_PER_RUN};
use super::growth::Growth;
use super::slots::Slots;
use crate::alloc::RUNS_PER_EXTENT;
use types::{Addr, EXTENT_BYTES, IndexOp, PAGE_BYTES, PageRange, RunClass};

/// What a record does that makes a run zero again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wipe {
    /// Where its delta goes, and the delta; none if nothing was ever written there.
    pub write: Option<(Addr, Bytes)>,
    /// To be logged in the same record.
    pub op: IndexOp,
}

impl Wipe {
    /// The runs of `extent`: one record for each that was written, at least one.
    #[must_use]
    pub fn runs(extent: u32) -> std::ops::Range<u32> {
        extent * RUNS_PER_EXTENT..(extent + 1) * RUNS_PER_EXTENT
    }
}

/// An extent on its way back.
pub struct Vacating<'a> {
    contents: &'a mut Contents,
    slots: &'a mut Slots,
    growth: &'a mut Growth,
}

impl DataStore {
    /// The extents in use whose runs are all free and may be allocated, the highest first. None while pages are absent.
    pub fn vacant_extents(&self) -> impl Iterator<Item = u32> + '_ {
        vacant(&self.contents, &self.slots)
    }

    /// The extent that was emptied as `Reclaiming::propose_extent` says, once all of it is free; it is vacant then.
    pub fn take_emptied(&mut self) -> Option<u32> {
        let extent = self.reclaimer.take_extent(&mut self.slots)?;
        vacant(&self.contents, &self.slots).any(|vacant| vacant == extent).then_some(extent)
    }

    /// For the extent that is on its way back.
    pub fn vacating(&mut self) -> Vacating<'_> {
        let Self { contents, slots, growth, .. } = self;
        Vacating { contents, slots, growth }
    }

    /// Whether only the want of memory for its index keeps the store from taking one more item.
    #[must_use]
    pub fn lacks_index_memory(&self) -> bool {
        !self.slots.fit_into_index(&self.contents)
    }
}

impl Vacating<'_> {
    /// Keeps `extent`, which is vacant, out of allocation until it has been given up.
    pub fn begin(&mut self, extent: u32) {
        debug_assert!(vacant(self.contents, self.slots).any(|vacant| vacant == extent));
        self.slots.allocator_mut().deactivate(extent);
    }

    /// How run `run` of an extent that is being vacated becomes zero.
    #[must_use]
    pub fn wipe(&self, run: u32) -> Wipe {
        let first = run * PAGES_PER_RUN;
        let touched = |page: &u32| self.contents.replica().touched().contains(*page);
        let mut pages = (first..first + PAGES_PER_RUN).filter(touched);
        let span = pages.next().map(|start| (start, pages.next_back().unwrap_or(start)));
        let write = span.map(|(start, end)| {
            let (byte, len) = (start as usize * PAGE_BYTES, (end + 1 - start) as usize * PAGE_BYTES);
            // What lies there is its own delta: XOR with itself is zero, here and in every sum.
            (Addr::from_byte(byte), Bytes::copy_from_slice(self.contents.area().bytes(byte, len)))
        });
        Wipe { write, op: IndexOp::Assign { run, class: RunClass::FREE } }
    }

    /// Gives `extent` up, all of whose wipes every parity has applied. False if the system does not take it: then it is lost to
    /// this store, for the parities may not have it any more.
    pub fn give_up(&mut self, extent: u32) -> bool {
        let first = extent * PAGES_PER_EXTENT;
        let touched = self.contents.replica().touched().first_present(first);
        debug_assert!(
            touched.is_none_or(|page| page >= first + PAGES_PER_EXTENT),
            "extent {extent} is not zero"
        );
        let done = self.contents.area_mut().decommit(extent);
        if done {
            self.growth.note_free(extent);
        }
        done
    }
}

fn vacant(contents: &Contents, slots: &Slots) -> impl Iterator<Item = u32> {
    let pool = slots.allocator().pool();
    let possible = contents.is_whole() && pool.count() >= RUNS_PER_EXTENT;
    let end = if possible { (contents.area().limit_bytes() / EXTENT_BYTES) as u32 } else { 0 };
    // All of an extent: one that is there in part is about to grow, and little.
    let runs = |extent| PageRange { first: extent * RUNS_PER_EXTENT, count: RUNS_PER_EXTENT };
    (0..end).rev().filter(move |extent| pool.contains_all(runs(*extent)))
}
