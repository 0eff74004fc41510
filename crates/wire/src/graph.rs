//! Messages of coding graphs (docs/graphs.md has the table: name, from, to, content), as plain data.
//!
//! Nothing of a graph that arrives is believed: whoever runs it checks it first. Here are the bounds of its lists, and of the numbers of
//! messages that name a part of it.

use bytes::Bytes;
use types::{ChunkId, GroupId, HostId, NodeId, RoleIndex, ViewVersion};

use crate::object::Checked;

/// Most steps of a graph.
pub const MAX_STEPS: usize = 4096;
/// Most edges.
pub const MAX_EDGES: usize = 1 << 14;
/// Most inputs of a step, and most outputs.
pub const MAX_DEGREE: usize = 256;
/// Most chunks that a graph runs over.
pub const MAX_PARTS: usize = 1024;

/// Most slices of an edge: those of the longest strand, as short as slices are.
pub const MAX_SLICES: u32 = 1 << 16;
/// Most slow links that a node tells of.
pub const MAX_SLOW_LINKS: usize = 64;
/// No link is said to be slower than 128 times.
pub const MAX_HALF_DOUBLINGS: u8 = 14;
/// Longest slice.
pub const MAX_SLICE_BYTES: usize = 1 << 20;

/// What one process sends another about a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphMessage {
    /// Asker to all that take part: this graph.
    Start(Box<Start>),
    /// Along an edge: the next slice.
    Slice(Slice),
    /// Receiver of an edge to its sender: slices below this one may be sent.
    Credit(Credit),
    /// Sender of an edge to its receiver: I have the graph, and no credit.
    AskCredit(AskCredit),
    /// Asker to all that take part: forget it.
    Cancel(Cancel),
    /// Asker to all that take part: how far are you?
    Probe(Probe),
    /// To the asker: what has become of a run.
    Report(Report),
    /// To all nodes: from these things come to me more slowly than from most.
    SlowLinks(SlowLinks),
}

/// Who starts a graph: a process, as its node's id and the lower 48 bits of its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker(pub u64);

impl Asker {
    const LIFE_BITS: u32 = 48;

    /// That of a process.
    #[must_use]
    pub fn of(host: HostId) -> Self {
        let life = host.incarnation.0 & ((1 << Self::LIFE_BITS) - 1);
        Self(u64::from(host.node.0) << Self::LIFE_BITS | life)
    }

    /// Where it is.
    #[must_use]
    pub fn node(self) -> NodeId {
        NodeId((self.0 >> Self::LIFE_BITS) as u16)
    }
}

/// One run of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Who has started it.
    pub asker: Asker,
    /// Counted by the asker.
    pub number: u64,
}

/// As what one of two processes takes part. The asker may be a holder, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// As a node of the map.
    Node,
    /// As the one that has started the graph.
    Asker,
}

/// As what both ends of a message take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seats {
    /// Who sends.
    pub from: Seat,
    /// Who is meant.
    pub to: Seat,
}

/// See [`GraphMessage::Start`].
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Its only run.
    pub run: Run,
    /// Whose chunks.
    pub group: GroupId,
    /// The asker's view of the group.
    pub view: ViewVersion,
    /// After how many microseconds whoever has it gives up.
    pub deadline_us: u64,
    /// Bytes of a slice.
    pub slice_len: u32,
    /// Slices that each edge's receiver has memory for.
    pub window: u8,
    /// Who gives way.
    pub class: Class,
    /// How the steps work.
    pub execution: Execution,
    /// The chunks, one behind the other.
    pub strand: Vec<Part>,
    /// What is done where.
    pub steps: Vec<Step>,
    /// Along what slices flow.
    pub edges: Vec<Edge>,
}

/// For whom a graph runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Somebody waits for the bytes.
    Reader,
    /// Nobody waits.
    Repair,
}

/// How steps work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Slice by slice.
    Coherent,
    /// All is received, then all is computed, then all is sent.
    Incoherent,
}

/// A range of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which stripe of which object.
    pub chunk: ChunkId,
    /// From which byte.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
}

/// What one process does for a range of the strand.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where; none for the asker.
    pub at: Option<NodeId>,
    /// The first byte of the range.
    pub start: u32,
    /// How long it is.
    pub len: u32,
    /// What it reads.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
    /// `outputs x inputs` coefficients, row by row.
    pub matrix: Bytes,
}

/// What a step reads or gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Chunks of a role.
    Chunk(RoleIndex),
    /// What flows along an edge.
    Stream(u32),
}

/// From which step to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
}

/// See [`GraphMessage::Slice`].
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Of this run.
    pub run: Run,
    /// Between whom.
    pub seats: Seats,
    /// Along this edge.
    pub edge: u32,
    /// Which one of the edge.
    pub index: u32,
    /// The bytes.
    pub slice: Checked,
}

/// See [`GraphMessage::Credit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Of this run.
    pub run: Run,
    /// Between whom.
    pub seats: Seats,
    /// Along this edge.
    pub edge: u32,
    /// The first slice that may not be sent yet.
    pub below: u32,
}

/// See [`GraphMessage::AskCredit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskCredit {
    /// Of this run.
    pub run: Run,
    /// Between whom.
    pub seats: Seats,
    /// Along this edge.
    pub edge: u32,
}

/// See [`GraphMessage::Cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Of this run.
    pub run: Run,
}

/// See [`GraphMessage::Probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Of this run.
    pub run: Run,
}

/// See [`GraphMessage::SlowLinks`].
#[derive(Clone, Debug, PartialEq)]
pub struct SlowLinks {
    /// All that are slow, or the slowest of them, by node; none if none is any more.
    pub slow: Vec<SlowLink>,
}

/// The link from a node to the one that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowLink {
    /// From which.
    pub from: NodeId,
    /// How many times as long it takes as from most nodes, as a power of the square root of 2: so it is another number only if it is
    /// much different. 1 to [`MAX_HALF_DOUBLINGS`].
    pub half_doublings: u8,
}

impl SlowLink {
    /// One that takes so many times as long.
    #[must_use]
    pub fn of(from: NodeId, times: f64) -> Self {
        let most = f64::from(MAX_HALF_DOUBLINGS);
        // Between 1 and the most of them.
        let half_doublings = (2.0 * times.log2()).round().clamp(1.0, most) as u8;
        Self { from, half_doublings }
    }

    /// How many times as long it takes.
    #[must_use]
    pub fn times(self) -> f64 {
        (f64::from(self.half_doublings) / 2.0).exp2()
    }
}

/// See [`GraphMessage::Report`].
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Of this run.
    pub run: Run,
    /// What has become of it.
    pub news: News,
}

/// What the asker is told.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The chunks that this process writes are whole, and kept.
    Done,
    /// Nothing more comes of the run here.
    Failed(Why),
    /// How far each step is.
    Progress(Vec<Progress>),
}

/// Why a process has given up a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No memory for it, or too many runs.
    NoRoom,
    /// It has run here before.
    Again,
    /// The graph sends to a node that this process does not know.
    UnknownNode,
    /// The chunk of this role is not here, as of this view.
    Missing {
        /// Whose chunk.
        role: RoleIndex,
        /// The view of whoever says so.
        view: ViewVersion,
    },
    /// It is here, and is not what it was.
    Rotten {
        /// Whose chunk.
        role: RoleIndex,
    },
    /// A slice along this edge is damaged, or out of order.
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
    /// What was added up has another checksum than it should, or there is no room for it.
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
