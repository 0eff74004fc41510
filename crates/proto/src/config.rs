//! Time-outs and bounds of the protocol, in one place.

use graph::{Execution, Scheme};
use types::{Time, UnixSeconds};

/// Both clocks, as the driver reads them once per event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic.
    pub time: Time,
    /// Wall time, for expiry only.
    pub unix: UnixSeconds,
}

/// Time-outs, in microseconds. All nodes of a cluster use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long an Ack lets a primary read (group protocol, "Leases").
    pub read_lease_us: u64,
    /// How long the coordinator waits for a node's heartbeat before it calls the node lost.
    pub node_lease_us: u64,
    /// How long a parity may leave records unacknowledged before the primary asks for its removal.
    pub stall_us: u64,
    /// How often an idle primary sends an empty Frame, and a node its heartbeat.
    pub heartbeat_us: u64,
    /// Silence after which a commit index travels in a Frame of its own.
    pub commit_delay_us: u64,
    /// How long a repair session or a recovery step may take before it is tried again.
    pub retry_us: u64,
    /// How long a client's request may wait in all.
    pub request_deadline_us: u64,
    /// How long an object that nobody goes on writing may still be committed.
    pub object_deadline_us: u64,
    /// For how long a holder keeps chunks before it asks what has become of their object.
    pub ask_us: u64,
    /// For how long a reader of an object may stand still before its chunks may go.
    pub pin_us: u64,
    /// How long a client's session lasts of which nothing is heard.
    pub session_lease_us: u64,
    /// After this silence of a holder others are asked for what it should send.
    pub hedge_us: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self::from_lease(1_000_000)
    }
}

impl Timing {
    /// All time-outs from one: the time after which a silent node counts as lost.
    #[must_use]
    pub const fn from_lease(node_lease_us: u64) -> Self {
        Self {
            read_lease_us: node_lease_us,
            node_lease_us,
            stall_us: node_lease_us * 9 / 20,
            heartbeat_us: node_lease_us / 5,
            commit_delay_us: node_lease_us / 20,
            retry_us: node_lease_us / 2,
            request_deadline_us: node_lease_us * 5,
            object_deadline_us: node_lease_us * 30,
            ask_us: node_lease_us * 60,
            pin_us: node_lease_us * 30,
            session_lease_us: node_lease_us * 60,
            hedge_us: node_lease_us / 40,
        }
    }

    /// For how long an evicted parity keeps what it has, and everybody else is prepared for its return.
    #[must_use]
    pub const fn rejoin_us(&self) -> u64 {
        self.node_lease_us * REJOIN_LEASES
    }

    /// The read lease as its holder counts it: shorter by 2 %, so that clocks may drift by 1 % against each other.
    #[must_use]
    pub const fn held_lease_us(&self) -> u64 {
        self.read_lease_us - self.read_lease_us / 50
    }
}

/// A node that has not come back for so long will not have what it lacks in anybody's log.
const REJOIN_LEASES: u64 = 60;

/// How chunks are made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// By which graphs holders get the chunks that they lack; none if each fetches cells and combines them itself.
    pub repair: Option<Scheme>,
    /// By which graphs readers get what lies in a chunk that is not there; none if they fetch cells.
    pub reads: Option<Scheme>,
    /// Who makes the parities of a value that is written in chunks.
    pub encode: EncodeBy,
    /// Slice by slice, or all at once.
    pub execution: Execution,
    /// What a MiB from one zone to another costs a planner, in microseconds.
    pub zone_price_us: u32,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self {
            repair: None,
            reads: None,
            encode: EncodeBy::Node,
            execution: Execution::Coherent,
            zone_price_us: 0,
        }
    }
}

/// Who makes the parities of a value that is written in chunks, and so whose links they go over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodeBy {
    /// The writer sends them as it sends all other chunks.
    #[default]
    Node,
    /// The holders of data chunks send products of what they get to the holders of parities, who add them up: the writer sends data alone,
    /// and checksums of the rest. What does not come about so it sends.
    Tri,
    /// One of these, by what the model says and values have taken.
    Auto,
}

