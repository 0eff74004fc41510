//! Who may be a node of this cluster: what a process that registers is refused for.

use std::time::Duration;

use types::{Catalog, ClusterMap, Entry, Pool};
use wire::message::{FromCoordinator, Registration};

use super::RecordKeeping;
use super::nodes::NodeState;
use super::records::{VIEWS_BYTES, longest_view_bytes};
use super::state::ClusterState;
use crate::Now;

/// Why a process may not be a node.
pub(super) struct Refusal {
    /// Whether an operator has fenced it.
    pub fenced: bool,
    pub reason: String,
}

/// Why the process is not one for this cluster, and will not be later either. `has_just_formed`: whoever comes now was started
/// together with the nodes that the cluster has formed with.
pub(super) fn refusal(
    state: &ClusterState,
    has_just_formed: bool,
    registration: &Registration,
) -> Option<Refusal> {
    let known = state.nodes().get(registration.info.host);
    let fenced = known.is_some_and(NodeState::is_fenced);
    if let Some(reason) = unmet(state, registration) {
        return Some(Refusal { fenced, reason });
    }
    let id = registration.info.host.node;
    match state.nodes().named(id) {
        Some(_) if fenced => Some(Refusal { fenced, reason: super::state::FENCED.to_owned() }),
        None if registration.expect.entry == Entry::Joiner => None,
        None if has_just_formed => {
            tracing::info!(node = %registration.info.host, "came with those that the cluster has formed with: it joins");
            None
        }
        None if state.map().is_some_and(|map| map.node(id).is_none()) => {
            let reason = format!(
                "{id} is not one of the nodes that this cluster has formed with: give it --join to add it, or the id of the \
                 node that it replaces"
            );
            Some(Refusal { fenced, reason })
        }
        Some(_) | None => None,
    }
}

/// What a process expects of its cluster and does not find here.
fn unmet(state: &ClusterState, registration: &Registration) -> Option<String> {
    let (expect, config) = (&registration.expect, state.config());
    let cluster = state.map().map_or(config.cluster, |map| map.cluster);
    if let Some(wanted) = registration.holds.or(expect.cluster).filter(|wanted| *wanted != cluster) {
        return Some(format!("this node is meant for {wanted}, the coordinator has {cluster}"));
    }
    if let Some(wanted) = expect.profile.filter(|wanted| *wanted != config.profile) {
        return Some(format!("this node is meant for profile {wanted}, the cluster has {}", config.profile));
    }
    let (mine, theirs) = (expect.shards, config.shards);
    if mine != 0 && mine != theirs {
        return Some(format!(
            "this node has {mine} workers, the cluster's nodes have {theirs}: set workers = {theirs}"
        ));
    }
    // Who counts with a longer one than others would be read when another one serves already.
    let (mine, theirs) = (expect.lease_us, state.lease_us());
    (mine != 0 && mine != theirs).then(|| {
        let [mine, theirs] = [mine, theirs].map(Duration::from_micros);
        format!("this node has a lease of {mine:?}, the coordinator one of {theirs:?}: give all of them the same --lease")
    })
}

/// Whether the process has to wait, because another one has its name and its lease runs.
pub(super) fn occupied(
    now: Now,
    state: &ClusterState,
    registration: &Registration,
) -> Option<FromCoordinator> {
    let (host, lease_us, epoch) = (registration.info.host, state.lease_us(), state.epoch());
    let node = state.nodes().named(host.node).filter(|node| node.host() != host && node.is_leased())?;
    let (by, peer) = (node.host(), node.info().peer);
    let cluster = state.map().map(|map: &ClusterMap| map.cluster);
    // By the clock, and not by the last tick: a lease that is over is nobody's any more.
    let lasts = node.silence_us(now.time) < lease_us;
    lasts.then_some(FromCoordinator::Occupied { by, peer, lease_us, cluster, epoch })
}

/// Whether a process has promised a later coordinator to keep its records, and not this one's.
pub(super) fn is_followed(state: &ClusterState, registration: &Registration) -> bool {
    let kept = state.config().records == RecordKeeping::Kept && state.map().is_some();
    kept && registration.promised > state.epoch()
}

/// Most roles of all pools for each worker of the nodes: many times what a cluster has use for that is to grow. Each role costs its worker
/// something, whether it is used or not, and the coordinator more with each of them.
const MOST_ROLES_PER_WORKER: usize = 512;

/// Whether so many workers can serve all groups of `catalog`, and a map can tell of them.
pub(super) fn check_groups(catalog: &Catalog, workers: usize) -> Result<(), String> {
    check_group_count(catalog)?;
    let roles: usize = catalog.pools.iter().map(|pool| pool.groups as usize * pool.profile.n()).sum();
    let most = workers * MOST_ROLES_PER_WORKER;
    if roles <= most {
        return Ok(());
    }
    let groups = catalog.groups();
    Err(format!(
        "{groups} groups have {roles} roles, and {workers} workers of the nodes can have {most}, {MOST_ROLES_PER_WORKER} each: set fewer \
         with --groups"
    ))
}

/// Whether the views of all groups of `catalog` fit into one message, whatever becomes of them: nodes are told of all in one, and
/// keep the records of all in one.
fn check_group_count(catalog: &Catalog) -> Result<(), String> {
    let of_pool = |pool: &Pool| pool.groups as usize * longest_view_bytes(pool.profile);
    let bytes: usize = catalog.pools.iter().map(of_pool).sum();
    if bytes <= VIEWS_BYTES {
        return Ok(());
    }
    let groups = catalog.groups();
    Err(format!(
        "{groups} groups are more than a cluster map can tell of: it has {VIEWS_BYTES} bytes for what becomes of them, and these \
         may take {bytes}: set fewer with --groups"
    ))
}

#[cfg(test)]
mod tests {
    use types::Profile;

    use super::*;

    #[test]
    fn no_pool_is_made_that_the_map_could_not_tell_of() {
        let profile = Profile::rs(32, 8).unwrap();
        let mut catalog = Catalog::first(profile, 100_000);
        assert_eq!(check_group_count(&catalog), Ok(()));
        // Each alone would do.
        catalog.create_pool("many".parse().unwrap(), profile, 100_000).unwrap();
        let error = check_group_count(&catalog).unwrap_err();
        assert!(error.contains("200000 groups are more than a cluster map can tell of"), "{error}");
    }

    #[test]
    fn no_pool_is_made_that_the_workers_could_not_serve() {
        let profile = Profile::rs(3, 2).unwrap();
        let mut catalog = Catalog::first(profile, 512);
        assert_eq!(check_groups(&catalog, 5), Ok(()));
        catalog.create_pool("more".parse().unwrap(), profile, 1).unwrap();
        let error = check_groups(&catalog, 5).unwrap_err();
        let text = "513 groups have 2565 roles, and 5 workers of the nodes can have 2560, 512 each";
        assert!(error.starts_with(text), "{error}");
        assert_eq!(check_groups(&catalog, 10), Ok(()));
    }
}
