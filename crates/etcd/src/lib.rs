//! A thin client of etcd: ranges, transactions, leases, watches, login, over TLS if asked for.
//!
//! It speaks etcd's gRPC face through `tonic`, with messages written by hand. Several members are tried in turn: one that does
//! not answer, or that knows of no leader, is left, by requests and by watches. What is certainly not done is asked of the next
//! member; a transaction whose outcome nobody knows is reported as [`Error::Unanswered`] and never repeated.
//!
//! Why not [`etcd-client`] (0.21): its build script runs `protoc` in every case, for it ships no generated code, and Gestalt is
//! to build with Rust alone. And it spreads requests over members through a balancer that does not say which one it asked, so a
//! member that has no leader could not be left, nor would it be known who has not answered.
//!
//! [`etcd-client`]: https://docs.rs/etcd-client

mod client;
mod config;
mod error;
mod kv;
mod lease;
mod messages;
mod version;
mod watch;

pub use client::Client;
pub use config::{Config, ConfigError, Endpoints, Login, Tls};
pub use error::Error;
pub use kv::{Compare, Entry, MAX_TXN_OPS, Op, Range, Txn, TxnOutcome};
pub use lease::LeaseId;
pub use version::{OLDEST, Version};
pub use watch::{Change, Watch};
