//! Which pages are there. All, except at a stand-in: what was written before its time comes by repair, page by page.
//!
//! An absent page is never written: the allocator keeps away from it, and the protocol waits for its repair. So what a
//! repair brings is still right when it arrives. A page that is present stays, unless its extent is taken back
//! ([`DataStore::surrender`]).

use super::{DataStore, Eviction};
use crate::alloc::RUNS_PER_EXTENT;
use crate::{Addr, EXTENT_BYTES, OutOfMemory, PAGE_BYTES, PageRange, RUN_BYTES, RunClass};

/// Longest range that a repair session covers.
const MAX_REPAIR_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;
pub(super) const PAGES_PER_RUN: u32 = (RUN_BYTES / PAGE_BYTES) as u32;
pub(super) const PAGES_PER_EXTENT: u32 = PAGES_PER_RUN * RUNS_PER_EXTENT;
/// Free runs that are looked at for one without absent pages.
const MAX_RUN_SEARCH: usize = 64;

static ZEROS: [u8; RUN_BYTES] = [0; RUN_BYTES];

impl DataStore {
    /// Whether all of `pages` are present.
    #[must_use]
    pub fn pages_present(&self, pages: PageRange) -> bool {
        self.absent.is_empty() || !self.absent.contains_any(pages)
    }

    /// The next pages from `from` on that must be repaired: at most 16, within one run.
    #[must_use]
    pub fn next_absent(&self, from: u32) -> Option<PageRange> {
        let first = self.absent.first_present(from)?;
        Some(self.absent_stretch(first, u32::MAX))
    }

    /// How many pages must be repaired.
    #[must_use]
    pub fn absent_count(&self) -> u32 {
        self.absent.count()
    }

    /// Stores what a repair brought and marks the pages present. Pages that are present already keep their bytes.
    ///
    /// # Errors
    /// If this node has no memory for them; no page has changed then. [`Self::surrender`] may help.
    ///
    /// # Panics
    /// If `bytes` is not as long as `pages`, or they lie outside of the area.
    pub fn fill(&mut self, pages: PageRange, bytes: &[u8]) -> Result<(), OutOfMemory> {
        assert_eq!(bytes.len(), pages.len_bytes(), "a page has {PAGE_BYTES} bytes");
        for page in pages.iter() {
            if self.absent.contains(page) {
                self.commit_for_repair(page / PAGES_PER_EXTENT)?;
            }
        }
        for (page, bytes) in pages.iter().zip(bytes.chunks_exact(PAGE_BYTES)) {
            if self.absent.remove(page) {
                self.area.bytes_mut(page as usize * PAGE_BYTES, PAGE_BYTES).copy_from_slice(bytes);
            }
        }
        let end = (pages.first + pages.count).div_ceil(PAGES_PER_RUN);
        (pages.first / PAGES_PER_RUN..end).for_each(|run| self.refresh_run(run));
        Ok(())
    }

    /// The bytes of `pages`; zeros where nothing was ever written.
    ///
    /// # Panics
    /// If they span more than a run.
    #[must_use]
    pub fn page_bytes(&self, pages: PageRange) -> &[u8] {
        debug_assert!(self.pages_present(pages));
        let (start, len) = (pages.start_byte(), pages.len_bytes());
        if self.area.covers(start, len) { self.area.bytes(start, len) } else { &ZEROS[..len] }
    }

    /// Whether a page of `extent` is absent.
    pub(super) fn awaits_repair(&self, extent: u32) -> bool {
        let first = extent * PAGES_PER_EXTENT;
        self.absent.first_present(first).is_some_and(|page| page < first + PAGES_PER_EXTENT)
    }

    /// The first absent pages of `len` bytes at `start`: at most 16, within one run.
    pub(super) fn absent_within(&self, start: usize, len: usize) -> Option<PageRange> {
        if self.absent.is_empty() {
            return None;
        }
        let pages = PageRange::covering(start, len);
        let end = pages.first + pages.count;
        let first = self.absent.first_present(pages.first).filter(|first| *first < end)?;
        Some(self.absent_stretch(first, end))
    }

    /// A free run of which no page is absent.
    pub(super) fn present_free_run(&self) -> Option<u32> {
        let mut free = self.allocator.pool().iter();
        if self.absent.is_empty() {
            return free.next();
        }
        free.take(MAX_RUN_SEARCH).find(|run| self.pages_present(pages_of_run(*run)))
    }

    /// `span` free runs in a row of which no page is absent.
    pub(super) fn free_stretch(&self, span: u32) -> Option<u32> {
        let first = self.allocator.pool().first_stretch(span)?;
        if self.absent.is_empty() {
            return Some(first);
        }
        let mut pool = self.allocator.pool().clone();
        let absent: Vec<u32> = pool.iter().filter(|run| !self.pages_present(pages_of_run(*run))).collect();
        for run in absent {
            pool.remove(run);
        }
        pool.first_stretch(span)
    }

