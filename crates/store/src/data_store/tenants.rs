//! What holds for the items of which namespace: who may be evicted, and who is gone.

use types::{Catalog, Cohort, Namespace, NamespaceId, PoolId};

use super::config::Eviction;
use crate::Cohorts;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenants {
    /// What holds for those that are not excepted.
    eviction: Eviction,
    /// For whom the contrary holds; ascending.
    excepted: Vec<NamespaceId>,
    /// Who has items here, or may have; ascending.
    known: Vec<NamespaceId>,
    /// The number of the next one. All below it that are not known are no more.
    next: NamespaceId,
    /// Of which catalog this is, as its reader counts them; 0 = of none.
    edition: u64,
}

impl Tenants {
    /// All alike, and nobody is gone.
    #[must_use]
    pub fn alike(eviction: Eviction) -> Self {
        let (excepted, known) = (Vec::new(), Vec::new());
        Self { eviction, excepted, known, next: NamespaceId::DEFAULT, edition: 0 }
    }

    /// As `catalog` says of the namespaces in `pool`, where `eviction` holds for those that say nothing. `edition` is the catalog's
    /// number, from 1 on.
    #[must_use]
    pub fn of(catalog: &Catalog, pool: PoolId, eviction: Eviction, edition: u64) -> Self {
        let by_default = eviction == Eviction::Clock;
        // What moves to another pool stays until it is there: a late copy of what was evicted would bring it back.
        let leaves = |known: &Namespace| known.pool == pool && known.conversion.is_some();
        let evicts = |known: &Namespace| known.policy.evict.evicts(by_default) && !leaves(known);
        let ids = |known: &Namespace| known.id;
        let is_excepted = |known: &&Namespace| evicts(known) != by_default;
        let excepted = catalog.tenants_of(pool).filter(is_excepted).map(ids).collect();
        let known = catalog.tenants_of(pool).map(ids).collect();
        Self { eviction, excepted, known, next: catalog.next_namespace, edition }
    }

    /// Of which catalog this is.
    #[must_use]
    pub fn edition(&self) -> u64 {
        self.edition
    }

    /// Whether anything may be evicted at all.
    pub(super) fn eviction(&self) -> Eviction {
        match (self.eviction, self.excepted.is_empty()) {
            (Eviction::None, true) => Eviction::None,
            (Eviction::Clock, _) | (Eviction::None, false) => Eviction::Clock,
        }
    }

    /// Whether one has to look whose an item is before it is evicted.
    pub(super) fn differ(&self) -> bool {
        !self.excepted.is_empty()
    }

    /// Whether items of `namespace` may be evicted.
    #[must_use]
    pub fn may_evict(&self, namespace: NamespaceId) -> bool {
        (self.eviction == Eviction::Clock) != self.excepted.binary_search(&namespace).is_ok()
    }

    /// Whether `namespace` is no more.
    #[must_use]
    pub fn is_gone(&self, namespace: NamespaceId) -> bool {
        namespace < self.next && self.known.binary_search(&namespace).is_err()
    }

    /// Whether nobody will ask for items of `cohort` any more.
    #[inline]
    pub(super) fn is_garbage(&self, cohorts: &Cohorts, cohort: Cohort) -> bool {
        !cohorts.is_present(cohort) || self.is_gone(cohort.namespace())
    }

    /// Whether items are here that nobody will ask for any more: of namespaces that are gone, or that were flushed.
    pub(super) fn has_garbage(&self, cohorts: &Cohorts) -> bool {
        cohorts.uses().any(|(cohort, _)| self.is_garbage(cohorts, cohort))
    }
}

#[cfg(test)]
mod tests {
    use types::{EvictPolicy, Name, Policy};

    use super::*;

    #[test]
    fn a_namespace_may_be_an_exception_from_what_the_nodes_are_told() {
        let mut catalog = Catalog::first("none".parse().unwrap(), 1);
        let make = |catalog: &mut Catalog, name: &str, evict| {
            let policy = Policy { evict, ..Policy::default() };
            catalog.create_namespace(name.parse().unwrap(), &Name::default_name(), policy).unwrap()
        };
        let (kept, evicted) = (
            make(&mut catalog, "kept", EvictPolicy::Keep),
            make(&mut catalog, "evicted", EvictPolicy::Evict),
        );
        for eviction in [Eviction::Clock, Eviction::None] {
            let tenants = Tenants::of(&catalog, PoolId::DEFAULT, eviction, 1);
            assert!(tenants.differ() && tenants.eviction() == Eviction::Clock);
            assert!(!tenants.may_evict(kept) && tenants.may_evict(evicted));
            assert_eq!(tenants.may_evict(NamespaceId::DEFAULT), eviction == Eviction::Clock);
        }
    }

    #[test]
    fn what_is_left_of_a_namespace_that_is_gone_is_garbage() {
        let mut catalog = Catalog::first("none".parse().unwrap(), 1);
        let name: Name = "n".parse().unwrap();
        let id = catalog.create_namespace(name.clone(), &Name::default_name(), Policy::default()).unwrap();
        let mut cohorts = Cohorts::default();
        cohorts.add(Cohort::of(id, 0), 10);
        let tenants = |catalog: &Catalog| Tenants::of(catalog, PoolId::DEFAULT, Eviction::Clock, 1);
        assert!(!tenants(&catalog).has_garbage(&cohorts));
        catalog.remove_namespace(&name).unwrap();
        assert!(tenants(&catalog).has_garbage(&cohorts) && tenants(&catalog).is_gone(id));
        // A catalog that does not know of it yet says nothing of it.
        let older = Catalog::first("none".parse().unwrap(), 1);
        assert!(!tenants(&older).has_garbage(&cohorts));
    }
}
