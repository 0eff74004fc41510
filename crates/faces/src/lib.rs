//! What clients speak: a face turns the bytes of one connection into operations, and outcomes into bytes.
//!
//! No I/O and no clock. Nothing here panics on any input, and no memory is reserved by a length that a client declares.

mod face;
pub mod memcache;

pub use face::{Ask, Face, Found, Keys, Line, Stats, Step, Streamed, ValueLimits};
