//! Scrubs: how they are begun, and how far they have come.

use types::{AdminCommand, EXTENT_BYTES, OnFinding};

use super::Cluster;
use super::process::Node;

/// What an operator says to have everything compared with its parities.
pub(crate) fn start_scrub(finding: OnFinding) -> AdminCommand {
    AdminCommand::StartScrub { finding, bytes_per_second: 0 }
}

/// Whether all groups are as they should be, and all nodes have memory for a session.
pub(crate) fn can_end(cluster: &Cluster) -> bool {
    let full = cluster
        .map()
        .is_some_and(|map| map.groups.iter().all(|view| view.is_full() && view.learners.is_empty()));
    let has_room = |node: &Node| node.budget.has_room_for_extent(EXTENT_BYTES);
    full && cluster.nodes.iter().all(has_room)
}

/// How many runs of sixteen pages are to be compared still.
pub(crate) fn runs_left(cluster: &Cluster) -> u64 {
    cluster.nodes.hosts().map(|host| host.scrub_progress().left_pages / 16).sum()
}

/// Whether every living process has ended the newest scrub.
pub(crate) fn is_scrubbed(cluster: &Cluster) -> bool {
    let Some(newest) = cluster.map().map(|map| map.layout.scrub.generation) else { return false };
    let nodes = cluster.nodes.up().into_iter();
    let hosts = nodes.flat_map(|node| cluster.nodes.hosts_on(node));
    hosts
        .filter_map(|host| cluster.nodes.host(host))
        .map(proto::Host::scrub_progress)
        .all(|known| known.generation == newest && known.left_pages == 0)
}
