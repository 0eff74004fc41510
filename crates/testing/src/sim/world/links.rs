//! Connections between nodes and to the coordinator: made, cut, noticed, made again.

use types::HostId;
use wire::message::{FromCoordinator, ToCoordinator};

use super::super::brief::Brief;
use super::super::faults::Target;
use super::super::network::Parcel;
use super::super::process::{CoordinatorInput, Input, Life};
use super::super::queue::Event;
use super::World;

/// By how much the delay of a message to or from the coordinator varies.
const LINE_JITTER_US: u64 = 100;

impl World {
    pub(crate) fn post(&mut self, wire: usize, parcel: Parcel) {
        let due = self.wires.post(wire, self.stage.now(), parcel, &mut self.stage.rng.network);
        let epoch = self.wires.get(wire).epoch;
        self.stage.queue.push(due, Event::Deliver { wire: wire as u32, epoch });
    }

    pub(super) fn deliver(&mut self, wire: usize, epoch: u32) {
        let state = self.wires.get_mut(wire);
        if state.epoch != epoch {
            return;
        }
        if state.held {
            state.overdue += 1;
            return;
        }
        let Some(parcel) = state.parcels.pop_front() else { return };
        self.hand_over(wire, parcel);
    }

    /// The receiver's end of `wire` reads `parcel`.
    pub(crate) fn hand_over(&mut self, wire: usize, parcel: Parcel) {
        let (from, to) = self.wires.ends(wire);
        let (node, shard) = (to / self.stage.options.shards, (to % self.stage.options.shards) as u16);
        self.stage.book.mix(self.stage.now() ^ (wire as u64) << 40);
        match parcel {
            Parcel::Up(peer) => self.give(node, Input::LinkUp { shard, wire: wire as u32, peer }),
            Parcel::Message(message) => {
                self.stage.book.stats.messages += 1;
                let from = self.nodes[from / self.stage.options.shards].id;
                self.give(node, Input::Peer { shard, from, message });
            }
        }
    }

    /// Sees to it that the hosts of `pair` try to connect.
    pub(crate) fn try_to_connect(&mut self, pair: usize) {
        if self.wires.pairs[pair].trying {
            return;
        }
        self.wires.pairs[pair].trying = true;
        let after = 1 + self.stage.rng.network.below(2 * self.stage.options.network.reconnect_us);
        self.stage.after(after, Event::Connect { pair: pair as u32 });
    }

    pub(super) fn connect(&mut self, pair: usize) {
        self.wires.pairs[pair].trying = false;
        let state = &self.wires.pairs[pair];
        if state.connected {
            return;
        }
        let (a, b) = (usize::from(state.hosts.0), usize::from(state.hosts.1));
        if state.blocked > 0 || !self.is_up(a) || !self.is_up(b) || !(self.knows(a, b) || self.knows(b, a)) {
            return self.try_to_connect(pair);
        }
        self.wires.pairs[pair].connected = true;
        for wire in self.wires.of_pair(pair) {
            self.wires.cut(wire);
            let (from, _) = self.wires.ends(wire);
            let id = self.nodes[from / self.stage.options.shards].id;
            self.post(wire, Parcel::Up(id));
        }
    }

    fn is_up(&self, host: usize) -> bool {
        self.nodes[host / self.stage.options.shards].state == Life::Up
    }

    /// Whether `a` has a map in which the present process of `b` is named.
    fn knows(&self, a: usize, b: usize) -> bool {
        let id = self.nodes[b / self.stage.options.shards].id;
        let map = self.shards[a].host.as_ref().and_then(proto::Host::map);
        map.and_then(|map| map.node(id.node)).is_some_and(|info| info.host == id)
    }

