//! Everything that is read from or written to a socket: the memcached protocols and the frames between nodes.

pub mod message;
pub mod op;
