//! What a client of Gestalt decides, without I/O: which node it asks, what it may ask again, when it gives up.
//!
//! [`Core`] is driven by whoever has sockets and a clock. Commands are plain verbs ([`Core::submit`], [`Core::feed`], [`Core::taken`],
//! [`Core::cancel`]); what arrives is handed in ([`Core::connected`], [`Core::received`], [`Core::lost`], [`Core::tick`]); what is to be done
//! is asked for: where the value goes of which a frame begins to come ([`Core::receiving`]), connections ([`Core::poll_action`]), bytes ([`Core::poll_output`]), what requests have come to ([`Core::poll_event`]), and when
//! time matters next ([`Core::next_deadline`]).
//!
//! | part | what it knows |
//! | --- | --- |
//! | `core` | all of them: commands of the caller, and what happens to connections |
//! | `core/hearing` | what servers say, and whom it concerns |
//! | `core/landing` | which frames' values are received where their callers want them |
//! | `intake` | what comes from one connection: into a buffer, or where it is wanted |
//! | `core/routing` | which node a request goes to, what goes out next, what is sent again |
//! | `core/naming` | writes get their names; what happens when a session is refused, or is over |
//! | `core/transfers`, `core/scans` | what of `direct` and of pages has to do with connections |
//! | `requests` | those that have not ended, and which of them wait for a time or for a node |
//! | `links` | all connections, and what is to be done with them |
//! | `connection` | one connection: hello, credits, frames out and in |
//! | `request` | one request: what it asks, how far it is, what may be done when it fails |
//! | `direct` | values in chunks that are read and written at their holders, and coded here |
//! | `nodes` | where nodes are, and which of them not to try now |
//! | `sessions` | names under which writes are done once |
//! | `walk` | which data role of a scan is asked next, and from where on |
//! | `rules` | which rules a test can leave out, and what each prevents |
//!
//! A request is asked again where it is known to have changed nothing (the server has said so, its frame had not left, its value had not
//! left as a whole, or it only reads), or under its name, under which it is done once. What is read on from another node has the same version, or is an error. All queues have bounds.

mod config;
mod connection;
mod core;
mod direct;
mod error;
mod event;
mod intake;
mod links;
mod nodes;
mod operation;
mod request;
mod requests;
mod rules;
mod sessions;
mod walk;

pub use config::Config;
pub use connection::disown;
pub use core::{Core, Receiving};
pub use direct::{Coding, Estimate, Estimates, LostBy, Stats};
pub use error::Error;
pub use event::{Action, ConnId, Done, Event, Landed, Landing, RequestId};
pub use intake::{Intake, Next, Rooms};
pub use operation::{Body, Op, Operation, ScanOp};
pub use rules::{Bug, Rules};
pub use walk::{Step, Walk};
