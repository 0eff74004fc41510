//! Is a recorded history of one key-value store linearizable, key by key?
//!
//! A [`History`] is what clients saw: each operation with the moment it was invoked, and the moment and content of
//! its answer. [`check`] looks for one order of the operations, respecting real time, in which every answer is the one
//! that a single memcached would have given. An operation without an answer (a time-out, a lost connection) may take
//! effect at any moment after its invocation, or never.
//!
//! Keys are independent of each other, so each is searched alone (Herlihy and Wing 1990, theorem 1). The search is
//! that of Wing and Gong (1993) with the memory of Lowe (2017), and reductions that are argued for in `search.rs`.
//!
//! A `flush_all` is an operation of every key that it concerns.
//!
//! What the model leaves out: expiry and eviction (a miss is always an error here). A request that was
//! refused and certainly had no effect does not belong in a history.

mod history;
mod model;
mod report;
mod search;
pub mod simulated;
#[cfg(test)]
mod tests;

pub use history::{Answer, Bytes, History, Moment, Op, Operation, Outcome, ReadError};
pub use report::{Failure, Limits, Violation, check, check_within};
