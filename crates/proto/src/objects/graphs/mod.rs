//! Coding graphs of one worker (docs/graphs.md): the steps that are at this host, for whoever asks, and what is asked for here.
//!
//! Executor and tasks are those of the crate `graph`; here they get messages, time, chunks, and somebody who wants something of them.
//! Chunks are written by askers alone: nobody can make another host write.
//!
//! - `asked`: an order that is under way, with what its run has written
//! - `course`: how far a graph has come, and how fast what it makes comes
//! - `detours`: nodes that hold graphs up, and how they are gone round
//! - `sight`: what graphs see of this host
//! - `hearsay`: slow links that nodes tell each other of
//! - `speed`: how fast links are
//! - `stats`: what is counted
//! - `translate`: graphs as they travel

mod asked;
mod course;
mod detours;
mod hearsay;
mod sight;
mod speed;
mod stats;
mod translate;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use graph::limits::RUNS_PER_TASK;
use graph::{
    AskerId, Command, Executor, ExecutorConfig, Graph, Message, Place, Report, RunId, Scheme, Slice, Task,
};
use types::{ChunkId, HostId, MemberId, NodeId, Time};
use wire::graph::{self as sent, GraphMessage, Seat, Seats};
use wire::object::Checked;

use super::holders::Holders;
use super::meter::Meter;
use super::order::{Made, Order, Purpose, Whose};
use super::scope::Scope;
use crate::host::Zones;
use crate::{HostConfig, Impossible, Timing};
use asked::{Asked, Network, Next, Verdict};
use course::Inflow;
use detours::Detours;
use hearsay::Hearsay;
use sight::{Seen, Sight};
use speed::{SlowWay, Speed};
pub use stats::{GraphStats, OrderStats, ReadStats, SaidLinks};

/// Orders of holders that are under way at once: while one ends the next one begins, and others have their turn.
const MAX_ORDERS: usize = 2;
/// Orders of readers.
const MAX_READS: usize = 4;

/// See the module.
#[derive(Default)]
pub(crate) struct Graphs {
    /// Once the first graph has come.
    executor: Option<Executor>,
    /// What is asked for here, by the numbers of its tasks.
    asked: BTreeMap<u64, Asked>,
    numbers: u64,
    /// Of this host to itself: as whom, by whom, what.
    local: VecDeque<(Place, Place, Message)>,
    made: VecDeque<Made>,
    /// Nodes whose links are down.
    unlinked: BTreeSet<NodeId>,
    seen: RefCell<Seen>,
    orders: [OrderStats; Scheme::ALL.len()],
    reads: ReadStats,
    spoilt: u64,
    speed: Speed,
    hearsay: Hearsay,
    detours: Detours,
    inflow: Inflow,
    /// Graphs that were begun anew because a link held them up.
    begun_anew: u64,
    /// Bytes of slices that went to nodes in other zones.
    zone_bytes: u64,
    draws: u64,
}

impl Graphs {
    /// A message of `from`.
    pub(super) fn handle(
        &mut self,
        scope: &mut Scope<'_>,
        holders: &Holders,
        from: HostId,
        message: GraphMessage,
    ) {
        match self.understand(scope, from, message) {
            Ok(Some((me, sender, message))) => {
                self.local.push_back((me, sender, message));
                self.settle(scope, holders);
            }
            Ok(None) => {}
            Err(why) => scope.accuse(from, why),
        }
    }

