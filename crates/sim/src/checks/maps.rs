//! Whoever has a version of the map has all of it: however it was told, whole or change by change.

use types::{ClusterMap, GroupView};

use crate::cluster::nodes::Nodes;
use crate::stage::book::Book;

/// Compares the maps of hosts with `recorded`, where they are of its version.
pub(super) fn check(book: &mut Book, recorded: &ClusterMap, nodes: &Nodes) {
    for host in 0..nodes.host_count() {
        let Some(map) = nodes.host(host).and_then(|machine| machine.map()) else { continue };
        if map.version == recorded.version
            && let Some(what) = what_is_missing(map, recorded)
        {
            let (id, version) = (nodes.id_of(host), map.version);
            book.fail("map", None, format!("{id} has version {version} of the map, but other {what}"));
        }
    }
}

fn what_is_missing(map: &ClusterMap, recorded: &ClusterMap) -> Option<&'static str> {
    // Numbers are given to a pool before it is there.
    let (catalog, known) = (&map.catalog, &recorded.catalog);
    let is_newest =
        |view: &GroupView| map.group(view.group).is_some_and(|known| known.version >= view.version);
    match () {
        () if map.nodes != recorded.nodes => Some("nodes"),
        () if map.layout != recorded.layout => Some("wishes of operators"),
        () if catalog.pools != known.pools => Some("pools"),
        () if catalog.namespaces != known.namespaces => Some("namespaces"),
        () if !recorded.groups.iter().all(is_newest) => Some("views"),
        () => None,
    }
}
