//! A walk over all items, in the order of the bits of their keys' hashes by which the index has them.
//!
//! How far a walk has come is said by these bits alone, which a key never changes: neither the growth of a table, nor where an item lies, nor
//! another store of the same role make a difference. Between two steps everything may change. An item that is there all the time is
//! met, for whatever takes its place under its key has the same bits.

use types::{IndexHash, KeyHash, PageRange};

use super::contents::Contents;
use super::read::Unread;
use crate::Item;
use crate::alloc::Allocator;

/// What a walk comes to next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// All items of keys with these bits, but for those that were flushed: seldom more than one. And so many more that are damaged:
    /// nobody can say whose they are.
    Items(IndexHash, Vec<Item<'a>>, u16),
    /// One of those with these bits is not there yet.
    Absent(IndexHash, PageRange),
    /// There is nothing more.
    End,
}

impl Contents {
    /// See [`super::DataStore::step`].
    pub(super) fn step(&self, slots: &Allocator, from: IndexHash) -> Step<'_> {
        let Some((hash, _)) = self.replica().index().first_from(from) else { return Step::End };
        let (mut items, mut damaged) = (Vec::with_capacity(1), 0u16);
        for addr in self.replica().index().candidates(hash) {
            match self.read(slots, addr) {
                // A damaged key has other bits than those under which the index knows it.
                Ok(item) if self.bits_of(&item) != hash => damaged = damaged.saturating_add(1),
                Ok(item) if self.is_present(&item) => items.push(item),
                Ok(_) => {}
                Err(Unread::NoItem) => damaged = damaged.saturating_add(1),
                Err(Unread::Absent(pages)) => return Step::Absent(hash, pages),
            }
        }
        Step::Items(hash, items, damaged)
    }

    fn bits_of(&self, item: &Item<'_>) -> IndexHash {
        KeyHash::of(self.cluster(), item.key).into()
    }
}
