//! Where a stand-in goes.

use super::question::PlanNode;
use super::tally::RoleTally;
use types::{GroupView, HostId};

/// Where a stand-in for a lost data role of `view` goes: to a node without a role in the group if there is one, else to
/// the node of an in-sync parity, first one without a stand-in of the group. A node that cannot host comes last, as a
/// stand-in without memory is of little use; a draining one is taken rather than have two roles on a node. Then come the
/// zone with the fewest roles of the group, the fewest data roles, the fewest roles, the fewest bytes, the lowest id.
///
/// `living` are the nodes that may be asked at all, `load` is what they have of all groups.
#[must_use]
pub fn choose_stand_in(view: &GroupView, living: &[PlanNode], load: &RoleTally) -> Option<HostId> {
    let is_possible = |node: &&PlanNode| {
        view.roles_on(node.host.node) == 0 || view.in_sync().any(|(_, host)| host == node.host)
    };
    let rank = |node: &&PlanNode| {
        let id = node.host.node;
        let counts = load.get(id);
        let preference = (!node.can_host, view.roles_on(id), node.draining);
        let load = (counts.data, counts.total(), node.bytes, id);
        (preference, roles_in_zone(view, living, node), load)
    };
    living.iter().filter(is_possible).min_by_key(rank).map(|node| node.host)
}

/// Where a lost data role of `view` begins anew: on any node that lives, where there is none without a role in the group. Else
/// as [`choose_stand_in`]: the planner moves it when there is a better one.
#[must_use]
pub fn choose_successor(view: &GroupView, living: &[PlanNode], load: &RoleTally) -> Option<HostId> {
    let rank = |node: &&PlanNode| {
        let id = node.host.node;
        let counts = load.get(id);
        let preference = (!node.can_host, view.roles_on(id), node.draining);
        (preference, roles_in_zone(view, living, node), (counts.data, counts.total(), node.bytes, id))
    };
    living.iter().min_by_key(rank).map(|node| node.host)
}

/// Roles of the group on the other nodes of a node's zone.
fn roles_in_zone(view: &GroupView, living: &[PlanNode], node: &PlanNode) -> usize {
    let is_neighbour =
        |other: &&PlanNode| !node.zone.is_empty() && other.zone == node.zone && other.host != node.host;
    living.iter().filter(is_neighbour).map(|other| view.roles_on(other.host.node)).sum()
}
