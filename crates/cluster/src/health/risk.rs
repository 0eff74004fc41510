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
    let mut lost = Lost::default();
    map.groups.iter().for_each(|view| lost.add(view.group, lost_by(view, codes, gone)));
    let views = lost.groups.iter().filter_map(|group| map.group(*group));
    let keepers = views.flat_map(GroupView::keepers).map(|host| host.node);
    let nodes: BTreeSet<NodeId> = keepers.filter(|node| gone.contains(node)).collect();
    (!lost.groups.is_empty()).then(|| lost.with(map, nodes.into_iter().collect()))
}

/// What the loss of one more node would cost, by node; nodes whose loss costs nothing are left out.
pub(super) fn by_node(map: &ClusterMap, codes: &Codes, gone: &[NodeId]) -> Vec<Loss> {
    let mut all: BTreeMap<NodeId, Lost> = BTreeMap::new();
    let survived = |view: &GroupView| codes.of_group(view.group)?.losses_survived_without(view, gone);
    let is_at_risk = |view: &&GroupView| survived(view).unwrap_or(0) == 0;
    // The others survive the loss of any node. To try each of them would take long in a large cluster.
    for view in map.groups.iter().filter(is_at_risk) {
        let already = lost_by(view, codes, gone);
        let nodes: BTreeSet<NodeId> = view.keepers().map(|host| host.node).collect();
        for node in nodes.into_iter().filter(|node| !gone.contains(node)) {
            let without: Vec<NodeId> = gone.iter().copied().chain([node]).collect();
            let more = lost_by(view, codes, &without).beyond(&already);
            if !more.is_nothing() {
                all.entry(node).or_default().add(view.group, more);
            }
        }
    }
    all.into_iter().map(|(node, lost)| lost.with(map, vec![node])).collect()
}

/// What several groups lose.
#[derive(Default)]
struct Lost {
    groups: BTreeSet<GroupId>,
    members: Vec<MemberId>,
}

impl Lost {
    fn add(&mut self, group: GroupId, lost: LostOfGroup) {
        if !lost.is_nothing() {
            self.groups.insert(group);
        }
        self.members.extend(lost.roles.into_iter().map(|role| MemberId { group, role }));
    }

    fn with(self, map: &ClusterMap, nodes: Vec<NodeId>) -> Loss {
        let slots = map.slots_of_all(self.members.iter().copied());
        Loss { nodes, groups: self.groups.into_iter().collect(), slots }
    }
}

/// What one group loses.
struct LostOfGroup {
    /// Data roles with their items.
    roles: Vec<RoleIndex>,
    /// Whether chunks: of objects whose keys may have any slot.
    chunks: bool,
}

impl LostOfGroup {
    fn is_nothing(&self) -> bool {
        self.roles.is_empty() && !self.chunks
    }

    fn beyond(mut self, already: &Self) -> Self {
        self.roles.retain(|role| !already.roles.contains(role));
        self.chunks &= !already.chunks;
        self
    }
}

/// What is lost once the nodes `gone` are, besides what is lost already.
fn lost_by(view: &GroupView, codes: &Codes, gone: &[NodeId]) -> LostOfGroup {
    let Some(code) = codes.of_group(view.group) else {
        return LostOfGroup { roles: Vec::new(), chunks: false };
    };
    let view = view.without(gone);
    LostOfGroup { roles: code.losses(&view).roles, chunks: code.loses_chunks(&view) }
}
