//! Real processes on this machine, for tests and measurements: started, hurt, asked, and ended with whoever holds them.
//!
//! - [`local_cluster`], [`served_cluster`], [`commanded`]: the [`binary`] `gestalt`, which has to be built before
//!   (`cargo build -p cli`; `cargo xtask` does).
//! - [`etcd_server`], [`etcd_cluster`]: etcd. [`peers`], [`servers`]: memcached and valkey, and what is compared with them.
//! - [`others`]: whatever else others wrote; it installs itself.
//! - [`namespaces`]: networks of their own, each a machine to those within. [`proxy`]: a bad line.
#![allow(clippy::disallowed_methods)] // Real processes take real time.

pub mod binary;
pub mod commanded;
pub mod etcd_cluster;
pub mod etcd_server;
pub mod local_cluster;
pub mod namespaces;
pub mod others;
pub mod pages;
pub mod peers;
pub mod ports;
pub mod proxy;
pub mod served_cluster;
pub mod servers;
