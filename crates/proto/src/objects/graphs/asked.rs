//! An order that is under way: the task that plans and plans again, and what the run has written that it has started.

use std::collections::BTreeSet;

use bytes::BytesMut;
use graph::limits::MAX_ATTEMPTS;
use graph::{
    Aim, AskerId, Class, Links, Message, Outcome, Place, Planned, Report, RunId, Scheme, Source, Task,
    TaskCommand, TaskConfig, Wanted, Why,
};
use types::{GroupView, NodeId, RoleIndex, Time};
use wire::graph::Asker;

use super::course::{Begun, Course, Inflow};
use crate::objects::order::{Made, Order, Purpose, Staged, Whose};
use crate::objects::scope::Scope;

/// What part of a request's deadline a graph may take for a reader: what it has not made then is read cell by cell.
const READERS_SHARE: u64 = 4;

/// What is known of the network when an order begins.
pub(super) struct Network<'a> {
    pub links: Links,
    /// Nodes whose links are down.
    pub unlinked: &'a BTreeSet<NodeId>,
    /// Nodes that may hold graphs up.
    pub avoided: Vec<NodeId>,
    /// What has come here by now.
    pub begun: Begun,
}

/// Graphs of one order that are begun anew because a link holds them up.
const MAX_DETOURS: u32 = 2;

/// See the module.
pub(super) struct Asked {
    order: Order,
    task: Task,
    links: Links,
    /// Which run has written what is staged.
    run: Option<RunId>,
    staged: Staged,
    is_kept: bool,
    /// The newest graph.
    begun: Begun,
    /// When it was looked at last, and how often it was begun anew because of what was seen.
    looked_at: Time,
    detours: u32,
}

/// What a run that has written all has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What was wanted.
    Right,
    /// Something else.
    Wrong,
    /// Another run has begun since.
    Moot,
}

/// What is to be done for it.
pub(super) enum Next {
    Send(Place, Message),
    Ended(Made),
}

impl Asked {
    /// Begins; for whom it would have been if nobody can be asked.
    pub(super) fn new(
        scope: &Scope<'_>,
        network: Network<'_>,
        number: u64,
        order: Order,
    ) -> Result<Self, Purpose> {
        let purpose = order.purpose;
        let Network { links, unlinked, avoided, begun } = network;
        let (view, protection) = (scope.view(order.group), scope.protection(order.group));
        let view = view.ok_or(purpose)?;
        let here = scope.here();
        let manner = Manner::of(scope, purpose.whose).ok_or(purpose)?;
        let code = protection.ok_or(purpose)?.shared_code();
        // With a local code a way round may be much longer: there it is gone only where it is known to pay.
        let avoided = if code.is_dense() { avoided } else { Vec::new() };
        let config = TaskConfig {
            asker: AskerId(Asker::of(here).0),
            number,
            code,
            group: order.group,
            view: view.version,
            strand: order.strand.clone(),
            wanted: order.wanted.iter().map(|role| Wanted { role: *role, to: Place::Asker }).collect(),
            class: manner.class,
            scheme: manner.scheme,
            aim: manner.aim,
            execution: scope.graphs().execution,
            deadline_us: manner.deadline_us,
            least_patience_us: manner.least_patience_us,
            attempts: manner.attempts,
            flow_bytes: manner.flow_bytes,
            avoided,
            looks: manner.class == Class::Repair && scope.rules().graphs().slow_links_are_gone_round(),
            rules: scope.rules().graphs().of_executors(),
        };
        let is_here = |node| manner.class == Class::Reader || node == here.node;
        let mut sources = sources_of(view, &order.wanted, is_here);
        sources.retain(|source| !unlinked.contains(&source.node));
        let task = Task::new(config, sources, scope.now.time, &links);
        if !manner.is_worth(task.planned()) {
            return Err(purpose);
        }
        Ok(Self {
            order,
            task,
            links,
            run: None,
            staged: Staged::new(),
            is_kept: false,
            begun,
            looked_at: Time(0),
            detours: 0,
        })
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.order.purpose
    }

    pub(super) fn planned(&self) -> Option<Planned> {
        self.task.planned()
    }

    /// Another graph is sent now.
    pub(super) fn has_begun(&mut self, begun: Begun) {
        self.begun = begun;
    }

    /// How far it has come by now, if it has ended.
    pub(super) fn course(&self, now: Time, inflow: &Inflow, here: NodeId) -> Option<Course> {
        let (graph, look) = self.task.newest()?;
        Some(Course::of(graph, look, here, inflow.since(now, self.begun)))
    }

    /// How far it had come when it was looked at last; none if that was heard before, or it is not begun anew any more.
    pub(super) fn look(&mut self, inflow: &Inflow, here: NodeId) -> Option<Course> {
        let at = self.task.newest()?.1?.at;
        if self.task.is_over() || self.detours == MAX_DETOURS || at <= self.looked_at {
            return None;
        }
        self.looked_at = at;
        self.course(at, inflow, here)
    }

