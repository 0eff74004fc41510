//! What is in the area: committed bytes, the index that finds them, and which pages are there at all.
//!
//! All pages are there, except at a stand-in: what was written before its time comes by repair, page by page. An absent page is
//! never written: the allocator keeps away from it, and the protocol waits for its repair. So what a repair brings is still
//! right when it arrives. A page that is present stays, unless its extent is taken back ([`super::DataStore::surrender`]).

use bytes::Bytes;
use types::{ClusterId, KeyHash};

use super::read::{Found, Unread};
use crate::alloc::{Allocator, RUNS_PER_EXTENT};
use crate::item::Header;
use crate::{Area, ITEM_HEADER_BYTES, Item, PageSet, Replica};
use types::class::{class_in_one_run, class_of};
use types::{Addr, EXTENT_BYTES, IndexHash, PAGE_BYTES, PageRange, RUN_BYTES, Reach, RunClass};

/// Longest range that a repair session covers.
const MAX_REPAIR_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;
pub(super) const PAGES_PER_RUN: u32 = (RUN_BYTES / PAGE_BYTES) as u32;
pub(super) const PAGES_PER_EXTENT: u32 = PAGES_PER_RUN * RUNS_PER_EXTENT;

/// Shortest area in which items may lie in spans of several runs.
const MIN_SPANNED_AREA_BYTES: usize = 16 * EXTENT_BYTES;

static ZEROS: [u8; RUN_BYTES] = [0; RUN_BYTES];

/// See the module.
#[derive(Debug)]
pub(super) struct Contents {
    /// Seed of the key hash, with which victims are named.
    cluster: ClusterId,
    area: Area,
    replica: Replica,
    /// Pages of a stand-in that were written before its time and are not repaired yet.
    absent: PageSet,
}

impl Contents {
    pub(super) fn new(cluster: ClusterId, area: Area, replica: Replica, absent: PageSet) -> Self {
        Self { cluster, area, replica, absent }
    }

    pub(super) fn cluster(&self) -> ClusterId {
        self.cluster
    }

    pub(super) fn area(&self) -> &Area {
        &self.area
    }

    /// For extents that come and go; bytes change by [`Self::apply_write`] and [`Self::fill`] alone.
    pub(super) fn area_mut(&mut self) -> &mut Area {
        &mut self.area
    }

    pub(super) fn replica(&self) -> &Replica {
        &self.replica
    }

