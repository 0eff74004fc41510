//! What this coordinator writes down, and when: every change before anybody is told of it.

use cluster::{ClusterMap, Epoch, GroupView, HostId};
use wire::message::FromCoordinator;
use wire::record::{MapHead, Record, ViewRecord};

use super::membership::NodeState;
use super::succession::hosts_of;
use super::{Coordinator, CoordinatorAction, Processes, RecordKeeping};

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

    /// Sends records to those that keep them, and lets go what need not wait for any.
    pub(super) fn keep_records(&mut self) {
        while let Some(action) = self.actions.pop_front() {
            match action {
                CoordinatorAction::Record(record) => self.add_record(record),
                CoordinatorAction::Send { to, message } if waits(&message) => self.keeping.hold(to, message),
                action => self.ready.push_back(action),
            }
        }
        if self.keeping.is_hopeless() && !self.resigned {
            self.resign("too many changes wait for nodes that do not answer");
            self.ready.extend(self.actions.drain(..));
        }
        if self.resigned {
            return;
        }
        let (epoch, map) = (self.epoch, self.map.as_ref());
        let nodes = &self.nodes;
        let all = || map.map(|map| all_records(epoch, map, nodes.values())).unwrap_or_default();
        self.ready.extend(self.keeping.distribute(epoch, all));
        if !self.keeping.is_settled() {
            let processes = self.processes();
            self.ready.extend(self.keeping.release(&processes));
        }
    }

    fn add_record(&mut self, record: Record) {
        let spared = match &record {
            Record::View(record) => self.spared.remove(&(record.view.group, record.view.version)),
            Record::Head(_) => None,
        };
        self.keeping.add(record, spared.unwrap_or_default());
    }

    /// Whom a view removes, it may remove for being slow.
    pub(super) fn spare_removed(&mut self, before: &GroupView, view: &GroupView) {
        if self.config.records == RecordKeeping::Kept {
            let stays = |host: &HostId| hosts_of(view).any(|other| other == *host);
            let removed = hosts_of(before).filter(|host| !stays(host)).collect();
            self.spared.insert((view.group, view.version), removed);
        }
    }

    fn processes(&self) -> Processes {
        let is_gone = |host: &HostId| {
            self.node_of(*host).is_some_and(NodeState::is_gone) || self.keeping.has_ended(host)
        };
        let (ended, others): (Vec<HostId>, Vec<HostId>) = self.keeping.electors().partition(is_gone);
        let replaced = others.into_iter().filter(|host| self.node_of(*host).is_none()).collect();
        Processes { present: self.present(), ended, replaced, m: self.config.profile.m() }
    }

    /// Whether anything that is decided now can be in force, as far as is known of who hears it.
    pub(super) fn may_decide(&self, hears: impl Fn(&HostId) -> bool) -> bool {
        self.config.records == RecordKeeping::Stored || self.keeping.are_enough(hears, &self.processes())
    }

    pub(super) fn handle_kept(&mut self, from: HostId, position: u64) {
        if let Err(why) = self.keeping.note_kept(from, position) {
            self.close(from, why);
        }
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
        head_of(self.epoch, map, self.nodes.values())
    }
}

fn head_of<'a>(epoch: Epoch, map: &ClusterMap, nodes: impl Iterator<Item = &'a NodeState>) -> Record {
    Record::Head(MapHead {
        cluster: map.cluster,
        epoch,
        version: map.version,
        profile: map.profile,
        shards: map.shards,
        groups: map.groups.len() as u32,
        layout: map.layout.clone(),
        nodes: nodes.map(NodeState::record).collect(),
    })
}

/// Everything that there is to record.
fn all_records<'a>(
    epoch: Epoch,
    map: &ClusterMap,
    nodes: impl Iterator<Item = &'a NodeState>,
) -> Vec<Record> {
    let views = map.groups.iter().map(|view| Record::View(view_record(map.version, view)));
    views.chain([head_of(epoch, map, nodes)]).collect()
}

/// Whether a message tells of a decision, and so has to wait until that is recorded.
fn waits(message: &FromCoordinator) -> bool {
    match message {
        FromCoordinator::Map(_)
        | FromCoordinator::View(_)
        | FromCoordinator::Fence { .. }
        | FromCoordinator::Settle { .. }
        | FromCoordinator::HandOver { .. }
        | FromCoordinator::Confirm { .. }
        | FromCoordinator::Admin { .. } => true,
        // Fencing is recorded first.
        FromCoordinator::Refused(refused) => refused.fenced,
        FromCoordinator::Alive
        | FromCoordinator::Waiting
        | FromCoordinator::Occupied { .. }
        | FromCoordinator::Keep { .. }
        | FromCoordinator::Recall { .. } => false,
    }
}

pub(super) fn view_record(map_version: u64, view: &GroupView) -> ViewRecord {
    ViewRecord { map_version, view: view.clone() }
}
