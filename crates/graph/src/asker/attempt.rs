//! One graph of a task, from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use types::{NodeId, Time};

use super::blame::slowest;
use crate::graph::{Graph, Place, RunId};
use crate::message::Progress;

/// See the module.
#[derive(Debug)]
pub(super) struct Attempt {
    graph: Arc<Graph>,
    /// Those that have yet to say that their chunks are whole.
    awaited: BTreeSet<Place>,
    started: Time,
    /// When the asker asks how far they are, or stops waiting for the answers.
    due: Time,
    /// How long it waits for answers.
    patience_us: u64,
    is_asking: bool,
    answers: BTreeMap<Place, Vec<Progress>>,
}

impl Attempt {
    pub(super) fn new(graph: Arc<Graph>, now: Time, patience_us: u64, answer_us: u64) -> Self {
        let awaited = graph.ends_at().into_iter().collect();
        Self {
            graph,
            awaited,
            started: now,
            due: now + patience_us,
            patience_us: answer_us,
            is_asking: false,
            answers: BTreeMap::new(),
        }
    }

    pub(super) fn run(&self) -> RunId {
        self.graph.run
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    pub(super) fn has(&self, place: Place) -> bool {
        self.graph.steps.iter().any(|step| step.at == place)
    }

    /// Whether that was the last one.
    pub(super) fn done(&mut self, from: Place) -> bool {
        self.awaited.remove(&from);
        self.awaited.is_empty()
    }

    /// Whom to ask how far they are.
    pub(super) fn ask(&mut self, now: Time) -> Vec<Place> {
        self.is_asking = true;
        self.answers.clear();
        self.due = now + self.patience_us;
        self.graph.places()
    }

    /// Whether all have answered.
    pub(super) fn answered(&mut self, from: Place, progress: Vec<Progress>) -> bool {
        self.answers.insert(from, progress);
        self.is_asking && self.graph.places().iter().all(|place| self.answers.contains_key(place))
    }

    /// Who has not answered.
    pub(super) fn silent(&self) -> Vec<NodeId> {
        let places = self.graph.places().into_iter().filter(|place| !self.answers.contains_key(place));
        let node = |place| match place {
            Place::Node(node) => Some(node),
            Place::Asker => None,
        };
        places.filter_map(node).collect()
    }

    /// Whether those that write have half of it: then another graph would not be faster.
    pub(super) fn is_on_its_way(&self) -> bool {
        let of = |progress: &Progress| {
            let span = self.graph.steps.get(progress.step as usize).map(|step| step.span);
            let all = span.map_or(1, |span| span.slices(self.graph.slice_len));
            progress.done * 2 >= all
        };
        let ends = self.awaited.iter().filter_map(|place| self.answers.get(place));
        ends.flatten().all(of)
    }

    /// Who holds the others up.
    pub(super) fn slowest(&self) -> Option<NodeId> {
        let answers = self.answers.values().flatten().map(|progress| (progress.step, *progress)).collect();
        slowest(&self.graph, &answers)
    }

    /// As long again as it has taken so far.
    pub(super) fn wait_longer(&mut self, now: Time) {
        self.is_asking = false;
        self.due = now + now.since(self.started).max(self.patience_us);
    }
}
