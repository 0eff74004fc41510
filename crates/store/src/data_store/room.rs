//! Where there is room, and which pages must be repaired so that there is.

use super::config::Eviction;
use super::contents::{Contents, PAGES_PER_RUN, pages_of_run};
use super::slots::Slots;
use crate::alloc::RUNS_PER_EXTENT;
use types::{Addr, EXTENT_BYTES, PageRange, RUN_BYTES, RunClass};

/// Free runs that are looked at for one without absent pages.
const MAX_RUN_SEARCH: usize = 64;

/// A question about room; nothing is changed by it.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    pub contents: &'a Contents,
    pub slots: &'a Slots,
    pub eviction: Eviction,
}

impl Room<'_> {
    /// A free run of which no page is absent.
    pub(super) fn free_run(&self) -> Option<u32> {
        let mut free = self.slots.allocator().pool().iter();
        if self.contents.is_whole() {
            return free.next();
        }
        free.take(MAX_RUN_SEARCH).find(|run| self.contents.has(pages_of_run(*run)))
    }

    /// `span` free runs in a row of which no page is absent.
    pub(super) fn free_stretch(&self, span: u32) -> Option<u32> {
        let pool = self.slots.allocator().pool();
        let first = pool.first_stretch(span)?;
        if self.contents.is_whole() {
            return Some(first);
        }
        // Only for a large item at a stand-in: rare, and the set is small.
        let mut present = pool.clone();
        for run in pool.iter().filter(|run| !self.contents.has(pages_of_run(*run))) {
            present.remove(run);
        }
        present.first_stretch(span)
    }

    /// Absent pages whose repair gives room for an item of `class`, at once or by letting something be reclaimed. Each answer
    /// is a step ahead even where every repair costs another extent: it names pages that will be used themselves.
    pub(super) fn absent(&self, class: RunClass) -> Option<PageRange> {
        if self.contents.is_whole() {
            return None;
        }
        let evictable = class != RunClass::LARGE && self.eviction == Eviction::Clock;
        self.absent_free_slot(class).or_else(|| self.absent_free_run()).or_else(|| {
            let reclaimable = evictable && self.has_readable_item();
            if reclaimable { None } else { self.dormant(class).or_else(|| self.absent_hope(evictable)) }
        })
    }

    /// Room for an item of `class` in extents that are not committed, slots or free runs.
    fn dormant(&self, class: RunClass) -> Option<PageRange> {
        if class == RunClass::LARGE {
            return None;
        }
        let allocator = self.slots.allocator();
        let runs = 0..allocator.runs().len() as u32;
        runs.filter(|at| !allocator.is_active(*at)).find_map(|at| self.dormant_in(at, class))
    }

    /// As above, in run `at`. Where the room itself was never written, any absent page of the extent brings it back.
    fn dormant_in(&self, at: u32, class: RunClass) -> Option<PageRange> {
        let wanted = match self.slots.allocator().run(at)?.class {
            RunClass::FREE => pages_of_run(at),
            of_run if of_run == class => self.slots.allocator().free_slot_pages_in(at)?,
            _ => return None,
        };
        let extent = (at / RUNS_PER_EXTENT) as usize * EXTENT_BYTES;
        self.contents
            .absent_within(wanted.start_byte(), wanted.len_bytes())
            .or_else(|| self.contents.absent_within(extent, EXTENT_BYTES))
    }

    /// There is no free slot anywhere. With eviction, an item that could be evicted if it were here. Without, compaction finds
    /// room once all is here: of no use, and not worth the memory of others, where not all can be.
    fn absent_hope(&self, evictable: bool) -> Option<PageRange> {
        if evictable {
            let mut runs = 0..self.slots.allocator().runs().len() as u32;
            return runs.find_map(|at| self.absent_item_in(at));
        }
        let area = self.contents.area();
        let fits =
            |pages: &PageRange| area.is_usable(pages.first / PAGES_PER_RUN) || area.has_room_for_repair();
        self.contents.next_absent(0).filter(fits)
    }

    fn absent_item_in(&self, at: u32) -> Option<PageRange> {
        let allocator = self.slots.allocator();
        let bytes = allocator.slot_bytes(at);
        let absent = |addr: Addr| self.contents.absent_within(addr.byte(), bytes);
        allocator.live_addrs(at).filter(|addr| self.slots.is_claimable(*addr)).find_map(absent)
    }

    fn absent_free_slot(&self, class: RunClass) -> Option<PageRange> {
        if class == RunClass::LARGE {
            return None;
        }
        let pages = self.slots.allocator().free_slot_pages(class)?;
        self.contents.absent_within(pages.start_byte(), pages.len_bytes())
    }

    fn absent_free_run(&self) -> Option<PageRange> {
        let absent_in_run = |run| self.contents.absent_within(run as usize * RUN_BYTES, RUN_BYTES);
        self.slots.allocator().pool().iter().find_map(absent_in_run)
    }

    /// Whether there is an item that could be evicted before anything more is repaired.
    fn has_readable_item(&self) -> bool {
        let allocator = self.slots.allocator();
        let readable = |addr| self.slots.is_claimable(addr) && self.contents.read(allocator, addr).is_ok();
        let mut runs = 0..allocator.runs().len() as u32;
        runs.any(|run| {
            !self.slots.is_wholly_absent(self.contents, run) && allocator.live_addrs(run).any(readable)
        })
    }
}
