//! One step of one run: what has come, what may be sent, and how far it is.

use std::collections::VecDeque;

use bytes::Bytes;
use types::checksum;

use super::combine::{Combined, combine};
use super::command::Command;
use super::surroundings::Surroundings;
use crate::graph::{Execution, Graph, Input, Output, Place, Primitive};
use crate::message::{Message, Progress, Slice, Wait, Why};
use crate::rules::{Bug, Rules};

/// See the module.
#[derive(Debug)]
pub(super) struct StepRun {
    index: u32,
    /// Slices of each edge.
    slices: u32,
    /// Slices given.
    done: u32,
    inlets: Vec<Inlet>,
    outlets: Vec<Outlet>,
}

/// The receiving end of an edge.
#[derive(Debug)]
struct Inlet {
    edge: u32,
    from: Place,
    input: usize,
    /// What has come and is not combined, with its sum.
    queue: VecDeque<(Bytes, u32)>,
    received: u32,
    granted: u32,
}

/// The sending end of an edge.
#[derive(Debug)]
struct Outlet {
    edge: u32,
    to: Place,
    /// The first slice that may not be sent.
    below: u32,
}

/// What one slice of a step took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub primitive: Primitive,
    /// Bytes of slices that are held no more.
    pub consumed: u64,
    /// Slices that were sent.
    pub slices: u64,
    /// Bytes of them.
    pub sent: u64,
    pub combined: u64,
}

