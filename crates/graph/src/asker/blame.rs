//! Who holds a graph up: from a step that waits, along what it waits for, to one that waits for nobody.

use std::collections::{BTreeMap, BTreeSet};

use types::NodeId;

use crate::graph::{Graph, Place};
use crate::message::{Progress, Wait};

/// The node at the end of the waiting: it sends slowly, or does not. If it is the asker, who waits for it.
pub(super) fn slowest(graph: &Graph, progress: &BTreeMap<u32, Progress>) -> Option<NodeId> {
    let is_waiting = |progress: &&Progress| progress.wait != Wait::Nothing;
    let mut step = progress.values().rev().find(is_waiting)?.step;
    let mut seen = BTreeSet::new();
    let mut before = step;
    while seen.insert(step) {
        let wait = progress.get(&step).map_or(Wait::Nothing, |progress| progress.wait);
        let next = match wait {
            Wait::Nothing => break,
            Wait::Slice(edge) => graph.ends(edge)?.output.0,
            Wait::Credit(edge) => graph.ends(edge)?.input.0,
        };
        before = step;
        step = next;
    }
    let node = |step: u32| match graph.steps.get(step as usize)?.at {
        Place::Node(node) => Some(node),
        Place::Asker => None,
    };
    node(step).or_else(|| node(before))
}
