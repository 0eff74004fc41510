//! Wires between hosts: FIFO while they live, but that urgent messages overtake bulky ones; empty after a cut.

use std::collections::VecDeque;

use rng::Rng;
use types::HostId;
use wire::Lane;
use wire::message::PeerMessage;

use crate::cluster::nodes::Nodes;
use crate::cluster::process::Life;
use crate::options::Network;
use crate::stage::Stage;
use crate::stage::queue::Event;

/// What travels on a wire.
#[derive(Debug)]
pub(crate) enum Parcel {
    /// The connection stands; the sender is this process.
    Up(HostId),
    /// A message.
    Message(PeerMessage),
}

impl Parcel {
    fn is_cell(&self) -> bool {
        matches!(self, Self::Message(message) if message.is_cell())
    }

    fn lane(&self) -> Lane {
        match self {
            // The first of all, so nothing may overtake it.
            Self::Up(_) => Lane::Urgent,
            Self::Message(message) => message.lane(),
        }
    }
}

/// A parcel at the end of its wire.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub wire: usize,
    pub parcel: Parcel,
}

/// One direction between the same shard of two nodes.
#[derive(Debug)]
struct Wire {
    /// Counts the cuts; what was sent in an earlier epoch never arrives.
    epoch: u32,
    /// Whether the sender's end is connected.
    open: bool,
    /// Whom the receiver believes to be connected to.
    sender: Option<HostId>,
    /// What is under way, oldest first.
    parcels: VecDeque<Parcel>,
    /// When the newest parcel arrives.
    last_due: u64,
    /// Least delay.
    base_us: u64,
    /// What a fault adds to it.
    extra_us: u64,
    /// A story keeps parcels from being delivered.
    held: bool,
    /// Parcels whose time came while the wire was held.
    overdue: u32,
}

impl Wire {
    fn draw(network: &Network, rng: &mut Rng) -> Self {
        let slow = if rng.percent(network.slow_percent) { 10 } else { 1 };
        Self {
            epoch: 0,
            open: false,
            sender: None,
            parcels: VecDeque::new(),
            last_due: 0,
            base_us: rng.range(network.least_us, network.most_us) * slow,
            extra_us: 0,
            held: false,
            overdue: 0,
        }
    }

    /// Empties it; nothing that is on it arrives.
    fn cut(&mut self) {
        self.epoch += 1;
        self.open = false;
        self.parcels.clear();
        self.overdue = 0;
        // The next connection does not queue behind what this one had under way.
        self.last_due = 0;
    }
}

/// Two directions between the same shard of two nodes.
#[derive(Debug)]
struct Pair {
    /// Hosts, the smaller first.
    hosts: (u16, u16),
    /// A connection was made and not cut since.
    connected: bool,
    /// How many faults forbid a connection.
    blocked: u32,
    /// Whether an attempt to connect is in the queue.
    trying: bool,
}

/// All wires of a cluster. A host is `node * shards + shard`.
#[derive(Debug)]
pub(crate) struct Wires {
    shards: usize,
    nodes: usize,
    wires: Vec<Wire>,
    pairs: Vec<Pair>,
    /// Position in `pairs` by wire.
    pair_of: Vec<u32>,
    jitter_us: u64,
    full_percent: u64,
}

impl Wires {
    /// Wires of hosts that are not connected yet.
    pub(crate) fn new(nodes: usize, shards: usize, network: &Network, rng: &mut Rng) -> Self {
        let wires: Vec<Wire> = (0..nodes * nodes * shards).map(|_| Wire::draw(network, rng)).collect();
        let mut pairs = Vec::new();
        let mut pair_of = vec![u32::MAX; wires.len()];
        for a in 0..nodes {
            for b in a + 1..nodes {
                for shard in 0..shards {
                    pair_of[(a * nodes + b) * shards + shard] = pairs.len() as u32;
                    pair_of[(b * nodes + a) * shards + shard] = pairs.len() as u32;
                    let host = |node: usize| (node * shards + shard) as u16;
                    pairs.push(Pair {
                        hosts: (host(a), host(b)),
                        connected: false,
                        blocked: 0,
                        trying: false,
                    });
                }
            }
        }
        Self {
            shards,
            nodes,
            wires,
            pairs,
            pair_of,
            jitter_us: network.jitter_us,
            full_percent: network.full_percent,
        }
    }

    /// The wire from host `from` to the same shard of node `to`.
    pub(crate) fn between(&self, from: usize, to_node: usize) -> usize {
        let (node, shard) = (from / self.shards, from % self.shards);
        (node * self.nodes + to_node) * self.shards + shard
    }

    /// The hosts at the two ends of a wire: sender, receiver.
    pub(crate) fn ends(&self, wire: usize) -> (usize, usize) {
        let (nodes, shard) = (wire / self.shards, wire % self.shards);
        let host = |node: usize| node * self.shards + shard;
        (host(nodes / self.nodes), host(nodes % self.nodes))
    }

