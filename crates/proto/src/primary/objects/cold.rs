//! Objects that holders short of room name: which of them are evicted.

use store::{DataStore, Found, Victim};
use wire::object::Cold;

use super::OwnedObjects;
use super::asked::find;
use crate::Rules;

/// Objects that one record evicts.
const MAX_EVICTED: usize = 64;

impl OwnedObjects {
    /// Those of `named` that may go, as their namespaces say, and that nobody has used since their chunks were last read: parities'
    /// are not read at all.
    pub(in crate::primary) fn victims(
        &self,
        rules: Rules,
        store: &mut DataStore,
        named: &[Cold],
    ) -> Vec<Victim> {
        let may_go = |cold: &&Cold| !self.pins.has(cold.object);
        let named = named.iter().filter(may_go).take(MAX_EVICTED);
        named.filter_map(|cold| victim(rules, store, cold)).collect()
    }
}

fn victim(rules: Rules, store: &mut DataStore, cold: &Cold) -> Option<Victim> {
    let Found::Hit(addr, item) = find(store, cold.key_hash, cold.object) else { return None };
    let may_evict = store.tenants().may_evict(item.cohort().namespace());
    if !rules.objects().evicts(may_evict) || store.access(addr).last_access > cold.last_access {
        return None;
    }
    store.reclaiming().claim(addr)
}
