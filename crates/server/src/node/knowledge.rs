//! What a node, or a coordinator, knows of the cluster at this moment, and how old that is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use cluster::health::{Age, Assessment, FRESH_LEASES, Fullness, Knowledge, Word};
use types::{ClusterMap, HostId, MemberId, NodeId, Time};

use crate::CoordinatorStatus;
use crate::limits::FULLNESS_REMEMBERED;
use crate::node::shared::{Shared, WorkerFace};
use crate::node::snapshot::WorkerSnapshot;

/// How long ago this node has heard its coordinator.
pub(crate) fn age(shared: &Shared) -> Age {
    let coordinator_us = since(shared, Time(shared.coordinator_heard.load(Ordering::Relaxed)));
    Age { coordinator_us, lease_us: shared.config.timing.node_lease_us }
}

/// Microseconds since `at`; none if that is 0, which stands for never.
fn since(shared: &Shared, at: Time) -> Option<u64> {
    (at != Time(0)).then(|| shared.clock.time().since(at))
}

/// Seconds, as pages have them.
pub(crate) fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}

/// Whether clients have found room of late at the primaries of this node.
pub(crate) fn fullness(shared: &Shared) -> Fullness {
    let of_late = |at: fn(&WorkerFace) -> Time| {
        let ages = shared.workers.iter().filter_map(|face| since(shared, at(face)));
        ages.min().is_some_and(|age_us| u128::from(age_us) < FULLNESS_REMEMBERED.as_micros())
    };
    if of_late(|face| Time(face.refused_at.load(Ordering::Relaxed))) {
        Fullness::Refusing
    } else if of_late(|face| Time(face.evicted_at.load(Ordering::Relaxed))) {
        Fullness::Evicting
    } else {
        Fullness::Room
    }
}

/// For how long there have been data roles here and no read lease for any of them, in microseconds.
pub(crate) fn serves_nothing_for_us(shared: &Shared) -> u64 {
    idle_for_us(&shared.workers, shared.clock.time())
}

/// Workers without data roles say nothing about it; of the others one that serves is enough.
fn idle_for_us(workers: &[WorkerFace], now: Time) -> u64 {
    workers.iter().filter_map(WorkerFace::served_at).map(|at| now.since(at)).min().unwrap_or(0)
}

/// How well the cluster is, as far as this node can tell: by the map, by its own roles, and by its links.
pub(crate) fn assess(shared: &Shared, map: &ClusterMap, snapshots: &[WorkerSnapshot]) -> Assessment {
    let nodes = words(shared, map, snapshots);
    Knowledge { map, age: age(shared), nodes: &nodes }.assess()
}

fn words(shared: &Shared, map: &ClusterMap, snapshots: &[WorkerSnapshot]) -> BTreeMap<NodeId, Word> {
    // Every worker has a link of its own; and where no worker answers, nothing is known.
    let is_reached = |host: HostId| {
        snapshots.iter().all(|worker| worker.links.iter().any(|link| link.peer == host))
            && !snapshots.is_empty()
    };
    let word = |host: HostId| match host {
        own if own == shared.host => own_word(shared, snapshots),
        host if is_reached(host) => Word::Reached,
        _ => Word::Silent,
    };
    map.nodes.iter().map(|info| (info.host.node, word(info.host))).collect()
}

fn own_word(shared: &Shared, snapshots: &[WorkerSnapshot]) -> Word {
    let roles = snapshots.iter().flat_map(|worker| &worker.roles);
    let serves: BTreeSet<MemberId> = roles.filter(|role| role.serves).map(|role| role.member).collect();
    Word::Answered { serves, fullness: fullness(shared) }
}

/// How long ago a coordinator has heard each node, in microseconds.
pub(crate) fn silences(status: &CoordinatorStatus, now: Time) -> impl Iterator<Item = (NodeId, u64)> + '_ {
    status.heard.iter().map(move |(node, at)| (*node, now.since(*at)))
}

