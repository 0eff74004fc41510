//! The deterministic simulator: whole clusters in one thread, on a virtual clock, from a seed.
//!
//! It drives the very state machines that the server drives, [`proto::Host`] and [`proto::Coordinator`], over a network
//! that delays, cuts and partitions, with processes that crash, stand still and come back, and clients that fight over
//! a few keys. One seed is one run, to the last event, on every machine and in every build profile.
//!
//! - [`Options`]: what a seed is made of (swarm testing).
//! - `stage`: what all share: virtual time with the queue of events, random numbers, and the book with trace and digest.
//! - `cluster`: nodes with their hosts, coordinators, and what these have recorded. `network`: what is under way between them.
//! - `nemesis`: what goes wrong and how much of it can be borne, as data.
//! - `natives`: clients that are the real cores of the native protocol, and the bytes between them and nodes.
//! - `clients`, [`oracle`]: who calls, and what clients may be told. `shadow`: what members may send. `checks`: what members must
//!   hold in memory, by decoding it.
//! - [`World`]: who hears of which event; it knows nothing of what is right.
//! - [`run()`]: a phase with faults, then healing, then the demand that everything ends and agrees.
//! - [`Story`]: the same world, moved by hand, for scenarios in plain words.

#[macro_use]
mod stage;

mod checks;
mod clients;
mod cluster;
mod natives;
mod nemesis;
mod network;
mod options;
pub mod oracle;
mod run;
mod shadow;
pub mod story;
mod world;

pub use cluster::process::Life;
pub use options::{
    Batching, FaultKind, Faults, Focus, Memory, NativeClients, Network, Options, Sizes, Succession, Verb,
};
pub use run::{run, run_traced};
pub use stage::brief::Digest;
pub use stage::clock::WallClocks;
pub use stage::report::{Failure, Report, Stats};
pub use stage::trace::Trace;
pub use story::Story;
pub use world::World;
