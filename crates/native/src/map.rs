//! The map, as much of it as a client needs: which nodes there are, and which of them serves a key.
//!
//! It is sent whole, in as many frames as that takes, and then what has changed of it: nodes and primaries. Where pools or namespaces have
//! changed a whole one is sent again.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use types::{
    ClusterId, ClusterMap, KeyHash, MAX_SLOT_BITS, MIN_SLOT_BITS, MemberId, Name, NamespaceId, NodeId, Pool,
    PoolId, RoleIndex, Slot,
};

use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Kind, MAX_BODY_BYTES, put_frame};
use crate::message::MORE;

/// Longest map, in bytes.
pub const MAX_MAP_BYTES: usize = 64 << 20;
/// Bytes of a map in one frame.
const PART_BYTES: usize = 60 * 1024;
/// Stands for "no node".
const NOBODY: u16 = u16::MAX;

const _: () = assert!(PART_BYTES <= MAX_BODY_BYTES);

/// A map that a client follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMap {
    /// The cluster; also the seed of the hash of keys.
    pub cluster: ClusterId,
    /// Grows with every change.
    pub version: u64,
    /// By their ids.
    pub nodes: BTreeMap<NodeId, RouteNode>,
    /// By their ids.
    pub pools: BTreeMap<PoolId, RoutePool>,
    /// By their ids.
    pub namespaces: BTreeMap<NamespaceId, RouteNamespace>,
}

/// A node, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteNode {
    /// Where it takes this protocol; none = nowhere.
    pub native: Option<SocketAddr>,
    /// Whether it is known to live.
    pub alive: bool,
}

/// A pool, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePool {
    /// It has two to the power of this many slots.
    pub slot_bits: u8,
    /// The node that serves each data role, in the order of their slots.
    pub primaries: Vec<Option<NodeId>>,
}

/// A namespace, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteNamespace {
    /// What operators call it.
    pub name: Name,
    /// Where its items lie.
    pub pool: PoolId,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChanges {
    /// The cluster.
    pub cluster: ClusterId,
    /// They fit the map of this version, and no other.
    pub since: u64,
    /// They make this one of it.
    pub version: u64,
    /// Nodes that are new or have changed.
    pub nodes: Vec<(NodeId, RouteNode)>,
    /// Nodes that are gone.
    pub gone: Vec<NodeId>,
    /// Data roles that another node serves now, or none: by pool and place.
    pub primaries: Vec<(PoolId, u32, Option<NodeId>)>,
}

/// Why a map is none, or changes do not fit one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadRouteMap {
    /// They are of another version, or of another cluster.
    #[error("these changes are not of this map")]
    OtherMap,
    /// They change what is not there.
    #[error("these changes are of a pool or a role that there is not")]
    NoSuchRole,
    /// It is longer than there can be.
    #[error("a map of more than {MAX_MAP_BYTES} bytes")]
    Long,
    /// Its bytes are none.
    #[error("the map is malformed: {0}")]
    Malformed(#[from] Malformed),
}

impl RoutePool {
    fn of(map: &ClusterMap, pool: &Pool) -> Self {
        let roles = (0..pool.profile.k()).flat_map(|role| {
            pool.group_ids().map(move |group| MemberId { group, role: RoleIndex(role as u8) })
        });
        let primaries = roles.map(|member| map.primary_of(member).map(|host| host.node)).collect();
        Self { slot_bits: pool.slot_bits, primaries }
    }

    /// The first slot of the data role at `index`; none if there is no such role.
    #[must_use]
    pub fn first_slot(&self, index: u32) -> Option<Slot> {
        let roles = self.primaries.len() as u64;
        let first = (u64::from(index) << self.slot_bits).div_ceil(roles);
        // Slots have 24 bits.
        (u64::from(index) < roles).then_some(Slot(first as u32))
    }

    /// The place of the data role that holds what has this hash.
    #[must_use]
    pub fn index_of(&self, hash: KeyHash) -> usize {
        let slot = hash.0 >> (u64::BITS - u32::from(self.slot_bits));
        // Slots have 24 bits and there are no more data roles: nothing overflows.
        ((slot * self.primaries.len() as u64) >> self.slot_bits) as usize
    }
}

