//! The cluster map: which node is where, which member serves a key.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{
    ClusterId, GroupId, GroupView, HostId, KeyHash, Layout, MemberId, NodeId, Profile, RoleIndex, Slot,
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

/// The map: small, versioned, held by every node and every smart client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub layout: Layout,
    /// Sorted by node id.
    pub nodes: Vec<NodeInfo>,
    /// Sorted by group id, dense from 0.
    pub groups: Vec<GroupView>,
}

/// Hash slots `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRange {
    /// First slot of the range.
    pub first: Slot,
    /// Last slot of the range, inclusive.
    pub last: Slot,
}

impl ClusterMap {
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

    /// Replaces a group's view if `view` is newer; whether it was.
    pub fn adopt(&mut self, view: GroupView) -> bool {
        match self.groups.get_mut(view.group.0 as usize) {
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
    use crate::{ViewVersion, place};

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

    #[test]
    fn place_fills_the_views_of_a_map() {
        let profile = Profile::rs(3, 2).unwrap();
        let hosts: Vec<_> =
            (0..5).map(|n| HostId { node: NodeId(n), incarnation: crate::Incarnation(1) }).collect();
        let groups = place(profile, &hosts, 5).unwrap();
        assert_eq!(groups.len(), 5);
    }
}
