//! Reads at once: no record, no message, no allocation. What they find is committed.

use store::{Access, DataStore, Found, Item};
use types::op::{Bump, Claim, Get, ItemView, Want};
use types::{Addr, KeyHash, UnixSeconds, split_key};

use super::execute::Current;
use super::stream::SendStream;
use super::{Phase, Primary};
use crate::{Now, Read, Timing};

/// A read that changes no item, as far as that can be said before it is found.
#[derive(Clone, Copy, Debug)]
pub struct QuickRead<'a> {
    /// The whole key.
    pub key: &'a [u8],
    claim: Claim,
    bump: Bump,
}

/// An item that is read, as it was before.
pub struct Seen<'a> {
    /// The item, where its bytes lie.
    pub item: Item<'a>,
    store: &'a DataStore,
    addr: Addr,
    now: UnixSeconds,
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
}

impl Seen<'_> {
    /// All that is known of it, but for the bytes.
    #[must_use]
    pub fn view(&self) -> ItemView {
        let access: Access = self.store.access(self.addr);
        Current { item: self.item, access }.view(self.now, Want::NoValue)
    }
}

impl Primary {
    /// Reads a key at once if nothing stands in the way.
    pub(crate) fn read(
        &mut self,
        now: Now,
        (timing, edition): (&Timing, u64),
        hash: KeyHash,
        QuickRead { key, claim, bump }: QuickRead<'_>,
        found: impl FnOnce(&Seen<'_>),
    ) -> Read {
        if !self.may_serve(now.time, timing) {
            return Read::Submit;
        }
        let Phase::Serving(store) = &mut self.phase else { return Read::Submit };
        // The flush has to be a record first, and this path makes none.
        if SendStream::flush_is_due(store, || split_key(key).0, now.unix) {
            return Read::Submit;
        }
        match store.find(hash, key) {
            Found::Absent(_) | Found::Corrupt(_) => Read::Submit,
            // Keys may be elsewhere by what has not been looked at yet.
            Found::Miss if !self.departures.have_none(edition, || split_key(key).0) => Read::Submit,
            Found::Miss => Read::Miss,
            Found::Hit(addr, item) => {
                if item.is_expired(self.wall.at(now.unix)) {
                    let known = self.parities.wall_known_to_all();
                    if !self.wall.may_tell(known, now.unix, item.expiry) {
                        return Read::Submit;
                    }
                    self.expired_reads += 1;
                    return Read::Miss;
                }
                // A decoded item is made of what all others have sent, and one wrong byte anywhere is in it.
                if self.core.is_rebuilding() && !item.verify() {
                    return Read::Submit;
                }
                // Of one that is stale somebody is to hear that it is his to fetch it anew, which takes a record.
                if item.object || item.stale && claim == Claim::IfDue {
                    return Read::Submit;
                }
                found(&Seen { item, store, addr, now: now.unix });
                if bump == Bump::Count {
                    store.bump(addr, now.unix);
                }
                Read::Hit
            }
        }
    }
}
