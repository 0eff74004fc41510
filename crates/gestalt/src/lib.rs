#![doc = include_str!("../README.md")]
//!
//! # What may be done twice
//!
//! A read is done again at another node when its connection is lost. A write is made under a session, in which it has a number:
//! it is sent again until what came of it is known, and is done once however often it comes. Where that does not go (no session is to be had, the
//! deadline comes first, the bytes of an upload are gone) it fails with an [`Error`] of which [`Error::is_harmless`] says that it may have been done. Every request has a deadline.
//!
//! # Streams
//!
//! ```no_run
//! # async fn example(client: gestalt::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use tokio::io::AsyncReadExt as _;
//!
//! let mut upload = client.upload("film", 3 << 30, gestalt::Store::default())?;
//! for _ in 0..3 << 10 {
//!     upload.write(vec![7; 1 << 20].into()).await?;
//! }
//! upload.finish().await?;
//! let mut film = client.reader("film", None).await?.expect("it was stored just now");
//! let mut start = [0; 4096];
//! film.read_exact(&mut start).await?;
//! # Ok(())
//! # }
//! ```
// Clocks and tasks live here; what a client decides gets time as an argument.
#![allow(clippy::disallowed_methods)]

mod client;
mod options;
mod reader;
mod shell;
mod sinks;
mod upload;
mod value;

pub use bytes::Bytes;
pub use client::{Client, ConnectError};
pub use client_core::Error;
pub use native::{About, Code, Layout, Meta, Places, Range, Span};
pub use options::{BadUri, Options, Store};
pub use reader::Reader;
pub use types::op::StoreMode;
pub use upload::Upload;
pub use value::{Stored, Value};

/// What bindings for other languages are made of. It may change with every version.
#[doc(hidden)]
pub mod raw {
    pub use client_core::{Body, Config, Done, Error, Op, Operation, RequestId};
    pub use native::{About, Answer, Code, Layout, Meta, Places, Range, Span};
    pub use types::NodeId;
    pub use types::op::{Direction, StoreMode};

    pub use crate::shell::{Shell, Sink};
}
