//! The parameters of the model: what each node's links are worth, what coding costs, what zones cost.

use serde::{Deserialize, Serialize};
use types::NodeId;

use crate::graph::Place;
use crate::limits::MAX_PAIRS;

/// One process as the network sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkEnd {
    /// Bytes a second that it can send.
    pub up_bytes_per_s: f64,
    /// Bytes a second that it can receive.
    pub down_bytes_per_s: f64,
    /// Half of the way between it and anybody else, in microseconds.
    pub latency_us: f64,
    /// Where it stands: bytes between zones have a price.
    pub zone: u16,
    /// Graphs that share its links already.
    pub busy: u16,
}

impl Default for LinkEnd {
    fn default() -> Self {
        Self { up_bytes_per_s: 125e6, down_bytes_per_s: 125e6, latency_us: 25.0, zone: 0, busy: 0 }
    }
}

impl LinkEnd {
    /// Sends and receives `gbit_per_s`, and is `latency_us` from its switch.
    #[must_use]
    pub fn symmetric(gbit_per_s: f64, latency_us: f64) -> Self {
        let bytes_per_s = gbit_per_s * 125e6;
        Self { up_bytes_per_s: bytes_per_s, down_bytes_per_s: bytes_per_s, latency_us, zone: 0, busy: 0 }
    }

    /// Microseconds to send a byte.
    pub(crate) fn up_us(&self) -> f64 {
        1e6 * (1.0 + f64::from(self.busy)) / self.up_bytes_per_s
    }

    /// Microseconds to receive a byte.
    pub(crate) fn down_us(&self) -> f64 {
        1e6 * (1.0 + f64::from(self.busy)) / self.down_bytes_per_s
    }

    /// How slow it is: halvings of bandwidth, so that what is nearly equal is equal.
    pub(crate) fn slowness(&self) -> i32 {
        halvings(self.up_us().max(self.down_us()) * 1024.0)
    }

    /// How far it is: doublings of latency.
    pub(crate) fn farness(&self) -> i32 {
        halvings(self.latency_us.max(1.0))
    }
}

impl Pair {
    /// As [`LinkEnd::slowness`].
    pub(crate) fn slowness(&self) -> i32 {
        halvings(1024.0 * 1e6 / self.bytes_per_s)
    }
}

fn halvings(of: f64) -> i32 {
    of.log2().round() as i32
}

/// The link from one node to another, where it is known to be worse than its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Who sends.
    pub from: u16,
    /// Who receives.
    pub to: u16,
    /// Bytes a second that it carries at most.
    pub bytes_per_s: f64,
    /// One way, in microseconds; what its ends say if that is more.
    #[serde(default)]
    pub latency_us: f64,
}

/// What lies between two places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    /// One way, in microseconds.
    pub way_us: f64,
    /// Microseconds a byte of this very link; 0 where its ends are all that is known.
    pub byte_us: f64,
}

/// What planners and the model know of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// Nodes of which something is known, by their numbers.
    pub nodes: std::collections::BTreeMap<u16, LinkEnd>,
    /// All others.
    pub others: LinkEnd,
    /// Who asks.
    pub asker: LinkEnd,
    /// The node that the asker is, if it is one: between the two nothing is sent.
    pub asker_node: Option<u16>,
    /// Links that are worse than their ends, by sender and receiver, each once. All others are as good as their ends.
    pub pairs: Vec<Pair>,
    /// What is added to the way between two zones, in microseconds.
    pub zone_latency_us: f64,
    /// Products of a byte and a coefficient that a process adds up in a second.
    pub products_per_s: f64,
    /// What a slice costs whoever sends or receives it, in microseconds.
    pub slice_us: f64,
    /// Bytes a second at which slices are summed up and copied.
    pub touch_bytes_per_s: f64,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            nodes: std::collections::BTreeMap::new(),
            others: LinkEnd::default(),
            asker: LinkEnd::default(),
            asker_node: None,
            pairs: Vec::new(),
            zone_latency_us: 0.0,
            products_per_s: 8e9,
            slice_us: 2.0,
            touch_bytes_per_s: 8e9,
        }
    }
}

impl Links {
    /// All ends alike.
    #[must_use]
    pub fn uniform(end: LinkEnd) -> Self {
        Self { others: end, asker: end, ..Self::default() }
    }

    /// Whether all rates are above 0 and all times not below.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let is_time = |us: f64| us.is_finite() && us >= 0.0;
        let is_end = |end: &LinkEnd| {
            is_rate(end.up_bytes_per_s) && is_rate(end.down_bytes_per_s) && is_time(end.latency_us)
        };
        let is_pair = |pair: &Pair| is_rate(pair.bytes_per_s) && is_time(pair.latency_us);
        let are_in_order = self.pairs.is_sorted_by(|one, other| (one.from, one.to) < (other.from, other.to));
        self.nodes.values().chain([&self.others, &self.asker]).all(is_end)
            && self.pairs.len() <= MAX_PAIRS
            && self.pairs.iter().all(is_pair)
            && are_in_order
            && is_rate(self.products_per_s)
            && is_rate(self.touch_bytes_per_s)
            && is_time(self.slice_us)
            && is_time(self.zone_latency_us)
    }

    /// What is known of `place`.
    #[must_use]
    pub fn end(&self, place: Place) -> LinkEnd {
        match place {
            Place::Node(node) => *self.nodes.get(&node.0).unwrap_or(&self.others),
            Place::Asker => self.asker_node.map_or(self.asker, |node| self.end(Place::Node(NodeId(node)))),
        }
    }

    /// The place that stands for `place`: the asker that is a node is that node.
    pub(crate) fn stand(&self, place: Place) -> Place {
        match (place, self.asker_node) {
            (Place::Asker, Some(node)) => Place::Node(NodeId(node)),
            _ => place,
        }
    }

    /// Keeps what is known of a link; beyond [`MAX_PAIRS`] of them, the fastest gives way.
    pub fn set_pair(&mut self, pair: Pair) {
        match self.pairs.binary_search_by_key(&(pair.from, pair.to), |pair| (pair.from, pair.to)) {
            Ok(at) => self.pairs[at] = pair,
            Err(at) => self.pairs.insert(at, pair),
        }
        if self.pairs.len() > MAX_PAIRS {
            let rate = |at: &usize| self.pairs[*at].bytes_per_s;
            let fastest = (0..self.pairs.len()).max_by(|one, other| rate(one).total_cmp(&rate(other)));
            fastest.map(|at| self.pairs.remove(at));
        }
    }

    /// What is known of the link from one place to another, if it is worse than its ends.
    #[must_use]
    pub fn pair(&self, from: Place, to: Place) -> Option<Pair> {
        if self.pairs.is_empty() {
            return None;
        }
        let (Place::Node(from), Place::Node(to)) = (self.stand(from), self.stand(to)) else { return None };
        let at = self.pairs.binary_search_by_key(&(from.0, to.0), |pair| (pair.from, pair.to)).ok()?;
        Some(self.pairs[at])
    }

    /// What lies between two places with these ends.
    pub(crate) fn between(
        &self,
        (from, sender): (Place, &LinkEnd),
        (to, receiver): (Place, &LinkEnd),
    ) -> Between {
        let zones_us = if sender.zone == receiver.zone { 0.0 } else { self.zone_latency_us };
        let way_us = sender.latency_us + receiver.latency_us + zones_us;
        match self.pair(from, to) {
            Some(pair) => Between { way_us: way_us.max(pair.latency_us), byte_us: 1e6 / pair.bytes_per_s },
            None => Between { way_us, byte_us: 0.0 },
        }
    }
}
