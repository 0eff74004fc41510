//! What it would mean to stop a node.

use types::{ClusterMap, GroupView, NodeId, StopReport};

use crate::Codes;

/// What it would mean to stop `node`, going by the views of `map`. Whoever is `unheard`, though every node is to be heard every
/// `heartbeat_us` microseconds, or is dead by the map, counts as lost.
#[must_use]
pub fn stop_report(map: &ClusterMap, node: NodeId, unheard: &[NodeId], heartbeat_us: u64) -> StopReport {
    let codes = Codes::of(&map.catalog);
    let hosted = || map.groups.iter().filter(move |view| view.roles_left_on(node) > 0);
    let data = |view: &GroupView| {
        view.data.iter().filter(|role| role.primary.is_some_and(|host| host.node == node)).count()
    };
    let dead = map.nodes.iter().filter(|info| !info.alive).map(|info| info.host.node);
    let gone: Vec<NodeId> = dead.chain(unheard.iter().copied()).chain([node]).collect();
    let without = |view: &GroupView| codes.of_group(view.group)?.losses_survived_without(view, &gone);
    let data_roles: usize = hosted().map(data).sum();
    let roles: usize = hosted().map(|view| view.roles_on(node)).sum();
    // Without a role a node protects nothing.
    let least = hosted().map(without).min().unwrap_or(Some(map.least_tolerance()));
    let lives = |other: &NodeId| map.node(*other).is_some_and(|info| info.alive);
    StopReport {
        unheard: unheard.iter().copied().filter(|other| *other != node && lives(other)).collect(),
        heartbeat_us,
        node,
        data_roles: count(data_roles),
        parity_roles: count(roles - data_roles),
        losses_survived_after: least.map(count),
        groups_lost: hosted().filter(|view| without(view).is_none()).map(|view| view.group).collect(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