    /// As whom this host is meant, who has sent it, and what it is; none if it is late.
    fn understand(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        message: GraphMessage,
    ) -> Result<Option<(Place, Place, Message)>, Impossible> {
        let node = Place::Node(scope.here().node);
        let is_of =
            |run: sent::Run| if run.asker == sent::Asker::of(from) { Ok(()) } else { Err(Impossible::Graph) };
        Ok(match message {
            GraphMessage::Start(start) => {
                is_of(start.run)?;
                // Of a group that this host has not heard of yet nobody knows.
                let roles = scope.protection(start.group).map_or(codec::MAX_ROLES, |it| it.shared_code().n());
                let graph = translate::graph_of(*start, roles).ok_or(Impossible::Graph)?;
                if scope.view(graph.group).is_none_or(|view| view.version < graph.view) {
                    scope.want_view(graph.group);
                }
                Some((node, Place::Asker, Message::Start(Arc::new(graph))))
            }
            GraphMessage::Cancel(cancel) => {
                is_of(cancel.run)?;
                Some((node, Place::Asker, Message::Cancel(translate::run_of(cancel.run))))
            }
            GraphMessage::Probe(probe) => {
                is_of(probe.run)?;
                Some((node, Place::Asker, Message::Probe(translate::run_of(probe.run))))
            }
            GraphMessage::Report(sent::Report { run, news }) => {
                let message =
                    Message::Report { run: translate::run_of(run), report: translate::report_of(news) };
                is_mine(scope, run).then_some((Place::Asker, Place::Node(from.node), message))
            }
            GraphMessage::Slice(slice) => {
                let sent::Slice { run, seats, edge, index, slice } = slice;
                let run_id = translate::run_of(run);
                let slice = Slice { run: run_id, edge, index, sum: slice.checksum, bytes: slice.bytes };
                ends(scope, from, run, seats)?.map(|(me, sender)| (me, sender, Message::Slice(slice)))
            }
            GraphMessage::Credit(sent::Credit { run, seats, edge, below }) => {
                let message = Message::Credit { run: translate::run_of(run), edge, below };
                ends(scope, from, run, seats)?.map(|(me, sender)| (me, sender, message))
            }
            GraphMessage::AskCredit(sent::AskCredit { run, seats, edge }) => {
                let message = Message::AskCredit { run: translate::run_of(run), edge };
                ends(scope, from, run, seats)?.map(|(me, sender)| (me, sender, message))
            }
            GraphMessage::SlowLinks(links) => {
                self.hearsay.hear(scope.now.time, from, links);
                None
            }
        })
    }

    /// Chunks are to be made. What comes of it is among [`Self::poll_made`], at once if nothing can.
    pub(super) fn begin(&mut self, scope: &mut Scope<'_>, holders: &Holders, order: Order) {
        self.numbers += 1;
        let number = self.numbers;
        let now = scope.now.time;
        let is_repair = order.purpose.whose.is_holder();
        let network = Network {
            links: self.links(scope),
            unlinked: &self.unlinked,
            avoided: if is_repair { self.detours.avoided(now) } else { Vec::new() },
            begun: self.inflow.begun(now),
        };
        match Asked::new(scope, network, number, order) {
            Ok(asked) => {
                self.asked.insert(number, asked);
                self.drain(scope, number);
                self.settle(scope, holders);
            }
            Err(purpose) => self.made.push_back(Made { purpose, bytes: None }),
        }
    }

    /// Those that wait for what is being made.
    pub(super) fn purposes(&self) -> impl Iterator<Item = Purpose> {
        self.asked.values().map(Asked::purpose)
    }

    /// What planners here know of the network.
    pub(super) fn links(&self, scope: &Scope<'_>) -> graph::Links {
        self.links_of(scope.now.time, scope.around.config(), scope.around.meter(), scope.zones())
    }

    /// The same for who looks from outside.
    pub(crate) fn links_of(
        &self,
        now: Time,
        config: &HostConfig,
        meter: &Meter,
        zones: &Zones,
    ) -> graph::Links {
        let here = config.host.node;
        let own = meter.slow_lately(now).map(|(from, times)| SlowWay { from, to: here, times });
        let ways = self.hearsay.slow(now, config).chain(own);
        let mut links = self.speed.links(here, ways, self.detours.slow(now));
        for (node, zone) in zones.iter() {
            links.nodes.entry(node.0).or_insert(links.others).zone = zone;
        }
        links
    }

