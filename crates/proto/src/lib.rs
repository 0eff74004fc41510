//! Everything between members, without I/O: the group protocol and the coordinator's decisions as state machines.
//!
//! Two drivers run this crate: `server` from sockets and timers, `testing::sim` from a seed. Events and time go in
//! ([`Host::handle_peer`], [`Host::submit`], [`Host::tick`], ...), actions come out ([`Host::poll_action`]).
//! Nothing here reads a clock, draws a number, starts a thread or touches a socket.

pub mod coordinator;

mod config;
mod host;

pub use config::{Limits, Now, Timing};
pub use coordinator::{Coordinator, CoordinatorAction, CoordinatorConfig};
pub use host::{Action, Host, HostConfig, Read, Submitted, Token};
