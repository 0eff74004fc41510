//! What processes say to each other about graphs. `docs/graphs.md` has the table.

use std::sync::Arc;

use bytes::Bytes;
use types::{RoleIndex, ViewVersion};

use crate::graph::{Graph, RunId};

/// A message of a graph. All of one pair of processes arrive in the order in which they were sent, while their connection lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asker to all that take part: this graph.
    Start(Arc<Graph>),
    /// Along an edge: the next slice.
    Slice(Slice),
    /// Receiver of an edge to its sender: slices below `below` may be sent.
    Credit {
        /// Of this run.
        run: RunId,
        /// Along this edge.
        edge: u32,
        /// The first slice that may not be sent yet.
        below: u32,
    },
    /// Sender of an edge to its receiver: I have the graph, and no credit.
    AskCredit {
        /// Of this run.
        run: RunId,
        /// Along this edge.
        edge: u32,
    },
    /// Asker to all that take part: forget it.
    Cancel(RunId),
    /// Asker to all that take part: how far are you?
    Probe(RunId),
    /// To the asker: what has become of a run here.
    Report {
        /// Of this run.
        run: RunId,
        /// What.
        report: Report,
    },
}

impl Message {
    /// What it is about.
    #[must_use]
    pub fn run(&self) -> RunId {
        match self {
            Self::Start(graph) => graph.run,
            Self::Slice(slice) => slice.run,
            Self::Cancel(run) | Self::Probe(run) => *run,
            Self::Credit { run, .. } | Self::AskCredit { run, .. } | Self::Report { run, .. } => *run,
        }
    }
}

/// Bytes along an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Of this run.
    pub run: RunId,
    /// Along this edge.
    pub edge: u32,
    /// Which one of the edge, from 0.
    pub index: u32,
    /// CRC32C of the bytes.
    pub sum: u32,
    /// The bytes.
    pub bytes: Bytes,
}

/// What a process tells the asker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The chunks that this process writes are whole, and kept.
    Done,
    /// Nothing more comes of the run here, and nothing is kept of it.
    Failed(Why),
    /// Where it stands.
    Progress(Vec<Progress>),
}

/// Why a process has given up a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No memory for it, or too many runs: nothing was begun.
    NoRoom,
    /// It has run here before.
    Again,
    /// The graph sends to a node that this process does not know.
    UnknownNode,
    /// The chunk of this role is not here, as of this view of the group.
    Missing {
        /// Whose chunk.
        role: RoleIndex,
        /// The view that this process has.
        view: ViewVersion,
    },
    /// The chunk of this role is here, and its bytes are not what they were.
    Rotten {
        /// Whose chunk.
        role: RoleIndex,
    },
    /// A slice along this edge is damaged, twice here, or out of order.
    BadSlice {
        /// Along which edge.
        edge: u32,
    },
    /// The connection at the other end of this edge is gone.
    Cut {
        /// Which edge.
        edge: u32,
    },
    /// The deadline has passed.
    Deadline,
    /// What was added up has another checksum than the others name, or is not kept for want of room.
    NotKept,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which step.
    pub step: u32,
    /// Slices that it has given.
    pub done: u32,
    /// What it waits for.
    pub wait: Wait,
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: it has ended.
    Nothing,
    /// The next slice along this edge.
    Slice(u32),
    /// A credit of this edge's receiver.
    Credit(u32),
}
