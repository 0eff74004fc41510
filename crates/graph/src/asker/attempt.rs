//! One graph of a task, from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use types::{NodeId, Time};

use super::blame::{held_up_along, slowest};
use crate::graph::{Graph, Place, RunId};
use crate::message::Progress;

/// The asker does not look before that: a graph that is over by then teaches nothing.
const FIRST_LOOK_US: u64 = 2_000;

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
    /// When the asker looks which link holds the others up; what it saw when all had answered last.
    look_at: Option<Time>,
    seen: Option<Look>,
}

/// What an asker sees of a graph that runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// When.
    pub at: Time,
    /// The ends of the link that holds the others up: who sends, and who waits for it.
    pub held: (Place, Place),
    /// How much of it is made, from 0 to 1.
    pub share: f64,
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
            look_at: None,
            seen: None,
        }
    }

    /// Looks after half of the time that is expected, then after as long again each time.
    pub(super) fn looks(mut self, predicted_us: f64) -> Self {
        self.look_at = Some(self.started + ((predicted_us / 2.0) as u64).max(FIRST_LOOK_US));
        self
    }

    /// Whom to ask how far they are, if it is time to look.
    pub(super) fn look(&mut self, now: Time) -> Option<Vec<Place>> {
        self.look_at.filter(|at| *at <= now && !self.is_asking)?;
        self.look_at = Some(now + now.since(self.started).max(FIRST_LOOK_US));
        self.answers.clear();
        Some(self.graph.places())
    }

    pub(super) fn seen(&self) -> Option<Look> {
        self.seen
    }

    pub(super) fn run(&self) -> RunId {
        self.graph.run
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn due(&self) -> Time {
        self.look_at.filter(|_| !self.is_asking).map_or(self.due, |look_at| look_at.min(self.due))
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due <= now
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

    /// Whether all have answered, and are to be judged by that.
    pub(super) fn answered(&mut self, now: Time, from: Place, progress: Vec<Progress>) -> bool {
        self.answers.insert(from, progress);
        let is_complete = self.graph.places().iter().all(|place| self.answers.contains_key(place));
        if is_complete && self.look_at.is_some() {
            self.seen = self.see(now);
        }
        is_complete && self.is_asking
    }

    fn see(&self, at: Time) -> Option<Look> {
        let answers = self.answers.values().flatten().map(|progress| (progress.step, *progress)).collect();
        let held = held_up_along(&self.graph, &answers)?;
        let share = |progress: &Progress| {
            let span = self.graph.steps.get(progress.step as usize).map(|step| step.span);
            f64::from(progress.done)
                / f64::from(span.map_or(1, |span| span.slices(self.graph.slice_len)).max(1))
        };
        let ends = self.awaited.iter().filter_map(|place| self.answers.get(place)).flatten();
        Some(Look { at, held, share: ends.map(share).fold(1.0, f64::min) })
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