impl RouteMap {
    /// What clients need of `map`.
    #[must_use]
    pub fn of(map: &ClusterMap) -> Self {
        let node =
            |info: &types::NodeInfo| (info.host.node, RouteNode { native: info.native, alive: info.alive });
        let namespace = |known: &types::Namespace| {
            (known.id, RouteNamespace { name: known.name.clone(), pool: known.pool })
        };
        Self {
            cluster: map.cluster,
            version: map.version,
            nodes: map.nodes.iter().map(node).collect(),
            pools: map.catalog.pools.iter().map(|pool| (pool.id, RoutePool::of(map, pool))).collect(),
            namespaces: map.catalog.namespaces.iter().map(namespace).collect(),
        }
    }

    /// The namespace of this name.
    #[must_use]
    pub fn namespace_named(&self, name: &str) -> Option<NamespaceId> {
        self.namespaces.iter().find(|(_, known)| known.name.as_str() == name).map(|(id, _)| *id)
    }

    /// The pool of `namespace`.
    #[must_use]
    pub fn pool_of(&self, namespace: NamespaceId) -> Option<&RoutePool> {
        self.pools.get(&self.namespaces.get(&namespace)?.pool)
    }

    /// The data role of a key of `namespace`, whose bytes with their namespace are `key`: its pool, and its place there.
    #[must_use]
    pub fn role_of(&self, namespace: NamespaceId, key: &[u8]) -> Option<(PoolId, usize)> {
        let id = self.namespaces.get(&namespace)?.pool;
        let pool = self.pools.get(&id)?;
        Some((id, pool.index_of(KeyHash::of(self.cluster, key))))
    }

    /// The node that serves a key of `namespace`, whose bytes with their namespace are `key`.
    #[must_use]
    pub fn primary_of(&self, namespace: NamespaceId, key: &[u8]) -> Option<NodeId> {
        let (pool, role) = self.role_of(namespace, key)?;
        self.pools.get(&pool)?.primaries.get(role).copied().flatten()
    }

    /// What makes this map of `old`; none if that takes a whole one.
    #[must_use]
    pub fn since(&self, old: &Self) -> Option<RouteChanges> {
        let is_same_pool = |(one, other): (&RoutePool, &RoutePool)| {
            one.slot_bits == other.slot_bits && one.primaries.len() == other.primaries.len()
        };
        let same_pools = self.pools.keys().eq(old.pools.keys())
            && self.pools.values().zip(old.pools.values()).all(is_same_pool);
        if self.cluster != old.cluster || !same_pools || self.namespaces != old.namespaces {
            return None;
        }
        let nodes = self.nodes.iter().filter(|(id, node)| old.nodes.get(id) != Some(node));
        let gone = old.nodes.keys().filter(|id| !self.nodes.contains_key(id));
        let changed = |((id, new), old): ((&PoolId, &RoutePool), &RoutePool)| {
            let id = *id;
            let pairs = new.primaries.iter().zip(&old.primaries).enumerate();
            let of = move |(at, (new, _)): (usize, (&Option<NodeId>, _))| (id, at as u32, *new);
            pairs.filter(|(_, (new, old))| new != old).map(of).collect::<Vec<_>>()
        };
        let changes = RouteChanges {
            cluster: self.cluster,
            since: old.version,
            version: self.version,
            nodes: nodes.map(|(id, node)| (*id, *node)).collect(),
            gone: gone.copied().collect(),
            primaries: self.pools.iter().zip(old.pools.values()).flat_map(changed).collect(),
        };
        changes.fits_a_frame().then_some(changes)
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// They do not fit, and nothing was changed.
    pub fn apply(&mut self, changes: &RouteChanges) -> Result<(), BadRouteMap> {
        if (self.cluster, self.version) != (changes.cluster, changes.since) {
            return Err(BadRouteMap::OtherMap);
        }
        let has = |(pool, at, _): &(PoolId, u32, Option<NodeId>)| {
            self.pools.get(pool).is_some_and(|pool| (*at as usize) < pool.primaries.len())
        };
        if !changes.primaries.iter().all(has) {
            return Err(BadRouteMap::NoSuchRole);
        }
        self.version = changes.version;
        self.nodes.extend(changes.nodes.iter().copied());
        self.nodes.retain(|id, _| !changes.gone.contains(id));
        for (pool, at, node) in &changes.primaries {
            if let Some(pool) = self.pools.get_mut(pool) {
                pool.primaries[*at as usize] = *node;
            }
        }
        Ok(())
    }

    /// Appends it, in as many frames as it takes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        self.put_body(&mut bytes);
        let parts = bytes.len().div_ceil(PART_BYTES);
        for (at, part) in (1..).zip(bytes.chunks(PART_BYTES)) {
            put_map_part(part, at < parts, out);
        }
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.put_u64(self.cluster.0);
        out.put_u64(self.version);
        out.put_u32(self.nodes.len() as u32);
        self.nodes.iter().for_each(|(id, node)| put_node(*id, node, out));
        out.put_u32(self.pools.len() as u32);
        for (id, pool) in &self.pools {
            out.put_u32(id.0);
            out.put_u8(pool.slot_bits);
            out.put_u32(pool.primaries.len() as u32);
            pool.primaries.iter().for_each(|node| out.put_u16(number(*node)));
        }
        out.put_u32(self.namespaces.len() as u32);
        for (id, namespace) in &self.namespaces {
            out.put_u32(id.0);
            out.put_u32(namespace.pool.0);
            let name = namespace.name.as_str();
            // A name has at most 64 bytes.
            out.put_u8(name.len() as u8);
            out.extend_from_slice(name.as_bytes());
        }
    }

    fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let (cluster, version) = (ClusterId(fields.u64()?), fields.u64()?);
        let count = fields.u32()? as usize;
        let nodes = fields.list(count, take_node)?;
        let count = fields.u32()? as usize;
        let pools = fields.list(count, take_pool)?;
        let count = fields.u32()? as usize;
        let namespaces = fields.list(count, take_namespace)?;
        fields.end()?;
        let map = Self {
            cluster,
            version,
            nodes: nodes.into_iter().collect(),
            pools: pools.into_iter().collect(),
            namespaces: namespaces.into_iter().collect(),
        };
        let has_pool = |namespace: &RouteNamespace| map.pools.contains_key(&namespace.pool);
        if !map.namespaces.values().all(has_pool) {
            return Err(Malformed::Field("the pool of a namespace"));
        }
        Ok(map)
    }
}

fn number(node: Option<NodeId>) -> u16 {
    node.map_or(NOBODY, |node| node.0)
}

fn node_of(number: u16) -> Option<NodeId> {
    Some(NodeId(number)).filter(|node| node.0 != NOBODY)
}

fn put_node(id: NodeId, node: &RouteNode, out: &mut Vec<u8>) {
    out.put_u16(id.0);
    out.put_u8(u8::from(node.alive));
    match node.native.map(|native| (native.ip(), native.port())) {
        None => out.put_u8(0),
        Some((IpAddr::V4(ip), port)) => {
            out.put_u8(4);
            out.extend_from_slice(&ip.octets());
            out.put_u16(port);
        }
        Some((IpAddr::V6(ip), port)) => {
            out.put_u8(6);
            out.extend_from_slice(&ip.octets());
            out.put_u16(port);
        }
    }
}

fn take_node(fields: &mut Fields) -> Result<(NodeId, RouteNode), Malformed> {
    let (id, alive) = (NodeId(fields.u16()?), fields.bool("whether a node lives")?);
    let ip = match fields.u8()? {
        0 => None,
        4 => Some(IpAddr::from(octets::<4>(fields)?)),
        6 => Some(IpAddr::from(octets::<16>(fields)?)),
        _ => return Err(Malformed::Field("the kind of an address")),
    };
    let native = match ip {
        None => None,
        Some(ip) => Some(SocketAddr::new(ip, fields.u16()?)),
    };
    Ok((id, RouteNode { native, alive }))
}

fn octets<const N: usize>(fields: &mut Fields) -> Result<[u8; N], Malformed> {
    let mut octets = [0; N];
    octets.copy_from_slice(&fields.bytes(N)?);
    Ok(octets)
}

