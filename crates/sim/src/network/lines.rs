//! Lines: the connections between nodes and coordinators. A node has one, to one coordinator at a time.
//!
//! A coordinator notices late that a line was cut; and where coordinators follow each other, what was under way to a node may
//! come to it although the line was cut: the node had read it before.

use std::collections::VecDeque;

use types::HostId;
use wire::message::{FromCoordinator, ToCoordinator};

use crate::cluster::Cluster;
use crate::cluster::nodes::Nodes;
use crate::cluster::process::{Life, Node};
use crate::options::Succession;
use crate::stage::Stage;
use crate::stage::brief::Brief;
use crate::stage::queue::Event;

/// By how much the delay of a message to or from the coordinator varies.
const LINE_JITTER_US: u64 = 100;

/// All lines, and what strays from them.
pub(crate) struct Lines {
    /// By node.
    lines: Vec<Line>,
    /// Messages of former coordinators under way.
    strays: Vec<Option<Stray>>,
}

/// A message of a former coordinator that is still under way: to which life of which node.
pub(crate) struct Stray {
    pub node: usize,
    pub life: u32,
    pub message: FromCoordinator,
}

/// One node's line.
#[derive(Debug)]
struct Line {
    connected: bool,
    /// The number of the coordinator that it is connected to.
    to: u32,
    epoch: u32,
    /// How many faults forbid a connection.
    blocked: u32,
    up: Lane<ToCoordinator>,
    down: Lane<FromCoordinator>,
    /// Who is connected, as the coordinator sees it.
    registered: Option<HostId>,
    /// Whose cut connection the coordinator has not noticed yet.
    lost: Option<HostId>,
}

/// One direction of a line.
#[derive(Debug)]
struct Lane<M> {
    under_way: VecDeque<M>,
    /// When the newest message arrives.
    due: u64,
    /// Least delay.
    delay_us: u64,
}

impl<M> Lane<M> {
    fn new(delay_us: u64) -> Self {
        Self { under_way: VecDeque::new(), due: 0, delay_us }
    }

    /// Sends `message`; when it arrives.
    fn send(&mut self, at: u64, message: M) -> u64 {
        self.due = self.due.max(at + self.delay_us);
        self.under_way.push_back(message);
        self.due
    }

    /// What was under way when it is cut.
    fn cut(&mut self) -> VecDeque<M> {
        self.due = 0;
        std::mem::take(&mut self.under_way)
    }
}

impl Line {
    fn draw(stage: &mut Stage) -> Self {
        let rng = &mut stage.rng.network;
        let mut delay = || if rng.percent(70) { 100 } else { rng.range(100, stage.options.network.line_us) };
        Self {
            connected: false,
            to: 0,
            epoch: 0,
            blocked: 0,
            up: Lane::new(delay()),
            down: Lane::new(delay()),
            registered: None,
            lost: None,
        }
    }

    fn notice_loss(&mut self) -> Option<HostId> {
        let lost = self.lost.take()?;
        self.registered = None;
        Some(lost)
    }
}

impl Lines {
    /// Lines that do not stand yet.
    pub(crate) fn new(stage: &mut Stage) -> Self {
        let lines = (0..stage.options.nodes).map(|_| Line::draw(stage)).collect();
        Self { lines, strays: Vec::new() }
    }

    // --- made and cut ---

    /// `node` tries to connect to the coordinator that is elected, if any node reaches it.
    pub(crate) fn join(&mut self, stage: &mut Stage, cluster: &mut Cluster, node: usize) {
        let map = cluster.nodes.map_version(node);
        let (state, line) = (&mut cluster.nodes[node], &mut self.lines[node]);
        if state.state == Life::Down || line.connected {
            return;
        }
        let is_free = line.blocked == 0 && state.state != Life::Paused;
        let Some(leader) = cluster.coordinators.reachable().filter(|_| is_free) else {
            return join_later(stage, state);
        };
        line.connected = true;
        line.to = leader;
        line.epoch += 1;
        let info = state.info();
        let register = ToCoordinator::Register(state.entrance.knock(info, map));
        // The notice of the former line's end is void with its epoch; the coordinator
        // sees the end now at the latest.
        line.notice_loss();
        self.send_up(stage, node, register);
    }

    /// `node` sends its heartbeat, unless it stands still; and again later, unless it has ended.
    pub(crate) fn beat(&mut self, stage: &mut Stage, nodes: &mut Nodes, node: usize) {
        let state = &nodes[node];
        if state.state == Life::Down {
            return;
        }
        let heartbeat = Event::Heartbeat { node: node as u16, life: state.life };
        stage.after(stage.options.timing.heartbeat_us, heartbeat);
        if let Some(message) = nodes.heartbeat(node) {
            self.send_up(stage, node, message);
            if let Some(report) = nodes[node].quotas.report() {
                self.send_up(stage, node, ToCoordinator::Quotas(report));
            }
        }
    }

    /// Cuts the line of `node`, which tries to connect again.
    pub(crate) fn cut(&mut self, stage: &mut Stage, cluster: &Cluster, node: usize) {
        let state = &cluster.nodes[node];
        let line = &mut self.lines[node];
        if !std::mem::take(&mut line.connected) {
            return;
        }
        line.epoch += 1;
        let (to, epoch) = (line.to, line.epoch);
        line.up.cut();
        let under_way = line.down.cut();
        if line.registered == Some(state.id) {
            line.lost = Some(state.id);
        }
        let after = stage.rng.network.below(stage.options.network.notice_us + 1);
        stage.after(after, Event::Parted { node: node as u16, epoch });
        join_later(stage, state);
        if !cluster.coordinators.leads(to) {
            self.let_stray(stage, state, under_way);
        }
    }

