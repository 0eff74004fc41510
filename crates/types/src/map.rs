//! The cluster map: which node is where, which member serves a key.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use thiserror::Error;

use crate::{
    BadCatalog, Catalog, ClusterId, GroupId, GroupView, HostId, ImpossibleView, KeyHash, Layout, MemberId,
    NamespaceId, NodeId, Pool, Profile, Slot,
};

/// What the cluster knows of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The process.
    pub host: HostId,
    /// Where its peers connect.
    pub peer: SocketAddr,
    /// Where memcached clients connect.
    pub memcached: SocketAddr,
    /// Where its metrics and status are.
    pub http: SocketAddr,
    /// Where clients of the native protocol connect; none = nowhere.
    #[serde(default)]
    pub native: Option<SocketAddr>,
    /// Failure domain; empty if none was given.
    pub zone: String,
    /// Whether its lease at the coordinator runs.
    pub alive: bool,
}

/// The map: small, versioned, held by every node and every smart client. As JSON it is [checked](Self::check) when it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct ClusterMap {
    /// The cluster; also the seed of the key hash.
    pub cluster: ClusterId,
    /// Grows with each change of anything below.
    pub version: u64,
    /// Its pools and namespaces.
    pub catalog: Catalog,
    /// Workers of every node; group `g` is worker `g % shards`' business on each of them.
    pub shards: u16,
    /// What operators have asked for.
    pub layout: Layout,
    /// Sorted by node id.
    pub nodes: Vec<NodeInfo>,
    /// Those of all pools, ascending by group id.
    pub groups: Vec<GroupView>,
}

/// A map as it is read.
#[derive(Deserialize)]
struct Unchecked {
    cluster: ClusterId,
    version: u64,
    catalog: Catalog,
    shards: u16,
    #[serde(default)]
    layout: Layout,
    nodes: Vec<NodeInfo>,
    groups: Vec<GroupView>,
}

impl TryFrom<Unchecked> for ClusterMap {
    type Error = ImpossibleMap;

    fn try_from(read: Unchecked) -> Result<Self, ImpossibleMap> {
        let Unchecked { cluster, version, catalog, shards, layout, nodes, groups } = read;
        let map = Self { cluster, version, catalog, shards, layout, nodes, groups };
        map.check().map(|()| map)
    }
}

/// Hash slots `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRange {
    /// First slot of the range.
    pub first: Slot,
    /// Last slot of the range, inclusive.
    pub last: Slot,
}

/// Why a map cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ImpossibleMap {
    /// A key could belong to nobody.
    #[error("the map has no groups")]
    NoGroups,
    /// A node has workers.
    #[error("the map's nodes have no workers")]
    NoShards,
    /// More than anything that counts versions could follow.
    #[error("the map's version {0} is beyond all that there can be")]
    Version(u64),
    /// Pools and namespaces that no cluster can have.
    #[error("the map's pools and namespaces cannot be: {0}")]
    Catalog(#[from] BadCatalog),
    /// Not as many views as the pools have groups.
    #[error("the map has {views} views of {groups} groups")]
    Views {
        /// Views that there are.
        views: usize,
        /// Groups of the pools.
        groups: usize,
    },
    /// The views are not those of the pools' groups, in their order.
    #[error("the map has {got} in the place of {expected}")]
    Order {
        /// The group that was due.
        expected: GroupId,
        /// The one that is there.
        got: GroupId,
    },
    /// A view with other numbers of roles than its pool's profile.
    #[error("{0} is of another profile than its pool")]
    Profile(GroupId),
    /// A view that no group can have.
    #[error("the view of {0} cannot be: {1}")]
    View(GroupId, ImpossibleView),
    /// Nodes are found by their ids.
    #[error("the map's nodes are out of order")]
    Nodes,
}

impl ClusterMap {
    /// The highest version of a map that may be sent or stored.
    pub const MAX_VERSION: u64 = u64::MAX / 2;

    /// Whether any cluster can have this map. Whoever reads one, from a frame or as JSON, has it checked before anything else is
    /// asked of it: what this accepts has a place for every key.
    ///
    /// # Errors
    /// Why none can.
    pub fn check(&self) -> Result<(), ImpossibleMap> {
        if self.groups.is_empty() {
            return Err(ImpossibleMap::NoGroups);
        }
        if self.shards == 0 {
            return Err(ImpossibleMap::NoShards);
        }
        if self.version > Self::MAX_VERSION {
            return Err(ImpossibleMap::Version(self.version));
        }
        if !self.nodes.is_sorted_by(|before, after| before.host.node < after.host.node) {
            return Err(ImpossibleMap::Nodes);
        }
        self.catalog.check()?;
        let (views, groups) = (self.groups.len(), self.catalog.groups());
        if views != groups {
            return Err(ImpossibleMap::Views { views, groups });
        }
        let expected =
            self.catalog.pools.iter().flat_map(|pool| pool.group_ids().map(move |group| (pool, group)));
        expected.zip(&self.groups).try_for_each(|((pool, group), view)| check_group(pool, group, view))
    }

