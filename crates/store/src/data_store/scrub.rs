//! Items against their checksums, for a scrub. Reads and writes do not ask: a checksum of every value that is read would cost
//! more than the rest of the read.

use cluster::KeyHash;

use super::DataStore;
use super::read::Unread;
use crate::{Addr, PageRange, RUN_BYTES};

const PAGES_PER_RUN: u32 = (RUN_BYTES / crate::PAGE_BYTES) as u32;

impl DataStore {
    /// Slots of committed items that lie over `pages` and are wrong: no item, a checksum that differs, or a key that the index
    /// has elsewhere. At most `most` of them, ascending. Items with absent pages are not judged.
    #[must_use]
    pub fn wrong_items(&self, pages: PageRange, most: usize) -> Vec<Addr> {
        let end = (pages.first + pages.count).div_ceil(PAGES_PER_RUN);
        let mut heads: Vec<u32> =
            (pages.first / PAGES_PER_RUN..end).map(|run| self.allocator.head_of(run)).collect();
        heads.dedup();
        let items = heads.into_iter().flat_map(|run| self.live_addrs(run));
        items.filter(|addr| self.lies_over(*addr, pages) && self.is_wrong(*addr)).take(most).collect()
    }

    /// Whether the slot at `addr` has a byte in `pages`.
    fn lies_over(&self, addr: Addr, pages: PageRange) -> bool {
        let len = self.allocator.slot_len(addr).unwrap_or(0);
        addr.byte() < pages.start_byte() + pages.len_bytes() && pages.start_byte() < addr.byte() + len
    }

    fn is_wrong(&self, addr: Addr) -> bool {
        match self.read(addr) {
            Ok(item) => {
                let hash = KeyHash::of(self.config.cluster, item.key);
                !item.verify() || !self.replica.index().contains(hash.into(), addr)
            }
            Err(Unread::NoItem) => true,
            Err(Unread::Absent(_)) => false,
        }
    }

    /// Changes bytes behind everybody's back, for tests of what notices.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[doc(hidden)]
    pub fn damage(&mut self, byte: usize, mask: u8) {
        self.area.bytes_mut(byte, 1)[0] ^= mask;
    }
}