    /// The wire in the other direction.
    pub(crate) fn back(&self, wire: usize) -> usize {
        let (from, to) = self.ends(wire);
        self.between(to, from / self.shards)
    }

    /// The pair that a wire belongs to.
    pub(crate) fn pair_of(&self, wire: usize) -> usize {
        self.pair_of[wire] as usize
    }

    /// The two wires of a pair.
    pub(crate) fn of_pair(&self, pair: usize) -> [usize; 2] {
        let (a, b) = self.pairs[pair].hosts;
        let there = self.between(usize::from(a), usize::from(b) / self.shards);
        [there, self.back(there)]
    }

    /// The pairs between two nodes, one for each shard.
    pub(crate) fn pairs_between(&self, a: usize, b: usize) -> Vec<usize> {
        (0..self.shards).map(|shard| self.pair_of(self.between(a * self.shards + shard, b))).collect()
    }

    /// The pairs with one end on `node`.
    pub(crate) fn pairs_of(&self, node: usize) -> Vec<usize> {
        (0..self.nodes)
            .filter(|other| *other != node)
            .flat_map(|other| self.pairs_between(node, other))
            .collect()
    }

    /// Whether the sender's end of a wire is connected.
    pub(crate) fn is_open(&self, wire: usize) -> bool {
        self.wires[wire].open
    }

    // --- parcels ---

    /// Puts a parcel on a wire. In order, whatever the jitter; a message overtakes some of those of later lanes that it would follow,
    /// and a wire that is full takes no cell.
    pub(crate) fn post(&mut self, stage: &mut Stage, wire: usize, parcel: Parcel) {
        if self.full_percent > 0 && parcel.is_cell() && stage.rng.network.percent(self.full_percent) {
            return;
        }
        let jitter = if self.jitter_us == 0 { 0 } else { stage.rng.network.tailed(self.jitter_us) };
        let state = &mut self.wires[wire];
        let due = (stage.now() + state.base_us + state.extra_us + jitter).max(state.last_due);
        state.last_due = due;
        let overtakes = if self.jitter_us > 0 {
            let lane = parcel.lane();
            let behind = state.parcels.iter().rev().take_while(|before| before.lane() > lane).count();
            if behind == 0 { 0 } else { stage.rng.network.below(behind as u64 + 1) as usize }
        } else {
            0
        };
        // Whoever is overtaken arrives when the next one would have.
        state.parcels.insert(state.parcels.len() - overtakes, parcel);
        stage.queue.push(due, Event::Deliver { wire: wire as u32, epoch: state.epoch });
    }

    /// The first parcel of a wire arrives, unless the wire was cut since, or is held.
    pub(crate) fn arrive(&mut self, wire: usize, epoch: u32) -> Option<Parcel> {
        let state = &mut self.wires[wire];
        if state.epoch != epoch {
            return None;
        }
        if state.held {
            state.overdue += 1;
            return None;
        }
        state.parcels.pop_front()
    }

    /// Whether a wire was not cut since `epoch`.
    pub(crate) fn is_current(&self, wire: usize, epoch: u32) -> bool {
        self.wires[wire].epoch == epoch
    }

    // --- connections ---

    /// Whether every host is connected to its peers.
    pub(crate) fn all_connected(&self) -> bool {
        self.pairs.iter().all(|pair| pair.connected)
    }

    /// Sees to it that the hosts of `pair` try to connect.
    pub(crate) fn try_to_connect(&mut self, stage: &mut Stage, pair: usize) {
        if !std::mem::replace(&mut self.pairs[pair].trying, true) {
            let after = 1 + stage.rng.network.below(2 * stage.options.network.reconnect_us);
            stage.after(after, Event::Connect { pair: pair as u32 });
        }
    }

    /// The hosts of `pair` connect, if nothing keeps them from it.
    pub(crate) fn connect(&mut self, stage: &mut Stage, nodes: &Nodes, pair: usize) {
        let state = &mut self.pairs[pair];
        state.trying = false;
        if state.connected {
            return;
        }
        let (a, b) = (usize::from(state.hosts.0), usize::from(state.hosts.1));
        // A host connects to whom its map names. One of the two is enough: the other
        // may have an old map, or none yet.
        let ends = [a, b].map(|host| nodes[nodes.node_of(host)].state);
        if ends.contains(&Life::Down) {
            // The next process there tries ([`Self::begin_at`]).
            return;
        }
        let both_up = ends == [Life::Up; 2];
        if state.blocked > 0 || !both_up || !(nodes.knows(a, b) || nodes.knows(b, a)) {
            return self.try_to_connect(stage, pair);
        }
        state.connected = true;
        for wire in self.of_pair(pair) {
            // A new epoch, so that nothing of the former connection comes any more, not even the notice of its end.
            self.wires[wire].cut();
            let (from, _) = self.ends(wire);
            self.post(stage, wire, Parcel::Up(nodes.id_of(from)));
        }
    }

