//! Who holds a graph up: from a step that waits, along what it waits for, to one that waits for nobody; and along which link.

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

/// The ends of the link that holds a graph up, who sends first: from the last step that waits for a slice, along what each of them waits for,
/// to one that has given all that it may. What it has given is on its way.
pub(super) fn held_up_along(graph: &Graph, progress: &BTreeMap<u32, Progress>) -> Option<(Place, Place)> {
    // Of its own edges alone, which come from earlier steps: so this comes to an end, whatever was said.
    let waits_for = |step: u32| match progress.get(&step).map(|progress| progress.wait) {
        Some(Wait::Slice(edge)) => graph.ends(edge).filter(|ends| ends.input.0 == step),
        _ => None,
    };
    let mut ends = progress.keys().rev().find_map(|step| waits_for(*step))?;
    while let Some(before) = waits_for(ends.output.0) {
        ends = before;
    }
    Some((ends.from, ends.to))
}
