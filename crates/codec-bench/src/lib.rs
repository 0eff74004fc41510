//! How fast the codec is, beside other libraries and beside what the machine can do at all, in one run; and whether all
//! kernels, and other libraries, give the same bytes.
//!
//! - A [`Job`] is what is measured: a code, an operation, a length. [`measure`] runs it on several *sides* (our kernels and
//!   matrices, [`Peer`]s, the machine's limits), which take turns inside each round, and gives a [`Case`].
//! - [`verify`](verify()) compares all kernels with the scalar one, and chunks with those of peers.
//! - [`sweep`] takes whole figures and draws them.
//!
//! Command line and tables are the business of `cli`.
#![allow(clippy::disallowed_methods)]

mod card;
mod error;
mod harness;
mod job;
mod limits;
mod machine;
mod memory;
mod ours;
mod peers;
mod prepared;
mod report;
mod run;
mod side;
pub mod sweep;
mod verify;

pub use card::NAME as CARD;
pub use error::BenchError;
pub use harness::{Effort, Spread};
pub use job::{Extent, Job, Op, UnknownOp};
pub use machine::Machine;
pub use ours::Ours;
pub use peers::{Peer, UnknownPeer};
pub use report::{Case, Limit, Parts, Ratio, Report, SideFigures, Skipped};
pub use run::{Sides, measure};
pub use verify::{Checked, Verdict, verify};
