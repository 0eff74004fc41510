#![doc = include_str!("../README.md")]
//!
//! # What may be done twice
//!
//! A read is done again at another node when its connection is lost. A write is made under a session, in which it has a number:
//! it is sent again until what came of it is known, and is done once however often it comes. Where that does not go (no session is to be had, the
//! deadline comes first, the bytes of an upload are gone) it fails with an [`Error`] of which [`Error::is_harmless`] says that it may have been done. Every request has a deadline.
//!
//! # Posting and waiting
//!
//! Nothing is asked before its future is polled for the first time; then it is on its way, and the future waits for nothing but its end. What RDMA-Memcached and
//! the clients for other languages call by names of their own is what futures are:
//!
//! | there | here |
//! | --- | --- |
//! | `iset`, `iget` | [`tokio::spawn`](https://docs.rs/tokio/latest/tokio/task/fn.spawn.html) of [`Client::set`], [`Client::get`]: the handle is the request |
//! | `bset`, `bget` | the future, awaited where it is |
//! | `imget` | [`Client::get_many`] |
//! | `test`, `wait` | `is_finished` of the handle; to await it, with [`Client::within`] or `tokio::time::timeout` |
//! | `wait_any`, `wait_all`, a completion queue | `tokio::select!`, `tokio::join!`, `tokio::task::JoinSet` |
//! | `cancel`, `release` | to drop the future: a value that is read does not come any more, a write is done or not |
//!
//! ```no_run
//! # async fn example(client: gestalt::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let writer = client.clone();
//! let write = tokio::spawn(async move { writer.set("weights", vec![0; 1 << 20]).await });
//! let sum: u64 = (0..1_000_000).sum(); // beside the transfer
//! write.await??;
//! # drop(sum);
//! # Ok(())
//! # }
//! ```
//!
//! # Streams
//!
//! A [`Writer`] is a `tokio::io::AsyncWrite`, a [`Reader`] an `AsyncRead`; what has bytes of its own to give away gives them to an [`Upload`],
//! which does not copy them.
//!
//! ```no_run
#![doc = include_str!("../conformance/streams.rs")]
//! ```
// Clocks and tasks live here; what a client decides gets time as an argument.
#![allow(clippy::disallowed_methods)]

mod client;
mod inbox;
mod options;
mod reader;
mod scan;
mod shell;
mod sinks;
mod upload;
mod value;
mod writer;

pub use bytes::Bytes;
pub use client::{Client, ConnectError};
pub use client_core::{Coding, Error, Estimate, Estimates, LostBy, Stats};
pub use native::{About, Code, Layout, Located, Meta, Places, Range, Span};
pub use options::{BadUri, Options, Store};
pub use reader::Reader;
pub use scan::{Scan, Scanner};
pub use types::op::StoreMode;
pub use types::{NodeId, ObjectLayout};
pub use upload::Upload;
pub use value::{Stored, Value};
pub use writer::Writer;

/// What bindings for other languages are made of. It may change with every version.
#[doc(hidden)]
pub mod raw {
    pub use client_core::{Body, Config, Done, Error, Landed, Op, Operation, RequestId};
    pub use native::{About, Answer, Code, Layout, Meta, Places, Range, Span};
    pub use types::NodeId;
    pub use types::op::{Direction, StoreMode};

    pub use crate::scan::Scanner;
    pub use crate::shell::{Shell, Sink};
}
