//! One process's part in one run of a graph.

use std::collections::VecDeque;
use std::sync::Arc;

use types::Time;

use super::command::Command;
use super::step::{StepRun, Turn};
use super::surroundings::{Surroundings, unreadable};
use crate::graph::{Execution, Graph, Input, Output, Place, Primitive, Step};
use crate::message::{Progress, Slice, Why};
use crate::rules::{Bug, Rules};

/// See the module.
#[derive(Debug)]
pub(super) struct Run {
    graph: Arc<Graph>,
    me: Place,
    steps: Vec<StepRun>,
    deadline: Time,
    reserved: u64,
    /// Bytes that have come and are not combined.
    held: u64,
    writes: bool,
    /// What it wrote is being kept.
    is_complete: bool,
}

impl Run {
    pub(super) fn new(graph: Arc<Graph>, me: Place, now: Time) -> Self {
        let own = (0u32..).zip(&graph.steps).filter(|(_, step)| step.at == me);
        let steps: Vec<StepRun> = own.map(|(index, _)| StepRun::new(&graph, index)).collect();
        let is_chunk = |output: &Output| matches!(output, Output::Chunk(_));
        let writes = graph.steps.iter().any(|step| step.at == me && step.outputs.iter().any(is_chunk));
        let reserved = graph.steps.iter().filter(|step| step.at == me).map(|step| need(&graph, step)).sum();
        let deadline = now + graph.deadline_us;
        Self { graph, me, steps, deadline, reserved, held: 0, writes, is_complete: false }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Bytes that it may come to hold.
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes that it holds.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    pub(super) fn step_count(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn primitives(&self) -> impl Iterator<Item = Primitive> {
        self.steps.iter().map(|step| self.graph.steps[step.index() as usize].primitive())
    }

    /// Why it cannot be run here: it sends to strangers, or a chunk is not here.
    pub(super) fn objection(&self, around: &impl Surroundings) -> Option<Why> {
        let is_stranger = |place: Place| matches!(place, Place::Node(node) if !around.knows(node));
        let (steps, own) = (&self.graph.steps, |step: u32| self.graph.steps[step as usize].at == self.me);
        for edge in &self.graph.edges {
            let other = if own(edge.from) { edge.to } else { edge.from };
            if (own(edge.from) || own(edge.to)) && is_stranger(steps[other as usize].at) {
                return Some(Why::UnknownNode);
            }
        }
        steps.iter().filter(|step| step.at == self.me).find_map(|step| self.lacks(step, around))
    }

    /// The first chunk of a step's range that is not here.
    fn lacks(&self, step: &Step, around: &impl Surroundings) -> Option<Why> {
        for input in &step.inputs {
            let Input::Chunk(role) = *input else { continue };
            let mut start = 0;
            for part in &self.graph.strand {
                let (first, end) = (step.span.start.max(start), step.span.end().min(start + part.len));
                if first < end
                    && let Err(error) =
                        around.piece(self.graph.group, role, part.chunk, part.offset + first - start)
                {
                    return Some(unreadable(error, &self.graph, role, around));
                }
                start += part.len;
            }
        }
        None
    }

    /// The first credits, to whom and for which edge. An asker's came with the graph.
    pub(super) fn first_grants(&mut self, rules: Rules) -> Vec<(Place, u32, u32)> {
        let is_asker = self.me == Place::Asker;
        let grants = self.steps.iter_mut().flat_map(|step| step.first_grants(&self.graph, rules));
        grants.filter(|_| !is_asker).collect()
    }

    /// Edges along which nothing may be sent yet, and who may allow it.
    pub(super) fn without_credit(&self) -> Vec<(Place, u32)> {
        self.steps.iter().flat_map(StepRun::without_credit).collect()
    }

    /// A credit for an edge of this run; the step to look at.
    pub(super) fn credit(&mut self, edge: u32, below: u32) -> Option<usize> {
        self.steps.iter_mut().position(|step| step.credit(edge, below))
    }

    /// Slices of `edge` that may be sent to this process.
    pub(super) fn granted(&self, edge: u32) -> Option<u32> {
        self.steps.iter().find_map(|step| step.granted(edge))
    }

    /// Takes a slice in; the step to look at, none if the slice is to be overlooked.
    ///
    /// # Errors
    /// If it is damaged, out of order or beyond its credit.
    pub(super) fn take(&mut self, slice: Slice, rules: Rules) -> Result<Option<usize>, ()> {
        let edge = slice.edge;
        let Some(at) = self.steps.iter().position(|step| step.granted(edge).is_some()) else {
            return Err(());
        };
        let len = slice.bytes.len() as u64;
        let is_taken = self.steps[at].take(&self.graph, slice, rules)?;
        self.held += if is_taken { len } else { 0 };
        Ok(is_taken.then_some(at))
    }

    pub(super) fn is_ready(&self, step: usize) -> bool {
        self.steps[step].is_ready(self.graph.execution)
    }

    /// One slice of each output of a step.
    ///
    /// # Errors
    /// If a chunk cannot be read.
    pub(super) fn turn(
        &mut self,
        step: usize,
        rules: Rules,
        around: &impl Surroundings,
        queue: &mut VecDeque<Command>,
    ) -> Result<Turn, Why> {
        let turn = self.steps[step].turn(&self.graph, self.me, rules, around, queue)?;
        self.held -= turn.consumed;
        Ok(turn)
    }

    /// Whether all steps have given all.
    pub(super) fn has_ended(&self, rules: Rules) -> bool {
        if !rules.prevent(Bug::KeepsHalf) {
            return self.steps.iter().any(StepRun::has_ended);
        }
        self.steps.iter().all(StepRun::has_ended)
    }

    /// The graph, the first time it is asked for.
    pub(super) fn complete(&mut self) -> Option<Arc<Graph>> {
        (!std::mem::replace(&mut self.is_complete, true)).then(|| Arc::clone(&self.graph))
    }

    pub(super) fn progress(&self) -> Vec<Progress> {
        self.steps.iter().map(StepRun::progress).collect()
    }

    /// An edge between this process and `place`.
    pub(super) fn edge_with(&self, place: Place) -> Option<u32> {
        let at = |step: u32| self.graph.steps[step as usize].at;
        let joins = |from: Place, to: Place| (from, to) == (self.me, place) || (from, to) == (place, self.me);
        let edges = (0u32..).zip(&self.graph.edges);
        edges.into_iter().find(|(_, edge)| joins(at(edge.from), at(edge.to))).map(|(index, _)| index)
    }
}

/// Bytes that a step may hold: a window of each edge on both sides, and the chunks that it writes.
fn need(graph: &Graph, step: &Step) -> u64 {
    let span = u64::from(step.span.len);
    let edge = match graph.execution {
        Execution::Coherent => span.min(u64::from(graph.window) * u64::from(graph.slice_len)),
        Execution::Incoherent => span,
    };
    let in_edges = step.inputs.iter().filter(|input| matches!(input, Input::Stream(_))).count() as u64;
    let out_edges = step.outputs.iter().filter(|output| matches!(output, Output::Stream(_))).count() as u64;
    let chunks = step.outputs.len() as u64 - out_edges;
    (in_edges + out_edges) * edge + chunks * span
}
