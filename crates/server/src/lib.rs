//! The shell around the state machines of `proto`: sockets, timers, threads.
//!
//! [`Node`] runs one worker a core. A worker is a thread with a single-threaded runtime, one `proto::Host`, and the
//! client connections and peer links that belong to it; workers share nothing but queues and counters, and there is no
//! lock on the data path. One more thread does what is not on the data path: accepting, the coordinator, http.
//! [`CoordinatorServer`] does the same for the embedded coordinator; `elected` has the coordinator in one of the nodes, elected
//! over etcd.
//!
//! The way of a request: `connection` reads and parses, `commands` answers at once or submits, `pump` asks the host
//! what to do and does it, `replies` puts the answers into the order of the commands. `link` carries messages between
//! nodes. Bounds are in `limits`.
//!
//! What is decided here is when to read and when to write, never what a request means or who serves a key.

// This is where clocks and threads live; the state machines below get time as an argument.
#![allow(clippy::disallowed_methods)]

mod accept;
mod admin;
mod advertise;
#[cfg(feature = "bare")]
mod bare;
mod buffers;
mod clock;
mod commands;
mod config;
mod connection;
mod coordinator_client;
mod coordinator_server;
mod counters;
mod crossings;
mod elected;
mod error;
mod exposition;
mod frames;
mod gate;
mod guess;
mod handshake;
mod http;
mod http_connection;
mod key_uses;
mod knowledge;
mod latency;
mod limits;
mod link;
mod links;
mod memory;
mod metrics;
mod net;
mod node;
mod places;
mod presiding;
mod process;
mod processes;
mod pump;
mod repair_meter;
mod replies;
mod schedule;
mod shared;
mod slab;
mod stats;
mod status;
mod waker;
mod worker;

pub use advertise::Advertise;
#[cfg(feature = "bare")]
pub use bare::Bare;
pub use config::{CoordinatorAddress, CoordinatorServerConfig, CoordinatorStart, NodeConfig};
pub use coordinator_server::{CoordinatorHandle, CoordinatorServer, CoordinatorStatus};
pub use elected::{Coordination, ElectedConfig, EtcdStatus, Founding, check_name};
pub use error::{NodeExit, StartError};
pub use limits::ConnectionLimits;
pub use memory::MemoryUse;
pub use node::{Node, NodeHandle, Stopper};
pub use processes::{ProcessAction, ProcessDone, ProcessError, ProcessOrder, ProcessReply, ProcessRequest};
pub use schedule::Scheduling;
pub use shared::Addresses;
pub use status::{
    ClusterStatus, CoordinatorReport, DataRoleStatus, FindingStatus, GatheredReport, GroupStatus, HeardNode,
    LinkStatus, MemoryStatus, NodeStatus, RepairStatus, RoleLine, ScrubStatus, WrongItem,
};
