//! What the nodes at hand do not allow, and what to do about it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::layout::Layout;
use super::question::PlanNode;
use types::{ClusterMap, NodeId, Profile};

/// Something that no move can put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementWarning {
    /// A group has more roles than there are nodes that can host one.
    TooFewNodes {
        /// Roles of a group.
        roles: usize,
        /// Nodes that can host, those that are being drained not counted.
        nodes: usize,
        /// Groups of which a node has two roles.
        crowded: usize,
        /// Groups without one of their parities.
        incomplete: usize,
    },
    /// A group has more roles than there are zones, or zones that could take no more than they have nodes.
    TooFewZones {
        /// Roles of a group.
        roles: usize,
        /// Zones with nodes that can host.
        zones: usize,
        /// Most roles of a group in one zone, as even as can be.
        most: usize,
        /// How many zones may fail at once without loss of data.
        survived: usize,
    },
    /// Some nodes have a zone, others have none.
    NodesWithoutZone {
        /// Those without.
        nodes: Vec<NodeId>,
    },
    /// A node that is being drained keeps roles.
    DrainBlocked {
        /// The node.
        node: NodeId,
        /// Roles that no node can take, because all that can host have one of the group already.
        without_target: usize,
    },
}

/// What the nodes at hand do not allow: what would still be wrong when all that can be moved has been moved.
#[must_use]
pub fn warnings(map: &ClusterMap, nodes: &[PlanNode]) -> Vec<PlacementWarning> {
    let layout = super::when_all_is_done(map, nodes);
    let profiles: Vec<Profile> = map.catalog.pools.iter().map(|pool| pool.profile).collect();
    let mut warnings = Vec::new();
    // As many as are enough for the widest are enough for all.
    let widest = profiles.iter().map(|profile| profile.n()).max();
    warnings.extend(widest.and_then(|roles| too_few_nodes(&layout, roles)));
    warnings.extend(too_few_zones(nodes, &profiles));
    warnings.extend(without_zone(nodes));
    warnings.extend(blocked_drains(&layout));
    warnings
}

fn too_few_nodes(layout: &Layout, roles: usize) -> Option<PlacementWarning> {
    let nodes = layout.nodes.iter().filter(|node| node.is_target).count();
    let crowded = layout.groups.iter().filter(|group| group.worst_node() > 1).count();
    let incomplete = layout.groups.iter().filter(|group| !group.is_complete()).count();
    (nodes < roles).then_some(PlacementWarning::TooFewNodes { roles, nodes, crowded, incomplete })
}

/// Of the profiles for which there are too few, the one that survives fewest.
fn too_few_zones(nodes: &[PlanNode], profiles: &[Profile]) -> Option<PlacementWarning> {
    let mut room: BTreeMap<(&str, Option<NodeId>), usize> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.can_host && !node.draining) {
        // A node without a zone is one by itself.
        *room.entry((&node.zone, node.zone.is_empty().then_some(node.host.node))).or_insert(0) += 1;
    }
    let room: Vec<usize> = room.into_values().collect();
    let zones = room.len();
    let spread = profiles.iter().map(|profile| (profile.n(), spread(&room, *profile)));
    let crowded = spread.filter(|(_, (most, _))| *most > 1);
    let (roles, (most, survived)) =
        crowded.min_by_key(|(roles, (most, survived))| (*survived, Reverse((*most, *roles))))?;
    Some(PlacementWarning::TooFewZones { roles, zones, most, survived })
}

/// The most roles of a group in one zone, if zone `i` has room for `room[i]`, and how many zones may fail.
fn spread(room: &[usize], profile: Profile) -> (usize, usize) {
    let mut shares = even_shares(room, profile.n());
    // At worst the zones with the most roles fail first.
    shares.sort_unstable_by(|a, b| b.cmp(a));
    let most = shares.first().copied().unwrap_or(0);
    let mut lost = 0;
    let is_survived = |share: &&usize| {
        lost += **share;
        lost <= profile.tolerance()
    };
    (most, shares.iter().take_while(is_survived).count())
}

/// How many of `roles` go into each zone, if zone `i` has room for `room[i]`.
fn even_shares(room: &[usize], roles: usize) -> Vec<usize> {
    let mut shares = vec![0; room.len()];
    for _ in 0..roles {
        let open = (0..room.len()).filter(|&zone| shares[zone] < room[zone]);
        let Some(zone) = open.min_by_key(|&zone| shares[zone]) else { break };
        shares[zone] += 1;
    }
    shares
}

fn without_zone(nodes: &[PlanNode]) -> Option<PlacementWarning> {
    let without: Vec<NodeId> =
        nodes.iter().filter(|node| node.zone.is_empty()).map(|node| node.host.node).collect();
    let is_mixed = !without.is_empty() && without.len() < nodes.len();
    is_mixed.then_some(PlacementWarning::NodesWithoutZone { nodes: without })
}

fn blocked_drains(layout: &Layout) -> Vec<PlacementWarning> {
    let draining = (0..layout.nodes.len()).filter(|&node| layout.nodes[node].is_draining);
    let warning = |node: usize| {
        let groups: BTreeSet<usize> = layout.nodes[node].roles.iter().map(|(group, _)| *group).collect();
        // A group in which nothing can move now may let its roles go later.
        let is_done = |group: &&usize| !layout.groups[**group].is_in_play;
        let kept = groups.iter().filter(is_done).map(|&group| layout.groups[group].roles_on(node));
        let without_target: usize = kept.sum();
        let node = layout.nodes[node].host.node;
        (without_target > 0).then_some(PlacementWarning::DrainBlocked { node, without_target })
    };
    draining.filter_map(warning).collect()
}

impl fmt::Display for PlacementWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewNodes { roles, nodes, crowded, incomplete } => write!(
                f,
                "a group has {roles} roles, and {} can host one (alive, with memory, not draining): {} with two roles on \
                 one node, {} without a parity; start {}",
                count(*nodes, "node"),
                count(*crowded, "group"),
                count(*incomplete, "group"),
                count(roles.saturating_sub(*nodes), "more node")
            ),
            Self::TooFewZones { roles, zones, most, survived } => write!(
                f,
                "a group has {roles} roles, and there are {} for them: one has up to {most}, so the data survives \
                 the loss of {}; start nodes in further zones, or in the small ones",
                count(*zones, "zone"),
                count(*survived, "zone")
            ),
            Self::NodesWithoutZone { nodes } => {
                f.write_str("nodes without a zone count as zones of their own: start ")?;
                for (i, node) in nodes.iter().enumerate() {
                    write!(f, "{}{node}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(" with --zone, as the others")
            }
            Self::DrainBlocked { node, without_target } => write!(
                f,
                "{node} cannot be emptied: {} would have to share a node with another of the group; start another node",
                count(*without_target, "role")
            ),
        }
    }
}

/// `1 node`, `2 nodes`.
fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
