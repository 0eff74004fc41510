//! Why a node or a coordinator did not start, and how it ended.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a node or a coordinator did not start. One line each, with what to do.
#[derive(Debug, Error)]
pub enum StartError {
    /// Somebody else listens there.
    #[error("{what} address {addr} is in use: stop the process that listens there or choose another port")]
    AddressInUse {
        /// Which listener.
        what: &'static str,
        /// Where.
        addr: SocketAddr,
    },
    /// The address is not this machine's, or needs privileges.
    #[error("cannot listen on {what} address {addr}: {source}")]
    Listen {
        /// Which listener.
        what: &'static str,
        /// Where.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// An address that others cannot use.
    #[error(
        "{what} address {addr} cannot be told to others: say where they reach this node, with --advertise HOST or \
         --advertise-{what} HOST:PORT"
    )]
    NotAdvertisable {
        /// Which listener.
        what: &'static str,
        /// Where.
        addr: SocketAddr,
    },
    /// Not a coordinator's address.
    #[error(
        "coordinator '{0}' is not understood: write embedded://host:port or etcd://host:port[,host:port...]"
    )]
    CoordinatorAddress(String),
    /// Not a name of a cluster.
    #[error("cluster name '{0}' is not understood: up to 64 letters, digits, '-', '_' and '.'")]
    ClusterName(String),
    /// What leads to etcd is no use.
    #[error("{0}")]
    Etcd(#[from] etcd::ConfigError),
    /// Less memory than a node needs.
    #[error("{given} bytes of memory are too little: a node with {workers} workers needs at least {needed}")]
    TooLittleMemory {
        /// As configured.
        given: usize,
        /// The least that works.
        needed: usize,
        /// As configured.
        workers: u16,
    },
    /// A figure out of bounds.
    #[error("{what} is {given}, it must be {allowed}")]
    OutOfBounds {
        /// Which setting.
        what: &'static str,
        /// As configured.
        given: u64,
        /// What is allowed.
        allowed: String,
    },
    /// The system refused a thread, a runtime or a socket option.
    #[error("cannot start {what}: {source}")]
    System {
        /// What was to be started.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeExit {
    /// It was told to.
    Stopped,
    /// The coordinator will not have it, for this reason.
    Refused(String),
    /// The cluster is not the one that the configuration expects.
    WrongCluster(String),
    /// etcd, or the cluster that it has, is not for this node, for this reason.
    Etcd(String),
    /// A thread ended that must not; a defect.
    Crashed(&'static str),
}

impl NodeExit {
    /// One line for the log and the terminal.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Stopped => "stopped".to_owned(),
            Self::Refused(text) => format!("the coordinator refused this node: {text}"),
            Self::WrongCluster(text) | Self::Etcd(text) => text.clone(),
            Self::Crashed(what) => format!("{what} ended unexpectedly"),
        }
    }
}