    pub(super) fn replica_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }

    /// The pages that are not there.
    pub(super) fn absent(&self) -> &PageSet {
        &self.absent
    }

    /// Whether every page is there.
    pub(super) fn is_whole(&self) -> bool {
        self.absent.is_empty()
    }

    pub(super) fn has(&self, pages: PageRange) -> bool {
        self.absent.is_empty() || !self.absent.contains_any(pages)
    }

    /// The class in which an item of `len_bytes` should lie. In a short area a span of several runs for each size would leave
    /// too little for the others; at a stand-in, pages of eight runs would have to be repaired for one item.
    pub(super) fn class_for(&self, len_bytes: usize) -> RunClass {
        if self.area.limit_bytes() >= MIN_SPANNED_AREA_BYTES && self.is_whole() {
            class_of(len_bytes)
        } else {
            class_in_one_run(len_bytes)
        }
    }

    /// The `len` bytes at `addr`.
    pub(super) fn bytes(&self, addr: Addr, len: usize) -> &[u8] {
        debug_assert!(self.has(PageRange::covering(addr.byte(), len)));
        self.area.bytes(addr.byte(), len)
    }

    /// The bytes of `pages`; zeros where nothing was ever written.
    pub(super) fn page_bytes(&self, pages: PageRange) -> &[u8] {
        debug_assert!(self.has(pages));
        let (start, len) = (pages.start_byte(), pages.len_bytes());
        if self.area.covers(start, len) { self.area.bytes(start, len) } else { &ZEROS[..len] }
    }

    /// `image` XOR the bytes that lie at `addr`.
    pub(super) fn delta(&self, addr: Addr, mut image: Vec<u8>) -> Bytes {
        let lying = self.bytes(addr, image.len());
        for (new, old) in image.iter_mut().zip(lying) {
            *new ^= old;
        }
        image.into()
    }

    /// A committed write.
    #[inline]
    pub(super) fn apply_write(&mut self, addr: Addr, delta: &[u8]) {
        debug_assert!(self.has(PageRange::covering(addr.byte(), delta.len())));
        self.area.xor(addr.byte(), delta);
        self.replica.touch(addr, delta.len());
    }

    /// Stores what a repair brought. Pages that are there keep their bytes; the others' extents must be committed.
    pub(super) fn fill(&mut self, pages: PageRange, bytes: &[u8]) {
        for (page, bytes) in pages.iter().zip(bytes.chunks_exact(PAGE_BYTES)) {
            if self.absent.remove(page) {
                self.area.bytes_mut(page as usize * PAGE_BYTES, PAGE_BYTES).copy_from_slice(bytes);
            }
        }
    }

    /// The bytes of `extent` are gone. Untouched pages stay present: they are zero wherever they are.
    pub(super) fn lose(&mut self, extent: u32) {
        let pages = PageRange { first: extent * PAGES_PER_EXTENT, count: PAGES_PER_EXTENT };
        for page in pages.iter().filter(|page| self.replica.touched().contains(*page)) {
            self.absent.insert(page);
        }
    }

    /// The next pages from `from` on that must be repaired: at most 16, within one run.
    pub(super) fn next_absent(&self, from: u32) -> Option<PageRange> {
        let first = self.absent.first_present(from)?;
        Some(self.absent_stretch(first, u32::MAX))
    }

    /// The first absent pages of `len` bytes at `start`: at most 16, within one run.
    #[inline]
    pub(super) fn absent_within(&self, start: usize, len: usize) -> Option<PageRange> {
        if self.absent.is_empty() { None } else { self.find_absent(start, len) }
    }

    fn find_absent(&self, start: usize, len: usize) -> Option<PageRange> {
        let pages = PageRange::covering(start, len);
        let end = pages.first + pages.count;
        let first = self.absent.first_present(pages.first).filter(|first| *first < end)?;
        Some(self.absent_stretch(first, end))
    }

    fn absent_stretch(&self, first: u32, end: u32) -> PageRange {
        let run_end = (first / PAGES_PER_RUN + 1) * PAGES_PER_RUN;
        let end = end.min(run_end).min(first + MAX_REPAIR_PAGES);
        let count = (first..end).take_while(|page| self.absent.contains(*page)).count();
        PageRange { first, count: count as u32 }
    }

    /// Whether a page of `extent` is absent.
    pub(super) fn awaits_repair(&self, extent: u32) -> bool {
        let first = extent * PAGES_PER_EXTENT;
        self.absent.first_present(first).is_some_and(|page| page < first + PAGES_PER_EXTENT)
    }

    /// How much of `extent` is in use: up to its last run with a touched page or slots. None if it was never written to.
    pub(super) fn used_reach(&self, extent: u32) -> Option<Reach> {
        let first = extent * RUNS_PER_EXTENT;
        let touched = self.replica.touched();
        let is_used = |run: &u32| {
            self.replica.class(*run) != RunClass::FREE || touched.contains_any(pages_of_run(*run))
        };
        let is_touched = touched.first_present(extent * PAGES_PER_EXTENT)? < (extent + 1) * PAGES_PER_EXTENT;
        let last = (first..first + RUNS_PER_EXTENT).rev().find(is_used).filter(|_| is_touched)?;
        Some(Reach::of_run(last))
    }

    /// Whether no page of `runs` is there.
    pub(super) fn lacks_all(&self, mut runs: std::ops::Range<u32>) -> bool {
        runs.all(|run| self.absent.contains_all(pages_of_run(run)))
    }

    /// Looks `key` up in the committed state. A part of whoever reads: what it finds is handed over in memory otherwise.
    #[inline(always)]
    pub(super) fn find(&self, slots: &Allocator, hash: KeyHash, key: &[u8]) -> Found<'_> {
        let mut answer = Found::Miss;
        for addr in self.replica.index().candidates(hash.into()) {
            match self.compare(slots, addr, key) {
                Found::Miss => {}
                hit @ Found::Hit(..) => return hit,
                // Another candidate may still be the key; if none is, nobody can say that the key is missing.
                other => answer = other,
            }
        }
        answer
    }

    pub(super) fn find_by_hash(
        &self,
        slots: &Allocator,
        hash: KeyHash,
        is_it: impl Fn(Item<'_>) -> bool,
    ) -> Found<'_> {
        let mut answer = Found::Miss;
        for addr in self.replica.index().candidates(hash.into()) {
            match self.read(slots, addr) {
                Ok(item) if is_it(item) => return Found::Hit(addr, item),
                Ok(_) => {}
                Err(Unread::NoItem) => answer = Found::Corrupt(addr),
                Err(Unread::Absent(pages)) => answer = Found::Absent(pages),
            }
        }
        answer
    }

    #[inline(always)]
    fn compare(&self, slots: &Allocator, addr: Addr, key: &[u8]) -> Found<'_> {
        match self.read_inline(slots, addr) {
            // What was flushed may lie beside what has come since.
            Ok(item) if item.key == key && !self.is_present(&item) => Found::Miss,
            Ok(item) if item.key == key => Found::Hit(addr, item),
            // A stranger with the same 40 bits is rare enough to ask for its checksum: a damaged key is no miss.
            Ok(item) if item.verify() => Found::Miss,
            Ok(_) | Err(Unread::NoItem) => Found::Corrupt(addr),
            Err(Unread::Absent(pages)) => Found::Absent(pages),
        }
    }

    /// Whether `item` has not been flushed.
    #[inline]
    pub(super) fn is_present(&self, item: &Item<'_>) -> bool {
        let cohorts = self.replica.cohorts();
        item.generation == 0 && !cohorts.was_flushed() || cohorts.is_present(item.cohort())
    }

    /// The header of the item at `addr`, if it is there.
    pub(super) fn header(&self, addr: Addr) -> Option<Header> {
        let start = addr.byte();
        if self.absent_within(start, ITEM_HEADER_BYTES).is_some() {
            return None;
        }
        // What was never written is present, and need not have memory.
        Header::parse(self.area.get(start, ITEM_HEADER_BYTES)?).ok()
    }

    /// The item in the slot at `addr`.
    pub(super) fn read(&self, slots: &Allocator, addr: Addr) -> Result<Item<'_>, Unread> {
        self.read_inline(slots, addr)
    }

    /// The same, as a part of whoever reads.
    #[inline(always)]
    fn read_inline(&self, slots: &Allocator, addr: Addr) -> Result<Item<'_>, Unread> {
        let start = addr.byte();
        let slot_len = slots.slot_len(addr).ok_or(Unread::NoItem)?;
        if self.absent_within(start, ITEM_HEADER_BYTES).is_some() {
            // All of the slot at once: where memory is short, what comes piece by piece may go meanwhile.
            return self
                .absent_within(start, slot_len)
                .map_or(Err(Unread::NoItem), |pages| Err(Unread::Absent(pages)));
        }
        let head = self.area.get(start, ITEM_HEADER_BYTES).ok_or(Unread::NoItem)?;
        let header = Header::parse(head).map_err(|_| Unread::NoItem)?;
        let len = header.len_bytes();
        if len > slot_len {
            return Err(Unread::NoItem);
        }
        if let Some(pages) = self.absent_within(start, len) {
            return Err(Unread::Absent(pages));
        }
        let bytes = self.area.get(start, len).ok_or(Unread::NoItem)?;
        Item::of(&header, bytes).map_err(|_| Unread::NoItem)
    }

    /// The bits under which the index knows the item at `addr`. None if it cannot be read.
    pub(super) fn hash_of(&self, slots: &Allocator, addr: Addr) -> Option<IndexHash> {
        let item = self.read(slots, addr).ok()?;
        let hash = IndexHash::from(KeyHash::of(self.cluster, item.key));
        // Damaged bytes may name another key, under which the index does not have this slot.
        self.replica.index().contains(hash, addr).then_some(hash)
    }

    /// That what is absent was written once, and that memory stands behind what was written and is not absent.
    pub(super) fn check_invariants(&self) {
        self.area.check_invariants();
        self.replica.check_invariants();
        self.absent.check_invariants();
        let touched = self.replica.touched();
        let unwritten = self.absent.iter().find(|page| !touched.contains(*page));
        assert_eq!(unwritten, None, "a page is absent that nobody has written");
        let is_lost = |page: &u32| !self.absent.contains(*page) && !self.area.is_usable(page / PAGES_PER_RUN);
        assert_eq!(touched.iter().find(is_lost), None, "a page that is present has no memory");
    }

    /// Whether the item at `addr` is none, or its checksum differs, or the index has its key elsewhere. One with absent pages is
    /// not judged.
    pub(super) fn is_wrong(&self, slots: &Allocator, addr: Addr) -> bool {
        match self.read(slots, addr) {
            Ok(item) => {
                let hash = KeyHash::of(self.cluster, item.key);
                !item.verify() || !self.replica.index().contains(hash.into(), addr)
            }
            Err(Unread::NoItem) => true,
            Err(Unread::Absent(_)) => false,
        }
    }
}

pub(super) fn pages_of_run(run: u32) -> PageRange {
    PageRange { first: run * PAGES_PER_RUN, count: PAGES_PER_RUN }
}