    /// Absent pages whose repair gives room for an item of `class`, at once or by letting something be reclaimed. Each answer
    /// is a step ahead even where every repair costs another extent: it names pages that will be used themselves.
    pub(super) fn absent_room(&self, class: RunClass) -> Option<PageRange> {
        if self.absent.is_empty() {
            return None;
        }
        let evictable = class != RunClass::LARGE && self.config.eviction == Eviction::Clock;
        self.absent_free_slot(class).or_else(|| self.absent_free_run()).or_else(|| {
            let reclaimable = evictable && self.has_readable_item();
            if reclaimable { None } else { self.dormant_room(class).or_else(|| self.absent_hope(evictable)) }
        })
    }

    /// Room for an item of `class` in extents that are not committed, slots or free runs.
    fn dormant_room(&self, class: RunClass) -> Option<PageRange> {
        if class == RunClass::LARGE {
            return None;
        }
        let runs = 0..self.allocator.runs().len() as u32;
        runs.filter(|at| !self.allocator.is_active(*at)).find_map(|at| self.dormant_room_in(at, class))
    }

    /// As above, in run `at`. Where the room itself was never written, any absent page of the extent brings it back.
    fn dormant_room_in(&self, at: u32, class: RunClass) -> Option<PageRange> {
        let wanted = match self.allocator.run(at)?.class {
            RunClass::FREE => pages_of_run(at),
            of_run if of_run == class => self.allocator.free_slot_pages_in(at)?,
            _ => return None,
        };
        let extent = (at / RUNS_PER_EXTENT) as usize * EXTENT_BYTES;
        self.absent_within(wanted.start_byte(), wanted.len_bytes())
            .or_else(|| self.absent_within(extent, EXTENT_BYTES))
    }

    /// There is no free slot anywhere. With eviction, an item that could be evicted if it were here. Without, compaction finds
    /// room once all is here: of no use, and not worth the memory of others, where not all can be.
    fn absent_hope(&self, evictable: bool) -> Option<PageRange> {
        if evictable {
            let mut runs = 0..self.allocator.runs().len() as u32;
            return runs.find_map(|at| self.absent_item_in(at));
        }
        let fits = |pages: &PageRange| {
            self.area.is_committed(pages.first / PAGES_PER_EXTENT) || self.area.has_room_for_repair()
        };
        self.next_absent(0).filter(fits)
    }

    fn absent_item_in(&self, at: u32) -> Option<PageRange> {
        let bytes = self.allocator.slot_bytes(at);
        let unread = |addr: Addr| self.is_claimable(addr).then(|| self.absent_within(addr.byte(), bytes))?;
        self.live_addrs(at).find_map(unread)
    }

    fn absent_free_slot(&self, class: RunClass) -> Option<PageRange> {
        if class == RunClass::LARGE {
            return None;
        }
        let pages = self.allocator.free_slot_pages(class)?;
        self.absent_within(pages.start_byte(), pages.len_bytes())
    }

    fn absent_free_run(&self) -> Option<PageRange> {
        let absent_in_run = |run| self.absent_within(run as usize * RUN_BYTES, RUN_BYTES);
        self.allocator.pool().iter().find_map(absent_in_run)
    }

    /// Whether there is an item that could be evicted before anything more is repaired.
    fn has_readable_item(&self) -> bool {
        let readable = |addr| self.is_claimable(addr) && self.try_item(addr).is_some();
        let mut runs = 0..self.allocator.runs().len() as u32;
        runs.any(|run| !self.is_wholly_absent(run) && self.live_addrs(run).any(readable))
    }

    /// Whether no page of the span that `run` starts is present.
    pub(super) fn is_wholly_absent(&self, run: u32) -> bool {
        let span = self.allocator.run(run).map_or(1, |run| u32::from(run.span.max(1)));
        (run..run + span).all(|run| self.absent.contains_all(pages_of_run(run)))
    }

    fn absent_stretch(&self, first: u32, end: u32) -> PageRange {
        let run_end = (first / PAGES_PER_RUN + 1) * PAGES_PER_RUN;
        let end = end.min(run_end).min(first + MAX_REPAIR_PAGES);
        let count = (first..end).take_while(|page| self.absent.contains(*page)).count();
        PageRange { first, count: count as u32 }
    }

    /// Once all items of a run can be read, they are counted by their true lengths.
    fn refresh_run(&mut self, run: u32) {
        let run = self.allocator.head_of(run);
        if self.allocator.run(run).is_none_or(|run| run.live() == 0) {
            return;
        }
        let slot_bytes = self.allocator.slot_bytes(run);
        let len = |addr| Some(self.header(addr)?.len_bytes().min(slot_bytes));
        if let Some(sum) = self.live_addrs(run).map(len).sum::<Option<usize>>() {
            self.allocator.set_item_bytes(run, sum as u32);
        }
    }

    /// Addresses of the live slots of the span that run `at` starts.
    pub(super) fn live_addrs(&self, at: u32) -> impl Iterator<Item = Addr> + '_ {
        let slots = self.allocator.run(at).map_or(&[][..], |run| &run.slots);
        let bytes = if slots.is_empty() { 0 } else { self.allocator.slot_bytes(at) };
        let live = slots.iter().enumerate().filter(|(_, slot)| slot.is_live());
        live.map(move |(slot, _)| Addr::from_byte(at as usize * RUN_BYTES + slot * bytes))
    }
}

fn pages_of_run(run: u32) -> PageRange {
    PageRange { first: run * PAGES_PER_RUN, count: PAGES_PER_RUN }
}
