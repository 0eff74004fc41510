//! The shell around the state machines of `proto`: sockets, timers, threads.
//!
//! [`Node`] runs one worker a core. A worker is a thread with a single-threaded runtime, one `proto::Host`, and the
//! client connections and peer links that belong to it; workers share nothing but queues and counters, and there is no
//! lock on the data path. One more thread does what is not on the data path: accepting, the coordinator, http.
//! [`CoordinatorServer`] does the same for the embedded coordinator; `coordination::elected` has the coordinator in one of the nodes, elected
//! over etcd.
//!
//! The rooms: `transport` has the sockets, `clients` reads, parses and answers, `workers` has the threads and the pump that asks a
//! host what to do and does it, `peers` carries messages between nodes, `coordination` has coordinators and the way to them, `http`
//! what operators and scrapers ask, `node` the process as a whole. The way of a request: `clients::connection` reads and parses, `clients::commands`
//! answers at once or submits, `workers::pump` asks the host, `clients::replies` puts the answers into the order of the
//! commands. What an answer waits for on its way is in `workers::asker`. Bounds are in `limits`.
//!
//! What is decided here is when to read and when to write, never what a request means or who serves a key.

// This is where clocks and threads live; the state machines below get time as an argument.
#![allow(clippy::disallowed_methods)]

mod clients;
mod clock;
mod coordination;
mod exposition;
mod http;
mod limits;
mod node;
mod peers;
mod places;
mod transport;
mod workers;

pub use coordination::elected::{Coordination, ElectedConfig, EtcdStatus, Founding, check_name};
pub use coordination::embedded::{CoordinatorHandle, CoordinatorServer};
pub use coordination::processes::{
    ProcessAction, ProcessDone, ProcessError, ProcessOrder, ProcessReply, ProcessRequest,
};
pub use coordination::report::CoordinatorStatus;
pub use http::probe::{GraphsReport, LinkProbe, ProbeAnswer, ProbeRequest, ProbedNode, SeenNode};
pub use http::status::{
    ClusterStatus, CodingStatus, CoordinatorReport, DataRoleStatus, FindingStatus, GatheredReport,
    GroupStatus, HeardNode, LinkStatus, LostKeyStatus, MemoryStatus, NamespaceStatus, NodeStatus,
    RepairStatus, RoleLine, ScrubStatus, WrongItem, WrongKeyStatus, WrongStripeStatus,
};
pub use limits::{BUFFER_FLOOR_BYTES, ConnectionLimits};
pub use node::advertise::Advertise;
pub use node::config::{
    BoundListener, CoordinatorAddress, CoordinatorServerConfig, CoordinatorStart, NodeConfig,
    least_memory_bytes,
};
pub use node::error::{NodeExit, StartError};
pub use node::memory::MemoryUse;
pub use node::shared::Addresses;
pub use node::{Node, NodeHandle, Stopper};
#[cfg(feature = "bare")]
pub use workers::bare::Bare;
pub use workers::schedule::Scheduling;
