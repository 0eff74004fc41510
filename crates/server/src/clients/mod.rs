//! Clients' connections: what they ask is read and executed or submitted, and answered in the order in which it was asked.

/// What clients speak. Another protocol beside it would be another implementor, or one that asks the first bytes.
pub(crate) type Protocol = faces::memcache::Parser;
/// How the outcome of a request is printed.
pub(crate) type Style = <Protocol as faces::Face>::Style;
/// How the values of a read are printed.
pub(crate) type Values = <Protocol as faces::Face>::Values;

pub(crate) mod commands;
pub(crate) mod connection;
mod download;
mod downloading;
pub(crate) mod gate;
mod key_uses;
pub(crate) mod latency;
pub(crate) mod replies;
mod stats;
mod upload;
mod uploading;
