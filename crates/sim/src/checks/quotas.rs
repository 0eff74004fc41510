//! Nobody's items take more than the quota, in all roles together, whoever serves them.

use types::{ClusterMap, GroupView, Namespace};

use crate::cluster::inspect::Members;
use crate::cluster::nodes::Nodes;
use crate::stage::book::Book;

pub(super) fn check(book: &mut Book, map: &ClusterMap, nodes: &Nodes) {
    for namespace in map.catalog.namespaces.iter().filter(|known| known.policy.quota_bytes > 0) {
        let Some(quota) = map.catalog.data_quota(namespace.id) else { continue };
        let taken: u64 = map.groups.iter().map(|view| taken_in(nodes, view, namespace)).sum();
        if taken > quota {
            let what = format!("{} takes {taken} bytes of {quota}", namespace.name);
            book.fail("quota", None, what);
        }
    }
}

/// Bytes of slots that its items take in the group, at those that serve now.
fn taken_in(nodes: &Nodes, view: &GroupView, namespace: &Namespace) -> u64 {
    let members = Members::of(nodes, view);
    let bytes = |store: &store::DataStore| store.replica().cohorts().bytes_of(namespace.id);
    members.data.iter().flatten().map(|primary| bytes(primary.store)).sum()
}
