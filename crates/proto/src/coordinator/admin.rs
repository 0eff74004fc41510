//! What operators ask: who is to be emptied, who counts as dead, how fast is rebuilt.
//!
//! A change is made from one version of the layout, or not at all: of two operators at once one is told that the other was
//! faster. What would lose data is refused, with the way out.

use std::collections::BTreeSet;

use types::{
    AdminAnswer, AdminCommand, AdminError, AdminReply, AdminRequest, ClusterMap, GroupId, GroupView, Layout,
    LayoutVersion, NodeId, OnLoss, RepairSettings,
};

use super::catalog;
use super::loss;
use super::nodes::NodeState;
use super::repairs::Repairs;
use super::state::ClusterState;
use crate::Now;

/// Longest name of a zone.
const MAX_ZONE_BYTES: usize = 255;

/// Groups that a refusal names; what is beyond is counted.
const GROUPS_NAMED: usize = 8;

/// Does what an operator asks, or says why not; nothing has changed then.
pub(super) fn administer(
    now: Now,
    state: &mut ClusterState,
    repairs: &mut Repairs,
    request: &AdminRequest,
) -> AdminReply {
    let map = state.map().filter(|_| !state.outbox().has_resigned()).ok_or(AdminError::NotFormed)?;
    check_version(request, map.layout.version)?;
    request.command.node().map_or(Ok(()), |node| known(map, node))?;
    match &request.command {
        // By name, so that whoever adds a command has to say whether the layout alone carries it out.
        AdminCommand::CanStop { node, heard_within_us } => {
            let heartbeat_us = state.timing().heartbeat_us;
            let unheard = state.nodes().unheard(now.time, heard_within_us.unwrap_or(2 * heartbeat_us));
            let report = cluster::stop_report(map, *node, &unheard, heartbeat_us);
            return Ok(AdminAnswer::CanStop(report));
        }
        AdminCommand::AcceptLoss { pool, slots, namespace } => {
            return loss::accept_slots(state, pool.as_ref(), slots, namespace.as_ref())
                .map(AdminAnswer::Accepted);
        }
        AdminCommand::Catalog(change) => return catalog::change(state, change),
        AdminCommand::Reset => return Ok(AdminAnswer::Accepted(repairs.reset(now, state))),
        AdminCommand::Fence { node, loss } => fence_node(now, state, repairs, *node, *loss)?,
        AdminCommand::Remove { node } => remove_node(state, *node)?,
        // The layout says it.
        AdminCommand::Drain { .. }
        | AdminCommand::Undrain { .. }
        | AdminCommand::PauseRepair
        | AdminCommand::ResumeRepair
        | AdminCommand::LimitRepair { .. }
        | AdminCommand::Apply { .. }
        | AdminCommand::StartScrub { .. }
        | AdminCommand::StopScrub
        | AdminCommand::SetLossPolicy { .. } => {}
    }
    if let Some(wanted) = state.map().and_then(|map| map.layout.after(&request.command)) {
        change_layout(state, wanted)?;
    }
    state.map().map(|map| AdminAnswer::Layout(map.layout.clone())).ok_or(AdminError::NotFormed)
}

fn change_layout(state: &mut ClusterState, wanted: Layout) -> Result<(), AdminError> {
    let map = state.map().ok_or(AdminError::NotFormed)?;
    // A command that changes nothing makes no version, so it conflicts with nobody's.
    if wanted == map.layout {
        return Ok(());
    }
    check_layout(map, &wanted)?;
    check_drains(state, map, &wanted)?;
    let version = map.layout.version.next();
    let draining: Vec<NodeId> = wanted.draining().collect();
    tracing::info!(%version, ?draining, repair = ?wanted.repair, "layout changed");
    if wanted.scrub != map.layout.scrub {
        tracing::info!(scrub = ?wanted.scrub, "scrub started or stopped");
    }
    state.change_layout(Layout { version, ..wanted });
    Ok(())
}

/// That what newly drains has somewhere to go, and room there.
fn check_drains(state: &ClusterState, map: &ClusterMap, wanted: &Layout) -> Result<(), AdminError> {
    let drains: BTreeSet<NodeId> = wanted
        .draining()
        .filter(|node| !map.layout.is_draining(*node) && map.roles_left_on(*node) > 0)
        .collect();
    let Some(&node) = drains.first() else { return Ok(()) };
    let living = state.nodes().living().into_iter().map(|host| host.node);
    let left: Vec<NodeId> = living.filter(|node| !wanted.is_draining(*node)).collect();
    let widest = map.catalog.pools.iter().map(|pool| pool.profile).max_by_key(|profile| profile.n());
    if let Some(profile) = widest.filter(|profile| left.len() < profile.n()) {
        let (left, needed) = (left.len() as u32, profile.n() as u32);
        return Err(AdminError::NotEnoughNodes { node, left, profile, needed });
    }
    check_room(state, &drains, &left)
}

