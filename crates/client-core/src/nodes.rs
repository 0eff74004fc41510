//! Where nodes are, and which of them not to try now.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::sessions::RoleId;
use native::RouteMap;
use types::{KeyBuffer, Name, NamespaceId, NodeId, Slot, Time, qualify};

/// Most times that a pause doubles.
const DOUBLINGS: u32 = 6;

/// See the module.
#[derive(Debug)]
pub(crate) struct Nodes {
    seeds: Vec<SocketAddr>,
    /// Whose keys it is about.
    namespace: Name,
    map: Option<RouteMap>,
    /// Addresses that have failed: how often in a row, and until when they are left alone.
    failed: BTreeMap<SocketAddr, (u32, Time)>,
    /// Who is asked next where any will do.
    turn: usize,
}

impl Nodes {
    pub(crate) fn new(seeds: Vec<SocketAddr>, namespace: Name) -> Self {
        Self { seeds, namespace, map: None, failed: BTreeMap::new(), turn: 0 }
    }

    pub(crate) fn map(&self) -> Option<&RouteMap> {
        self.map.as_ref()
    }

    /// The number of the namespace, once there is a map that has it.
    pub(crate) fn namespace(&self) -> Option<NamespaceId> {
        self.map.as_ref()?.namespace_named(self.namespace.as_str())
    }

    /// Another map has come; one that is older than what is known changes nothing. Whether it is another.
    pub(crate) fn adopt(&mut self, map: RouteMap) -> bool {
        let known = self.map.as_ref().map(|known| (known.cluster, known.version));
        let is_news = known.is_none_or(|(cluster, version)| cluster != map.cluster || version < map.version);
        if is_news {
            self.map = Some(map);
        }
        is_news
    }

    /// Changes have come; whether they are those of the map at hand, or of one that it has left behind.
    pub(crate) fn apply(&mut self, changes: &native::RouteChanges) -> bool {
        let Some(map) = &mut self.map else { return false };
        let is_old = map.cluster == changes.cluster && map.version >= changes.version;
        is_old || map.apply(changes).is_ok()
    }

    /// The data role of a key.
    pub(crate) fn role(&self, namespace: NamespaceId, key: &[u8]) -> Option<RoleId> {
        let map = self.map.as_ref()?;
        let mut buffer = KeyBuffer::new();
        let (pool, role) = map.role_of(namespace, qualify(namespace, key, &mut buffer))?;
        Some((map.cluster, pool, role))
    }

    /// The address of the primary of a key; none if there is none, or it is to be left alone.
    pub(crate) fn primary(&self, now: Time, namespace: NamespaceId, key: &[u8]) -> Option<SocketAddr> {
        let map = self.map.as_ref()?;
        let mut buffer = KeyBuffer::new();
        let node = map.primary_of(namespace, qualify(namespace, key, &mut buffer))?;
        map.nodes.get(&node)?.native.filter(|address| self.may_try(now, *address))
    }

    /// Data roles of the pool of `namespace`.
    pub(crate) fn roles(&self, namespace: NamespaceId) -> Option<u32> {
        u32::try_from(self.map.as_ref()?.pool_of(namespace)?.primaries.len()).ok()
    }

    /// The first slot of data role `role` of the pool of `namespace`; none if there is no such role.
    pub(crate) fn first_slot(&self, namespace: NamespaceId, role: u32) -> Option<Slot> {
        self.map.as_ref()?.pool_of(namespace)?.first_slot(role)
    }

    /// The address of the primary of data role `role`; none if there is none, or it is to be left alone.
    pub(crate) fn primary_of_role(&self, now: Time, namespace: NamespaceId, role: u32) -> Option<SocketAddr> {
        let map = self.map.as_ref()?;
        let node = (*map.pool_of(namespace)?.primaries.get(role as usize)?)?;
        map.nodes.get(&node)?.native.filter(|address| self.may_try(now, *address))
    }

    /// The address of a node that lives and may be tried now.
    pub(crate) fn address_of(&self, now: Time, node: NodeId) -> Option<SocketAddr> {
        let node = self.map.as_ref()?.nodes.get(&node).filter(|node| node.alive)?;
        node.native.filter(|address| self.may_try(now, *address))
    }

    /// Any address that may be tried now and that `may_be`: those of nodes that live, then all others.
    pub(crate) fn any(&mut self, now: Time, may_be: impl Fn(SocketAddr) -> bool) -> Option<SocketAddr> {
        self.turn = self.turn.wrapping_add(1);
        let nodes = self.map.iter().flat_map(|map| map.nodes.values());
        let alive: Vec<SocketAddr> = nodes.filter(|node| node.alive).filter_map(|node| node.native).collect();
        let find = |from: &[SocketAddr]| {
            let rotated = from.iter().cycle().skip(self.turn % from.len().max(1)).take(from.len());
            rotated.copied().find(|address| self.may_try(now, *address) && may_be(*address))
        };
        find(&alive).or_else(|| find(&self.seeds))
    }

    fn may_try(&self, now: Time, address: SocketAddr) -> bool {
        self.failed.get(&address).is_none_or(|(_, until)| *until <= now)
    }

    /// When the first of those may be tried again that are left alone now.
    pub(crate) fn next_try(&self, now: Time) -> Option<Time> {
        self.failed.values().map(|(_, until)| *until).filter(|until| *until > now).min()
    }

    pub(crate) fn works(&mut self, address: SocketAddr) {
        self.failed.remove(&address);
    }

    pub(crate) fn fails(&mut self, now: Time, address: SocketAddr, pause_us: u64) {
        // As many as there are addresses, which the map bounds; of those that are gone none is kept.
        let known: Vec<SocketAddr> =
            self.map.iter().flat_map(|map| map.nodes.values()).filter_map(|node| node.native).collect();
        let seeds = &self.seeds;
        self.failed.retain(|address, _| known.contains(address) || seeds.contains(address));
        let (count, until) = self.failed.entry(address).or_insert((0, now));
        *until = now + (pause_us << (*count).min(DOUBLINGS));
        *count += 1;
    }
}
