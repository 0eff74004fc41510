//! Reads at once: no record, no message, no allocation. What they find is committed.

use store::{Access, DataStore, Item};
use types::op::{Bump, Claim, Get, ItemView, Want};
use types::{Addr, UnixSeconds};

use super::execute::Current;

/// A read that changes no item, as far as that can be said before it is found.
#[derive(Clone, Copy, Debug)]
pub struct QuickRead<'a> {
    /// The whole key.
    pub key: &'a [u8],
    claim: Claim,
    /// Whether it counts for the eviction.
    pub(super) bump: Bump,
}

/// An item that is read, as it was before.
pub struct Seen<'a> {
    /// The item, where its bytes lie.
    pub item: Item<'a>,
    pub(super) store: &'a DataStore,
    pub(super) addr: Addr,
    pub(super) now: UnixSeconds,
}

impl<'a> QuickRead<'a> {
    /// Of somebody who only wants to know.
    #[inline]
    #[must_use]
    pub fn plain(key: &'a [u8]) -> Self {
        Self { key, claim: Claim::Never, bump: Bump::Count }
    }

    /// What a get amounts to; none if it sets an expiry, or may create the item or hand it out for being due soon.
    #[inline]
    #[must_use]
    pub fn of(key: &'a [u8], get: &Get) -> Option<Self> {
        let (claim, bump) = (get.claim, get.bump);
        (!get.may_change()).then_some(Self { key, claim, bump })
    }

    /// Whether `item` is not for it: of one that is stale somebody is to hear that it is his to fetch it anew, which takes a record.
    #[inline]
    pub(super) fn leaves(&self, item: &Item<'_>) -> bool {
        item.stale && self.claim == Claim::IfDue
    }
}

impl Seen<'_> {
    /// All that is known of it, but for the bytes.
    #[must_use]
    pub fn view(&self) -> ItemView {
        let access: Access = self.store.access(self.addr);
        Current { item: self.item, access }.view(self.now, Want::NoValue)
    }
}
