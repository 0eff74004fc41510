//! A graph without the chunks that it is run for, in slices of the length that the model says is best.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use types::{GroupId, ViewVersion};

use super::choice::Aim;
use super::refusal::Unplannable;
use super::scheme::Scheme;
use crate::graph::{
    BadGraph, Class, Draft, Edge, Execution, Graph, Part, Place, RunId, Step, bytes_per_link, depths,
};
use crate::limits::{DEFAULT_WINDOW, MAX_EDGES, MAX_STEPS, MAX_WINDOW, MIN_SLICE_BYTES};
use crate::model::{Flow, LANES, Links, Outline, Prediction, Round};

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

/// A graph whose slices are yet to be chosen.
pub(super) struct Sketch {
    scheme: Scheme,
    steps: Vec<Step>,
    edges: Vec<Edge>,
    outline: Outline,
    aim: Aim,
    execution: Execution,
}

impl Sketch {
    pub(super) fn new(
        scheme: Scheme,
        (steps, edges): (Vec<Step>, Vec<Edge>),
        links: &Links,
        aim: Aim,
        execution: Execution,
    ) -> Result<Self, Unplannable> {
        if steps.len() > MAX_STEPS || edges.len() > MAX_EDGES {
            return Err(Unplannable::TooLarge { steps: steps.len(), edges: edges.len() });
        }
        let outline = Outline::new(&steps, &edges, links);
        Ok(Self { scheme, steps, edges, outline, aim, execution })
    }

    /// What it costs at least, whatever its slices are.
    pub(super) fn least_cost(&self) -> f64 {
        let slice_len = self.outline.slice_lens().next().unwrap_or(MIN_SLICE_BYTES);
        let flow = Flow { slice_len, window: MAX_WINDOW, execution: self.execution };
        self.aim.cost(&self.outline.at_least(flow))
    }

    /// With the slices that the model says are best.
    pub(super) fn shape(self) -> Shape {
        let (slice_len, window, prediction) = self.slices();
        let Self { scheme, steps, edges, execution, .. } = self;
        Shape { scheme, steps, edges, slice_len, window, execution, prediction }
    }

    fn slices(&self) -> (u32, u8, Prediction) {
        let mut round = Round::default();
        let mut lens: Vec<SliceLen> =
            self.outline.slice_lens().map(|bytes| SliceLen { bytes, least_us: 0.0 }).collect();
        let Some((slice_len, usual)) = self.best_slice(DEFAULT_WINDOW, f64::MAX, &mut lens, &mut round)
        else {
            return (MIN_SLICE_BYTES, DEFAULT_WINDOW, Prediction::default());
        };
        let most = WIDER_IS_BETTER * self.aim.cost(&usual);
        match self.best_slice(MAX_WINDOW, most, &mut lens, &mut round) {
            Some((slice_len, wide)) => (slice_len, MAX_WINDOW, wide),
            None => (slice_len, DEFAULT_WINDOW, usual),
        }
    }

    /// The length of slices that costs least with a window, if that is less than `most`: the longest of those that cost about as much.
    fn best_slice(
        &self,
        window: u8,
        most: f64,
        lens: &mut [SliceLen],
        round: &mut Round<LANES>,
    ) -> Option<(u32, Prediction)> {
        let flow = |slice_len| Flow { slice_len, window, execution: self.execution };
        let mut best: Option<(f64, u32, Prediction)> = None;
        let limit = |best: &Option<(f64, u32, Prediction)>| {
            best.as_ref().map_or(most, |(cost, ..)| most.min(SHORTER_IS_BETTER * cost))
        };
        let mut worse = 0;
        // Slices are followed through the graph only where they may turn out to be better.
        let least_cost = |len: &SliceLen| {
            let least = self.outline.at_least(flow(len.bytes));
            self.aim.cost(&Prediction { us: least.us.max(len.least_us), ..least })
        };
        let mut some: SmallVec<[(f64, &mut SliceLen); 16]> =
            lens.iter_mut().map(|len| (least_cost(len), len)).filter(|(least, _)| *least < most).collect();
        for some in some.chunks_mut(LANES) {
            if some.iter().all(|(least, _)| *least >= limit(&best)) {
                continue;
            }
            let flows = std::array::from_fn(|lane| flow(some[lane.min(some.len() - 1)].1.bytes));
            let predictions = self.outline.predict(flows, round);
            for (((_, len), prediction), windows_us) in some.iter_mut().zip(predictions).zip(round.windows_us)
            {
                len.learn(&prediction, windows_us);
                let cost = self.aim.cost(&prediction);
                if cost < limit(&best) {
                    best = Some((cost, len.bytes, prediction));
                    worse = 0;
                } else {
                    worse += u32::from(best.is_some());
                }
            }
            // The cost has one valley, and a step where slices become fewer than the window.
            if worse >= 3 {
                break;
            }
        }
        best.map(|(_, slice_len, prediction)| (slice_len, prediction))
    }
}

/// A length of slices.
struct SliceLen {
    bytes: u32,
    /// How long a graph takes with them at least, whatever the window.
    least_us: f64,
}

impl SliceLen {
    /// A wider window shortens nothing but the wait for windows.
    fn learn(&mut self, prediction: &Prediction, windows_us: f64) {
        // The sum is rounded.
        let is_held_up = prediction.us <= (prediction.fill_us + windows_us) * (1.0 + f64::EPSILON);
        self.least_us = if is_held_up { prediction.fill_us } else { prediction.us };
    }
}

impl Shape {
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
