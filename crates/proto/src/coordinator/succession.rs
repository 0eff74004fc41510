//! A coordinator that follows another one: it goes on from what was recorded, and from nothing else.
//!
//! What the former one kept for itself is void: answers to its questions, lessons that had ended, who was silent since when.
//! All of it can be asked for again, by this coordinator's own clock and under its own epoch.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use types::{ChangeLog, ClusterMap, GroupId, GroupView, MapPart, NodeId, Pool, ViewVersion};
use wire::record::{HEAD_KEY, KnownNode, MapHead, NodeRecord, Record, node_key, view_key};

use super::RecordKeeping;
use super::state::ClusterState;
use crate::{Now, Rules};

/// Why nobody can go on from a set of records. Nothing has been done then.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResumeError {
    /// There are two of one.
    #[error("record \"{key}\" is there twice")]
    Twice {
        /// Its key.
        key: String,
    },
    /// The head says that it exists.
    #[error("record \"{key}\" is missing")]
    Missing {
        /// Its key.
        key: String,
    },
    /// It cannot be, or not together with the head.
    #[error("record \"{key}\" is inconsistent: {why}")]
    Inconsistent {
        /// Its key.
        key: String,
        /// What is wrong.
        why: String,
    },
}

/// What there is to go on from.
pub(super) struct Records {
    head: MapHead,
    /// With the versions of the map since which they are like this; so the views.
    nodes: BTreeMap<NodeId, NodeRecord>,
    views: BTreeMap<GroupId, (u64, GroupView)>,
}

/// What records say.
pub(super) enum Found {
    /// There is a cluster.
    Cluster(Box<Records>),
    /// None has formed. A coordinator may have left views of this version that died while it formed one; nobody was told of
    /// them.
    Nothing(Option<ViewVersion>),
}

/// What `records` say to a coordinator of so many groups, if there is no cluster yet.
///
/// # Errors
/// The record that is missing, or that cannot be.
pub(super) fn find(records: impl IntoIterator<Item = Record>, groups: u32) -> Result<Found, ResumeError> {
    let Sorted { head, nodes, views } = sort(records)?;
    if let Some(head) = head {
        let nodes = check_head(&head, nodes)?;
        return Ok(Found::Cluster(Box::new(Records { head, nodes, views })));
    }
    if let Some(group) = views.keys().find(|group| group.0 >= groups) {
        return Err(wrong(view_key(*group), "a view of no cluster, and outside of the one to form"));
    }
    Ok(Found::Nothing(views.values().map(|(_, view)| view.version).max()))
}

/// What nodes have kept for the coordinators before this one.
///
/// # Errors
/// The record that is missing, or that cannot be.
pub(super) fn find_kept(records: Vec<Record>) -> Result<Records, ResumeError> {
    let Sorted { head, nodes, views } = sort(records)?;
    let head = head.ok_or(ResumeError::Missing { key: HEAD_KEY.to_owned() })?;
    let nodes = check_head(&head, nodes)?;
    Ok(Records { head, nodes, views })
}

/// Goes on from `records`: the map, the nodes and the epoch are theirs.
///
/// # Errors
/// The record that is missing, or that cannot be; nothing has been done then.
pub(super) fn take_over(now: Now, state: &mut ClusterState, records: Records) -> Result<(), ResumeError> {
    let Records { head, nodes, views } = records;
    // Views and nodes are recorded without the head, so the newest version of the map may be in any record.
    let of_views = views.values().map(|(version, _)| *version);
    let version = of_views.chain(nodes.values().map(|node| node.map_version)).fold(head.version, u64::max);
    let log = log_of(state.rules(), &head, &nodes, &views);
    let groups = check_views(&head, views)?;
    let found_by = now.time + state.lease_us();
    let known: BTreeMap<NodeId, KnownNode> =
        nodes.into_iter().map(|(id, record)| (id, record.node)).collect();
    state.adopt_head(&head, known, found_by);
    let MapHead { cluster, catalog, shards, layout, .. } = head;
    let nodes = state.nodes().infos(Some(&layout));
    let map = ClusterMap { cluster, version, catalog, shards, layout, nodes, groups };
    state.set_map(map.clone(), log);
    tracing::info!(epoch = %state.epoch(), version, "going on from the records");
    // Before anything is commanded under it.
    match state.config().records {
        RecordKeeping::Stored => state.record_head(),
        // The nodes keep nothing of a former epoch beside records of this one: all of it is recorded anew.
        RecordKeeping::Kept => state.record_new_map(&map),
    }
    Ok(())
}