/// That what the nodes of `drains` hold fits into those of `left`, as far as they have told.
fn check_room(state: &ClusterState, drains: &BTreeSet<NodeId>, left: &[NodeId]) -> Result<(), AdminError> {
    let load = |node: &NodeId| state.nodes().named(*node).map(NodeState::load);
    // What nodes say of themselves may be any number.
    let moved = drains.iter().filter_map(load).map(|load| load.member_bytes).fold(0, u64::saturating_add);
    let told: Vec<_> = left.iter().filter_map(load).filter(|load| load.limit_bytes > 0).collect();
    let rooms = told.iter().map(|load| load.limit_bytes.saturating_sub(load.used_bytes));
    let room = rooms.fold(0, u64::saturating_add);
    if told.len() < left.len() || moved <= room {
        return Ok(());
    }
    let names: Vec<String> = drains.iter().map(ToString::to_string).collect();
    Err(AdminError::WouldLoseData {
        reason: format!(
            "{} would move {moved} bytes, and the other nodes have room for {room}",
            names.join(", ")
        ),
        way_out: "start another node with `gestalt serve --join`, or delete what is not needed".to_owned(),
    })
}

/// From now on the process of `node` counts as lost, and may not come back. It may still live, so its read leases are
/// waited for.
fn fence_node(
    now: Now,
    state: &mut ClusterState,
    repairs: &mut Repairs,
    node: NodeId,
    loss: OnLoss,
) -> Result<(), AdminError> {
    let map = state.map().ok_or(AdminError::NotFormed)?;
    let lost = groups_lost_without(state, map, node);
    if loss == OnLoss::Refuse && !lost.is_empty() {
        return Err(AdminError::WouldLoseData {
            reason: format!("{} cannot do without {node}", named(&lost)),
            way_out: "bring its process back, or wait until the repair is done; if its memory is gone for good, give \
                      --accept-loss"
                .to_owned(),
        });
    }
    let Some(host) = state.nodes_mut().fence(node) else { return Ok(()) };
    tracing::info!(%host, "fenced by an operator");
    // Recorded first: whoever succeeds this coordinator goes on fencing.
    state.publish_nodes();
    state.turn_away_fenced(host);
    repairs.lose(now, state, host);
    Ok(())
}

/// Forgets a node that is gone and has nothing: a process of that id would be a new node.
fn remove_node(state: &mut ClusterState, node: NodeId) -> Result<(), AdminError> {
    let map = state.map().ok_or(AdminError::NotFormed)?;
    let roles = map.roles_left_on(node);
    let NodeId(id) = node;
    if state.nodes().living().iter().any(|host| host.node == node) {
        let way_out = format!("drain it with `gestalt node drain {id} --wait`, then stop its process");
        return Err(AdminError::StillThere { node, reason: "is alive".to_owned(), way_out });
    }
    if roles > 0 {
        let reason = format!("still has {roles} roles");
        let way_out = format!(
            "wait until they are rebuilt elsewhere (`gestalt repair status`), or, if its process will not come back, \
             `gestalt node fence {id}`"
        );
        return Err(AdminError::StillThere { node, reason, way_out });
    }
    tracing::info!(%node, "node removed");
    state.nodes_mut().forget(node);
    state.publish_nodes();
    Ok(())
}

fn check_version(request: &AdminRequest, have: LayoutVersion) -> Result<(), AdminError> {
    let applied =
        if let AdminCommand::Apply { layout } = &request.command { Some(layout.version) } else { None };
    match request.expect.into_iter().chain(applied).find(|named| *named != have) {
        Some(named) => Err(AdminError::VersionConflict { named, have }),
        None => Ok(()),
    }
}

/// That `node` is one of the cluster's.
fn known(map: &ClusterMap, node: NodeId) -> Result<(), AdminError> {
    map.node(node).map(|_| ()).ok_or(AdminError::UnknownNode { node })
}

fn check_layout(map: &ClusterMap, wanted: &Layout) -> Result<(), AdminError> {
    let (memory, least) = (wanted.repair.memory_bytes, RepairSettings::MIN_MEMORY_BYTES);
    if memory != 0 && memory < least {
        let reason = format!(
            "{memory} bytes are too little memory for repairs: give at least {least}, or `none` for no limit"
        );
        return Err(AdminError::BadLayout { reason });
    }
    for (node, asked) in &wanted.nodes {
        known(map, *node)?;
        if asked.zone.as_ref().is_some_and(|zone| zone.len() > MAX_ZONE_BYTES) {
            let reason = format!("the zone of {node} is longer than {MAX_ZONE_BYTES} bytes: shorten it");
            return Err(AdminError::BadLayout { reason });
        }
    }
    Ok(())
}

/// Groups that would be beyond repair if `node` were lost, and are not without that.
fn groups_lost_without(state: &ClusterState, map: &ClusterMap, node: NodeId) -> Vec<GroupId> {
    let would_be = |view: &&GroupView| {
        let protection = state.protection(view.group);
        view.roles_left_on(node) > 0
            && protection.losses_survived_without(view, &[]).is_some()
            && protection.losses_survived_without(view, &[node]).is_none()
    };
    map.groups.iter().filter(would_be).map(|view| view.group).collect()
}

fn named(groups: &[GroupId]) -> String {
    let mut names: Vec<String> = groups.iter().take(GROUPS_NAMED).map(ToString::to_string).collect();
    if groups.len() > GROUPS_NAMED {
        names.push(format!("{} more", groups.len() - GROUPS_NAMED));
    }
    names.join(", ")
}