    /// What this host has said of slow links to it, if it has ever said anything, and what it believes of those to others.
    pub(crate) fn slow_links(&self, now: Time, config: &HostConfig) -> SaidLinks {
        let believed = self.hearsay.believed(now, config);
        SaidLinks {
            said: self.hearsay.said().map(<[_]>::to_vec),
            believed: believed.map(|(node, slow)| (node, slow.to_vec())).collect(),
        }
    }

    /// How long something took that was fetched is known now.
    pub(super) fn measured(&mut self, now: Time, timing: &Timing) {
        self.hearsay.measured(now, timing);
    }

    /// Nodes that are not in the map any more say nothing.
    pub(super) fn retain_nodes(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.hearsay.retain(&is_there);
        self.detours.retain(is_there);
    }

    /// Whether more chunks are made for repair.
    pub(super) fn takes_more(&self) -> bool {
        self.repairs() < MAX_ORDERS
    }

    fn repairs(&self) -> usize {
        self.count(Whose::is_holder)
    }

    /// Whether more is made for readers.
    pub(super) fn takes_reads(&self) -> bool {
        self.count(|whose| !whose.is_holder()) < MAX_READS
    }

    fn count(&self, is_meant: impl Fn(Whose) -> bool) -> usize {
        self.asked.values().filter(|asked| is_meant(asked.purpose().whose)).count()
    }

    /// Nobody wants what these were to make.
    pub(super) fn cancel(
        &mut self,
        scope: &mut Scope<'_>,
        holders: &Holders,
        is_moot: impl Fn(Purpose) -> bool,
    ) {
        let moot = self.asked.iter().filter(|(_, asked)| is_moot(asked.purpose())).map(|(number, _)| *number);
        for number in moot.collect::<Vec<_>>() {
            self.with_task(scope, number, |task, _| task.give_up());
        }
        self.settle(scope, holders);
        self.made.retain(|made| !is_moot(made.purpose));
    }

    /// What has been made since, or could not be.
    pub(super) fn poll_made(&mut self) -> Option<Made> {
        self.made.pop_front()
    }

    /// Chunks that were found rotten since this was asked last.
    pub(super) fn take_rotten(&mut self) -> Vec<(MemberId, ChunkId)> {
        self.seen.get_mut().take_rotten()
    }

    /// A link to `peer` is up.
    pub(super) fn link_up(&mut self, now: Time, timing: &Timing, peer: HostId) {
        self.unlinked.remove(&peer.node);
        self.hearsay.link_up(now, timing);
    }

    /// What was on its way from and to `peer` is lost.
    pub(super) fn lose_link(&mut self, scope: &mut Scope<'_>, holders: &Holders, peer: HostId) {
        self.unlinked.insert(peer.node);
        if let Some(executor) = &mut self.executor {
            executor.handle_lost(Place::Node(peer.node));
            if scope.rules().graphs().runs_end_with_their_askers() {
                executor.handle_lost_asker(AskerId(sent::Asker::of(peer).0));
            }
        }
        let now = scope.now.time;
        for number in self.asked.keys().copied().collect::<Vec<_>>() {
            self.with_task(scope, number, |task, links| task.handle_lost(now, peer.node, links));
        }
        self.settle(scope, holders);
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>, holders: &Holders) {
        let now = scope.now.time;
        self.hearsay.tick(scope);
        if let Some(executor) = &mut self.executor {
            executor.handle_timeout(now);
        }
        for number in self.asked.keys().copied().collect::<Vec<_>>() {
            self.with_task(scope, number, |task, links| task.handle_timeout(now, links));
        }
        self.settle(scope, holders);
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self) -> Time {
        let executor = self.executor.as_ref().and_then(Executor::poll_timeout);
        let tasks = self.asked.values().filter_map(Asked::due);
        tasks.chain(executor).chain([self.hearsay.due()]).min().unwrap_or(Time::NEVER)
    }