/// Whether a node that was silent for so long has been so for longer than its lease.
pub(crate) fn is_silent(status: &CoordinatorStatus, silence_us: u64) -> bool {
    silence_us >= status.lease_us
}

/// How well a coordinator's own cluster is: by the map, and by who is silent.
pub(crate) fn assess_at_coordinator(status: &CoordinatorStatus, map: &ClusterMap, now: Time) -> Assessment {
    let word = |silence_us| if is_silent(status, silence_us) { Word::Silent } else { Word::Reached };
    let nodes = silences(status, now).map(|(node, silence_us)| (node, word(silence_us))).collect();
    let coordinator_us = Some(idle_us(status, now));
    Knowledge { map, age: Age { coordinator_us, lease_us: status.lease_us }, nodes: &nodes }.assess()
}

/// For how long a coordinator has not been able to decide anything about the cluster that it has, in microseconds.
pub(crate) fn idle_us(status: &CoordinatorStatus, now: Time) -> u64 {
    status.map.as_ref().map_or(0, |_| now.since(status.presided))
}

/// What does not keep a node from serving, and should be known.
pub(crate) fn warnings(shared: &Shared, map: &ClusterMap, snapshots: &[WorkerSnapshot]) -> Vec<String> {
    let mut warnings = Vec::new();
    let age = age(shared);
    if !age.is_fresh() {
        let since = age.coordinator_us.map_or_else(String::new, |us| format!(" for {:.1} s", seconds(us)));
        warnings.push(format!(
            "no coordinator heard{since}: what is served goes on, nothing is reconfigured or repaired, and losses go unnoticed"
        ));
    }
    let mine =
        |view: &types::GroupView| view.data.iter().filter(|role| role.primary == Some(shared.host)).count();
    let all: usize = map.groups.iter().map(mine).sum();
    let serving = snapshots.iter().flat_map(|worker| &worker.roles).filter(|role| role.serves).count();
    if serving < all {
        warnings
            .push(format!("{} of {all} data roles here have no read lease: their keys wait", all - serving));
    }
    warnings
}

/// Why this node cannot serve, for lack of others; none if it can.
pub(crate) fn cut_off(shared: &Shared, map: &ClusterMap, snapshots: &[WorkerSnapshot]) -> Option<String> {
    let patience_us = shared.config.timing.node_lease_us * FRESH_LEASES;
    let idle_us = serves_nothing_for_us(shared);
    if idle_us > patience_us {
        return Some(format!(
            "none of the data roles here has had a read lease for {:.1} s",
            seconds(idle_us)
        ));
    }
    // A node that is the whole cluster has no links to lose.
    let alone = map.nodes.len() > 1 && snapshots.iter().all(|worker| worker.links.is_empty());
    // Both: links come up after the map, and without a coordinator what is there goes on.
    (alone && !age(shared).is_fresh())
        .then(|| "cut off: no coordinator heard for three leases, and no link to any other node".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::worker_ends;
    use crate::workers::crossings::Crossings;

    #[test]
    fn a_node_is_idle_only_if_all_its_workers_with_data_roles_are() {
        let workers: Vec<WorkerFace> =
            Crossings::mesh(3).into_iter().map(|crossing| worker_ends(crossing).0).collect();
        let says = |serves: [Option<bool>; 3], at: u64| {
            workers.iter().zip(serves).for_each(|(face, serves)| face.note_service(serves, Time(at)));
            idle_for_us(&workers, Time(at))
        };
        assert_eq!(says([None, Some(false), None], 100), 0, "it begins to be waited for");
        assert_eq!(says([None, Some(false), Some(false)], 300), 0, "the other one is new");
        assert_eq!(says([None, Some(false), Some(false)], 400), 100);
        assert_eq!(says([None, Some(false), Some(true)], 500), 0, "one of them serves");
        assert_eq!(says([None, Some(false), None], 600), 500, "the one that does not is alone again");
        assert_eq!(says([None, None, None], 700), 0, "nothing is to be served");
    }
}
