//! Graphs as data: steps at processes, joined by edges along which slices flow.
//!
//! A [`Draft`] is what somebody has written down or sent: nothing of it is believed. [`Draft::check`] makes a [`Graph`] of it, which
//! is all that planners give away and executors take. Steps are listed so that every edge goes from an earlier to a later one: a
//! cycle cannot be written down.

mod check;
mod checked;

use std::fmt;

use serde::Serialize;
use smallvec::SmallVec;
use types::{ChunkId, GroupId, NodeId, RoleIndex, ViewVersion};

pub use check::BadGraph;
pub use checked::{EdgeEnds, Graph};
pub(crate) use checked::{bytes_per_link, depths, encoded_len};

/// Who starts graphs: one worker of one process in one of its lives, or one session of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct AskerId(pub u64);

/// One run of one graph. Who plans again counts on: slices of two runs never meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RunId {
    /// Who started it.
    pub asker: AskerId,
    /// Counted by the asker, never given twice.
    pub number: u64,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run-{:x}.{}", self.asker.0, self.number)
    }
}

/// A process that takes part: a node of the map, or whoever has asked, on the connection on which the graph came. There is no other
/// place to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Place {
    /// A node, by the map.
    Node(NodeId),
    /// Who started the graph.
    Asker,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Asker => f.write_str("asker"),
        }
    }
}

/// For whom a graph runs: that decides who gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Class {
    /// Somebody waits for the bytes: has a reserve of memory, and goes first.
    Reader,
    /// Nobody waits.
    Repair,
}

/// How a step works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Execution {
    /// Slice by slice: what arrives is combined and passed on at once.
    Coherent,
    /// All is received, then all is computed, then all is sent: the baseline of the paper (INEC, section III).
    Incoherent,
}

/// One chunk of a strand, or a range of it: of each role the one of this stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which stripe of which object.
    pub chunk: ChunkId,
    /// From which byte of the chunk.
    pub offset: u32,
    /// Bytes of the chunk of any role, from there.
    pub len: u32,
}

/// A range of the strand, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// Where it begins.
    pub start: u32,
    /// How long it is.
    pub len: u32,
}

impl Span {
    /// Of the first `len` bytes.
    #[must_use]
    pub fn whole(len: u32) -> Self {
        Self { start: 0, len }
    }

    /// The first byte behind it.
    #[must_use]
    pub fn end(self) -> u32 {
        self.start + self.len
    }

    /// In how many slices it flows.
    #[must_use]
    pub fn slices(self, slice_len: u32) -> u32 {
        self.len.div_ceil(slice_len)
    }

    /// The bytes of slice `index`.
    #[must_use]
    pub fn slice(self, index: u32, slice_len: u32) -> Self {
        let offset = index * slice_len;
        Self { start: self.start + offset, len: slice_len.min(self.len - offset) }
    }
}

/// What a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Input {
    /// Chunks of a role that lie at its process.
    Chunk(RoleIndex),
    /// What arrives along an edge.
    Stream(u32),
}

/// Where a row of a step's matrix goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Output {
    /// It becomes the chunks of a role here: at a node they are kept, the asker has them then.
    Chunk(RoleIndex),
    /// Along an edge.
    Stream(u32),
}

/// Inputs or outputs of a step: mostly there are one or two.
pub type Ports<T> = SmallVec<[T; 2]>;

/// What one process does for a range of the strand: `output[o] = sum over i of matrix[o * inputs + i] * input[i]`, slice by slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub at: Place,
    /// Of which bytes.
    pub span: Span,
    /// What it reads, at most once each.
    pub inputs: Ports<Input>,
    /// What it gives, a row each.
    pub outputs: Ports<Output>,
    /// `outputs x inputs` coefficients, row by row.
    pub matrix: SmallVec<[u8; 16]>,
}

impl Step {
    /// The coefficients of output `output`.
    #[must_use]
    pub fn row(&self, output: usize) -> &[u8] {
        &self.matrix[output * self.inputs.len()..][..self.inputs.len()]
    }

    /// Which of the three it is.
    #[must_use]
    pub fn primitive(&self) -> Primitive {
        let receives = self.inputs.iter().any(|input| matches!(input, Input::Stream(_)));
        let sends = self.outputs.iter().any(|output| matches!(output, Output::Stream(_)));
        match (receives, sends) {
            (false, _) => Primitive::EcSend,
            (true, true) => Primitive::RecvEcSend,
            (true, false) => Primitive::RecvEc,
        }
    }
}

/// The three primitives (INEC, section III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Primitive {
    /// From what lies here, to others.
    EcSend,
    /// From others, to others.
    RecvEcSend,
    /// From others, to a chunk here.
    RecvEc,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::EcSend, Self::RecvEcSend, Self::RecvEc];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EcSend => "ec_send",
            Self::RecvEcSend => "recv_ec_send",
            Self::RecvEc => "recv_ec",
        }
    }
}

/// From which step to which: positions in the list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Who sends.
    pub from: u32,
    /// Who receives: a later one.
    pub to: u32,
}

/// A graph that nobody has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Its only run.
    pub run: RunId,
    /// Whose chunks.
    pub group: GroupId,
    /// The asker's view of the group: it is needed only by who lacks a chunk.
    pub view: ViewVersion,
    /// From when a process has it to when it gives up, in microseconds.
    pub deadline_us: u64,
    /// Bytes of a slice; the last one of a step may be shorter.
    pub slice_len: u32,
    /// Slices that each edge's receiver has memory for.
    pub window: u8,
    /// Who gives way.
    pub class: Class,
    /// How the steps work.
    pub execution: Execution,
    /// The chunks, one behind the other.
    pub strand: Vec<Part>,
    /// Upstream first.
    pub steps: Vec<Step>,
    /// Each is one output of one step and one input of another.
    pub edges: Vec<Edge>,
}
