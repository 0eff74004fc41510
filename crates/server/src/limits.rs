//! Every queue, window, buffer and deadline of the shell, in one place.
//!
//! What a user may tune is in [`ConnectionLimits`]; the rest are constants. The protocol's own bounds are
//! `proto::Limits`.

use std::time::Duration;

/// What one node allows its memcached clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Client connections of the node. One more takes the place of the oldest that has sent no command yet; if there is none it is told so
    /// and closed.
    pub max_connections: usize,
    /// Whether flush_all is carried out; it is answered with an error if not.
    pub flush_all: bool,
    /// Unanswered commands (keys, for a multi-key get) of one connection; beyond it the connection is not read.
    pub outstanding_requests: usize,
    /// Bytes of unanswered commands and unsent replies of one connection; beyond it the connection is not read.
    pub outstanding_bytes: usize,
    /// Longest value that is taken from a client, in bytes, where it may be cut into chunks.
    pub max_value_bytes: u64,
    /// How long a connection may be silent; none = for ever.
    pub idle: Option<Duration>,
    /// How long a command may take to arrive in full.
    pub half_sent: Duration,
    /// How long a connection may leave its replies unread once its buffers are full.
    pub unread: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            flush_all: true,
            outstanding_requests: 1024,
            outstanding_bytes: 4 << 20,
            max_value_bytes: 1 << 30,
            idle: None,
            half_sent: Duration::from_secs(60),
            unread: Duration::from_secs(30),
        }
    }
}

/// Bytes that one read of a client's socket asks for.
pub(crate) const CLIENT_READ_BYTES: usize = 16 * 1024;
/// A connection's input buffer larger than this is given back once it is empty.
pub(crate) const CLIENT_BUFFER_KEPT_BYTES: usize = 64 * 1024;
/// Buffers that a worker keeps for connections that have something to read or to write.
pub(crate) const BUFFERS_POOLED: usize = 64;
/// Unsent replies of one connection beyond which it executes nothing more.
pub(crate) const CLIENT_OUT_HIGH_BYTES: usize = 256 * 1024;
/// Reads of one connection in a row before others get their turn.
pub(crate) const CLIENT_READS_PER_TURN: usize = 8;
/// Values that one connection of the native protocol sends in pieces at the same time; more of them wait.
pub(crate) const NATIVE_UPLOADS: usize = 8;
/// Bytes of such a value that a client may have sent beyond what the host has taken.
pub(crate) const NATIVE_UPLOAD_WINDOW_BYTES: u64 = 256 * 1024;
/// Values in chunks that are gathered for one connection of the native protocol at the same time; more of them wait.
pub(crate) const NATIVE_GATHERS: usize = 8;
/// Reads of chunks that one connection of the native protocol has at the same time; more of them are refused as busy.
pub(crate) const NATIVE_FETCHES: usize = 64;
/// Bytes of chunks that a client puts which one connection has on their way to the workers that keep them; beyond it is not read.
pub(crate) const NATIVE_CELLS_BYTES: usize = 1 << 20;
/// What a pending request is taken to weigh besides its value.
pub(crate) const REQUEST_OVERHEAD_BYTES: usize = 256;
/// Buffers of one worker are charged to the node's memory in steps of this size.
pub(crate) const BUFFER_STEP_BYTES: usize = 1 << 20;
/// Share of the node's memory that all workers' buffers may take, as a divisor.
pub(crate) const BUFFER_SHARE_OF_MEMORY: usize = 8;
/// What the buffers of one worker may always take, so that the largest item can pass.
pub const BUFFER_FLOOR_BYTES: usize = 4 << 20;

