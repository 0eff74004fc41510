//! The deterministic simulator: whole clusters in one thread, on a virtual clock, from a seed.
//!
//! It drives the very state machines that the server drives, [`proto::Host`] and [`proto::Coordinator`], over a network
//! that delays, cuts and partitions, with processes that crash, stand still and come back, and clients that fight over
//! a few keys. One seed is one run, to the last event, on every machine and in every build profile.
//!
//! - [`Options`]: what a seed is made of (swarm testing).
//! - [`World`]: the cluster and the queue of events; it knows nothing of what is right.
//! - [`oracle`]: what clients may be told. `stream`: what members may send. `checks`: what members must hold in
//!   memory, by decoding it.
//! - [`run()`]: a phase with faults, then healing, then the demand that everything ends and agrees.
//! - [`Story`]: the same world, moved by hand, for scenarios in plain words.

#[macro_use]
mod book;
mod brief;
mod calls;
mod checks;
mod clients;
mod clock;
mod cluster;
mod coordinators;
mod inspect;
mod lines;
mod nemesis;
mod nodes;
mod options;
pub mod oracle;
mod process;
mod queue;
mod reign;
mod report;
mod rng;
mod run;
mod scrub;
mod shadow;
mod stage;
mod store;
pub mod story;
mod stream;
mod trace;
mod wires;
mod world;

pub use brief::Digest;
pub use clock::WallClocks;
pub use options::{Batching, FaultKind, Faults, Focus, Memory, Network, Options, Sizes, Succession, Verb};
pub use process::Life;
pub use report::{Failure, Report, Stats};
pub use rng::Rng;
pub use run::{run, run_traced};
pub use story::Story;
pub use trace::Trace;
pub use world::World;
