//! The codec for C, and for whatever calls C: Ceph's plugin (`plugins/ceph`) and liberasurecode's are written against it.
//!
//! `include/gestalt_codec.h` is the documentation for callers. Here is what it stands on:
//! - [`Coder`] is a code, the plans that were used last, and where to compute. It is safe Rust and does all the work.
//! - `buffers` makes slices of a caller's pointers. Pointers that are null, lengths that no memory has and outputs that overlap
//!   something are refused before anything is read or written.
//! - `abi` are the functions themselves: each checks its pointers, calls the coder, and makes a status of the result. The sentence that
//!   goes with a status is kept for the thread (`status`).
//!
//! Bad input is a status, never a panic. Should the library panic nevertheless, the panic ends at `abi::guard` where panics
//! unwind, and ends the process where they abort, as in a release build; it never runs through C's frames.

mod abi;
mod buffers;
mod coder;
mod status;

pub use abi::*;
pub use coder::{Coder, Where};
pub use status::{Failure, Status};
