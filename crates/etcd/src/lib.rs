//! A thin client of etcd: ranges, transactions, leases, watches, login, over TLS if asked for.
//!
//! It speaks etcd's gRPC face through `tonic`, with messages written by hand ([`etcd-client`] needs `protoc` to build).
//! Several endpoints are tried in turn. What is certainly not done is asked of the next endpoint; a transaction whose
//! outcome nobody knows is reported as [`Error::Unanswered`] and never repeated.
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
