//! Chaos: a cluster of real processes, each in a network namespace of its own, hurt at random while clients write down what
//! they see.
//!
//! A seed draws the schedule ([`Schedule`]): which faults, on which nodes, when and for how long. The schedule does not depend
//! on what the cluster does, so the same seed hurts in the same order again; the processes' own timing is theirs. Before each
//! action the cluster's map is read, and what would take away more than the code can make up for is left out ([`margin`]).
//!
//! There are several pools and namespaces, and an operator makes, flushes and removes some meanwhile ([`Order`]).
//!
//! At the end everything is healed. Then redundancy must come back, every key is read, the history must be linearizable, and
//! no process may have panicked, ended by itself, or kept memory or descriptors.
//!
//! Needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN), `ip` and `nft`. The namespaces have no names: they end with this process.
#![allow(clippy::disallowed_methods)] // Real processes take real time.

mod caps;
mod cluster;
mod cold;
mod command;
mod coordination;
mod driver;
mod fault;
mod filler;
mod leaks;
mod links;
pub mod margin;
mod network;
mod numbers;
mod options;
mod orders;
mod pages;
mod report;
mod schedule;
mod spaces;
mod tenancy;
mod verdict;
mod watch;

pub use caps::{CapBy, Caps};
pub use driver::run;
pub use fault::Fault;
pub use options::{Coordinator, Length, Options};
pub use orders::Order;
pub use report::Report;
pub use schedule::{Action, Schedule};
pub use verdict::HISTORY;