    pub(super) fn feed_link_up(&mut self, host: usize, wire: usize, peer: HostId) {
        self.feed_link_down(host, wire);
        let me = self.nodes[host / self.stage.options.shards].id;
        note!(self.stage.book, "{me} link up to {peer}");
        self.wires.get_mut(wire).sender = Some(peer);
        let back = self.wires.back(wire);
        let pair = self.wires.pair_of(wire);
        // Unless it was cut again meanwhile, which the end has not noticed.
        if self.wires.pairs[pair].connected && self.nodes[usize::from(peer.node.0)].id == peer {
            self.wires.get_mut(back).open = true;
        }
        let now = self.now_of(host);
        if let Some(machine) = &mut self.shards[host].host {
            machine.link_up(now, peer);
            self.after(host);
        }
    }

    pub(super) fn feed_link_down(&mut self, host: usize, wire: usize) {
        let Some(peer) = self.wires.get_mut(wire).sender.take() else { return };
        let me = self.nodes[host / self.stage.options.shards].id;
        note!(self.stage.book, "{me} link down to {peer}");
        let now = self.now_of(host);
        if let Some(machine) = &mut self.shards[host].host {
            machine.link_down(now, peer);
            self.after(host);
        }
    }

    /// Cuts a connection: what is under way is lost, and both ends notice sooner or later.
    pub(crate) fn cut(&mut self, pair: usize) {
        if !std::mem::take(&mut self.wires.pairs[pair].connected) {
            return;
        }
        for wire in self.wires.of_pair(pair) {
            self.wires.cut(wire);
            let epoch = self.wires.get(wire).epoch;
            let after = self.stage.rng.network.below(self.stage.options.network.notice_us + 1);
            self.stage.after(after, Event::Notice { wire: wire as u32, epoch });
        }
        self.try_to_connect(pair);
    }

    pub(super) fn notice_cut(&mut self, wire: usize, epoch: u32) {
        if self.wires.get(wire).epoch != epoch {
            return;
        }
        let (_, to) = self.wires.ends(wire);
        let shard = (to % self.stage.options.shards) as u16;
        self.give(to / self.stage.options.shards, Input::LinkDown { shard, wire: wire as u32 });
    }

    pub(super) fn heartbeat(&mut self, node: usize, life: u32) {
        if self.nodes[node].life != life || self.nodes[node].state == Life::Down {
            return;
        }
        let next = self.stage.now() + self.stage.options.timing.heartbeat_us;
        self.stage.queue.push(next, Event::Heartbeat { node: node as u16, life });
        if self.nodes[node].state == Life::Up {
            let first = node * self.stage.options.shards;
            let versions = (first..first + self.stage.options.shards).map(|host| {
                self.shards[host].host.as_ref().and_then(proto::Host::map).map_or(0, |map| map.version)
            });
            let map = versions.min().unwrap_or(0);
            let load = types::NodeLoad::default();
            let state = &mut self.nodes[node];
            let message = if state.entrance.asks_again() {
                ToCoordinator::Register(state.entrance.registration(state.info()))
            } else {
                ToCoordinator::Heartbeat { host: state.id, map, load }
            };
            self.send_up(node, message);
        }
    }

    pub(super) fn join(&mut self, node: usize, life: u32) {
        let state = &self.nodes[node];
        if state.life != life || state.state == Life::Down || state.line.connected {
            return;
        }
        let leader =
            self.leader.filter(|number| self.process(*number).is_some_and(|leader| !leader.isolated));
        let state = &mut self.nodes[node];
        let Some(leader) = leader.filter(|_| state.line.blocked == 0 && state.state != Life::Paused) else {
            let after = 1 + self.stage.rng.network.below(2 * self.stage.options.network.reconnect_us);
            self.stage.after(after, Event::Join { node: node as u16, life });
            return;
        };
        state.line.connected = true;
        state.line.to = leader;
        state.line.epoch += 1;
        let info = state.info();
        let register = ToCoordinator::Register(state.entrance.knock(info));
        self.notice_lost_line(node);
        self.send_up(node, register);
    }