impl StepRun {
    pub(super) fn new(graph: &Graph, index: u32) -> Self {
        let step = &graph.steps[index as usize];
        let place = |edge: u32, is_sender: bool| {
            let edge = graph.edges[edge as usize];
            graph.steps[if is_sender { edge.from } else { edge.to } as usize].at
        };
        let inlet = |(input, kind): (usize, &Input)| match *kind {
            Input::Chunk(_) => None,
            Input::Stream(edge) => {
                let (from, queue) = (place(edge, true), VecDeque::new());
                Some(Inlet { edge, from, input, queue, received: 0, granted: 0 })
            }
        };
        let slices = step.span.slices(graph.slice_len);
        let window = window(graph, slices);
        let outlet = |output: &Output| match *output {
            Output::Chunk(_) => None,
            Output::Stream(edge) => {
                let to = place(edge, false);
                // An asker has taken its graph before it sends it.
                let below = if to == Place::Asker { window } else { 0 };
                Some(Outlet { edge, to, below })
            }
        };
        Self {
            index,
            slices,
            done: 0,
            inlets: step.inputs.iter().enumerate().filter_map(inlet).collect(),
            outlets: step.outputs.iter().filter_map(outlet).collect(),
        }
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn has_ended(&self) -> bool {
        self.done == self.slices
    }

    pub(super) fn first_grants(&mut self, graph: &Graph, rules: Rules) -> Vec<(Place, u32, u32)> {
        let window =
            if rules.prevent(Bug::CreditWithoutMemory) { window(graph, self.slices) } else { self.slices };
        let grant = |inlet: &mut Inlet| {
            inlet.granted = window;
            (inlet.from, inlet.edge, window)
        };
        self.inlets.iter_mut().map(grant).collect()
    }

    pub(super) fn without_credit(&self) -> impl Iterator<Item = (Place, u32)> {
        self.outlets.iter().filter(|outlet| outlet.below == 0).map(|outlet| (outlet.to, outlet.edge))
    }

    /// Whether the edge is this step's.
    pub(super) fn credit(&mut self, edge: u32, below: u32) -> bool {
        let Some(outlet) = self.outlets.iter_mut().find(|outlet| outlet.edge == edge) else { return false };
        outlet.below = outlet.below.max(below.min(self.slices));
        true
    }

    pub(super) fn granted(&self, edge: u32) -> Option<u32> {
        self.inlets.iter().find(|inlet| inlet.edge == edge).map(|inlet| inlet.granted)
    }

    /// Whether the slice was taken; if not it is to be overlooked.
    pub(super) fn take(&mut self, graph: &Graph, slice: Slice, rules: Rules) -> Result<bool, ()> {
        let span = graph.steps[self.index as usize].span;
        let inlet = self.inlets.iter_mut().find(|inlet| inlet.edge == slice.edge).ok_or(())?;
        let is_next = slice.index == inlet.received && slice.index < inlet.granted;
        if !is_next {
            let is_added = !rules.prevent(Bug::SliceTwice) && inlet.received < self.slices;
            let is_overlooked = !rules.prevent(Bug::RunsMix) || !rules.prevent(Bug::SliceTwice);
            match (is_added, is_overlooked) {
                (true, _) => {}
                (false, true) => return Ok(false),
                (false, false) => return Err(()),
            }
        }
        let expected = span.slice(inlet.received, graph.slice_len).len as usize;
        let is_damaged = checksum(&slice.bytes) != slice.sum && rules.prevent(Bug::SumUnchecked);
        if slice.bytes.len() != expected || is_damaged {
            return Err(());
        }
        inlet.received += 1;
        inlet.queue.push_back((slice.bytes, slice.sum));
        Ok(true)
    }

    /// Whether the next slice of every output can be given. Incoherently, all of them at once.
    pub(super) fn is_ready(&self, execution: Execution) -> bool {
        let waits = match execution {
            Execution::Coherent => self.wait(),
            Execution::Incoherent => self.wait_for_all(),
        };
        !self.has_ended() && waits == Wait::Nothing
    }

    fn wait(&self) -> Wait {
        let lacking = self.inlets.iter().find(|inlet| inlet.queue.is_empty());
        let blocked = self.outlets.iter().find(|outlet| outlet.below <= self.done);
        match (lacking, blocked) {
            _ if self.has_ended() => Wait::Nothing,
            (Some(inlet), _) => Wait::Slice(inlet.edge),
            (None, Some(outlet)) => Wait::Credit(outlet.edge),
            (None, None) => Wait::Nothing,
        }
    }

    fn wait_for_all(&self) -> Wait {
        let lacking = self.inlets.iter().find(|inlet| inlet.received < self.slices);
        let blocked = self.outlets.iter().find(|outlet| outlet.below < self.slices);
        match (lacking, blocked) {
            (Some(inlet), _) => Wait::Slice(inlet.edge),
            (None, Some(outlet)) => Wait::Credit(outlet.edge),
            (None, None) => Wait::Nothing,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress { step: self.index, done: self.done, wait: self.wait() }
    }

    /// Gives the next slice of every output.
    pub(super) fn turn(
        &mut self,
        graph: &Graph,
        me: Place,
        rules: Rules,
        around: &impl Surroundings,
        queue: &mut VecDeque<Command>,
    ) -> Result<Turn, Why> {
        let step = &graph.steps[self.index as usize];
        let mut arrived: Vec<Option<(Bytes, u32)>> = vec![None; step.inputs.len()];
        let mut consumed = 0;
        for inlet in &mut self.inlets {
            let slice = inlet.queue.pop_front();
            consumed += slice.as_ref().map_or(0, |(bytes, _)| bytes.len() as u64);
            arrived[inlet.input] = slice;
        }
        let span = step.span.slice(self.done, graph.slice_len);
        let Combined { outputs, combined } = combine(graph, step, span, arrived, around)?;
        let mut outlets = self.outlets.iter();
        let mut sent = 0;
        for (output, (bytes, sum)) in step.outputs.iter().zip(outputs) {
            queue.push_back(match *output {
                Output::Chunk(role) => {
                    Command::Write { run: (graph.run, me), role, offset: span.start, bytes }
                }
                Output::Stream(edge) => {
                    let Some(outlet) = outlets.next() else { continue };
                    debug_assert!(outlet.edge == edge && self.done < outlet.below);
                    sent += bytes.len() as u64;
                    let sum = sum.unwrap_or_else(|| checksum(&bytes));
                    let slice = Slice { run: graph.run, edge, index: self.done, sum, bytes };
                    Command::Send { from: me, to: outlet.to, run: graph.run, message: Message::Slice(slice) }
                }
            });
        }
        self.done += 1;
        self.grant(graph, me, rules, queue);
        let slices = self.outlets.len() as u64;
        Ok(Turn { primitive: step.primitive(), consumed, slices, sent, combined })
    }

    /// Credits for what has become free, half a window at a time.
    fn grant(&mut self, graph: &Graph, me: Place, rules: Rules, queue: &mut VecDeque<Command>) {
        if graph.execution == Execution::Incoherent || !rules.prevent(Bug::CreditWithoutMemory) {
            return;
        }
        let window = u32::from(graph.window);
        let below = (self.done + window).min(self.slices);
        for inlet in &mut self.inlets {
            let is_worth_it = below - inlet.granted >= (window / 2).max(1) || below == self.slices;
            if below > inlet.granted && is_worth_it {
                inlet.granted = below;
                let message = Message::Credit { run: graph.run, edge: inlet.edge, below };
                queue.push_back(Command::Send { from: me, to: inlet.from, run: graph.run, message });
            }
        }
    }
}

/// Slices of an edge for which there is memory.
fn window(graph: &Graph, slices: u32) -> u32 {
    match graph.execution {
        Execution::Coherent => slices.min(graph.window.into()),
        Execution::Incoherent => slices,
    }
}
