//! Clients' connections: what they ask is read and executed or submitted, and answered in the order in which it was asked.

pub(crate) mod commands;
pub(crate) mod connection;
pub(crate) mod gate;
mod key_uses;
pub(crate) mod latency;
pub(crate) mod replies;
mod stats;
