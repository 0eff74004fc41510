//! What is stored where: all of it under `/gestalt/<cluster name>/`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use types::{HostId, NodeId};

/// The names of one cluster's keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

/// Who leads: below the prefix, like all that follow.
pub(crate) const LEADER: &str = "leader";
/// What all nodes agree on.
pub(crate) const SETTINGS: &str = "config";
/// One key a node, under its lease.
pub(crate) const NODES: &str = "nodes/";
/// What the coordinator has written down.
pub(crate) const RECORDS: &str = "records/";

impl Keys {
    pub(crate) fn new(name: &str) -> Self {
        Self { prefix: format!("/gestalt/{name}/") }
    }

    /// What all keys begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The full name of `below`.
    pub(crate) fn full(&self, below: &str) -> Vec<u8> {
        format!("{}{below}", self.prefix).into_bytes()
    }

    /// The name of `key` below the prefix.
    pub(crate) fn below(&self, key: &[u8]) -> Option<String> {
        let key = std::str::from_utf8(key).ok()?;
        key.strip_prefix(&self.prefix).map(str::to_owned)
    }

    /// The full name of a record.
    pub(crate) fn record(&self, key: &str) -> Vec<u8> {
        self.full(&format!("{RECORDS}{key}"))
    }

    /// The full name of a node's key.
    pub(crate) fn node(&self, node: NodeId) -> Vec<u8> {
        self.full(&format!("{NODES}{}", node.0))
    }
}

/// The value of the leader's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leader {
    /// Which process.
    pub host: HostId,
    /// Where nodes connect.
    pub address: SocketAddr,
}
