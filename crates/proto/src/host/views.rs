//! What a host knows of the cluster: the map with its views.

use types::{ClusterId, ClusterMap, FastMap, GroupId, GroupView, KeyHash, RoleIndex, Time};

use super::driver::Place;
use crate::Timing;

/// See the module.
#[derive(Default)]
pub(super) struct Views {
    map: Option<ClusterMap>,
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
        let cluster = self.map.as_ref().map_or(ClusterId(0), |map| map.cluster);
        let hash = KeyHash::of(cluster, key);
        Place { hash, member: self.map.as_ref().map(|map| map.member_of(hash)) }
    }

    pub(super) fn is_primary_role(&self, role: RoleIndex) -> bool {
        self.map.as_ref().is_some_and(|map| usize::from(role.0) < map.profile.k())
    }

    /// Whether `shard` of each node serves the group.
    pub(super) fn is_of_shard(&self, group: GroupId, shard: u16) -> bool {
        self.map.as_ref().is_some_and(|map| group.shard(map.shards) == shard)
    }

    /// The first map.
    pub(super) fn begin(&mut self, map: ClusterMap) {
        self.map = Some(map);
    }

    /// A newer map of the same cluster: its nodes and its layout. Whether it is one; its views are to be adopted one by one.
    pub(super) fn adopt_map(&mut self, map: &ClusterMap) -> bool {
        let Some(known) = self.map.as_mut().filter(|known| known.cluster == map.cluster) else {
            return false;
        };
        // Maps come from every coordinator and on every connection, so older ones may come later.
        if map.version <= known.version {
            return false;
        }
        known.version = map.version;
        known.nodes.clone_from(&map.nodes);
        known.layout.clone_from(&map.layout);
        true
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
