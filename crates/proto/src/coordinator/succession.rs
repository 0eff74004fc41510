//! A coordinator that follows another one: it goes on from what was recorded, and from nothing else.
//!
//! What the former one kept for itself is void: answers to its questions, lessons that had ended, who was silent since when.
//! All of it can be asked for again, by this coordinator's own clock and under its own epoch.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{ClusterMap, GroupId, GroupView, HostId, MemberId, NodeId, RoleStatus, ViewVersion};
use thiserror::Error;
use wire::message::KeptRecords;
use wire::record::{HEAD_KEY, MapHead, Record, view_key};

use super::nodes::Nodes;
use super::recovery::Former;
use super::{Coordinator, CoordinatorConfig, Keeping, RecordKeeping, decide};
use crate::Now;

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

impl Coordinator {
    /// The coordinator that goes on from `records`, all that there are; the first of all if there are none. What the records
    /// say of the cluster (identity, profile, groups, workers) counts, and not `config`.
    ///
    /// # Errors
    /// The record that is missing, or that cannot be: then nothing may be done before an operator has seen to it.
    pub fn resume(
        config: CoordinatorConfig,
        records: impl IntoIterator<Item = Record>,
        now: Now,
    ) -> Result<Self, ResumeError> {
        let (head, views) = sort(records)?;
        let mut coordinator = Self::new(config);
        coordinator.attention.begin(now.time);
        let Some(head) = head else {
            coordinator.form_above(&views)?;
            return Ok(coordinator);
        };
        check_head(&head)?;
        coordinator.take_over(now, head, views)?;
        Ok(coordinator)
    }

    /// Which of the coordinators that follow each other this is.
    #[must_use]
    pub fn epoch(&self) -> cluster::Epoch {
        self.epoch
    }

    /// Views without a head are what a coordinator left that died while the cluster formed; nobody was told of them.
    fn form_above(&mut self, views: &BTreeMap<GroupId, (u64, GroupView)>) -> Result<(), ResumeError> {
        let outside = views.keys().find(|group| group.0 >= self.config.groups);
        if let Some(group) = outside {
            return Err(wrong(view_key(*group), "a view of no cluster, and outside of the one to form"));
        }
        let newest = views.values().map(|(_, view)| view.version).max();
        self.first_version = newest.map_or(ViewVersion::default(), ViewVersion::next);
        Ok(())
    }

    fn take_over(
        &mut self,
        now: Now,
        head: MapHead,
        views: BTreeMap<GroupId, (u64, GroupView)>,
    ) -> Result<(), ResumeError> {
        let version = views.values().map(|(version, _)| *version).fold(head.version, u64::max);
        let groups = check_views(&head, views)?;
        self.epoch = self.epoch.max(head.epoch.next());
        let config = &mut self.config;
        (config.cluster, config.profile) = (head.cluster, head.profile);
        (config.shards, config.groups) = (head.shards, head.groups);
        let found_by = now.time + self.config.timing.node_lease_us;
        self.nodes = Nodes::of_records(head.nodes, found_by);
        let (cluster, profile, shards, layout) = (head.cluster, head.profile, head.shards, head.layout);
        let mut map = ClusterMap { cluster, version, profile, shards, layout, nodes: Vec::new(), groups };
        map.nodes = self.nodes.infos(Some(&map.layout));
        self.map = Some(map.clone());
        tracing::info!(epoch = %self.epoch, version, "going on from the records");
        // Before anything is commanded under it.
        match self.config.records {
            RecordKeeping::Stored => self.record(self.head_record(&map)),
            RecordKeeping::Kept => self.record_new_map(&map),
        }
        self.go_on(now);
        Ok(())
    }

    /// Goes on from what nodes have kept for the coordinators before this one.
    pub(super) fn take_over_kept(&mut self, now: Now, kept: KeptRecords) -> Result<(), ResumeError> {
        let (head, views) = sort(kept.records)?;
        let head = head.ok_or(ResumeError::Missing { key: HEAD_KEY.to_owned() })?;
        check_head(&head)?;
        self.keeping = Keeping::of_electors(kept.electors);
        self.take_over(now, head, views)
    }

