//! Everything between members, without I/O: the group protocol and the coordinator's decisions as state machines.
//!
//! Two drivers run this crate: `server` from sockets and timers, `sim` from a seed. Events and time go in
//! ([`Host::handle_peer`], [`Host::submit`], [`Host::tick`], ...), actions come out ([`Host::poll_action`]).
//! Nothing here reads a clock, draws a number, starts a thread or touches a socket.

pub mod coordinator;
pub mod host;

mod config;
mod entrance;
mod impossible;
mod latency;
mod objects;
mod outbox;
mod pace;
mod parity;
mod primary;
mod queue;
mod roles;
mod rules;
mod secret;
mod size;
mod timers;

pub use config::{EncodeBy, GraphSettings, Limits, Now, Timing};
pub use coordinator::{
    Coordinator, CoordinatorAction, CoordinatorConfig, Gathered, RecordKeeping, ResumeError,
};
pub use entrance::{End, Entrance, Verdict};
pub use host::actions::Actions;
pub use host::follow::Following;
#[cfg(feature = "planted-bugs")]
pub use host::inspect::damage_chunk;
pub use host::inspect::{
    NamespaceUse, RoleBytes, graph_links, lost_keys, probe_report, said_links, seen_links, wrong_keys,
    wrong_stripes,
};
pub use host::{
    Action, Host, HostConfig, HostMemory, HostStats, IndexMemory, Place, Read, Submitted, Token, WriteNews,
    WriteStep, locate_chunks, locate_scan,
};
pub use impossible::Impossible;
pub use latency::{ByKind, Histogram, HostLatencies};
pub use objects::names::{DepositId, GatherId, ObjectStats, UploadId};
pub use objects::{
    GraphStats, NewDeposit, NewGather, NewUpload, OrderStats, ProbeReport, Probed, ReadStats, SaidLinks,
    SeenLink, WrongStripe,
};
pub use parity::ScrubFinding;
pub use primary::{LostKey, QuickRead, Seen};
pub use rules::{Bug, Rules};
pub use secret::Secret;
