//! Numbers of pools, namespaces and groups: none is given twice.

use std::collections::BTreeSet;

use types::{Catalog, GroupId, NamespaceId, PoolId};

/// What newer and newer catalogs have shown.
#[derive(Default)]
pub struct Numbers {
    version: u64,
    last: Option<Catalog>,
    gone: BTreeSet<NamespaceId>,
}

/// What there is by a catalog, and what was given by then.
fn given(catalog: &Catalog) -> (PoolId, NamespaceId, GroupId) {
    (catalog.next_pool, catalog.next_namespace, catalog.next_group)
}

impl Numbers {
    /// Looks at the catalog of a map of this version: what is wrong with it. An older one than was seen says nothing.
    pub fn observe(&mut self, version: u64, catalog: &Catalog) -> Option<String> {
        if version < self.version {
            return None;
        }
        let complaint = self.last.as_ref().and_then(|last| complaint(last, catalog));
        if let Some(last) = self.last.replace(catalog.clone()) {
            let ids = last.namespaces.iter().map(|namespace| namespace.id);
            self.gone.extend(ids.filter(|id| catalog.namespace(*id).is_none()));
        }
        self.version = version;
        complaint
    }

    /// Namespaces that were there and are not any more.
    pub fn gone(&self) -> &BTreeSet<NamespaceId> {
        &self.gone
    }
}

fn complaint(last: &Catalog, new: &Catalog) -> Option<String> {
    let (before, after) = (given(last), given(new));
    if after.0 < before.0 || after.1 < before.1 || after.2 < before.2 {
        return Some(format!("numbers go back from {before:?} to {after:?}"));
    }
    let is_new = |id: &NamespaceId| last.namespace(*id).is_none();
    let again = new.namespaces.iter().map(|namespace| namespace.id).filter(is_new).find(|id| *id < before.1);
    if let Some(id) = again {
        return Some(format!("{id} is used again"));
    }
    let is_new = |pool: &&types::Pool| last.pool(pool.id).is_none();
    let again =
        new.pools.iter().filter(is_new).find(|pool| pool.id < before.0 || pool.first_group < before.2);
    again.map(|pool| format!("{}, which begins with {}, is used again", pool.id, pool.first_group))
}

#[cfg(test)]
mod tests {
    use types::{Name, Policy, Profile};

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn first() -> Catalog {
        Catalog::first(Profile::rs(3, 2).unwrap(), 5)
    }

    fn with_namespace(mut catalog: Catalog) -> Catalog {
        catalog.create_namespace(name("n"), &Name::default_name(), Policy::default()).unwrap();
        catalog
    }

    #[test]
    fn a_name_may_come_again_and_a_number_may_not() {
        let mut numbers = Numbers::default();
        let there = with_namespace(first());
        let mut gone = there.clone();
        gone.remove_namespace(&name("n")).unwrap();
        for (version, catalog) in [(1, &first()), (2, &there), (3, &gone)] {
            assert_eq!(numbers.observe(version, catalog), None);
        }
        assert_eq!(numbers.gone().len(), 1);
        assert_eq!(numbers.observe(2, &there), None, "an older map");
        assert!(numbers.observe(4, &there).unwrap().contains("used again"));
        let mut numbers = Numbers::default();
        assert_eq!(
            (numbers.observe(1, &gone), numbers.observe(2, &with_namespace(gone.clone()))),
            (None, None)
        );
        assert!(numbers.observe(3, &first()).unwrap().contains("go back"));
    }

    #[test]
    fn groups_of_a_pool_that_went_are_not_given_again() {
        let with_pool = |mut catalog: Catalog| {
            catalog.create_pool(name("p"), Profile::rs(2, 1).unwrap(), 2).unwrap();
            catalog
        };
        let there = with_pool(first());
        let mut gone = there.clone();
        gone.remove_pool(&name("p")).unwrap();
        let mut numbers = Numbers::default();
        assert_eq!((numbers.observe(1, &there), numbers.observe(2, &gone)), (None, None));
        assert_eq!(numbers.observe(3, &with_pool(gone.clone())), None);
        let mut again = with_pool(gone);
        again.pools[1].first_group = there.pools[1].first_group;
        let mut numbers = Numbers::default();
        let mut without = again.clone();
        without.pools.pop();
        without.next_pool = again.pools[1].id;
        assert_eq!(numbers.observe(1, &without), None);
        assert!(numbers.observe(2, &again).unwrap().contains("used again"));
    }
}
