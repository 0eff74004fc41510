//! What is lost by the loss of which nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use types::{ClusterMap, GroupId, GroupView, MemberId, NodeId, PoolSlots, RoleIndex};

use crate::Codes;

/// What it costs to lose some nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// Groups that would lose data.
    pub groups: Vec<GroupId>,
    /// Hash slots whose data would be lost, ascending, merged.
    pub slots: Vec<PoolSlots>,
}

/// What is lost if none of the nodes `gone` comes back; none if the code can make up for it.
pub(super) fn beyond_repair(map: &ClusterMap, codes: &Codes, gone: &[NodeId]) -> Option<Loss> {
    let mut members = Vec::new();
    for view in &map.groups {
        let lost = lost_by(view, codes, gone).into_iter();
        members.extend(lost.map(|role| MemberId { group: view.group, role }));
    }
    let groups: BTreeSet<GroupId> = members.iter().map(|member| member.group).collect();
    let hosts = groups.iter().filter_map(|group| map.group(*group)).flat_map(GroupView::hosts);
    let nodes: BTreeSet<NodeId> = hosts.map(|host| host.node).filter(|node| gone.contains(node)).collect();
    (!members.is_empty()).then(|| loss(map, nodes.into_iter().collect(), &members))
}

/// What the loss of one more node would cost, by node; nodes whose loss costs nothing are left out.
pub(super) fn by_node(map: &ClusterMap, codes: &Codes, gone: &[NodeId]) -> Vec<Loss> {
    let mut members: BTreeMap<NodeId, Vec<MemberId>> = BTreeMap::new();
    let survived = |view: &GroupView| codes.of_group(view.group)?.losses_survived_without(view, gone);
    let is_at_risk = |view: &&GroupView| survived(view).unwrap_or(0) == 0;
    // The others survive the loss of any node. To try each of them would take long in a large cluster.
    for view in map.groups.iter().filter(is_at_risk) {
        let lost_already: Vec<RoleIndex> = lost_by(view, codes, gone);
        let hosts: BTreeSet<NodeId> = view.hosts().map(|host| host.node).collect();
        for node in hosts.into_iter().filter(|node| !gone.contains(node)) {
            let without: Vec<NodeId> = gone.iter().copied().chain([node]).collect();
            let more = lost_by(view, codes, &without).into_iter().filter(|role| !lost_already.contains(role));
            let more: Vec<MemberId> = more.map(|role| MemberId { group: view.group, role }).collect();
            if !more.is_empty() {
                members.entry(node).or_default().extend(more);
            }
        }
    }
    members.into_iter().map(|(node, members)| loss(map, vec![node], &members)).collect()
}

fn loss(map: &ClusterMap, nodes: Vec<NodeId>, members: &[MemberId]) -> Loss {
    let groups: BTreeSet<GroupId> = members.iter().map(|member| member.group).collect();
    let slots = map.slots_of_all(members.iter().copied());
    Loss { nodes, groups: groups.into_iter().collect(), slots }
}

/// Data roles that are lost once the nodes `gone` are, besides those that are lost already.
fn lost_by(view: &GroupView, codes: &Codes, gone: &[NodeId]) -> Vec<RoleIndex> {
    let code = codes.of_group(view.group);
    code.map(|code| code.losses(&view.without(gone)).roles).unwrap_or_default()
}