    /// Bytes that are reserved for runs here.
    pub(super) fn memory_bytes(&self) -> usize {
        self.load().reserved_bytes as usize + self.hearsay.memory_bytes()
    }

    /// What runs here have taken on.
    pub(super) fn load(&self) -> graph::Load {
        self.executor.as_ref().map(Executor::load).unwrap_or_default()
    }

    /// What was done and is held.
    pub(crate) fn stats(&self) -> GraphStats {
        let steps = self.executor.as_ref().map(|executor| executor.counters().clone()).unwrap_or_default();
        let first_deadline = self.executor.as_ref().and_then(Executor::first_deadline);
        GraphStats {
            steps,
            load: self.load(),
            orders: self.orders,
            reads: self.reads,
            spoilt: self.spoilt,
            begun_anew: self.begun_anew,
            zone_bytes: self.zone_bytes,
            first_deadline,
        }
    }

    /// What has to hold.
    pub(super) fn check_invariants(&self) {
        let load = self.load();
        let outlives = self.executor.iter().flat_map(Executor::runs).find(|run| self.is_cut_off(*run));
        assert!(outlives.is_none(), "{outlives:?} goes on though its asker is gone");
        assert!(load.runs > 0 || load.reserved_bytes == 0, "what is reserved is some run's");
        assert!(load.held_bytes <= load.reserved_bytes, "what is held was reserved");
        assert!(self.local.is_empty(), "what this host says to itself it hears at once");
    }

    fn is_cut_off(&self, run: RunId) -> bool {
        self.unlinked.contains(&translate::node_of(run))
    }

    /// Hands messages of this host to itself over, and does what executor and tasks want, until nothing is left.
    fn settle(&mut self, scope: &mut Scope<'_>, holders: &Holders) {
        loop {
            if let Some((me, from, message)) = self.local.pop_front() {
                self.hear(scope, holders, me, from, message);
            } else if let Some(command) = self.executor.as_mut().and_then(Executor::poll_command) {
                self.obey(scope, command);
            } else {
                return;
            }
        }
    }

    fn hear(&mut self, scope: &mut Scope<'_>, holders: &Holders, me: Place, from: Place, message: Message) {
        let now = scope.now.time;
        if let Message::Report { run, report } = message {
            return self.hear_report(scope, from, run, report);
        }
        if let (Place::Asker, Message::Slice(slice)) = (me, &message)
            && from != Place::Node(scope.here().node)
        {
            self.inflow.add(slice.bytes.len());
        }
        let executor = self.executor.get_or_insert_with(|| Executor::new(executor_config(scope)));
        let (seen, coder, rules) = (&self.seen, scope.coder(), scope.rules());
        let sight = Sight { views: scope.views, holders, seen, coder, rules };
        executor.handle(now, me, from, message, &sight);
    }

    fn hear_report(&mut self, scope: &mut Scope<'_>, from: Place, run: RunId, report: Report) {
        let (now, draw) = (scope.now.time, self.draw(run));
        if let Report::Failed(why) = &report {
            tracing::debug!(?run, ?from, ?why, "a graph has failed");
        }
        self.with_task(scope, run.number / RUNS_PER_TASK, |task, links| {
            task.handle_report(now, from, run, report, draw, links);
        });
        self.go_round(scope, run.number / RUNS_PER_TASK, draw);
    }

    fn draw(&mut self, run: RunId) -> u64 {
        self.draws = self.draws.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(run.asker.0 | 1);
        self.draws >> 33
    }