/// Bytes that one read of a peer's socket asks for, where little comes.
pub(crate) const LINK_READ_BYTES: usize = 64 * 1024;
/// The same where much comes: the cells of long values.
pub(crate) const LINK_LONG_READ_BYTES: usize = 256 * 1024;
/// Bytes of a frame for which memory is reserved when its header has come: whatever a record with the longest item takes.
pub(crate) const LINK_FRAME_BYTES: usize = types::op::MAX_VALUE_BYTES + LINK_READ_BYTES;
/// Bytes that are read from one link in a row before others get their turn; a read counts as [`LINK_READ_BYTES`] at least.
pub(crate) const LINK_TURN_BYTES: usize = 16 * LINK_READ_BYTES;
/// Unsent bytes of one link beyond which it is dropped; the protocol resumes on the next one.
pub(crate) const LINK_OUT_BYTES: usize = 32 << 20;
/// Bytes of chunks that may wait for one link; cells beyond are dropped, and sent again by the protocol.
pub(crate) const LINK_BULK_BYTES: usize = 32 << 20;
/// Bytes of chunks that one write of a link takes along: records that come meanwhile wait for no more.
pub(crate) const LINK_BULK_AT_ONCE: usize = 512 << 10;
/// The same of cells that no client waits for.
pub(crate) const LINK_REPAIR_AT_ONCE: usize = 128 << 10;
/// Bytes of chunks that clients wait for, after which one cell that none waits for goes all the same.
pub(crate) const LINK_REPAIR_EVERY: usize = 1 << 20;
/// Unsent bytes of one link beyond which values that were asked for are not put into it any more.
pub(crate) const LINK_VALUES_BYTES: usize = LINK_OUT_BYTES / 2;
/// Unsent bytes of one link beyond which its requests wait, and answers' bytes that are made in one go.
pub(crate) const LINK_PAUSE_BYTES: usize = 2 << 20;
/// Requests of one link that are handed over in one go.
pub(crate) const FORWARDS_PER_TURN: usize = 128;
/// Requests of one link that may wait for it to be written; what is beyond is refused as busy.
pub(crate) const FORWARDS_KEPT: usize = 65_536;
/// Bytes of these requests.
pub(crate) const FORWARDS_KEPT_BYTES: usize = 16 << 20;
/// A link's buffer larger than this is given back once it is empty.
pub(crate) const LINK_BUFFER_KEPT_BYTES: usize = LINK_LONG_READ_BYTES;
/// How long a peer may take to introduce itself.
pub(crate) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(2);
/// Connections of nodes that may be introducing themselves at one listener; one more takes the place of the oldest.
pub(crate) const HANDSHAKES_AT_ONCE: usize = 64;
/// First pause before a link or the coordinator is dialled again; doubles up to [`REDIAL_MAX`].
pub(crate) const REDIAL_MIN: Duration = Duration::from_millis(20);
/// Longest pause before a link or the coordinator is dialled again.
pub(crate) const REDIAL_MAX: Duration = Duration::from_millis(500);
/// How long one attempt to connect may take.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// Requests that one worker may have unanswered at another one; what is beyond is refused as busy.
pub(crate) const CROSSINGS_OPEN: usize = 65_536;
/// New connections and other errands that wait for one worker; clients beyond go to the others, or wait to be accepted.
pub(crate) const ERRAND_QUEUE: usize = 256;
/// Messages of the coordinator that wait for one worker; a worker that lets more gather is stuck.
pub(crate) const COORDINATOR_IN_QUEUE: usize = 4096;
/// Messages of all workers that wait for the coordinator; what is beyond is dropped, and sent again by the protocol.
pub(crate) const COORDINATOR_OUT_QUEUE: usize = 4096;
/// Node leases after which a silent coordinator is dialled anew.
pub(crate) const COORDINATOR_SILENCE_LEASES: u64 = 3;
/// How long a node waits for the others of its cluster before its log says who is missing.
pub(crate) const FORMING_PATIENCE: Duration = Duration::from_secs(3);
/// Unsent bytes for one node at the coordinator beyond which its connection is dropped.
pub(crate) const COORDINATOR_LINK_BYTES: usize = 16 << 20;
/// What the owner and operators have for an embedded coordinator; operators beyond are told that it is busy.
pub(crate) const COORDINATOR_COMMANDS: usize = 1024;
/// Nodes that may be connected to one coordinator.
pub(crate) const COORDINATOR_CONNECTIONS: usize = 4096;
/// What may wait at a coordinator for records to be written; one with more behind it gives up.
pub(crate) const COORDINATOR_HELD_ACTIONS: usize = 1 << 18;
/// Least time between two ticks of the coordinator, in microseconds, however much is due: nodes are heard in between.
pub(crate) const COORDINATOR_TICK_PAUSE_US: u64 = 1_000;

