//! How far a graph for repair has come, and how long that has taken: as if it had been alone, and in times of what it takes over links of
//! 1 Gbit/s. So graphs of all lengths and schemes can be compared.

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
    /// What it has taken so far.
    pub slowness: f64,
    /// How much of it was made then, from 0 to 1.
    pub share: f64,
}

impl Course {
    /// Of a graph that an asker at `here` has seen so, and that has taken `alone_us`.
    pub(super) fn of(graph: &Graph, look: Option<Look>, here: NodeId, alone_us: f64) -> Self {
        let node = |place: Place| match place {
            Place::Node(node) if node != here => Some(node),
            _ => None,
        };
        let ends = look.map(|look| [look.held.0, look.held.1]);
        Self {
            helpers: graph.steps.iter().filter_map(|step| node(step.at)).collect(),
            held: ends.into_iter().flatten().filter_map(node).collect(),
            slowness: (alone_us / usual_us(graph, here).max(1.0)).max(FASTEST),
            share: look.map_or(0.0, |look| look.share),
        }
    }
}

/// What a graph takes over links of 1 Gbit/s.
fn usual_us(graph: &Graph, here: NodeId) -> f64 {
    let links = Links { asker_node: Some(here.0), ..Links::uniform(LinkEnd::default()) };
    predict(&graph.steps, &graph.edges, graph.slice_len, graph.window, graph.execution, &links).us
}

/// How many graphs were under way at a time: those share links.
#[derive(Default)]
pub(super) struct Together {
    now: u64,
    since: Time,
    /// Of all graphs so far, microseconds.
    sum_us: u64,
}

/// When a graph has begun, and what all graphs had taken by then.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    at: Time,
    sum_us: u64,
}

impl Together {
    fn sum_us(&self, now: Time) -> u64 {
        self.sum_us + self.now * now.since(self.since)
    }

    /// So many are under way from now on.
    pub(super) fn are(&mut self, now: Time, count: usize) {
        (self.sum_us, self.since, self.now) = (self.sum_us(now), now, count as u64);
    }

    pub(super) fn begun(&self, now: Time) -> Begun {
        Begun { at: now, sum_us: self.sum_us(now) }
    }

    /// What it would have taken alone since `started`, if it has been under way with as many others as it was on the whole.
    pub(super) fn alone_us(&self, now: Time, begun: Begun, started: Time) -> f64 {
        let (all_us, us) = (self.sum_us(now) - begun.sum_us, now.since(begun.at));
        let together = all_us as f64 / us.max(1) as f64;
        now.since(started) as f64 / together.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_so_long_beside_another_one_takes_half_of_it_alone() {
        let mut together = Together::default();
        together.are(Time(100), 1);
        let one = together.begun(Time(100));
        assert_eq!(together.alone_us(Time(200), one, Time(100)), 100.0);
        together.are(Time(200), 2);
        let other = together.begun(Time(200));
        assert_eq!(together.alone_us(Time(300), one, Time(100)), 200.0 / 1.5);
        assert_eq!(together.alone_us(Time(300), other, Time(200)), 50.0);
        // It was begun anew since.
        assert_eq!(together.alone_us(Time(300), other, Time(250)), 25.0);
        together.are(Time(300), 1);
        assert_eq!(together.alone_us(Time(400), other, Time(200)), 200.0 / 1.5);
    }
}
