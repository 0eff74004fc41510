//! The functions that C calls. What they promise is said in `include/gestalt.h`, which a test compares with these.
//!
//! Each has the same three parts: what comes from outside becomes checked values, the library works, the result becomes a number. So there is
//! one place for each kind of wrong: `memory` for pointers and lengths, `table` for numbers, the client for keys and values.
#![allow(unsafe_code)]

pub mod clients;
pub mod queues;
pub mod requests;
pub mod scans;
pub mod waiting;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::codes::{Failure, Status, conclude};

/// Changes whenever a function or a struct of the interface does.
pub const GESTALT_ABI: u32 = 3;

/// A panic is a code too, where panics unwind.
fn guard(work: impl FnOnce() -> Result<Status, Failure>) -> c_int {
    conclude(catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Status::Internal.into())))
}

/// The same of what can only be done.
fn done(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guard(|| work().map(|()| Status::Ok))
}

/// Until when somebody waits; none = for ever.
fn until(timeout_ms: i64) -> Option<Instant> {
    let limit = Duration::from_millis(timeout_ms.try_into().ok()?);
    Instant::now().checked_add(limit)
}