    /// A graph that a link holds up is begun anew round it, if there is a way and that is worth it.
    fn go_round(&mut self, scope: &mut Scope<'_>, number: u64, draw: u64) {
        let (now, lease_us, here) = (scope.now.time, scope.timing().node_lease_us, scope.here().node);
        let Some(course) = self.asked.get_mut(&number).and_then(|it| it.look(&self.inflow, here)) else {
            return;
        };
        if !scope.rules().graphs().slow_links_are_gone_round() {
            return;
        }
        let around = self.detours.seen(now, lease_us, &course, self.speed.slowness(), draw);
        let Some(node) = around else { return };
        let links = self.links(scope);
        let Some(asked) = self.asked.get_mut(&number) else { return };
        if asked.go_round(now, node, links) {
            tracing::info!(%node, held = ?course.held, share = course.share, "a graph is begun anew without a node that holds it up");
            self.begun_anew += 1;
            self.drain(scope, number);
        }
    }

    /// Something for a task to hear; what it wants done is done.
    fn with_task(&mut self, scope: &mut Scope<'_>, number: u64, act: impl FnOnce(&mut Task, &graph::Links)) {
        if let Some(asked) = self.asked.get_mut(&number) {
            asked.tell(act);
            self.drain(scope, number);
        }
    }

    fn drain(&mut self, scope: &mut Scope<'_>, number: u64) {
        let here = scope.here().node;
        while let Some(next) = self.asked.get_mut(&number).and_then(Asked::poll) {
            match next {
                // Else the others would send what there is no room for until they hear so.
                Next::Send(Place::Asker, Message::Start(graph)) if self.lacks_room(&graph) => {
                    let draw = self.draw(graph.run);
                    if let Some(asked) = self.asked.get_mut(&number) {
                        asked.has_no_room(scope.now.time, graph.run, draw);
                    }
                }
                Next::Send(Place::Node(node), message) if node != here => send_as_asker(scope, node, message),
                Next::Send(to, message) => {
                    if let (Place::Asker, Message::Start(_)) = (to, &message)
                        && let Some(asked) = self.asked.get_mut(&number)
                    {
                        asked.has_begun(self.inflow.begun(scope.now.time));
                    }
                    self.local.push_back((to, Place::Asker, message));
                }
                Next::Ended(made) => {
                    self.note(scope, number, &made);
                    self.made.push_back(made);
                }
            }
        }
    }

    fn lacks_room(&self, graph: &Arc<Graph>) -> bool {
        self.executor.as_ref().is_some_and(|executor| !executor.has_room(graph, Place::Asker))
    }

    fn note(&mut self, scope: &Scope<'_>, number: u64, made: &Made) {
        let now = scope.now.time;
        let Some(asked) = self.asked.remove(&number) else { return };
        let bytes = made.bytes.as_ref().map(|made| made.values().map(|bytes| bytes.len() as u64).sum());
        let mut is_late = false;
        if !made.purpose.whose.is_holder() {
            self.reads.note(bytes.is_some());
        } else if let Some(course) =
            asked.course(now, &self.inflow, scope.here().node).filter(|_| bytes.is_some())
        {
            is_late = self.detours.is_late(course.slowness);
            self.detours.ended(now, scope.timing().node_lease_us, &course);
            tracing::debug!(helpers = ?course.helpers, held = ?course.held, slowness = course.slowness, slow = ?self.detours.slow(now).collect::<Vec<_>>(), "a graph has ended");
        }
        if let Some(planned) = asked.planned() {
            self.orders[planned.scheme as usize].note(planned, now, bytes);
            // What one link holds up says nothing of the others.
            if bytes.is_some() && !is_late {
                self.speed.note(&planned, now);
            }
        }
    }

    fn obey(&mut self, scope: &mut Scope<'_>, command: Command) {
        match command {
            Command::Send { from, to, run, message } => self.send(scope, from, to, run, message),
            Command::Write { run: (run, _), role, offset, bytes } => {
                if let Some(asked) = self.asked_by(run) {
                    asked.write(run, role, offset, &bytes);
                }
            }
            Command::Complete { run: (run, me), .. } => {
                let verdict = self.asked_by(run).map_or(Verdict::Moot, |asked| asked.keep(run));
                self.spoilt += u64::from(verdict == Verdict::Wrong);
                let is_kept = verdict == Verdict::Right;
                if let Some(executor) = &mut self.executor {
                    executor.handle_kept(run, me, is_kept);
                }
            }
            Command::Discard { run: (run, _) } => {
                if let Some(asked) = self.asked_by(run) {
                    asked.discard(run);
                }
            }
        }
    }

