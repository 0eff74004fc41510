//! Nodes and their hosts: who runs, what their clocks show, and when they are to be woken.
//!
//! A host is one shard of a node; its number is `node * shards + shard`. What a host wants done is taken from it with
//! [`Nodes::poll`], and done elsewhere.

use std::ops::{Index, IndexMut, Range};

use bytes::Bytes;
use proto::{Action, Host, Now, QuickRead, Read};
use types::op::{ItemView, Outcome};
use types::{ClusterMap, GroupId, HostId, NodeLoad};
use wire::message::ToCoordinator;

use super::process::{Input, Life, Node, Shard};
use crate::options::Batching;
use crate::stage::Stage;
use crate::stage::clock::Clock;
use crate::stage::queue::Event;

/// Ticks of one host without progress that count as a timer that never comes to rest.
const MAX_IDLE_TICKS: u32 = 2_000;

/// All nodes of a cluster.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    shards: Vec<Shard>,
    shards_each: usize,
}

/// What came of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticked {
    /// It was not due.
    Early,
    /// The host has done what was due.
    Done,
    /// Something is due still, at the same moment.
    Stuck,
}

impl Index<usize> for Nodes {
    type Output = Node;

    fn index(&self, node: usize) -> &Node {
        &self.nodes[node]
    }
}

impl IndexMut<usize> for Nodes {
    fn index_mut(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }
}

impl Nodes {
    /// Nodes whose processes are about to start.
    pub(crate) fn new(stage: &mut Stage) -> Self {
        let options = &stage.options;
        let rng = &mut stage.rng.processes;
        let node = |node| Node::new(node, Clock::draw(rng, options.drift_ppm), options);
        Self {
            nodes: (0..options.nodes).map(node).collect(),
            shards: (0..options.nodes * options.shards).map(|_| Shard::empty()).collect(),
            shards_each: options.shards,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// The nodes whose processes run.
    pub(crate) fn up(&self) -> Vec<usize> {
        (0..self.count()).filter(|node| self.is_up(*node)).collect()
    }

    pub(crate) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].state == Life::Up
    }

    /// Whether process `id` has not ended.
    pub(crate) fn is_alive(&self, id: HostId) -> bool {
        let node = &self.nodes[usize::from(id.node.0)];
        node.id == id && node.state != Life::Down
    }

    // --- hosts ---

    /// How many hosts there are, running or not.
    pub(crate) fn host_count(&self) -> usize {
        self.shards.len()
    }

    /// The hosts of `node`.
    pub(crate) fn hosts_on(&self, node: usize) -> Range<usize> {
        node * self.shards_each..(node + 1) * self.shards_each
    }

    /// The node of `host`.
    pub(crate) fn node_of(&self, host: usize) -> usize {
        host / self.shards_each
    }

    /// The process that `host` is a part of.
    pub(crate) fn id_of(&self, host: usize) -> HostId {
        self.nodes[self.node_of(host)].id
    }

    /// The host of `node` that sees to `group`.
    pub(crate) fn host_for(&self, node: usize, group: GroupId) -> usize {
        node * self.shards_each + group.0 as usize % self.shards_each
    }

    /// The state machine of `host`; none while its node is down.
    pub(crate) fn host(&self, host: usize) -> Option<&Host> {
        self.shards[host].host.as_ref()
    }

    pub(crate) fn host_mut(&mut self, host: usize) -> Option<&mut Host> {
        self.shards[host].host.as_mut()
    }

