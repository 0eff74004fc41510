//! Everything that is read from or written to a socket: the memcached protocols and the frames between nodes.
//!
//! No I/O and no clock: bytes and time in, messages out. Nothing here panics on any input, and no memory is reserved
//! by a length that a peer declares.

mod codec;
pub mod frame;
pub mod key;
pub mod memcache;
pub mod message;
pub mod op;
pub mod record;
pub mod segments;