/// Least time of a node's lease at etcd, which grants no less with its default settings.
pub(crate) const ETCD_LEAST_LEASE: Duration = Duration::from_secs(2);
/// Pause before etcd is asked again.
pub(crate) const ETCD_RETRY: Duration = Duration::from_millis(200);
/// How long nothing may happen at etcd before a candidate looks at the election again.
pub(crate) const ETCD_REST: Duration = Duration::from_millis(500);
/// How long a node that ends waits for etcd to hear of it.
pub(crate) const ETCD_FAREWELL: Duration = Duration::from_millis(500);
/// Bytes of records in one transaction; etcd takes 1.5 MiB with its default settings.
pub(crate) const ETCD_TXN_BYTES: usize = 1 << 20;

/// How long a client's connection is silent before the system asks whether the other side is still there, and how often it asks.
pub(crate) const CLIENT_KEEPALIVE: (Duration, u32) = (Duration::from_secs(60), 4);
/// Pause before a client is offered to the workers again when none of them had room for it.
pub(crate) const DEAL_PAUSE: Duration = Duration::from_millis(5);
/// Pause after `accept` failed for want of file descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a closed connection is read on, so that its last replies arrive.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);
/// How much of it is read.
pub(crate) const FAREWELL_BYTES: usize = 2 << 20;
/// Places in a connection's queues that it keeps while it is silent.
pub(crate) const CLIENT_PLACES_KEPT: usize = 16;
/// How often connections are checked for their deadlines.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
/// Http connections at one time. One more takes the place of the one that has been without a request for longest; while all have requests, it
/// waits.
pub(crate) const HTTP_CONNECTIONS: usize = 128;
/// How long the first headers of an http connection may take.
pub(crate) const HTTP_HEADERS: Duration = Duration::from_secs(5);
/// How long a request may take from its headers on, body and all.
pub(crate) const HTTP_REQUEST: Duration = Duration::from_secs(10);
/// How long it may take from an answer to the next request's headers, and so the reading of the answer.
pub(crate) const HTTP_IDLE: Duration = Duration::from_secs(60);
/// Operators' requests of one node that may wait for the coordinator.
pub(crate) const ADMIN_REQUESTS: usize = 64;
/// Longest operators' request.
pub(crate) const ADMIN_BODY_BYTES: usize = 1 << 20;
/// How long an operator's request waits for the coordinator.
pub(crate) const ADMIN_DEADLINE: Duration = Duration::from_secs(5);
/// How long an http request waits for the workers' figures.
pub(crate) const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(1);
/// How long another node may take to say its statistics for `stats cluster`, how many are asked at once, and most bytes of what one
/// says.
pub(crate) const SURVEY_DEADLINE: Duration = Duration::from_secs(2);
pub(crate) const SURVEY_AT_ONCE: usize = 64;
pub(crate) const SURVEY_ANSWER_BYTES: usize = 64 * 1024;
/// For how long a node that has evicted, or refused a write for want of memory, counts as full.
pub(crate) const FULLNESS_REMEMBERED: Duration = Duration::from_secs(60);
/// Least memory of a node.
pub(crate) const MIN_MEMORY_BYTES: usize = 16 << 20;

const _: () = assert!(CLIENT_OUT_HIGH_BYTES < BUFFER_FLOOR_BYTES);
const _: () = assert!(types::op::MAX_VALUE_BYTES < BUFFER_FLOOR_BYTES);
const _: () = assert!(LINK_REPAIR_AT_ONCE < LINK_BULK_AT_ONCE);
const _: () = assert!(LINK_PAUSE_BYTES < LINK_VALUES_BYTES && types::op::MAX_VALUE_BYTES < LINK_PAUSE_BYTES);
const _: () = assert!(ADMIN_DEADLINE.as_nanos() < HTTP_REQUEST.as_nanos());
const _: () = assert!(ADMIN_BODY_BYTES < wire::frame::MAX_FRAME_BYTES);
const _: () = assert!(wire::frame::MAX_FRAME_BYTES < LINK_OUT_BYTES - LINK_VALUES_BYTES);
const _: () = assert!(REDIAL_MIN.as_nanos() < REDIAL_MAX.as_nanos());