    /// The receiver of a wire reads that it stands, and that `peer` sends.
    pub(crate) fn stands(&mut self, nodes: &Nodes, wire: usize, peer: HostId) {
        self.wires[wire].sender = Some(peer);
        // Unless it was cut again meanwhile, which the end has not noticed.
        if self.pairs[self.pair_of(wire)].connected && nodes[usize::from(peer.node.0)].id == peer {
            let back = self.back(wire);
            self.wires[back].open = true;
        }
    }

    /// The receiver of a wire notices that it was cut; from whom.
    pub(crate) fn fell(&mut self, wire: usize) -> Option<HostId> {
        self.wires[wire].sender.take()
    }

    /// Cuts a connection: what is under way is lost, and both ends notice sooner or later.
    pub(crate) fn cut(&mut self, stage: &mut Stage, pair: usize) {
        if !std::mem::take(&mut self.pairs[pair].connected) {
            return;
        }
        for wire in self.of_pair(pair) {
            self.wires[wire].cut();
            let after = stage.rng.network.below(stage.options.network.notice_us + 1);
            stage.after(after, Event::Notice { wire: wire as u32, epoch: self.wires[wire].epoch });
        }
        self.try_to_connect(stage, pair);
    }

    /// Cuts all connections between two nodes.
    pub(crate) fn cut_between(&mut self, stage: &mut Stage, a: usize, b: usize) {
        for pair in self.pairs_between(a, b) {
            self.cut(stage, pair);
        }
    }

    /// The hosts of `node` try to connect to all others.
    pub(crate) fn begin_at(&mut self, stage: &mut Stage, node: usize) {
        for pair in self.pairs_of(node) {
            self.try_to_connect(stage, pair);
        }
    }

    /// `node` has ended: its connections break.
    pub(crate) fn end_at(&mut self, stage: &mut Stage, node: usize) {
        for pair in self.pairs_of(node) {
            self.cut(stage, pair);
            for wire in self.of_pair(pair) {
                let (_, to) = self.ends(wire);
                // The process that was connected is gone: the next one must not hear of the end of
                // a connection that it never had.
                if to / self.shards == node {
                    self.wires[wire].sender = None;
                }
            }
        }
    }

    // --- faults ---

    /// No connection between two nodes until [`Self::unblock`].
    pub(crate) fn block(&mut self, stage: &mut Stage, a: usize, b: usize) {
        for pair in self.pairs_between(a, b) {
            self.pairs[pair].blocked += 1;
            self.cut(stage, pair);
        }
    }

    pub(crate) fn unblock(&mut self, a: usize, b: usize) {
        for pair in self.pairs_between(a, b) {
            self.pairs[pair].blocked -= 1;
        }
    }

    /// Nothing forbids any connection.
    pub(crate) fn unblock_all(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.blocked = 0);
    }

    /// What `from` sends to `to` takes `extra_us` longer.
    pub(crate) fn slow(&mut self, from: usize, to: usize, extra_us: u64) {
        for shard in 0..self.shards {
            let wire = self.between(from * self.shards + shard, to);
            self.wires[wire].extra_us = extra_us;
        }
    }

    /// What the first shard of `from` sends to `to` waits on the wire.
    pub(crate) fn hold(&mut self, from: usize, to: usize) {
        let wire = self.first_between(from, to);
        self.wires[wire].held = true;
    }

    /// What waits on the wire arrives, and what comes after it.
    pub(crate) fn release(&mut self, stage: &mut Stage, from: usize, to: usize) {
        let wire = self.first_between(from, to);
        let state = &mut self.wires[wire];
        state.held = false;
        for _ in 0..std::mem::take(&mut state.overdue) {
            stage.after(0, Event::Deliver { wire: wire as u32, epoch: state.epoch });
        }
    }

    /// Takes the first parcel that waits on a held wire.
    pub(crate) fn take_held(&mut self, from: usize, to: usize) -> Option<Arrived> {
        let wire = self.first_between(from, to);
        let state = &mut self.wires[wire];
        state.overdue = state.overdue.checked_sub(1)?;
        Some(Arrived { wire, parcel: state.parcels.pop_front()? })
    }

    fn first_between(&self, from: usize, to: usize) -> usize {
        self.between(from * self.shards, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn every_wire_knows_its_ends_its_pair_and_its_way_back() {
        let network = Options::quiet(3, 2, 5).network;
        let wires = Wires::new(4, 3, &network, &mut Rng::new(1, 1));
        for from in 0..4 {
            for to in (0..4).filter(|to| *to != from) {
                for shard in 0..3 {
                    let wire = wires.between(from * 3 + shard, to);
                    assert_eq!(wires.ends(wire), (from * 3 + shard, to * 3 + shard));
                    assert_eq!(wires.ends(wires.back(wire)), (to * 3 + shard, from * 3 + shard));
                    assert!(wires.of_pair(wires.pair_of(wire)).contains(&wire));
                }
            }
        }
        assert_eq!(wires.pairs.len(), 6 * 3);
        assert_eq!(wires.pairs_of(2).len(), 3 * 3);
    }
}
