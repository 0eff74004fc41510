//! Wires between hosts: FIFO while they live, and empty after a cut.

use std::collections::VecDeque;

use types::HostId;
use wire::message::PeerMessage;

use super::options::Network;
use super::rng::Rng;

/// What travels on a wire.
#[derive(Debug)]
pub(crate) enum Parcel {
    /// The connection stands; the sender is this process.
    Up(HostId),
    /// A message.
    Message(PeerMessage),
}

/// One direction between the same shard of two nodes.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Counts the cuts; what was sent in an earlier epoch never arrives.
    pub epoch: u32,
    /// Whether the sender's end is connected.
    pub open: bool,
    /// Whom the receiver believes to be connected to.
    pub sender: Option<HostId>,
    /// What is under way, oldest first.
    pub parcels: VecDeque<Parcel>,
    /// When the newest parcel arrives.
    pub last_due: u64,
    /// Least delay.
    pub base_us: u64,
    /// What a fault adds to it.
    pub extra_us: u64,
    /// A story keeps parcels from being delivered.
    pub held: bool,
    /// Parcels whose time came while the wire was held.
    pub overdue: u32,
}

/// Two directions between the same shard of two nodes.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Hosts, the smaller first.
    pub hosts: (u16, u16),
    /// A connection was made and not cut since.
    pub connected: bool,
    /// How many faults forbid a connection.
    pub blocked: u32,
    /// Whether an attempt to connect is in the queue.
    pub trying: bool,
}

/// All wires of a cluster. A host is `node * shards + shard`.
#[derive(Debug)]
pub(crate) struct Wires {
    shards: usize,
    nodes: usize,
    wires: Vec<Wire>,
    pub pairs: Vec<Pair>,
    /// Position in `pairs` by wire.
    pair_of: Vec<u32>,
    jitter_us: u64,
}

impl Wires {
    pub(crate) fn new(nodes: usize, shards: usize, network: &Network, rng: &mut Rng) -> Self {
        let mut wires = Vec::with_capacity(nodes * nodes * shards);
        for _ in 0..nodes * nodes * shards {
            let slow = if rng.percent(network.slow_percent) { 10 } else { 1 };
            let base_us = rng.range(network.least_us, network.most_us) * slow;
            wires.push(Wire {
                epoch: 0,
                open: false,
                sender: None,
                parcels: VecDeque::new(),
                last_due: 0,
                base_us,
                extra_us: 0,
                held: false,
                overdue: 0,
            });
        }
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
        Self { shards, nodes, wires, pairs, pair_of, jitter_us: network.jitter_us }
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

    pub(crate) fn get(&self, wire: usize) -> &Wire {
        &self.wires[wire]
    }

    pub(crate) fn get_mut(&mut self, wire: usize) -> &mut Wire {
        &mut self.wires[wire]
    }

    /// Puts a parcel on a wire; when it will arrive. In order, whatever the jitter.
    pub(crate) fn post(&mut self, wire: usize, now: u64, parcel: Parcel, rng: &mut Rng) -> u64 {
        let jitter = if self.jitter_us == 0 { 0 } else { rng.tailed(self.jitter_us) };
        let wire = &mut self.wires[wire];
        let due = (now + wire.base_us + wire.extra_us + jitter).max(wire.last_due);
        wire.last_due = due;
        wire.parcels.push_back(parcel);
        due
    }

    /// Empties a wire; nothing that is on it arrives.
    pub(crate) fn cut(&mut self, wire: usize) {
        let wire = &mut self.wires[wire];
        wire.epoch += 1;
        wire.open = false;
        wire.parcels.clear();
        wire.overdue = 0;
        wire.last_due = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::options::Options;

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
