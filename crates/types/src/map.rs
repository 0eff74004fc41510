//! The cluster map: which node is where, which member serves a key.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use thiserror::Error;

use crate::{
    ClusterId, GroupId, GroupView, HostId, ImpossibleView, KeyHash, Layout, MemberId, NodeId, Profile,
    RoleIndex, Slot,
};

/// Hash slots of the keyspace.
pub const SLOT_COUNT: u16 = 16_384;

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
    /// Protection of all groups.
    pub profile: Profile,
    /// Workers of every node; group `g` is worker `g % shards`' business on each of them.
    pub shards: u16,
    /// What operators have asked for.
    pub layout: Layout,
    /// Sorted by node id.
    pub nodes: Vec<NodeInfo>,
    /// Sorted by group id, dense from 0.
    pub groups: Vec<GroupView>,
}

/// A map as it is read.
#[derive(Deserialize)]
struct Unchecked {
    cluster: ClusterId,
    version: u64,
    profile: Profile,
    shards: u16,
    #[serde(default)]
    layout: Layout,
    nodes: Vec<NodeInfo>,
    groups: Vec<GroupView>,
}

impl TryFrom<Unchecked> for ClusterMap {
    type Error = ImpossibleMap;

    fn try_from(read: Unchecked) -> Result<Self, ImpossibleMap> {
        let Unchecked { cluster, version, profile, shards, layout, nodes, groups } = read;
        let map = Self { cluster, version, profile, shards, layout, nodes, groups };
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
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
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
    /// The views are not those of groups 0, 1, 2, ...
    #[error("the map has {got} in the place of {expected}")]
    Order {
        /// The group that was due.
        expected: GroupId,
        /// The one that is there.
        got: GroupId,
    },
    /// A view with other numbers of roles than the profile's.
    #[error("{0} is of another profile than the map")]
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
        (0..).map(GroupId).zip(&self.groups).try_for_each(|(group, view)| self.check_group(group, view))
    }

    fn check_group(&self, expected: GroupId, view: &GroupView) -> Result<(), ImpossibleMap> {
        if view.group != expected {
            return Err(ImpossibleMap::Order { expected, got: view.group });
        }
        if (view.k(), view.m()) != (self.profile.k(), self.profile.m()) {
            return Err(ImpossibleMap::Profile(expected));
        }
        view.check().map_err(|why| ImpossibleMap::View(expected, why))
    }

    /// Whether `view` may take the place of the one that is here: of one of these groups, and with as many roles.
    #[must_use]
    pub fn has_place_for(&self, view: &GroupView) -> bool {
        self.group(view.group).is_some_and(|known| (known.k(), known.m()) == (view.k(), view.m()))
    }

    /// The data role that holds `hash`. Slots are dealt to data roles in contiguous, equal ranges.
    #[must_use]
    pub fn member_of(&self, hash: KeyHash) -> MemberId {
        self.member_of_slot(hash.slot())
    }

    /// The data role that holds `slot`.
    #[must_use]
    pub fn member_of_slot(&self, slot: Slot) -> MemberId {
        let k = self.profile.k();
        let index = usize::from(slot.0) * self.groups.len() * k / usize::from(SLOT_COUNT);
        // Neighbouring ranges go to different groups, so that a scan of the keyspace spreads over the nodes.
        MemberId {
            group: GroupId((index % self.groups.len()) as u32),
            role: RoleIndex((index / self.groups.len()) as u8),
        }
    }

    /// The slots of data role `member`.
    #[must_use]
    pub fn slots_of(&self, member: MemberId) -> SlotRange {
        let roles = self.groups.len() * self.profile.k();
        let index = usize::from(member.role.0) * self.groups.len() + member.group.0 as usize;
        // The inverse of `member_of_slot`, which rounds down: a member's slots begin with the first
        // one that comes out as its own.
        let first = (index * usize::from(SLOT_COUNT)).div_ceil(roles);
        let end = ((index + 1) * usize::from(SLOT_COUNT)).div_ceil(roles);
        SlotRange { first: Slot(first as u16), last: Slot((end - 1) as u16) }
    }

    /// The view of `group`.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<&GroupView> {
        self.groups.get(group.0 as usize)
    }

    /// The process that serves `member` (a data role), none while there is no primary.
    #[must_use]
    pub fn primary_of(&self, member: MemberId) -> Option<HostId> {
        self.group(member.group)?.data_role(member.role)?.primary
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
        match self.groups.get_mut(view.group.0 as usize) {
            // Views come by several ways: a late one must not undo a newer one.
            Some(known) if known.version < view.version => {
                *known = view;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ViewVersion;

    fn map(k: u32, m: u32, groups: u32) -> ClusterMap {
        let profile = Profile::rs(k, m).unwrap();
        let empty = |g| GroupView {
            group: GroupId(g),
            version: ViewVersion(0),
            data: vec![],
            parity: vec![],
            learners: vec![],
            former: vec![],
        };
        ClusterMap {
            cluster: ClusterId(1),
            version: 0,
            profile,
            shards: 1,
            layout: Layout::default(),
            nodes: vec![],
            groups: (0..groups).map(empty).collect(),
        }
    }

    #[test]
    fn every_slot_belongs_to_exactly_the_role_whose_range_names_it() {
        for (k, groups) in [(3, 5), (1, 1), (8, 7), (10, 96), (3, 1000)] {
            let map = map(k, 0, groups);
            let mut covered = 0;
            for group in 0..groups {
                for role in 0..k {
                    let member = MemberId { group: GroupId(group), role: RoleIndex(role as u8) };
                    let range = map.slots_of(member);
                    for slot in range.first.0..=range.last.0 {
                        assert_eq!(map.member_of_slot(Slot(slot)), member);
                        covered += 1;
                    }
                }
            }
            assert_eq!(covered, i32::from(SLOT_COUNT));
        }
    }
}
