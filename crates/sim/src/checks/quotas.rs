//! Nobody's items and chunks take more than the quota, in all roles together, whoever serves them; and what is charged is what there is.
//!
//! Of chunks it is looked at what there is of them, not at what holders say: those that have not heard of a view yet charge by the one
//! before. What was put where all is still to be got, and refused by those who count, is no value's, and goes when its owner is asked.
//!
//! Values that were under way when holders were lost may take more by what these had not: they had no share for them, while all others had
//! taken them, so that they were committed when they were lost. From then on what the others have stands for what they would have, and
//! whoever comes in their place gets it. Of each client that is one value at most.

use std::collections::BTreeMap;

use types::{ClusterMap, GroupView, Holder, MemberId, Namespace, NamespaceId, ObjectId, QuotaUse};

use crate::cluster::inspect::Members;
use crate::cluster::nodes::Nodes;
use crate::stage::book::Book;

/// `clients`: how many values may be under way at once.
pub(super) fn check(book: &mut Book, map: &ClusterMap, nodes: &Nodes, clients: usize) {
    // What moves to another pool is charged at both for a while, and takes its room there whatever the quota is.
    let is_limited = |known: &&Namespace| known.policy.quota_bytes > 0 && known.conversions == 0;
    for namespace in map.catalog.namespaces.iter().filter(is_limited) {
        let Some(quota) = map.catalog.data_quota(namespace.id) else { continue };
        let taken: u64 = map.groups.iter().map(|view| taken_in(nodes, view, namespace)).sum();
        let refused = map.groups.iter().map(|view| refused_in(nodes, view, namespace.id)).max().unwrap_or(0);
        if taken > quota + refused * clients as u64 {
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
    let counted = view.counted_holders().count().max(1) as u64;
    let chunks: u64 = view
        .counted_holders()
        .map(|(role, holder)| pages_of(nodes, MemberId { group: view.group, role }, holder, namespace.id))
        .sum();
    items + chunks * view.k() as u64 / counted
}

/// Bytes of the group's longest value that holders need not have taken which may be lost.
fn refused_in(nodes: &Nodes, view: &GroupView, namespace: NamespaceId) -> u64 {
    let (n, k) = (view.holders.len() as u64, view.k() as u64);
    let longest = view.counted_holders().filter_map(|(role, holder)| {
        let mut values: BTreeMap<ObjectId, u64> = BTreeMap::new();
        for (object, bytes) in kept_by(nodes, MemberId { group: view.group, role }, holder, namespace) {
            *values.entry(object).or_default() += bytes;
        }
        values.into_values().max()
    });
    longest.max().unwrap_or(0) * n.saturating_sub(k) * k / n.max(1)
}

/// Bytes of pages that a holder has of values of a namespace.
fn pages_of(nodes: &Nodes, member: MemberId, holder: Holder, namespace: NamespaceId) -> u64 {
    kept_by(nodes, member, holder, namespace).map(|(_, bytes)| bytes).sum()
}

/// Bytes of the pages of each chunk that a holder has of values of a namespace, and whose it is.
fn kept_by(
    nodes: &Nodes,
    member: MemberId,
    holder: Holder,
    namespace: NamespaceId,
) -> impl Iterator<Item = (ObjectId, u64)> {
    let of_role = nodes
        .host_by_id(holder.host, member.group)
        .into_iter()
        .flat_map(move |machine| machine.chunks().filter(move |(known, _)| *known == member));
    let entries = of_role.flat_map(|(_, chunks)| chunks.list_after(None, usize::MAX));
    let kept = entries.filter(move |(id, entry)| id.object.namespace == namespace && !entry.is_tentative());
    kept.map(|(id, entry)| (id.object, entry.chunk().allocated_bytes() as u64))
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
