//! Links to other nodes: who dials whom, how they introduce themselves, frames out and frames in.

mod dial;
pub(crate) mod guess;
pub(crate) mod handshake;
pub(crate) mod incoming;
pub(crate) mod link;
pub(crate) mod links;