    /// The hosts that have not ended.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.shards.iter().filter_map(|shard| shard.host.as_ref())
    }

    /// The host of `node` for `group`; none while the node is down.
    pub(crate) fn host_of(&self, node: usize, group: GroupId) -> Option<&Host> {
        self.host(self.host_for(node, group))
    }

    /// The running host that is process `id`, for `group`; none if that life of the node has ended.
    pub(crate) fn host_by_id(&self, id: HostId, group: GroupId) -> Option<&Host> {
        let node = usize::from(id.node.0);
        if self.nodes[node].id != id { None } else { self.host_of(node, group) }
    }

    /// The map that `node` has.
    pub(crate) fn map_of(&self, node: usize) -> Option<&ClusterMap> {
        self.host(node * self.shards_each).and_then(Host::map)
    }

    /// Whether host `a` has a map in which the present process of `b` is named.
    pub(crate) fn knows(&self, a: usize, b: usize) -> bool {
        let id = self.id_of(b);
        let map = self.host(a).and_then(Host::map);
        map.and_then(|map| map.node(id.node)).is_some_and(|info| info.host == id)
    }

    // --- inputs ---

    /// An input comes to `node`; it is given back if it is to be fed now, and not when the node goes on after a pause.
    pub(crate) fn accept(&mut self, node: usize, input: Input) -> Option<Input> {
        match self.nodes[node].state {
            Life::Up => Some(input),
            Life::Paused => {
                self.nodes[node].backlog.push_back(input);
                None
            }
            Life::Down => None,
        }
    }

    /// Lets `host` do something, with what it reads on its clocks; false if it has ended.
    pub(crate) fn drive(&mut self, stage: &Stage, host: usize, act: impl FnOnce(&mut Host, Now)) -> bool {
        let now = stage.read(&self.nodes[self.node_of(host)].clock);
        let Some(machine) = self.host_mut(host) else { return false };
        act(machine, now);
        true
    }

    /// The next thing that `host` wants done.
    pub(crate) fn poll(&mut self, host: usize) -> Option<Action> {
        self.host_mut(host)?.poll_action()
    }

    /// After an input: the batch ends now, or later.
    pub(crate) fn batch(&mut self, stage: &mut Stage, host: usize) {
        self.shards[host].idle_ticks = 0;
        match stage.options.batching {
            Batching::Never => {
                self.drive(stage, host, |machine, now| machine.flush(now));
            }
            Batching::Upto(most_us) => {
                if !std::mem::replace(&mut self.shards[host].flush_pending, true) {
                    let after = stage.rng.processes.below(most_us + 1);
                    stage.after(after, Event::Flush { host: host as u16 });
                }
            }
        }
    }

    /// The end of a batch has come; false if the node does not run.
    pub(crate) fn flush(&mut self, stage: &Stage, host: usize) -> bool {
        self.shards[host].flush_pending = false;
        self.is_up(self.node_of(host)) && self.drive(stage, host, |machine, now| machine.flush(now))
    }

    /// Whether the end of a batch is in the queue.
    pub(crate) fn is_batching(&self, host: usize) -> bool {
        self.shards[host].flush_pending
    }

    /// Reads by the way without messages, if that is possible.
    pub(crate) fn quick_read(&mut self, stage: &Stage, host: usize, asked: QuickRead<'_>) -> Option<Outcome> {
        let mut view = None;
        let mut read = Read::Submit;
        self.drive(stage, host, |machine, now| {
            read = machine.read(now, machine.locate(asked.key), asked, |seen| {
                view = Some(ItemView { value: Bytes::copy_from_slice(seen.item.value), ..seen.view() });
            });
        });
        match read {
            Read::Hit => view.map(Outcome::Hit),
            Read::Miss => Some(Outcome::Miss),
            Read::Submit => None,
        }
    }

    /// What `node` tells the coordinator now and then; none while it stands still.
    pub(crate) fn heartbeat(&mut self, node: usize) -> Option<ToCoordinator> {
        let map = self.map_version(node);
        let state = &mut self.nodes[node];
        if state.state != Life::Up {
            return None;
        }
        Some(if state.entrance.asks_again() {
            ToCoordinator::Register(state.entrance.registration(state.info(), map))
        } else {
            ToCoordinator::Heartbeat { host: state.id, map, load: NodeLoad::default() }
        })
    }

    /// Version of the map of the worker that is furthest behind: it speaks for its node, so that what it missed comes again.
    pub(crate) fn map_version(&self, node: usize) -> u64 {
        let versions = self.hosts_on(node).map(|host| self.host(host)?.map().map(|map| map.version));
        versions.map(Option::unwrap_or_default).min().unwrap_or(0)
    }

    // --- timers ---

    /// Sets the timer of `host`.
    pub(crate) fn arm(&mut self, stage: &mut Stage, host: usize) {
        let clock = &self.nodes[self.node_of(host)].clock;
        let shard = &mut self.shards[host];
        let Some(machine) = &shard.host else { return };
        let Some(at) = clock.when(machine.next_deadline(), stage.now()) else { return };
        // One that is in the queue and comes too early does no harm: it finds nothing due, and sets the timer anew.
        if at < shard.tick_at {
            shard.tick_at = at;
            stage.queue.push(at, Event::Tick { host: host as u16 });
        }
    }

    /// Whether the timer of `host` was not set anew since, and its node runs.
    pub(crate) fn tick_is_due(&mut self, stage: &Stage, host: usize) -> bool {
        let is_due = self.shards[host].tick_at == stage.now();
        if is_due {
            self.shards[host].tick_at = u64::MAX;
        }
        is_due && self.is_up(self.node_of(host))
    }

    /// `host` looks at its clock.
    pub(crate) fn tick(&mut self, stage: &Stage, host: usize) -> Ticked {
        let mut ticked = Ticked::Early;
        self.drive(stage, host, |machine, now| {
            if machine.next_deadline() <= now.time {
                machine.tick(now);
                machine.flush(now);
                let is_stuck = machine.next_deadline() <= now.time;
                ticked = if is_stuck { Ticked::Stuck } else { Ticked::Done };
            }
        });
        ticked
    }

    /// After a tick, and all that came of it: sets the timer anew.
    pub(crate) fn rest(&mut self, stage: &mut Stage, host: usize, ticked: Ticked) {
        if ticked != Ticked::Early {
            self.shards[host].idle_ticks += 1;
        }
        if ticked != Ticked::Stuck {
            return self.arm(stage, host);
        }
        if self.shards[host].idle_ticks > MAX_IDLE_TICKS {
            let what = format!("{} wants to be woken again and again at one moment", self.id_of(host));
            stage.book.fail("timer", None, what);
        }
        // Time must pass, or nothing else would ever happen.
        self.shards[host].tick_at = stage.now() + 1;
        stage.after(1, Event::Tick { host: host as u16 });
    }

    // --- processes ---

    /// The process of `node` begins.
    pub(crate) fn start(&mut self, stage: &mut Stage, node: usize) {
        let hosts = self.hosts_on(node);
        for (shard, host) in hosts.clone().enumerate() {
            self.shards[host] = Shard {
                host: Some(self.nodes[node].host(shard, &stage.options)),
                idle_ticks: self.shards[host].idle_ticks,
                ..Shard::empty()
            };
        }
        hosts.for_each(|host| self.arm(stage, host));
    }

    /// The process of `node` ends; its memory is gone.
    pub(crate) fn end(&mut self, stage: &mut Stage, node: usize) {
        note!(stage.book, "{} crashes", self.nodes[node].id);
        stage.book.stats.crashes += 1;
        for host in self.hosts_on(node) {
            let ended = self.shards[host].host.take();
            let Some(ended) = ended else { continue };
            stage.book.stats.resumed += ended.stats().resumed_parities;
            stage.book.stats.count_parts(&ended.graph_stats().reads);
        }
        let state = &mut self.nodes[node];
        state.state = Life::Down;
        state.ended_at = stage.now();
        state.backlog.clear();
        // Whatever a host has taken from the budget goes back with it. The rest has leaked.
        // Bytes of chunks that are on their way to others go back when they have arrived.
        let left = state.budget.total_used() - state.budget.used(store::Category::Chunks);
        if left != 0 {
            let what = format!("{} has ended and still holds {left} bytes", state.id);
            stage.book.fail("budget", None, what);
        }
    }

    /// The process of `node` stands still.
    pub(crate) fn pause(&mut self, stage: &mut Stage, node: usize) {
        if self.is_up(node) {
            note!(stage.book, "{} stands still", self.nodes[node].id);
            self.nodes[node].state = Life::Paused;
        }
    }

    /// The process of `node` goes on; false if it did not stand still.
    pub(crate) fn wake(&mut self, stage: &mut Stage, node: usize) -> bool {
        if self.nodes[node].state != Life::Paused {
            return false;
        }
        note!(stage.book, "{} goes on", self.nodes[node].id);
        self.nodes[node].state = Life::Up;
        true
    }
}
