//! The client for C: [`gestalt`] on one thread of its own, behind functions that post, check and release, and never wait unless they are asked to.
//!
//! | part | what it knows |
//! | --- | --- |
//! | `abi` | the functions that C calls, a family of them in each file; what they promise is said in `include/gestalt.h` |
//! | `structs` | what C hands in and gets back, as it lies in memory |
//! | `codes` | the numbers of outcomes, and the sentence of a thread's last failure |
//! | `memory` | the caller's pointers: what is taken at their word, and what is not |
//! | `table` | clients, requests, queues and scans by their numbers, which are never used again |
//! | `client` | one client and its thread |
//! | `request` | one request: over or not, and who waits for it |
//! | `queue` | requests that are over, and an eventfd that says so |
//! | `scan` | the keys of a client's namespace, one after the other |
//! | `fork` | what a forked child does not inherit |
//! | `sinks` | where bytes and answers go as they come |
//!
//! **A buffer of the caller** is touched in two places: by a `Sink`, which the shell calls under its lock, and by the shell as it sends (see
//! `gestalt::shell`). A request is over, or released, only when neither can happen any more. Locks are taken in this order: the shell's, a
//! request's, a queue's; the table's is held while none of them is taken.
// Clocks and threads live here, too.
#![allow(clippy::disallowed_methods)]

pub mod abi;
mod client;
mod codes;
mod fork;
mod memory;
mod queue;
mod request;
mod room;
mod scan;
mod sinks;
pub mod structs;
mod table;

pub use codes::Status;