/// Bounds of queues and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of deltas in one Frame, unless a single record is larger.
    pub frame_bytes: usize,
    /// Records in one Frame.
    pub frame_records: usize,
    /// Bytes of uncommitted records of one primary; beyond it requests wait.
    pub log_bytes: usize,
    /// Bytes of committed records that one primary keeps for parities that were evicted and may come back; beyond it the
    /// oldest go.
    pub history_bytes: usize,
    /// Uncommitted records of one primary; beyond it requests wait.
    pub log_records: usize,
    /// Requests that wait in one member or for a route; beyond it they are refused as busy.
    pub parked_requests: usize,
    /// Requests that one host has sent on to others and not had an answer to; beyond it they are refused as busy.
    pub forwarded_requests: usize,
    /// Bytes of messages of repair sessions that wait for their view; beyond it they are dropped, and asked for again.
    pub early_bytes: usize,
    /// Bytes of products that one host keeps until they are added up; beyond it writers send what these were to make.
    pub sum_bytes: usize,
    /// Repair sessions that one stand-in keeps open for requests.
    pub demand_sessions: usize,
    /// Repair sessions that one stand-in keeps open for its background sweep. What is under way in the background waits in the
    /// same queues as requests: two are enough that neither end is idle, and more is what clients feel.
    pub sweep_sessions: usize,
    /// Sessions that one parity keeps open for others.
    pub parity_sessions: usize,
    /// Scrub sessions that the parities of one host keep open together.
    pub scrub_sessions: usize,
    /// Bytes of an index replica in one message.
    pub index_part_bytes: usize,
    /// Vacant extents that a primary keeps: what comes next need not ask for them.
    pub vacant_extents: usize,
    /// Parts of a learner's lesson that one primary has under way; as few, for the same reason.
    pub lesson_parts: usize,
    /// Ids of objects that one primary keeps open.
    pub open_objects: usize,
    /// Readers of objects that one primary is held up by.
    pub pins: usize,
    /// Sessions of clients at one primary.
    pub client_sessions: usize,
    /// Results of their writes that one primary keeps until the clients have heard of them.
    pub write_results: usize,
    /// Longest value in bytes that append and prepend make.
    pub value_bytes: u64,
    /// Values in chunks that one host makes longer at once; others wait.
    pub extensions: usize,
    /// Values in chunks that clients of one host write at once.
    pub uploads: usize,
    /// Bytes that all of those hold together, coded; at most the worker's share of an eighth of the node's memory. However long a stripe
    /// is, one upload at a time goes on.
    pub upload_bytes: usize,
    /// Values in chunks that clients of one host read at once.
    pub gathers: usize,
    /// Bytes that one of those reads has asked for, or given out and not seen taken.
    pub gather_bytes: usize,
    /// Bytes that all runs of coding graphs at one host may reserve.
    pub graph_bytes: u64,
    /// Of that, what is kept free for readers who wait.
    pub graph_reader_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 64 * 1024,
            frame_records: 128,
            log_bytes: 8 << 20,
            history_bytes: 64 << 20,
            log_records: 16_384,
            parked_requests: 65_536,
            forwarded_requests: 65_536,
            early_bytes: 8 << 20,
            sum_bytes: 8 << 20,
            demand_sessions: 64,
            sweep_sessions: 2,
            parity_sessions: 1024,
            scrub_sessions: 2,
            index_part_bytes: 256 * 1024,
            vacant_extents: 1,
            lesson_parts: 2,
            open_objects: 10_000,
            pins: 10_000,
            client_sessions: 16_384,
            write_results: 65_536,
            value_bytes: 1 << 30,
            extensions: 32,
            uploads: 1024,
            upload_bytes: 64 << 20,
            gathers: 1024,
            gather_bytes: 2 << 20,
            graph_bytes: 24 << 20,
            graph_reader_bytes: 8 << 20,
        }
    }
}
