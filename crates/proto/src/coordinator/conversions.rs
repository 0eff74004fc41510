//! Namespaces that move to another pool (docs/pools.md, "To another pool"): once nothing of one is left in its former pool, the other
//! pool is its own.
//!
//! A data role of the former pool that has nothing left says so, with each heartbeat until the map has it that the conversion is over. So
//! what was said is written down nowhere: a coordinator that follows hears it again. And it need not be forgotten when the role gets
//! another primary: it was committed that nothing is left, and a key of the namespace is not written in the former pool during its conversion,
//! so every later primary of the role has nothing either. Nor has one that begins anew after a loss; there it is the lost slots that the
//! conversion waits for, because keys there were neither moved nor given up.

use std::collections::BTreeMap;

use types::{ClusterMap, HostId, MemberId, NamespaceId, Pool};

use super::state::ClusterState;

/// What roles have said. One set for each namespace that moves, with a bit for each data role of its former pool.
#[derive(Default)]
pub(super) struct Conversions(BTreeMap<NamespaceId, Emptied>);

/// The data roles of the former pool that have nothing left.
struct Emptied {
    /// Of which conversion of the namespace.
    number: u32,
    roles: Vec<bool>,
    /// How many have not said so.
    missing: usize,
}

/// What a data role says that has nothing left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Converted {
    pub(super) member: MemberId,
    pub(super) namespace: NamespaceId,
    pub(super) number: u32,
}

impl Conversions {
    /// A primary has nothing left of a namespace that moves. The conversion ends if it is the last one.
    pub(super) fn handle(&mut self, state: &mut ClusterState, from: HostId, said: Converted) {
        let Some(map) = state.map() else { return };
        let Some(pool) = former_pool(map, from, said) else { return };
        self.note(map, pool, said);
        if self.is_over(map, said.namespace) {
            self.0.remove(&said.namespace);
            end(state, said.namespace);
        }
    }

    /// Of how many namespaces roles have said something.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.0.len()
    }

    fn note(&mut self, map: &ClusterMap, pool: &Pool, said: Converted) {
        let known = self.0.get(&said.namespace).is_some_and(|emptied| emptied.number == said.number);
        if !known {
            self.forget_ended(map);
            self.0.insert(said.namespace, Emptied::none_of(pool, said.number));
        }
        if let Some(emptied) = self.0.get_mut(&said.namespace) {
            emptied.note(pool.index_of(said.member));
        }
    }

    /// Nobody waits for what roles have said of conversions that have ended, or whose namespaces were removed.
    fn forget_ended(&mut self, map: &ClusterMap) {
        self.0.retain(|namespace, emptied| is_under_way(map, *namespace, emptied.number));
    }

    /// Whether no data role of the former pool has anything left. Lost slots are the former pool's: they would be others of the new one.
    fn is_over(&self, map: &ClusterMap, namespace: NamespaceId) -> bool {
        let is_empty = self.0.get(&namespace).is_some_and(|emptied| emptied.missing == 0);
        is_empty && map.catalog.namespace(namespace).is_some_and(|known| known.lost.is_empty())
    }
}

impl Emptied {
    fn none_of(pool: &Pool, number: u32) -> Self {
        // A pool has at most as many data roles as slots.
        let count = usize::try_from(pool.data_roles()).unwrap_or(usize::MAX).min(pool.slots() as usize);
        Self { number, roles: vec![false; count], missing: count }
    }

    fn note(&mut self, index: u64) {
        let role = usize::try_from(index).ok().and_then(|index| self.roles.get_mut(index));
        if let Some(role) = role.filter(|role| !**role) {
            *role = true;
            self.missing -= 1;
        }
    }
}

/// The pool that the namespace leaves, if what `from` says is of this conversion and of one of its own roles there.
fn former_pool(map: &ClusterMap, from: HostId, said: Converted) -> Option<&Pool> {
    let Converted { member, namespace, number } = said;
    let pool = map.catalog.pool_of(namespace).filter(|pool| pool.has(member.group))?;
    let serves = map.group(member.group)?.data_role(member.role)?.primary == Some(from);
    (serves && is_under_way(map, namespace, number)).then_some(pool)
}

fn is_under_way(map: &ClusterMap, namespace: NamespaceId, number: u32) -> bool {
    let known = map.catalog.namespace(namespace);
    known.is_some_and(|known| known.conversion.is_some() && known.conversions == number)
}

fn end(state: &mut ClusterState, namespace: NamespaceId) {
    let Some(mut catalog) = state.map().map(|map| map.catalog.clone()) else { return };
    if catalog.end_conversion(namespace) {
        let name = |known: &types::Namespace| known.name.to_string();
        let name = catalog.namespace(namespace).map(name).unwrap_or_default();
        let pool = catalog.pool_of(namespace).map(|pool| pool.name.to_string()).unwrap_or_default();
        tracing::info!(%name, %pool, "the namespace has moved: nothing is left in its former pool");
        state.change_catalog(catalog);
    }
}