    fn asked_by(&mut self, run: RunId) -> Option<&mut Asked> {
        self.asked.get_mut(&(run.number / RUNS_PER_TASK))
    }

    fn send(&mut self, scope: &mut Scope<'_>, from: Place, to: Place, run: RunId, message: Message) {
        let node = match to {
            Place::Node(node) => node,
            Place::Asker => translate::node_of(run),
        };
        if node == scope.here().node {
            return self.local.push_back((to, from, message));
        }
        let (seats, run) = (Seats { from: seat(from), to: seat(to) }, translate::name_of(run));
        let message = match message {
            Message::Slice(Slice { edge, index, sum, bytes, .. }) => {
                if scope.zones().of(scope.here().node) != scope.zones().of(node) {
                    self.zone_bytes += bytes.len() as u64;
                }
                let slice = Checked::said(bytes, sum);
                GraphMessage::Slice(sent::Slice { run, seats, edge, index, slice })
            }
            Message::Credit { edge, below, .. } => {
                GraphMessage::Credit(sent::Credit { run, seats, edge, below })
            }
            Message::AskCredit { edge, .. } => GraphMessage::AskCredit(sent::AskCredit { run, seats, edge }),
            Message::Report { report, .. } => {
                GraphMessage::Report(sent::Report { run, news: translate::news_of(report) })
            }
            // Askers send these, by their tasks.
            Message::Start(_) | Message::Cancel(_) | Message::Probe(_) => return,
        };
        scope.send_of_graph(node, message);
    }
}

fn send_as_asker(scope: &mut Scope<'_>, to: NodeId, message: Message) {
    let message = match message {
        Message::Start(graph) => GraphMessage::Start(Box::new(translate::start_of(&graph))),
        Message::Cancel(run) => GraphMessage::Cancel(sent::Cancel { run: translate::name_of(run) }),
        Message::Probe(run) => GraphMessage::Probe(sent::Probe { run: translate::name_of(run) }),
        // Executors send these.
        Message::Slice(_) | Message::Credit { .. } | Message::AskCredit { .. } | Message::Report { .. } => {
            return;
        }
    };
    scope.send_of_graph(to, message);
}

/// Who is meant and who has sent it; none if it was meant for an earlier process of this node.
fn ends(
    scope: &Scope<'_>,
    from: HostId,
    run: sent::Run,
    seats: Seats,
) -> Result<Option<(Place, Place)>, Impossible> {
    let sender = match seats.from {
        Seat::Node => Place::Node(from.node),
        Seat::Asker if run.asker == sent::Asker::of(from) => Place::Asker,
        Seat::Asker => return Err(Impossible::Graph),
    };
    Ok(match seats.to {
        Seat::Node => Some((Place::Node(scope.here().node), sender)),
        Seat::Asker => is_mine(scope, run).then_some((Place::Asker, sender)),
    })
}

fn is_mine(scope: &Scope<'_>, run: sent::Run) -> bool {
    run.asker == sent::Asker::of(scope.here())
}

fn seat(place: Place) -> Seat {
    match place {
        Place::Node(_) => Seat::Node,
        Place::Asker => Seat::Asker,
    }
}

fn executor_config(scope: &Scope<'_>) -> ExecutorConfig {
    let limits = scope.limits();
    ExecutorConfig {
        memory_bytes: limits.graph_bytes,
        reader_reserve_bytes: limits.graph_reader_bytes,
        rules: scope.rules().graphs().of_executors(),
    }
}