    /// Begins anew without a node; false if there is no other way.
    pub(super) fn go_round(&mut self, now: Time, node: NodeId, links: Links) -> bool {
        self.links = links;
        self.detours += 1;
        self.task.go_round(now, node, &self.links)
    }

    /// The graph that begins finds no room here.
    pub(super) fn has_no_room(&mut self, now: Time, run: RunId, draw: u64) {
        let report = Report::Failed(Why::NoRoom);
        self.task.handle_report(now, Place::Asker, run, report, draw, &self.links);
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.task.poll_timeout()
    }

    pub(super) fn tell(&mut self, act: impl FnOnce(&mut Task, &Links)) {
        act(&mut self.task, &self.links);
    }

    pub(super) fn poll(&mut self) -> Option<Next> {
        Some(match self.task.poll_command()? {
            TaskCommand::Send { to, message } => Next::Send(to, message),
            TaskCommand::Finished(outcome) => Next::Ended(self.end(outcome)),
        })
    }

    /// A run has written this. Runs do not mix: what an earlier one has written is nothing.
    pub(super) fn write(&mut self, run: RunId, role: RoleIndex, offset: u32, bytes: &[u8]) {
        if self.run.is_some_and(|known| known.number > run.number) {
            return;
        }
        if self.run != Some(run) {
            (self.run, self.is_kept) = (Some(run), false);
            self.staged.clear();
        }
        let len = self.order.len() as usize;
        let staged = self.staged.entry(role).or_insert_with(|| BytesMut::zeroed(len));
        let offset = offset as usize;
        if let Some(place) = staged.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// The run has written all; what that is.
    pub(super) fn keep(&mut self, run: RunId) -> Verdict {
        let verdict = match self.run == Some(run) {
            false => Verdict::Moot,
            true if self.order.is_right(&self.staged) => Verdict::Right,
            true => Verdict::Wrong,
        };
        self.is_kept = verdict == Verdict::Right;
        verdict
    }

    /// Nothing comes of the run.
    pub(super) fn discard(&mut self, run: RunId) {
        if self.run == Some(run) {
            self.staged.clear();
            self.is_kept = false;
        }
    }

    fn end(&mut self, outcome: Outcome) -> Made {
        let is_made =
            matches!(outcome, Outcome::Complete { run, .. } if self.run == Some(run)) && self.is_kept;
        let staged = std::mem::take(&mut self.staged);
        let bytes = is_made.then(|| staged.into_iter().map(|(role, bytes)| (role, bytes.freeze())).collect());
        Made { purpose: self.order.purpose, bytes }
    }
}

/// How chunks are made, by who wants them.
struct Manner {
    class: Class,
    scheme: Scheme,
    aim: Aim,
    deadline_us: u64,
    least_patience_us: u64,
    attempts: u32,
    flow_bytes: u64,
}

impl Manner {
    /// None if graphs make nothing for those who want it.
    fn of(scope: &Scope<'_>, whose: Whose) -> Option<Self> {
        let (timing, settings) = (scope.timing(), scope.graphs());
        let zone_mib = f64::from(settings.zone_price_us);
        Some(match whose {
            Whose::Holder(_) => Self {
                class: Class::Repair,
                scheme: settings.repair?,
                aim: Aim { zone_mib, ..Aim::REPAIR },
                deadline_us: timing.object_deadline_us,
                // Nobody waits: a graph over slow links is not begun anew because it is slow. Who is gone is known by its link.
                least_patience_us: timing.request_deadline_us,
                attempts: MAX_ATTEMPTS,
                // So that the next order has room beside this one.
                flow_bytes: scope.graph_bytes()?,
            },
            // A reader has another way, and needs time for it.
            Whose::Reader(_) => Self {
                class: Class::Reader,
                // Who asks for a graph where nodes make none by themselves leaves it to the model which.
                scheme: settings.reads.unwrap_or(Scheme::Auto),
                aim: Aim { zone_mib, ..Aim::READER },
                deadline_us: timing.request_deadline_us / READERS_SHARE,
                least_patience_us: timing.hedge_us,
                attempts: 1,
                flow_bytes: u64::MAX,
            },
        })
    }

    /// Whether to begin with what is planned. Cells that a reader fetches are a star already, which costs nobody a graph.
    fn is_worth(&self, planned: Option<Planned>) -> bool {
        let is_star = |planned: Planned| matches!(planned.scheme, Scheme::Star | Scheme::Lrc);
        self.class != Class::Reader || self.scheme != Scheme::Auto || !planned.is_none_or(is_star)
    }
}

/// Who is whole, but for what is wanted at a node that `is_here`, or at any for readers.
fn sources_of(view: &GroupView, wanted: &[RoleIndex], is_here: impl Fn(NodeId) -> bool) -> Vec<Source> {
    let roles = (0..).zip(&view.holders).map(|(role, holders)| (RoleIndex(role), holders));
    let whole = roles.filter_map(|(role, holders)| Some((role, holders.whole?.host.node)));
    let is_wanted_here = |role: RoleIndex, node| is_here(node) && wanted.contains(&role);
    whole
        .filter(|(role, node)| !is_wanted_here(*role, *node))
        .map(|(role, node)| Source { role, node })
        .collect()
}