fn take_pool(fields: &mut Fields) -> Result<(PoolId, RoutePool), Malformed> {
    let (id, slot_bits, count) = (PoolId(fields.u32()?), fields.u8()?, fields.u32()?);
    if !(MIN_SLOT_BITS..=MAX_SLOT_BITS).contains(&slot_bits) || count == 0 || count > 1 << slot_bits {
        return Err(Malformed::Field("the slots of a pool"));
    }
    let primaries = fields.list(count as usize, |fields| fields.u16().map(node_of))?;
    Ok((id, RoutePool { slot_bits, primaries }))
}

fn take_namespace(fields: &mut Fields) -> Result<(NamespaceId, RouteNamespace), Malformed> {
    let (id, pool) = (NamespaceId(fields.u32()?), PoolId(fields.u32()?));
    let len = usize::from(fields.u8()?);
    let name = fields.bytes(len)?;
    let name = std::str::from_utf8(&name).ok().and_then(|name| name.parse().ok());
    let name = name.ok_or(Malformed::Field("the name of a namespace"))?;
    if id > NamespaceId::MAX {
        return Err(Malformed::Field("the namespace"));
    }
    Ok((id, RouteNamespace { name, pool }))
}

pub(crate) fn put_map_part(part: &[u8], more: bool, out: &mut Vec<u8>) {
    let flags = if more { MORE } else { 0 };
    put_frame((Kind::Map, flags, 0), part.len(), out, |_| ());
    out.extend_from_slice(part);
}

impl RouteChanges {
    /// Bytes of a node with the longest address, and of a primary.
    const NODE_BYTES: usize = 22;
    const PRIMARY_BYTES: usize = 10;

    fn fits_a_frame(&self) -> bool {
        let nodes = self.nodes.len() * Self::NODE_BYTES + self.gone.len() * 2;
        nodes + self.primaries.len() * Self::PRIMARY_BYTES <= PART_BYTES
    }

    /// Appends them.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame((Kind::MapChanges, 0, 0), 0, out, |out| {
            out.put_u64(self.cluster.0);
            out.put_u64(self.since);
            out.put_u64(self.version);
            out.put_u16(self.nodes.len() as u16);
            self.nodes.iter().for_each(|(id, node)| put_node(*id, node, out));
            out.put_u16(self.gone.len() as u16);
            self.gone.iter().for_each(|id| out.put_u16(id.0));
            out.put_u16(self.primaries.len() as u16);
            for (pool, at, node) in &self.primaries {
                out.put_u32(pool.0);
                out.put_u32(*at);
                out.put_u16(number(*node));
            }
        });
    }

    pub(crate) fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let (cluster, since, version) = (ClusterId(fields.u64()?), fields.u64()?, fields.u64()?);
        let count = usize::from(fields.u16()?);
        let nodes = fields.list(count, take_node)?;
        let count = usize::from(fields.u16()?);
        let gone = fields.list(count, |fields| fields.u16().map(NodeId))?;
        let count = usize::from(fields.u16()?);
        let primaries = fields
            .list(count, |fields| Ok((PoolId(fields.u32()?), fields.u32()?, node_of(fields.u16()?))))?;
        fields.end()?;
        if since >= version {
            return Err(Malformed::Field("the versions of changes"));
        }
        Ok(Self { cluster, since, version, nodes, gone, primaries })
    }
}

/// Puts the parts of a map together.
#[derive(Debug, Default)]
pub struct MapAssembly(BytesMut);

impl MapAssembly {
    /// The next part; the map, if it is the last one.
    ///
    /// # Errors
    /// What came is no map.
    pub fn add(&mut self, part: &[u8], more: bool) -> Result<Option<RouteMap>, BadRouteMap> {
        if self.0.len() + part.len() > MAX_MAP_BYTES {
            return Err(BadRouteMap::Long);
        }
        self.0.extend_from_slice(part);
        if more {
            return Ok(None);
        }
        Ok(RouteMap::take(std::mem::take(&mut self.0).freeze()).map(Some)?)
    }
}
