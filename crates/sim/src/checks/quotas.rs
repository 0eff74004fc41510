//! Nobody's items and chunks take more than the quota, in all roles together, whoever serves them; and what is charged is what there is.
//!
//! Chunks that were got from other holders, or were put where another holder counted, bring their part of the share with them: until they
//! are there nobody knows of them, and what they take may be used by others (docs/pools.md, "Quotas"). Where there were any, that part stays at
//! their node until it is dealt out anew; so then nothing is said of how much is taken in all.

use proto::host::inspect::has_got_chunks;
use types::{ClusterMap, GroupView, MemberId, Namespace, NamespaceId, QuotaUse, RoleIndex};

use crate::cluster::inspect::Members;
use crate::cluster::nodes::Nodes;
use crate::stage::book::Book;

pub(super) fn check(book: &mut Book, map: &ClusterMap, nodes: &Nodes) {
    if nodes.hosts().any(has_got_chunks) {
        return;
    }
    for namespace in map.catalog.namespaces.iter().filter(|known| known.policy.quota_bytes > 0) {
        let Some(quota) = map.catalog.data_quota(namespace.id) else { continue };
        let taken: u64 = map.groups.iter().map(|view| taken_in(nodes, view, namespace)).sum();
        if taken > quota {
            let what = format!("{} takes {taken} bytes of {quota}", namespace.name);
            book.fail("quota", None, what);
        }
    }
}

/// Bytes of slots and chunks that a namespace takes in the group, at those that serve now and whose chunks count.
fn taken_in(nodes: &Nodes, view: &GroupView, namespace: &Namespace) -> u64 {
    let members = Members::of(nodes, view);
    let bytes = |store: &store::DataStore| store.replica().cohorts().bytes_of(namespace.id);
    let items: u64 = members.data.iter().flatten().map(|primary| bytes(primary.store)).sum();
    items + (0..view.holders.len()).map(|role| charged_for(nodes, view, role, namespace.id)).sum::<u64>()
}

/// What is charged for the chunks of one role, where they came from their writers.
fn charged_for(nodes: &Nodes, view: &GroupView, role: usize, namespace: NamespaceId) -> u64 {
    let member = MemberId { group: view.group, role: RoleIndex(role as u8) };
    let counted = view.holders_of(member.role).counted();
    let machine = counted.and_then(|holder| nodes.host_by_id(holder.host, view.group));
    let Some(machine) = machine else { return 0 };
    let of_role = machine.chunks().filter(|(known, _)| *known == member);
    of_role
        .flat_map(|(_, chunks)| chunks.charged())
        .filter(|(known, _)| *known == namespace)
        .map(|(_, bytes)| bytes)
        .sum()
}

/// A node at which something else is charged than there is. To be asked where nothing is under way.
pub(super) fn unrest(map: &ClusterMap, nodes: &Nodes) -> Option<String> {
    (0..nodes.count()).filter(|node| nodes.is_up(*node)).find_map(|node| {
        let known = nodes.iter().nth(node)?.quotas.report()?.uses;
        let wrong = |known: &QuotaUse| known.used_bytes != taken_at(map, nodes, node, known.namespace);
        known.into_iter().find(wrong).map(|known| {
            let there = taken_at(map, nodes, node, known.namespace);
            format!("node {node} has {there} bytes, and says {known:?}")
        })
    })
}

/// What a node has to charge to a namespace.
fn taken_at(map: &ClusterMap, nodes: &Nodes, node: usize, namespace: NamespaceId) -> u64 {
    let hosts = || nodes.hosts_on(node).filter_map(|host| nodes.host(host));
    let chunks = hosts().flat_map(|host| host.chunks()).flat_map(|(_, chunks)| chunks.charged());
    let chunks: u64 = chunks.filter(|(of, _)| *of == namespace).map(|(_, bytes)| bytes).sum();
    let served = |view| Members::of(nodes, view).data.into_iter().flatten();
    let here = map.groups.iter().flat_map(served).filter(|it| usize::from(it.host.node.0) == node);
    chunks + here.map(|primary| primary.store.replica().cohorts().bytes_of(namespace)).sum::<u64>()
}