    /// Cuts the lines of all nodes that are connected to coordinator `number`.
    pub(crate) fn part_from(&mut self, stage: &mut Stage, cluster: &Cluster, number: u32) {
        for node in 0..self.lines.len() {
            if self.lines[node].connected && self.lines[node].to == number {
                self.cut(stage, cluster, node);
            }
        }
    }

    /// `node` learns who is elected: a line to another coordinator is cut.
    pub(crate) fn follow(&mut self, stage: &mut Stage, cluster: &Cluster, node: usize) {
        if self.lines[node].connected && !cluster.coordinators.leads(self.lines[node].to) {
            self.cut(stage, cluster, node);
        }
    }

    /// The coordinator notices that a line was cut, unless it stands again: whose it was.
    pub(crate) fn parted(&mut self, node: usize, epoch: u32) -> Option<HostId> {
        let line = &mut self.lines[node];
        if line.epoch == epoch { line.notice_loss() } else { None }
    }

    /// Whether a fault forbids any connection of `node`.
    pub(crate) fn is_blocked(&self, node: usize) -> bool {
        self.lines[node].blocked > 0
    }

    /// No connection until [`Self::unblock`].
    pub(crate) fn block(&mut self, stage: &mut Stage, cluster: &Cluster, node: usize) {
        self.lines[node].blocked += 1;
        self.cut(stage, cluster, node);
    }

    pub(crate) fn unblock(&mut self, node: usize) {
        self.lines[node].blocked -= 1;
    }

    /// Nothing forbids any connection.
    pub(crate) fn unblock_all(&mut self) {
        self.lines.iter_mut().for_each(|line| line.blocked = 0);
    }

    // --- up ---

    pub(crate) fn send_up(&mut self, stage: &mut Stage, node: usize, message: ToCoordinator) {
        let jitter = stage.rng.network.below(LINE_JITTER_US);
        let line = &mut self.lines[node];
        if line.connected {
            let due = line.up.send(stage.now() + jitter, message);
            stage.queue.push(due, Event::Uplink { node: node as u16, epoch: line.epoch });
        }
    }

    /// The oldest message of `node` arrives, unless the line was cut since.
    pub(crate) fn take_up(&mut self, node: usize, epoch: u32) -> Option<ToCoordinator> {
        let line = &mut self.lines[node];
        if line.epoch == epoch { line.up.under_way.pop_front() } else { None }
    }

    /// The coordinator that `node` is connected to.
    pub(crate) fn end_of(&self, node: usize) -> u32 {
        self.lines[node].to
    }

    /// The coordinator reads that process `id` is at the other end.
    pub(crate) fn register(&mut self, id: HostId) {
        self.lines[usize::from(id.node.0)].registered = Some(id);
    }

    // --- down ---

    /// Coordinator `number` sends to process `to`, which is the present one of its node or not.
    pub(crate) fn send_down(
        &mut self,
        stage: &mut Stage,
        cluster: &Cluster,
        number: u32,
        to: HostId,
        message: FromCoordinator,
    ) {
        let jitter = stage.rng.network.below(LINE_JITTER_US);
        let node = usize::from(to.node.0);
        let line = &mut self.lines[node];
        // The coordinator may not know yet that the process has ended: what it sends to
        // that one, the next must not get.
        let is_present = line.registered == Some(to) && cluster.nodes[node].id == to;
        let connected = line.connected && line.to == number && is_present;
        let unsent = if connected { "" } else { " (no line)" };
        note!(stage.book, "coordinator {number} -> {to}: {}{unsent}", Brief(&message));
        if connected {
            let due = line.down.send(stage.now() + jitter, message);
            stage.queue.push(due, Event::Downlink { node: node as u16, epoch: line.epoch });
        }
    }

    /// The oldest message to `node` arrives, unless the line was cut since.
    pub(crate) fn take_down(&mut self, node: usize, epoch: u32) -> Option<FromCoordinator> {
        let line = &mut self.lines[node];
        if line.epoch == epoch { line.down.under_way.pop_front() } else { None }
    }

    /// What is under way to `node`, oldest first.
    pub(crate) fn under_way_to(&self, node: usize) -> impl Iterator<Item = &FromCoordinator> {
        self.lines[node].down.under_way.iter()
    }

    /// Takes all that is under way to `node` from its line.
    pub(crate) fn hold_back(&mut self, node: usize) -> Vec<FromCoordinator> {
        self.lines[node].down.under_way.drain(..).collect()
    }

    /// Messages take `us` microseconds, each way.
    pub(crate) fn slow(&mut self, node: usize, us: u64) {
        (self.lines[node].up.delay_us, self.lines[node].down.delay_us) = (us, us);
    }

    // --- strays ---

    /// What was under way from a former coordinator may have been read before its line was cut.
    fn let_stray(&mut self, stage: &mut Stage, node: &Node, under_way: VecDeque<FromCoordinator>) {
        let Some(Succession { late_us, .. }) = stage.options.succession else { return };
        if !stage.rng.succession.percent(70) {
            return;
        }
        let mut at = stage.now();
        for message in under_way {
            // Late, but in the order in which they were sent: a node reads a line from its beginning.
            at += stage.rng.succession.below(late_us + 1);
            stage.queue.push(at, Event::Stray { message: self.strays.len() as u32 });
            self.strays.push(Some(Stray { node: usize::from(node.id.node.0), life: node.life, message }));
        }
    }

    /// A stray arrives.
    pub(crate) fn take_stray(&mut self, message: usize) -> Option<Stray> {
        self.strays[message].take()
    }
}

fn join_later(stage: &mut Stage, node: &Node) {
    let after = 1 + stage.rng.network.below(2 * stage.options.network.reconnect_us);
    stage.after(after, Event::Join { node: node.id.node.0, life: node.life });
}