    pub(crate) fn send_up(&mut self, node: usize, message: ToCoordinator) {
        let jitter = self.stage.rng.network.below(LINE_JITTER_US);
        let line = &mut self.nodes[node].line;
        if !line.connected {
            return;
        }
        let due = (self.stage.now() + line.delay_us.0 + jitter).max(line.up_due);
        line.up_due = due;
        line.up.push_back(message);
        let epoch = line.epoch;
        self.stage.queue.push(due, Event::Uplink { node: node as u16, epoch });
    }

    pub(super) fn uplink(&mut self, node: usize, epoch: u32) {
        let state = &mut self.nodes[node];
        if state.line.epoch != epoch {
            return;
        }
        let from = state.id;
        if let Some(message) = state.line.up.pop_front() {
            self.stage.book.mix(self.stage.now() ^ (node as u64) << 50);
            self.stage.book.stats.messages += 1;
            let to = self.nodes[node].line.to;
            self.give_coordinator(to, CoordinatorInput::Message(from, Box::new(message)));
        }
    }

    pub(crate) fn send_down(&mut self, number: u32, to: HostId, message: FromCoordinator) {
        let node = usize::from(to.node.0);
        match message {
            FromCoordinator::Fence { .. } | FromCoordinator::Settle { .. } => self.aim(Target::Recovery),
            FromCoordinator::Keep { .. } => self.aim(Target::Decision),
            _ => {}
        }
        let jitter = self.stage.rng.network.below(LINE_JITTER_US);
        let state = &mut self.nodes[node];
        let line = &state.line;
        let connected = line.connected && line.to == number && line.registered == Some(to) && state.id == to;
        let unsent = if connected { "" } else { " (no line)" };
        note!(self.stage.book, "coordinator {number} -> {to}: {}{unsent}", Brief(&message));
        let line = &mut self.nodes[node].line;
        if !connected {
            return;
        }
        let due = (self.stage.now() + line.delay_us.1 + jitter).max(line.down_due);
        line.down_due = due;
        line.down.push_back(message);
        let epoch = line.epoch;
        self.stage.queue.push(due, Event::Downlink { node: node as u16, epoch });
    }

    pub(super) fn downlink(&mut self, node: usize, epoch: u32) {
        let line = &mut self.nodes[node].line;
        if line.epoch != epoch {
            return;
        }
        if let Some(message) = line.down.pop_front() {
            self.stage.book.stats.messages += 1;
            self.stage.book.mix(self.stage.now() ^ (node as u64) << 52);
            self.give(node, Input::Coordinator(message));
        }
    }

    /// Cuts a node's line to the coordinator.
    pub(crate) fn cut_line(&mut self, node: usize) {
        let life = self.nodes[node].life;
        let id = self.nodes[node].id;
        let line = &mut self.nodes[node].line;
        if !std::mem::take(&mut line.connected) {
            return;
        }
        line.epoch += 1;
        let (number, under_way) = (line.to, std::mem::take(&mut line.down));
        line.up.clear();
        line.up_due = 0;
        line.down_due = 0;
        if line.registered == Some(id) {
            line.lost = Some(id);
        }
        let epoch = line.epoch;
        let after = self.stage.rng.network.below(self.stage.options.network.notice_us + 1);
        self.stage.after(after, Event::Parted { node: node as u16, epoch });
        let again = 1 + self.stage.rng.network.below(2 * self.stage.options.network.reconnect_us);
        self.stage.after(again, Event::Join { node: node as u16, life });
        self.let_stray(node, number, under_way);
    }

    pub(super) fn parted(&mut self, node: usize, epoch: u32) {
        if self.nodes[node].line.epoch == epoch {
            self.notice_lost_line(node);
        }
    }

    pub(super) fn notice_lost_line(&mut self, node: usize) {
        let line = &mut self.nodes[node].line;
        if line.lost.take().is_some() {
            line.registered = None;
        }
    }
}
