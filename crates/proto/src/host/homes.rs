//! Where the keys of each namespace lie: what the catalog says, laid out for whoever looks a key up with every request.

use std::cmp::Ordering;

use types::op::Failure;
use types::{Catalog, Deal, KeyHash, Namespace, NamespaceId, Pool, Slot, SlotRange};

use super::driver::Place;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// Ascending by namespace, so that the default one is the first.
    all: Vec<Home>,
}

/// Where a key is that has left a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// At a role of the pool that its namespace moves to.
    Next(Place),
    /// Where the map says that it is: the namespace has come to its pool, or moves to another one since.
    Home(Place),
    /// Who knows a newer map knows that.
    NewerMap,
}

/// Where the keys of one namespace lie.
#[derive(Debug)]
pub(super) struct Home {
    namespace: NamespaceId,
    deal: Deal,
    /// The same of the pool that it moves to, if it does.
    next: Option<Deal>,
    /// How often it has begun to move.
    conversions: u32,
    /// What of it is lost to the namespace.
    lost: Vec<SlotRange>,
}

impl Homes {
    /// As `catalog` says.
    pub(super) fn of(catalog: &Catalog) -> Self {
        let home = |known: &Namespace| {
            let deal = catalog.pool(known.pool)?.deal();
            let next = catalog.target_of(known.id).map(Pool::deal);
            let conversions = known.conversions;
            Some(Home { namespace: known.id, deal, next, conversions, lost: known.lost.clone() })
        };
        Self { all: catalog.namespaces.iter().filter_map(home).collect() }
    }

    /// That of `namespace`; none if there is no such namespace.
    #[inline]
    pub(super) fn find(&self, namespace: NamespaceId) -> Option<&Home> {
        match self.all.first() {
            Some(first) if first.namespace == namespace => Some(first),
            _ => self.search(namespace),
        }
    }

    fn search(&self, namespace: NamespaceId) -> Option<&Home> {
        let at = self.all.binary_search_by_key(&namespace, |home| home.namespace).ok()?;
        self.all.get(at)
    }
}

impl Home {
    /// Where the keys of the data role are that has `slot`. Of one with lost slots nobody can say that these are all.
    pub(super) fn place_of_slot(&self, slot: Slot, slots: SlotRange) -> Place {
        let member = self.deal.member_of_slot(slot);
        let is_lost = self.lost.iter().any(|lost| lost.first <= slots.last && slots.first <= lost.last);
        Place { refusal: is_lost.then_some(Failure::Lost), ..Place::of(member) }
    }

    /// Where what has this hash is, if by conversion `number` it has left the role where it was.
    pub(super) fn place_after(&self, hash: KeyHash, number: u32) -> After {
        match (number.cmp(&self.conversions), &self.next) {
            (Ordering::Equal, Some(next)) => {
                After::Next(Place { hash, member: Some(next.member_of(hash)), refusal: None })
            }
            // It is over.
            (Ordering::Equal, None) | (Ordering::Less, _) => After::Home(self.place(hash)),
            (Ordering::Greater, _) => After::NewerMap,
        }
    }

    /// Where the chunks of a value go that is written now: to the pool that its namespace moves to, if it does.
    pub(super) fn place_of_chunks(&self, hash: KeyHash) -> Place {
        let place = self.place(hash);
        match &self.next {
            Some(next) => Place { member: Some(next.member_of(hash)), ..place },
            None => place,
        }
    }

    /// Where what has this hash is.
    #[inline]
    pub(super) fn place(&self, hash: KeyHash) -> Place {
        let is_lost = !self.lost.is_empty() && SlotRange::any_has(&self.lost, self.deal.slot_of(hash));
        Place { hash, member: Some(self.deal.member_of(hash)), refusal: is_lost.then_some(Failure::Lost) }
    }
}
