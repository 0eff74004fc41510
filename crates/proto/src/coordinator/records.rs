//! What this coordinator writes down, and when: every change before anybody is told of it.

use cluster::{ClusterMap, GroupView};
use wire::message::FromCoordinator;
use wire::record::{MapHead, Record, ViewRecord};

use super::membership::NodeState;
use super::{Coordinator, CoordinatorAction};

impl Coordinator {
    pub(super) fn record(&mut self, record: Record) {
        self.actions.push_back(CoordinatorAction::Record(record));
    }

    /// A change: first it is recorded, then everyone is told.
    pub(super) fn record_then(&mut self, record: Record, news: FromCoordinator) {
        if crate::planted(crate::Bug::SentBeforeRecorded) {
            self.broadcast(&news);
            return self.record(record);
        }
        self.record(record);
        self.broadcast(&news);
    }

    /// A map that has just formed. The head comes last: where it is missing, nothing has formed.
    pub(super) fn record_new_map(&mut self, map: &ClusterMap) {
        for view in &map.groups {
            self.record(Record::View(view_record(map.version, view)));
        }
        self.record(self.head_record(map));
    }

    /// Everything of `map` but its views.
    pub(super) fn head_record(&self, map: &ClusterMap) -> Record {
        Record::Head(MapHead {
            cluster: map.cluster,
            epoch: self.epoch,
            version: map.version,
            profile: map.profile,
            shards: map.shards,
            groups: map.groups.len() as u32,
            layout: map.layout.clone(),
            nodes: self.nodes.values().map(NodeState::record).collect(),
        })
    }
}

pub(super) fn view_record(map_version: u64, view: &GroupView) -> ViewRecord {
    ViewRecord { map_version, view: view.clone() }
}
