//! What a host knows of the cluster: the map with its views, and where keys lie by it (`homes`).

use std::collections::BTreeMap;

use types::op::Failure;
use types::{ClusterId, ClusterMap, FastMap, GroupId, GroupView, KeyHash, MemberId, Time, split_key};

use super::driver::Place;
use super::homes::Homes;
use crate::Timing;

/// See the module.
#[derive(Default)]
pub(super) struct Views {
    map: Option<ClusterMap>,
    /// Those of the map's catalog.
    homes: Homes,
    /// When a group's view was last asked for.
    asked: FastMap<GroupId, Time>,
}

impl Views {
    pub(super) fn map(&self) -> Option<&ClusterMap> {
        self.map.as_ref()
    }

    pub(super) fn group(&self, group: GroupId) -> Option<&GroupView> {
        self.map.as_ref()?.group(group)
    }

    /// Where a key is.
    pub(super) fn locate(&self, key: &[u8]) -> Place {
        let Some(map) = &self.map else {
            return Place { hash: KeyHash::of(ClusterId(0), key), member: None, refusal: None };
        };
        let hash = KeyHash::of(map.cluster, key);
        let id = split_key(key).0;
        if let Some(home) = self.homes.find(id) {
            return home.place(hash);
        }
        // One with a number that is still to be given is of a newer map, which is on its way.
        let refusal = map.catalog.is_gone(id).then_some(Failure::NoNamespace);
        Place { hash, member: None, refusal }
    }

    /// Whether `member` is a data role.
    pub(super) fn is_primary_role(&self, member: MemberId) -> bool {
        self.group(member.group).is_some_and(|view| usize::from(member.role.0) < view.k())
    }

    /// Whether `shard` of each node serves the group.
    pub(super) fn is_of_shard(&self, group: GroupId, shard: u16) -> bool {
        self.map.as_ref().is_some_and(|map| group.shard(map.shards) == shard)
    }

    /// The first map.
    pub(super) fn begin(&mut self, map: ClusterMap) {
        self.homes = Homes::of(&map.catalog);
        self.map = Some(map);
    }

    /// A newer map of the same cluster: its nodes, its layout, its pools and namespaces. The views of groups that are new; none
    /// if it is no such map. Those of all others are to be adopted one by one.
    pub(super) fn adopt_map(&mut self, map: &ClusterMap) -> Option<Vec<GroupView>> {
        let known = self.map.as_mut().filter(|known| known.cluster == map.cluster)?;
        // Maps come from every coordinator and on every connection, so older ones may come later.
        if map.version <= known.version {
            return None;
        }
        known.version = map.version;
        known.nodes.clone_from(&map.nodes);
        known.layout.clone_from(&map.layout);
        if known.catalog == map.catalog {
            return Some(Vec::new());
        }
        known.catalog.clone_from(&map.catalog);
        self.homes = Homes::of(&map.catalog);
        // Groups come and go with their pools; of one that stays the newer view may be here.
        let old: BTreeMap<GroupId, GroupView> =
            std::mem::take(&mut known.groups).into_iter().map(|view| (view.group, view)).collect();
        known.groups = map.groups.iter().map(|view| old.get(&view.group).unwrap_or(view).clone()).collect();
        self.asked.retain(|group, _| map.group(*group).is_some());
        Some(map.groups.iter().filter(|view| !old.contains_key(&view.group)).cloned().collect())
    }

    /// A group's view; whether it is newer than the one known.
    pub(super) fn adopt(&mut self, view: &GroupView) -> bool {
        let Some(map) = &mut self.map else { return false };
        if !map.has_place_for(view) {
            tracing::error!(group = %view.group, view = %view.version, "a view that this map has no place for");
            return false;
        }
        let newer = map.adopt(view.clone());
        if newer {
            self.asked.remove(&view.group);
        }
        newer
    }

    /// Whether to ask for the view of `group` now: once per heartbeat.
    pub(super) fn may_ask(&mut self, group: GroupId, now: Time, timing: &Timing) -> bool {
        let recent = |at: &Time| now.since(*at) < timing.heartbeat_us;
        let due = !self.asked.get(&group).is_some_and(recent);
        if due {
            self.asked.insert(group, now);
        }
        due
    }
}
