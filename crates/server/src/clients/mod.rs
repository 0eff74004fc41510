//! Clients' connections: what they ask is read and executed or submitted, and answered. `connection` and what belongs to it speaks memcached's
//! protocols, and answers in the order in which it was asked; `native` speaks the native one, and answers in any order.

/// What memcached's clients speak.
pub(crate) type Protocol = faces::memcache::Parser;
/// How the outcome of a request is printed.
pub(crate) type Style = <Protocol as faces::Face>::Style;
/// How the values of a read are printed.
pub(crate) type Values = <Protocol as faces::Face>::Values;

pub(crate) mod client;
pub(crate) mod commands;
pub(crate) mod connection;
mod download;
mod downloading;
pub(crate) mod gate;
mod key_uses;
pub(crate) mod latency;
pub(crate) mod native;
mod output;
pub(crate) mod replies;
mod stats;
mod upload;
mod uploading;