/// What is known of when parts of the map have changed: of pools, namespaces, layout, and which nodes there are, only that they
/// have not since the head was written.
fn log_of(
    rules: Rules,
    head: &MapHead,
    nodes: &BTreeMap<NodeId, NodeRecord>,
    views: &BTreeMap<GroupId, (u64, GroupView)>,
) -> ChangeLog {
    let mut log = ChangeLog::from_version(head.version);
    views.iter().for_each(|(group, (version, _))| log.note(MapPart::View(*group), *version));
    if rules.nodes_change_without_the_head() {
        nodes.iter().for_each(|(id, record)| log.note(MapPart::Node(*id), record.map_version));
    }
    log
}

/// The records by their keys.
#[derive(Default)]
struct Sorted {
    head: Option<MapHead>,
    nodes: BTreeMap<NodeId, NodeRecord>,
    views: BTreeMap<GroupId, (u64, GroupView)>,
}

fn sort(records: impl IntoIterator<Item = Record>) -> Result<Sorted, ResumeError> {
    let mut sorted = Sorted::default();
    for record in records {
        let key = record.key();
        let before = match record {
            Record::Head(new) => sorted.head.replace(new).is_some(),
            Record::Node(new) => sorted.nodes.insert(new.node.info.host.node, new).is_some(),
            Record::View(new) => sorted.views.insert(new.view.group, (new.map_version, new.view)).is_some(),
        };
        if before {
            return Err(ResumeError::Twice { key });
        }
    }
    Ok(sorted)
}

fn wrong(key: String, why: impl Into<String>) -> ResumeError {
    ResumeError::Inconsistent { key, why: why.into() }
}

/// The records of the nodes that `head` names. There may be others: of nodes that were removed, or that were coming.
fn check_head(
    head: &MapHead,
    mut nodes: BTreeMap<NodeId, NodeRecord>,
) -> Result<BTreeMap<NodeId, NodeRecord>, ResumeError> {
    if !head.nodes.is_sorted_by(|before, after| before < after) {
        return Err(wrong(HEAD_KEY.to_owned(), "its nodes are out of order"));
    }
    if head.shards == 0 || head.version == 0 {
        return Err(wrong(HEAD_KEY.to_owned(), "it has no workers or no version"));
    }
    head.catalog.check().map_err(|why| wrong(HEAD_KEY.to_owned(), why.to_string()))?;
    if let Some(missing) = head.nodes.iter().find(|id| !nodes.contains_key(id)) {
        return Err(ResumeError::Missing { key: node_key(*missing) });
    }
    nodes.retain(|id, _| head.nodes.binary_search(id).is_ok());
    Ok(nodes)
}

/// The views of all groups, in order.
fn check_views(
    head: &MapHead,
    mut views: BTreeMap<GroupId, (u64, GroupView)>,
) -> Result<Vec<GroupView>, ResumeError> {
    let nodes: BTreeSet<NodeId> = head.nodes.iter().copied().collect();
    let mut groups = Vec::new();
    for pool in &head.catalog.pools {
        for group in pool.group_ids() {
            let key = view_key(group);
            let Some((_, view)) = views.remove(&group) else { return Err(ResumeError::Missing { key }) };
            check_view(pool, &nodes, &view).map_err(|why| wrong(key, why))?;
            groups.push(view);
        }
    }
    // Of pools that were removed, or that were being made, records may be left: their numbers are never used for anything else.
    match views.keys().find(|group| **group >= head.catalog.next_group) {
        Some(group) => Err(wrong(view_key(*group), "the map has no such group")),
        None => Ok(groups),
    }
}

fn check_view(pool: &Pool, nodes: &BTreeSet<NodeId>, view: &GroupView) -> Result<(), String> {
    if (view.k(), view.m()) != (pool.profile.k(), pool.profile.m()) {
        return Err("it is of another profile".to_owned());
    }
    view.check().map_err(|why| why.to_string())?;
    if view.keepers().any(|host| !nodes.contains(&host.node)) {
        return Err("it names a node that the cluster does not have".to_owned());
    }
    Ok(())
}
