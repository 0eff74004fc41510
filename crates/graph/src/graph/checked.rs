//! A graph that has been checked: what it is, what it moves, how deep it is.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::{Draft, Edge, Output, Place, Step};

/// A graph: its edges join outputs to inputs, nothing is out of bounds, and there is no cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    draft: Draft,
    /// Of each edge the output and the input that it is.
    ends: Vec<(u16, u16)>,
    len: u32,
}

/// Where an edge begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeEnds {
    /// Who sends.
    pub from: Place,
    /// Who receives.
    pub to: Place,
    /// The step that sends, and which output the edge is.
    pub output: (u32, u16),
    /// The step that receives, and which input the edge is.
    pub input: (u32, u16),
}

impl Deref for Graph {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl Graph {
    pub(super) fn new(draft: Draft, ends: Vec<(u16, u16)>, len: u32) -> Self {
        Self { draft, ends, len }
    }

    /// What was checked.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        self.draft
    }

    /// Bytes of the strand.
    #[must_use]
    pub fn strand_len(&self) -> u32 {
        self.len
    }

    /// The ends of edge `edge`; none if there is no such edge.
    #[must_use]
    pub fn ends(&self, edge: u32) -> Option<EdgeEnds> {
        let (output, input) = *self.ends.get(edge as usize)?;
        let edge = self.edges[edge as usize];
        let at = |step: u32| self.steps[step as usize].at;
        Some(EdgeEnds {
            from: at(edge.from),
            to: at(edge.to),
            output: (edge.from, output),
            input: (edge.to, input),
        })
    }

    /// All that take part, each once, in order.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.steps.iter().map(|step| step.at).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Those at which chunks are written: when they have all, the graph is complete.
    #[must_use]
    pub fn ends_at(&self) -> Vec<Place> {
        let writes = |output: &Output| matches!(output, Output::Chunk(_));
        let ends = self.steps.iter().filter(|step| step.outputs.iter().any(writes));
        let mut places: Vec<Place> = ends.map(|step| step.at).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// All that take part, in the order in which they are told: the asker, then downstream before upstream, so that whoever sends first
    /// has his credits soon.
    #[must_use]
    pub fn starting_order(&self) -> Vec<Place> {
        let mut last: BTreeMap<Place, (usize, usize)> = BTreeMap::new();
        for (step, depth) in depths(&self.steps, &self.edges).into_iter().enumerate() {
            let known = last.entry(self.steps[step].at).or_default();
            *known = (depth, step).max(*known);
        }
        let mut order: Vec<Place> = last.keys().copied().collect();
        order.sort_by_key(|place| (*place != Place::Asker, std::cmp::Reverse(last[place])));
        order
    }

    /// Edges on the longest path: rounds that follow each other.
    #[must_use]
    pub fn depth(&self) -> usize {
        depths(&self.steps, &self.edges).into_iter().max().unwrap_or(0)
    }

    /// Bytes between each pair of processes.
    #[must_use]
    pub fn bytes_per_link(&self) -> BTreeMap<(Place, Place), u64> {
        bytes_per_link(&self.steps, &self.edges)
    }

    /// About how many bytes it takes to send it.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        encoded_len(self.strand.len(), &self.steps, self.edges.len())
    }
}

/// About how many bytes it takes to send a graph of so many parts, of these steps, and of so many edges.
pub(crate) fn encoded_len(parts: usize, steps: &[Step], edges: usize) -> usize {
    let ports = steps.iter().map(|step| step.matrix.len() + 5 * (step.inputs.len() + step.outputs.len()));
    64 + 48 * parts + 14 * steps.len() + ports.sum::<usize>() + 4 * edges
}

/// Of each step, the edges on the longest path to it.
pub(crate) fn depths(steps: &[Step], edges: &[Edge]) -> Vec<usize> {
    let mut depths = vec![0; steps.len()];
    let mut order: Vec<&Edge> = edges.iter().collect();
    order.sort_unstable_by_key(|edge| edge.from);
    for edge in order {
        depths[edge.to as usize] = depths[edge.to as usize].max(depths[edge.from as usize] + 1);
    }
    depths
}

/// Bytes between each pair of processes.
pub(crate) fn bytes_per_link(steps: &[Step], edges: &[Edge]) -> BTreeMap<(Place, Place), u64> {
    let mut links = BTreeMap::new();
    for edge in edges {
        let (from, to) = (&steps[edge.from as usize], &steps[edge.to as usize]);
        if from.at != to.at {
            *links.entry((from.at, to.at)).or_default() += u64::from(from.span.len);
        }
    }
    links
}
