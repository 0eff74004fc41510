//! The coordinator of a cluster whose map lives in etcd: `--coordinator etcd://…`.
//!
//! Every node has a [`candidate`]: a thread that holds a lease at etcd, keeps the node's own key under it, and stands for
//! election. Who is elected reads the records, presides over the cluster with the same state machine as the embedded
//! coordinator (`presiding`), and writes every record by a transaction that fails unless it still leads ([`journal`]).
//! All nodes learn from etcd where the leader is, and talk to it as they talk to an embedded coordinator.
//!
//! `keys` names what is stored, `settings` is what all nodes have to agree on, `mirror` is this node's picture of it,
//! `session` is one lease, `reign` is one leadership, `status` is what others are told.
//!
//! While etcd is away nobody presides for longer than a lease, nothing is reconfigured, and reads and writes go on.
//! What is found in etcd and is no record is reported and never acted on; nobody presides over it.

mod candidate;
mod config;
mod journal;
mod keys;
mod mirror;
mod reign;
mod session;
mod settings;
mod status;

pub(crate) use candidate::run;
pub use config::{Coordination, ElectedConfig, Founding, check_name};
pub(crate) use status::Election;
pub use status::EtcdStatus;
