//! Look-ups: from a key to the item in its slot.

use cluster::KeyHash;

use super::DataStore;
use crate::item::Header;
use crate::{Addr, ITEM_HEADER_BYTES, Item, PageRange};

/// What came of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The item lies here; all its pages are present.
    Hit(Addr, Item<'a>),
    /// The key is not in this role.
    Miss,
    /// These pages must be repaired before the question can be answered: at most 16, within one run, all absent.
    Absent(PageRange),
    /// A slot with the hash of this key holds bytes that are no valid item: nobody knows whether it is this key.
    Corrupt(Addr),
}

/// Why no item can be read from a slot.
pub(super) enum Unread {
    Absent(PageRange),
    NoItem,
}

impl DataStore {
    /// Looks `key` up in the committed state.
    #[must_use]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Found<'_> {
        let mut answer = Found::Miss;
        for addr in self.replica.index().candidates(hash.into()) {
            match self.compare(addr, key) {
                Found::Miss => {}
                hit @ Found::Hit(..) => return hit,
                other => answer = other,
            }
        }
        answer
    }

    /// Hints that `hash` will be looked up soon.
    pub fn prefetch(&self, hash: KeyHash) {
        self.replica.index().prefetch(hash.into());
    }

    /// The item in the slot at `addr`.
    ///
    /// # Panics
    /// If no item lies there, or not all of its pages are present: [`Self::find`] and [`Self::reclaim`] say when they are.
    #[must_use]
    pub fn item(&self, addr: Addr) -> Item<'_> {
        self.try_item(addr).expect("the caller knows that a present item lies there")
    }

    /// The item in the slot at `addr`; none if there is no slot, pages are absent, or the bytes are no item.
    #[must_use]
    pub fn try_item(&self, addr: Addr) -> Option<Item<'_>> {
        self.read(addr).ok()
    }

    /// All items that can be read, in the order of the index.
    pub fn iter_items(&self) -> impl Iterator<Item = (Addr, Item<'_>)> {
        self.replica.index().iter().filter_map(|(_, addr)| Some((addr, self.try_item(addr)?)))
    }

    /// The header of the item at `addr`, if it is present.
    pub(super) fn header(&self, addr: Addr) -> Option<Header> {
        let start = addr.byte();
        let readable = self.absent_within(start, ITEM_HEADER_BYTES).is_none();
        let readable = readable && self.area.covers(start, ITEM_HEADER_BYTES);
        if readable { Header::parse(self.area.bytes(start, ITEM_HEADER_BYTES)).ok() } else { None }
    }

    fn compare(&self, addr: Addr, key: &[u8]) -> Found<'_> {
        match self.read(addr) {
            Ok(item) if item.key == key => Found::Hit(addr, item),
            // A stranger with the same 40 bits is rare enough to ask for its checksum: a damaged key is no miss.
            Ok(item) if item.verify() => Found::Miss,
            Ok(_) | Err(Unread::NoItem) => Found::Corrupt(addr),
            Err(Unread::Absent(pages)) => Found::Absent(pages),
        }
    }

    pub(super) fn read(&self, addr: Addr) -> Result<Item<'_>, Unread> {
        let start = addr.byte();
        let slot_len = self.allocator.slot_len(addr).ok_or(Unread::NoItem)?;
        if self.absent_within(start, ITEM_HEADER_BYTES).is_some() {
            // All of the slot at once: where memory is short, what comes piece by piece may go meanwhile.
            return self
                .absent_within(start, slot_len)
                .map_or(Err(Unread::NoItem), |pages| Err(Unread::Absent(pages)));
        }
        let header =
            self.header(addr).filter(|header| header.len_bytes() <= slot_len).ok_or(Unread::NoItem)?;
        let len = header.len_bytes();
        if let Some(pages) = self.absent_within(start, len) {
            return Err(Unread::Absent(pages));
        }
        if !self.area.covers(start, len) {
            return Err(Unread::NoItem);
        }
        Item::of(&header, self.area.bytes(start, len)).map_err(|_| Unread::NoItem)
    }
}
