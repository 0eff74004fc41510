//! What a node has to know to take part.

use std::fmt;
use std::net::SocketAddr;

use types::{ClusterId, LossPolicy};

use crate::CoordinatorAddress;
use crate::StartError;

/// Who coordinates.
#[derive(Clone, Debug)]
pub enum Coordination {
    /// A process of its own, or a thread in the parent of all nodes.
    Embedded(CoordinatorAddress),
    /// One of the nodes, elected over etcd.
    Elected(Box<ElectedConfig>),
}

/// How a node takes part in elections.
#[derive(Clone, Debug)]
pub struct ElectedConfig {
    /// Where etcd is, and how to get in.
    pub etcd: etcd::Config,
    /// The cluster's name: clusters of different names may share an etcd.
    pub name: String,
    /// Where nodes connect while this one has the coordinator; port 0 = any free one.
    pub listen: SocketAddr,
    /// What the cluster is formed with, if it is not yet, and agrees with, if it is.
    pub founding: Founding,
}

/// Wishes for the cluster; none = whatever it has, or the default if this node forms it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Founding {
    /// Its identity, if this node forms it.
    pub cluster: ClusterId,
    /// How many nodes it forms with.
    pub nodes: Option<u16>,
    /// Coding groups in all.
    pub groups: Option<u32>,
    /// What becomes of lost data, if this node forms it.
    pub on_loss: Option<LossPolicy>,
}

impl From<CoordinatorAddress> for Coordination {
    fn from(address: CoordinatorAddress) -> Self {
        Self::Embedded(address)
    }
}

impl fmt::Display for Coordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(address) => address.fmt(f),
            Self::Elected(elected) => elected.etcd.endpoints.fmt(f),
        }
    }
}

/// Longest name of a cluster.
const MAX_NAME_BYTES: usize = 64;

/// That `name` may be a part of a key.
///
/// # Errors
/// One that says what a name may be.
pub fn check_name(name: &str) -> Result<(), StartError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(plain) {
        return Ok(());
    }
    Err(StartError::ClusterName(name.to_owned()))
}