    /// Whether `view` may take the place of the one that is here: of one of these groups, and with as many roles.
    #[must_use]
    pub fn has_place_for(&self, view: &GroupView) -> bool {
        self.group(view.group).is_some_and(|known| (known.k(), known.m()) == (view.k(), view.m()))
    }

    /// What every cluster has, and keys of no named namespace lie in.
    #[must_use]
    pub fn default_pool(&self) -> &Pool {
        self.catalog.pool_of(NamespaceId::DEFAULT).unwrap_or(&self.catalog.pools[0])
    }

    /// The protection of `group`.
    #[must_use]
    pub fn profile_of(&self, group: GroupId) -> Option<Profile> {
        self.catalog.pool_of_group(group).map(|pool| pool.profile)
    }

    /// How many losses every pool survives, whichever they are.
    #[must_use]
    pub fn least_tolerance(&self) -> usize {
        self.catalog.pools.iter().map(|pool| pool.profile.tolerance()).min().unwrap_or(0)
    }

    /// The data role that holds what has this hash in `namespace`; none if there is no such namespace.
    #[must_use]
    pub fn member_of(&self, namespace: NamespaceId, hash: KeyHash) -> Option<MemberId> {
        self.catalog.pool_of(namespace).map(|pool| pool.member_of(hash))
    }

    /// The slots of data role `member` in its pool; none if there is no such group.
    #[must_use]
    pub fn slots_of(&self, member: MemberId) -> Option<SlotRange> {
        self.catalog.pool_of_group(member.group).map(|pool| pool.slots_of(member))
    }

    /// The view of `group`.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<&GroupView> {
        self.place_of(group).map(|at| &self.groups[at])
    }

    /// The view of `group`, to change it.
    pub fn group_mut(&mut self, group: GroupId) -> Option<&mut GroupView> {
        self.place_of(group).map(|at| &mut self.groups[at])
    }

    /// The views of `pool`.
    #[must_use]
    pub fn groups_of(&self, pool: &Pool) -> &[GroupView] {
        let Some(first) = self.place_of(pool.first_group) else { return &[] };
        self.groups.get(first..first + pool.groups as usize).unwrap_or_default()
    }

    /// Where the view of `group` is.
    #[inline]
    fn place_of(&self, group: GroupId) -> Option<usize> {
        let at = group.0 as usize;
        // As long as no pool has been removed.
        if self.groups.get(at).is_some_and(|view| view.group == group) {
            return Some(at);
        }
        self.groups.binary_search_by_key(&group, |view| view.group).ok()
    }

    /// The process that serves `member` (a data role), none while there is no primary.
    #[must_use]
    pub fn primary_of(&self, member: MemberId) -> Option<HostId> {
        self.group(member.group)?.data_role(member.role)?.primary
    }

    /// Roles that `node` hosts, is to host, or has the chunks of until another node has got them.
    #[must_use]
    pub fn roles_left_on(&self, node: NodeId) -> usize {
        self.groups.iter().map(|view| view.roles_left_on(node)).sum()
    }

    /// What is known of `node`.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&NodeInfo> {
        self.nodes.binary_search_by_key(&node, |info| info.host.node).ok().map(|at| &self.nodes[at])
    }

    /// Replaces a group's view if `view` is newer, and one of this map; whether it was.
    pub fn adopt(&mut self, view: GroupView) -> bool {
        if !self.has_place_for(&view) {
            return false;
        }
        match self.group_mut(view.group) {
            // Views come by several ways: a late one must not undo a newer one.
            Some(known) if known.version < view.version => {
                *known = view;
                true
            }
            _ => false,
        }
    }
}

pub(crate) fn check_group(pool: &Pool, expected: GroupId, view: &GroupView) -> Result<(), ImpossibleMap> {
    if view.group != expected {
        return Err(ImpossibleMap::Order { expected, got: view.group });
    }
    if (view.k(), view.m()) != (pool.profile.k(), pool.profile.m()) {
        return Err(ImpossibleMap::Profile(expected));
    }
    view.check().map_err(|why| ImpossibleMap::View(expected, why))
}
