//! What the members of a cluster say to each other: frames, the plain data of their messages, and records.
//!
//! No I/O and no clock: bytes and time in, messages out. Nothing here panics on any input, and no memory is reserved
//! by a length that a peer declares.

mod codec;
pub mod descriptor;
pub mod frame;
pub mod graph;
mod lane;
pub mod message;
pub mod object;
pub mod record;
pub mod segments;
mod write;

pub use lane::Lane;
