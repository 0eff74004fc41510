//! What this coordinator writes down, and when: every change before anybody is told of it.

use cluster::{ClusterMap, Epoch, GroupView, HostId, Profile};
use wire::frame::MAX_FRAME_BYTES;
use wire::message::FromCoordinator;
use wire::record::{MapHead, Record, ViewRecord};

use super::nodes::NodeState;
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
        let all = || map.map(|map| all_records(epoch, map, nodes.iter())).unwrap_or_default();
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
            self.nodes.get(*host).is_some_and(NodeState::is_gone) || self.keeping.has_ended(host)
        };
        let (ended, others): (Vec<HostId>, Vec<HostId>) = self.keeping.electors().partition(is_gone);
        let replaced = others.into_iter().filter(|host| self.nodes.get(*host).is_none()).collect();
        Processes { present: self.nodes.present(), ended, replaced, m: self.config.profile.m() }
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
        head_of(self.epoch, map, self.nodes.iter())
    }
}

/// Room in a frame beside the views of all groups: for the head and the sets of electors.
const BESIDE_VIEWS: usize = MAX_FRAME_BYTES / 4;

/// Most groups of a cluster whose records nodes keep. A node is sent all of them in one frame, and answers them in one.
pub(super) fn most_kept_groups(profile: Profile) -> usize {
    (MAX_FRAME_BYTES - BESIDE_VIEWS) / longest_view_bytes(profile)
}

/// Of a view's record: every role is being rebuilt, has a former primary, and is learned by somebody (docs/format.md).
fn longest_view_bytes(profile: Profile) -> usize {
    let (k, m) = (profile.k(), profile.m());
    let former = 15 + 10 * (m + 1);
    37 + 36 * k + 11 * m + 20 * (k + m) + former * k
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
        | FromCoordinator::Forming(_)
        | FromCoordinator::Occupied { .. }
        | FromCoordinator::Keep { .. }
        | FromCoordinator::Recall { .. } => false,
    }
}

pub(super) fn view_record(map_version: u64, view: &GroupView) -> ViewRecord {
    ViewRecord { map_version, view: view.clone() }
}

#[cfg(test)]
mod tests {
    use cluster::{
        DataRole, Former, GroupId, HostId, Incarnation, Learner, NodeId, RoleIndex, RoleStatus, Seq, Term,
        ViewVersion,
    };
    use wire::frame::{Header, encode};

    use super::*;

    /// A message with so many of the longest views.
    fn encoded_bytes(profile: Profile, views: u32) -> usize {
        let host = HostId { node: NodeId(1), incarnation: Incarnation(1) };
        let rebuilding = RoleStatus::Rebuilding { start: Seq(1), wait_us: 1 };
        let data = DataRole { primary: Some(host), term: Term(2), origin: Term(1), status: rebuilding };
        let since = ViewVersion(1);
        let role = |at: usize| RoleIndex(at as u8);
        let (k, m) = (profile.k(), profile.m());
        let former = |at| Former { role: role(at), primary: host, witnesses: vec![host; m + 1] };
        let view = |group| GroupView {
            group: GroupId(group),
            version: since,
            data: vec![data; k],
            parity: vec![Some(host); m],
            learners: (0..k + m).map(|at| Learner { role: role(at), host, since, whole: false }).collect(),
            former: (0..k).map(former).collect(),
        };
        let records = (0..views).map(|group| Record::View(view_record(1, &view(group)))).collect();
        let electors = Vec::new();
        let keep = FromCoordinator::Keep { epoch: Epoch(1), position: 1, electors, whole: true, records };
        let header = Header { cluster: cluster::ClusterId(1), source: host, sequence: 0 };
        let mut out = Vec::new();
        encode(&header, &keep, &mut out).expect("it fits");
        out.len()
    }

    #[test]
    fn all_views_of_the_largest_cluster_fit_into_a_frame() {
        for (k, m) in [(2, 1), (3, 2), (10, 4), (32, 8)] {
            let profile = Profile::rs(k, m).unwrap();
            let (one, two) = (encoded_bytes(profile, 1), encoded_bytes(profile, 2));
            assert_eq!(two - one, longest_view_bytes(profile), "rs({k}+{m})");
            let most = u32::try_from(most_kept_groups(profile)).unwrap();
            assert!(encoded_bytes(profile, most) + BESIDE_VIEWS <= MAX_FRAME_BYTES + 1024);
        }
    }
}
