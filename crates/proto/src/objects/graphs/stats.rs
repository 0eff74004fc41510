//! What is counted of graphs.

use std::collections::BTreeMap;

use graph::{Counters, Load, Planned, Scheme};
use types::{NodeId, Time};
use wire::graph::SlowLink;

/// Counters and gauges of coding graphs at one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// What steps here have done, by primitive.
    pub steps: Counters,
    /// What they have taken on.
    pub load: Load,
    /// Orders of this host that a graph has carried out, or has not, by the scheme of the last one: `Scheme::ALL`.
    pub orders: [OrderStats; Scheme::ALL.len()],
    /// Of those, what readers of this host wanted.
    pub reads: ReadStats,
    /// Runs that have made something else than was wanted: a chunk that they read, or a rule, is broken.
    pub spoilt: u64,
    /// Graphs for repair that were begun anew, round a node that held them up.
    pub begun_anew: u64,
    /// Bytes of slices that went from here to nodes in other zones.
    pub zone_bytes: u64,
    /// When the first of the runs here has to have ended.
    pub first_deadline: Option<Time>,
}

/// What nodes tell each other of slow links, at one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidLinks {
    /// What it has said last of links to it; none if it has never said anything.
    pub said: Option<Vec<SlowLink>>,
    /// What it believes of links to others, by these.
    pub believed: BTreeMap<NodeId, Vec<SlowLink>>,
}

/// Of orders by one scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// What was wanted has been made.
    pub made: u64,
    /// It has not.
    pub failed: u64,
    /// Bytes that were made.
    pub made_bytes: u64,
    /// How long that took, from the start of the graph that made them, in microseconds.
    pub made_us: u64,
    /// How long it should have taken, by the model.
    pub predicted_us: u64,
}

/// Of parts of chunks that were made for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// By graphs.
    pub made: u64,
    /// Begun by graphs, and read cell by cell then.
    pub left: u64,
}

impl ReadStats {
    pub(super) fn note(&mut self, is_made: bool) {
        *(if is_made { &mut self.made } else { &mut self.left }) += 1;
    }
}

impl GraphStats {
    /// These and those.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.steps = self.steps.plus(&other.steps);
        self.load = self.load.plus(&other.load);
        self.reads.made += other.reads.made;
        self.reads.left += other.reads.left;
        self.spoilt += other.spoilt;
        self.begun_anew += other.begun_anew;
        self.zone_bytes += other.zone_bytes;
        self.first_deadline = [self.first_deadline, other.first_deadline].into_iter().flatten().min();
        for (mine, others) in self.orders.iter_mut().zip(&other.orders) {
            *mine = mine.plus(others);
        }
        self
    }
}

impl OrderStats {
    fn plus(self, other: &Self) -> Self {
        Self {
            made: self.made + other.made,
            failed: self.failed + other.failed,
            made_bytes: self.made_bytes + other.made_bytes,
            made_us: self.made_us + other.made_us,
            predicted_us: self.predicted_us + other.predicted_us,
        }
    }

    /// An order has ended; so many bytes were made.
    pub(super) fn note(&mut self, planned: Planned, now: Time, made_bytes: Option<u64>) {
        let Some(bytes) = made_bytes else { return self.failed += 1 };
        self.made += 1;
        self.made_bytes += bytes;
        self.made_us += now.since(planned.started);
        self.predicted_us += planned.predicted_us as u64;
    }
}
