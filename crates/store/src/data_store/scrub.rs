//! Items against their checksums, for a scrub. Reads and writes do not ask: a checksum of every value that is read would cost
//! more than the rest of the read.

use super::DataStore;
use super::contents::PAGES_PER_RUN;
use crate::alloc::Allocator;
use types::{Addr, PageRange};

impl DataStore {
    /// Slots of committed items that lie over `pages` and are wrong: no item, a checksum that differs, or a key that the index
    /// has elsewhere. At most `most` of them, ascending. Items with absent pages are not judged.
    #[must_use]
    pub fn wrong_items(&self, pages: PageRange, most: usize) -> Vec<Addr> {
        let allocator = self.slots.allocator();
        let end = (pages.first + pages.count).div_ceil(PAGES_PER_RUN);
        let mut heads: Vec<u32> =
            (pages.first / PAGES_PER_RUN..end).map(|run| allocator.head_of(run)).collect();
        // All runs of a span have one head.
        heads.dedup();
        let items = heads.into_iter().flat_map(|run| allocator.live_addrs(run));
        let is_wrong =
            |addr: &Addr| lies_over(allocator, *addr, pages) && self.contents.is_wrong(allocator, *addr);
        items.filter(is_wrong).take(most).collect()
    }

    /// Changes bytes behind everybody's back, for tests of what notices.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[doc(hidden)]
    pub fn damage(&mut self, byte: usize, mask: u8) {
        self.contents.area_mut().bytes_mut(byte, 1)[0] ^= mask;
    }
}

/// Whether the slot at `addr` has a byte in `pages`.
fn lies_over(slots: &Allocator, addr: Addr, pages: PageRange) -> bool {
    let len = slots.slot_len(addr).unwrap_or(0);
    addr.byte() < pages.start_byte() + pages.len_bytes() && pages.start_byte() < addr.byte() + len
}
