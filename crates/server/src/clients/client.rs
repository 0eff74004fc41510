//! A client's connection, whatever it speaks: what the worker does with all of them.

use std::cell::Cell;

use proto::Now;
use types::Time;
use types::op::Outcome;

use crate::workers::streams::News;
use crate::workers::worker::Worker;

/// See the module.
pub(crate) trait Client {
    /// Whether the worker knows that it has answers to print.
    fn answered(&self) -> &Cell<bool>;

    /// The answer to its request `slot`. A `deliver` must follow, which sends it.
    fn answer(&self, worker: &Worker, now: Time, slot: u64, outcome: Outcome);

    /// News of a value that is sent or read bit by bit. A `deliver` must follow.
    fn hear(&self, worker: &Worker, slot: u64, news: News);

    /// Prints and sends what has been answered since the last time.
    fn deliver(&self, worker: &Worker);

    /// How many requests, keys where they have several, are unanswered.
    fn waiting(&self) -> usize;

    /// Memory of its buffers and of what waits in it, and its own.
    fn memory_bytes(&self) -> usize;

    /// Whether a deadline has passed at `now`; gives back memory if not. `pressed` if memory is short: then nobody may dawdle.
    fn overdue(&self, worker: &Worker, now: Now, pressed: bool) -> Option<Overdue>;

    /// Closes at once, for this reason.
    fn close(&self, worker: &Worker, why: Overdue);
}

/// Why a connection is closed by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Silent for too long.
    Idle,
    /// A command did not arrive in full.
    HalfSent,
    /// Replies were not read.
    Unread,
}