    /// What was under way.
    fn go_on(&mut self, now: Now) {
        for member in self.roles_without_primary() {
            self.begin_recovery(member, Former::MayLive, None);
        }
        for host in self.hosts_that_own_nothing() {
            self.lose(now, host);
        }
        let beyond: Vec<GroupId> =
            self.views().filter(|view| decide::is_to_be_judged(view)).map(|view| view.group).collect();
        for group in beyond {
            self.after_loss(now, group);
        }
    }

    fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.map.iter().flat_map(|map| &map.groups)
    }

    fn roles_without_primary(&self) -> Vec<MemberId> {
        let is_under_way = |status| matches!(status, RoleStatus::Fenced | RoleStatus::Orphan(_));
        let roles =
            self.views().flat_map(|view| view.data_roles().map(|(role, data)| (view.group, role, data)));
        let under_way = roles.filter(|(_, _, data)| is_under_way(data.status));
        under_way.map(|(group, role, _)| MemberId { group, role }).collect()
    }

    /// Processes that views still name although they are fenced, or others have taken their names: the former coordinator
    /// was about to take them out.
    fn hosts_that_own_nothing(&self) -> BTreeSet<HostId> {
        let owns = |host: &HostId| self.nodes.get(*host).is_some_and(|node| !node.is_fenced());
        self.views().flat_map(hosts_of).filter(|host| !owns(host)).collect()
    }
}

/// The records by their keys.
type Sorted = (Option<MapHead>, BTreeMap<GroupId, (u64, GroupView)>);

fn sort(records: impl IntoIterator<Item = Record>) -> Result<Sorted, ResumeError> {
    let (mut head, mut views) = (None, BTreeMap::new());
    for record in records {
        let key = record.key();
        let before = match record {
            Record::Head(new) => head.replace(new).is_some(),
            Record::View(new) => views.insert(new.view.group, (new.map_version, new.view)).is_some(),
        };
        if before {
            return Err(ResumeError::Twice { key });
        }
    }
    Ok((head, views))
}

fn wrong(key: String, why: impl Into<String>) -> ResumeError {
    ResumeError::Inconsistent { key, why: why.into() }
}

fn check_head(head: &MapHead) -> Result<(), ResumeError> {
    let ids = head.nodes.iter().map(|node| node.info.host.node);
    if !ids.is_sorted_by(|before, after| before < after) {
        return Err(wrong(HEAD_KEY.to_owned(), "its nodes are out of order"));
    }
    if head.groups == 0 || head.shards == 0 || head.version == 0 {
        return Err(wrong(HEAD_KEY.to_owned(), "it has no groups, no workers or no version"));
    }
    Ok(())
}

/// The views of all groups, in order.
fn check_views(
    head: &MapHead,
    mut views: BTreeMap<GroupId, (u64, GroupView)>,
) -> Result<Vec<GroupView>, ResumeError> {
    let nodes: BTreeSet<NodeId> = head.nodes.iter().map(|node| node.info.host.node).collect();
    let mut groups = Vec::new();
    for group in (0..head.groups).map(GroupId) {
        let key = view_key(group);
        let Some((_, view)) = views.remove(&group) else { return Err(ResumeError::Missing { key }) };
        check_view(head, &nodes, &view).map_err(|why| wrong(key, why))?;
        groups.push(view);
    }
    match views.keys().next() {
        Some(group) => Err(wrong(view_key(*group), "the map has no such group")),
        None => Ok(groups),
    }
}

fn check_view(head: &MapHead, nodes: &BTreeSet<NodeId>, view: &GroupView) -> Result<(), String> {
    if view.k() != head.profile.k() || view.m() != head.profile.m() {
        return Err("it is of another profile".to_owned());
    }
    view.check().map_err(|why| why.to_string())?;
    if hosts_of(view).any(|host| !nodes.contains(&host.node)) {
        return Err("it names a node that the cluster does not have".to_owned());
    }
    Ok(())
}

/// Every process that a view names.
pub(super) fn hosts_of(view: &GroupView) -> impl Iterator<Item = HostId> + '_ {
    let primaries = view.data.iter().filter_map(|role| role.primary);
    let parities = view.parity.iter().copied().flatten();
    let learners = view.learners.iter().map(|learner| learner.host);
    primaries.chain(parities).chain(learners)
}
