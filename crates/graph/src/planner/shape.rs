//! A graph without the chunks that it is run for, in slices of the length that the model says is best.

use std::collections::BTreeMap;

use types::{GroupId, ViewVersion};

use super::choice::Aim;
use super::refusal::Unplannable;
use super::scheme::Scheme;
use crate::graph::{
    BadGraph, Class, Draft, Edge, Execution, Graph, Part, Place, RunId, Step, bytes_per_link, depths,
};
use crate::limits::{DEFAULT_WINDOW, MAX_EDGES, MAX_STEPS, MAX_WINDOW};
use crate::model::{Flow, Links, Outline, Prediction};

/// By how much a wider window must be better than the usual one to be worth its memory.
const WIDER_IS_BETTER: f64 = 0.95;
/// By how much shorter slices must be better than longer ones: each costs its message.
const SHORTER_IS_BETTER: f64 = 0.97;

/// Steps and edges, how slices flow, and what the model says of it.
#[derive(Clone, Debug)]
pub struct Shape {
    /// By which scheme; never `auto`.
    pub scheme: Scheme,
    /// Upstream first.
    pub steps: Vec<Step>,
    /// Between the steps.
    pub edges: Vec<Edge>,
    /// Bytes of a slice.
    pub slice_len: u32,
    /// Slices of each edge that its receiver has memory for.
    pub window: u8,
    /// How steps work.
    pub execution: Execution,
    /// What it will cost.
    pub prediction: Prediction,
}

/// What a graph carries besides its shape.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Its run.
    pub run: RunId,
    /// Whose chunks.
    pub group: GroupId,
    /// The asker's view.
    pub view: ViewVersion,
    /// How long anybody works on it, in microseconds.
    pub deadline_us: u64,
    /// Who gives way.
    pub class: Class,
    /// Which chunks: as long in all as the question said.
    pub strand: Vec<Part>,
}

impl Shape {
    /// Chooses the slices.
    pub(super) fn new(
        scheme: Scheme,
        (steps, edges): (Vec<Step>, Vec<Edge>),
        links: &Links,
        aim: &Aim,
        execution: Execution,
    ) -> Result<Self, Unplannable> {
        if steps.len() > MAX_STEPS || edges.len() > MAX_EDGES {
            return Err(Unplannable::TooLarge { steps: steps.len(), edges: edges.len() });
        }
        let outline = Outline::new(&steps, &edges, links);
        let usual = best_slice(&outline, DEFAULT_WINDOW, aim, execution);
        let wide = best_slice(&outline, MAX_WINDOW, aim, execution);
        let is_wide = aim.cost(&wide.1) < WIDER_IS_BETTER * aim.cost(&usual.1);
        let (window, (slice_len, prediction)) =
            if is_wide { (MAX_WINDOW, wide) } else { (DEFAULT_WINDOW, usual) };
        Ok(Self { scheme, steps, edges, slice_len, window, execution, prediction })
    }

    /// The same in slices of `slice_len`.
    #[must_use]
    pub fn with_slices(mut self, slice_len: u32, links: &Links) -> Self {
        self.slice_len = slice_len;
        self.prediction =
            crate::model::predict(&self.steps, &self.edges, slice_len, self.window, self.execution, links);
        self
    }

    /// Edges on the longest path: rounds that follow each other.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0)
    }

    /// Of each step, the edges on the longest path to it.
    #[must_use]
    pub fn depths(&self) -> Vec<usize> {
        depths(&self.steps, &self.edges)
    }

    /// Bytes between each pair of processes.
    #[must_use]
    pub fn bytes_per_link(&self) -> BTreeMap<(Place, Place), u64> {
        bytes_per_link(&self.steps, &self.edges)
    }

    /// The graph, to be run once.
    ///
    /// # Errors
    /// If the envelope is out of bounds, or its strand shorter than what was asked for.
    pub fn into_graph(self, envelope: Envelope) -> Result<Graph, BadGraph> {
        let Envelope { run, group, view, deadline_us, class, strand } = envelope;
        let Self { steps, edges, slice_len, window, execution, .. } = self;
        let draft = Draft {
            run,
            group,
            view,
            deadline_us,
            slice_len,
            window,
            class,
            execution,
            strand,
            steps,
            edges,
        };
        draft.check()
    }
}

fn best_slice(outline: &Outline<'_>, window: u8, aim: &Aim, execution: Execution) -> (u32, Prediction) {
    let ask = |slice_len| outline.predict(Flow { slice_len, window, execution });
    let mut lens = outline.slice_lens();
    let longest = lens.next().unwrap_or(crate::limits::MIN_SLICE_BYTES);
    let mut best = (longest, ask(longest));
    let mut worse = 0;
    for slice_len in lens {
        let prediction = ask(slice_len);
        if aim.cost(&prediction) < SHORTER_IS_BETTER * aim.cost(&best.1) {
            best = (slice_len, prediction);
            worse = 0;
        } else {
            // The cost has one valley, and a step where slices become fewer than the window.
            worse += 1;
            if worse == 3 {
                break;
            }
        }
    }
    best
}
