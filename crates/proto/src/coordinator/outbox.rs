//! What a coordinator has to do, in order: nothing that follows from a record before that record is in force.

use std::collections::{BTreeMap, VecDeque};

use types::{Epoch, GroupId, GroupView, HostId, ViewVersion};
use wire::record::Record;

use super::keeping::{Keeping, Processes};
use super::records::waits;

use super::{CoordinatorAction, RecordKeeping};
use crate::Rules;

/// See the module.
pub(super) struct Outbox {
    records: RecordKeeping,
    rules: Rules,
    actions: VecDeque<CoordinatorAction>,
    /// What need not wait for a record, where the nodes keep them.
    ready: VecDeque<CoordinatorAction>,
    keeping: Keeping,
    /// Who does not have to keep a view that is on its way to be recorded.
    spared: BTreeMap<(GroupId, ViewVersion), Vec<HostId>>,
    resigned: bool,
}

impl Outbox {
    pub(super) fn new(records: RecordKeeping, rules: Rules) -> Self {
        Self {
            records,
            rules,
            actions: VecDeque::new(),
            ready: VecDeque::new(),
            keeping: Keeping::default(),
            spared: BTreeMap::new(),
            resigned: false,
        }
    }

    pub(super) fn keeping(&self) -> &Keeping {
        &self.keeping
    }

    pub(super) fn keeping_mut(&mut self) -> &mut Keeping {
        &mut self.keeping
    }

    pub(super) fn push(&mut self, action: CoordinatorAction) {
        self.actions.push_back(action);
    }

    pub(super) fn record(&mut self, record: Record) {
        self.push(CoordinatorAction::Record(record));
    }

    /// Decides nothing any more.
    pub(super) fn resign(&mut self, why: &'static str) {
        tracing::error!("{why}: resigning");
        self.resigned = true;
        self.push(CoordinatorAction::Resign);
    }

    pub(super) fn has_resigned(&self) -> bool {
        self.resigned
    }

    /// Whom a view removes, it may remove for being slow.
    pub(super) fn spare_removed(&mut self, before: &GroupView, view: &GroupView) {
        if self.records == RecordKeeping::Kept {
            let stays = |host: &HostId| view.hosts().any(|other| other == *host);
            let removed = before.hosts().filter(|host| !stays(host)).collect();
            self.spared.insert((view.group, view.version), removed);
        }
    }

    /// The next thing to do. `all` makes the records that there are, `processes` says who there is.
    pub(super) fn poll(
        &mut self,
        epoch: Epoch,
        all: impl FnOnce() -> Vec<Record>,
        processes: impl Fn(&Keeping) -> Processes,
    ) -> Option<CoordinatorAction> {
        if self.records == RecordKeeping::Stored {
            return self.actions.pop_front();
        }
        self.sort_out();
        if !self.resigned {
            // New records go out at once, whatever waits: nothing is in force before somebody keeps it.
            self.ready.extend(self.keeping.distribute(epoch, all));
            if !self.keeping.is_in_force() {
                let processes = processes(&self.keeping);
                self.ready.extend(self.keeping.release(self.rules, &processes));
            }
        }
        self.ready.pop_front()
    }

    /// Hands records to those that keep them, and what has to wait for them; lets go what need not wait for any.
    fn sort_out(&mut self) {
        while let Some(action) = self.actions.pop_front() {
            match action {
                CoordinatorAction::Record(record) => self.keep(record),
                CoordinatorAction::Send { to, message } if waits(&message) => self.keeping.hold(to, message),
                action => self.ready.push_back(action),
            }
        }
        if self.keeping.is_hopeless() && !self.resigned {
            self.resign("too many changes wait for nodes that do not answer");
            // That it resigns waits for no record.
            self.ready.extend(self.actions.drain(..));
        }
    }

    fn keep(&mut self, record: Record) {
        let spared = match &record {
            Record::View(record) => self.spared.remove(&(record.view.group, record.view.version)),
            Record::Head(_) | Record::Node(_) => None,
        };
        self.keeping.add(record, spared.unwrap_or_default());
    }
}
