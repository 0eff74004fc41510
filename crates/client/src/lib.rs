//! A small asynchronous memcached client that knows Gestalt's map.
//!
//! [`Client`] fetches the cluster map over HTTP, sends each key straight to the node that serves it, and falls back
//! to any other node (every node answers for every key) while the map is refreshed. Below it lie the parts that a
//! load generator wants raw: [`request`] writes requests, [`reply`] reads answers without copying, [`Connection`]
//! pipelines them over one socket.
//!
//! A read is tried again until its deadline. A write is tried again only where the first attempt is known to have
//! done nothing; otherwise the answer is [`ClientError::Unknown`], because a write sent twice may overwrite what
//! another client wrote in between.
#![allow(clippy::disallowed_methods)]

mod client;
mod connection;
mod error;
mod http;
pub mod reply;
pub mod request;
mod routing;
mod transfer;

pub use client::{Client, ClientConfig, Deleted, Value};
pub use connection::Connection;
pub use error::ClientError;
pub use faces::memcache::FailureCode;
pub use http::{HttpError, fetch, fetch_json, post_json};
pub use routing::{Location, Router};
pub use transfer::Transferred;
pub use types::op::MAX_PAYLOAD_BYTES;
