//! How far a graph for repair has come, and how fast the link of its asker was meanwhile, in times of what a graph takes over links of
//! 1 Gbit/s. So graphs of all lengths and schemes can be compared.
//!
//! Graphs of one asker share its link, and not in equal parts. What counts is what all of them bring: while they fill the link together,
//! one that has got little of it is held up by the others, and by nobody else.

use std::collections::BTreeSet;

use graph::{Graph, LinkEnd, Links, Look, Place, predict};
use types::{NodeId, Time};

/// No graph is faster than that by what is believed.
const FASTEST: f64 = 1e-4;

/// See the module.
pub(super) struct Course {
    /// All nodes but the asker's that take part.
    pub helpers: BTreeSet<NodeId>,
    /// Of these, the ends of the link that holds it up.
    pub held: Vec<NodeId>,
    /// What all of it takes if its bytes come as fast as those of all graphs here have come since it began.
    pub slowness: f64,
    /// What it has taken so far, beside whatever else was under way.
    pub so_far: f64,
    /// How much of it was made then, from 0 to 1.
    pub share: f64,
    /// How many times the bytes that it makes come to its asker, at least once. A link that brings them once has to be so many times slower than
    /// the asker's to hold it up.
    pub crowd: f64,
}

/// What has come to the asker in a time.
#[derive(Clone, Copy)]
pub(super) struct Came {
    pub us: u64,
    pub bytes: u64,
}

impl Course {
    /// Of a graph that an asker at `here` has seen so, and since whose start so much has come in all graphs.
    pub(super) fn of(graph: &Graph, look: Option<Look>, here: NodeId, came: Came) -> Self {
        let node = |place: Place| match place {
            Place::Node(node) if node != here => Some(node),
            _ => None,
        };
        let ends = look.map(|look| [look.held.0, look.held.1]);
        let usual_us = usual_us(graph, here).max(1.0);
        let (to_asker, len) =
            (bytes_to_asker(graph, here), graph.strand.iter().map(|part| u64::from(part.len)));
        Self {
            helpers: graph.steps.iter().filter_map(|step| node(step.at)).collect(),
            held: ends.into_iter().flatten().filter_map(node).collect(),
            slowness: (came.alone_us(to_asker) / usual_us).max(FASTEST),
            so_far: (came.us as f64 / usual_us).max(FASTEST),
            share: look.map_or(0.0, |look| look.share),
            crowd: (to_asker as f64 / len.sum::<u64>().max(1) as f64).max(1.0),
        }
    }
}

impl Came {
    /// What so many bytes take at this rate, if nothing else comes: the time itself if there are none.
    fn alone_us(self, bytes: u64) -> f64 {
        let part = if bytes == 0 { 1.0 } else { bytes as f64 / self.bytes.max(1) as f64 };
        self.us as f64 * part
    }
}

/// What other nodes send to the asker of a graph.
fn bytes_to_asker(graph: &Graph, here: NodeId) -> u64 {
    let step = |number: u32| &graph.steps[number as usize];
    let comes =
        |from: Place, to: Place| to == Place::Asker && matches!(from, Place::Node(node) if node != here);
    let edges = graph.edges.iter().filter(|edge| comes(step(edge.from).at, step(edge.to).at));
    edges.map(|edge| u64::from(step(edge.to).span.len)).sum()
}

/// What a graph takes over links of 1 Gbit/s.
fn usual_us(graph: &Graph, here: NodeId) -> f64 {
    let links = Links { asker_node: Some(here.0), ..Links::uniform(LinkEnd::default()) };
    predict(&graph.steps, &graph.edges, graph.slice_len, graph.window, graph.execution, &links).us
}

/// Bytes that have come to the asker in all graphs so far.
#[derive(Default)]
pub(super) struct Inflow {
    bytes: u64,
}

/// When a graph has begun, and what had come by then.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    at: Time,
    bytes: u64,
}

impl Inflow {
    /// A slice has come from another node.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    pub(super) fn begun(&self, now: Time) -> Begun {
        Begun { at: now, bytes: self.bytes }
    }

    pub(super) fn since(&self, now: Time, begun: Begun) -> Came {
        Came { us: now.since(begun.at), bytes: self.bytes - begun.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_little_of_a_link_that_is_full_is_as_fast_as_what_gets_the_rest() {
        let mut inflow = Inflow::default();
        let begun = inflow.begun(Time(100));
        // 30 of one graph, 70 of another one.
        [30, 70].into_iter().for_each(|bytes| inflow.add(bytes));
        let came = inflow.since(Time(200), begun);
        assert_eq!((came.alone_us(100), came.alone_us(30)), (100.0, 30.0));
        // Nothing comes beside it, and it is no faster.
        let begun = inflow.begun(Time(200));
        inflow.add(30);
        assert_eq!(inflow.since(Time(300), begun).alone_us(30), 100.0);
        assert_eq!(inflow.since(Time(300), begun).alone_us(0), 100.0);
    }
}
