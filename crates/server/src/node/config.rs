//! What a node and a coordinator are started with.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use codec::Coder;
use proto::{GraphSettings, Limits, Timing};
use serde::{Deserialize, Serialize};
use store::Eviction;
use tokio::sync::mpsc;
use types::{ClusterId, Entry, Name, NodeId, Profile};

use crate::Advertise;
use crate::ConnectionLimits;
use crate::Coordination;
use crate::ProcessOrder;
use crate::Scheduling;
use crate::StartError;
use crate::check_name;
use crate::limits::{BUFFER_FLOOR_BYTES, MIN_MEMORY_BYTES};

/// Most listeners that are bound to one namespace each.
const MAX_BOUND_LISTENERS: usize = 64;

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its place in the cluster.
    pub node: NodeId,
    /// Workers; the same number on all nodes of a cluster.
    pub workers: u16,
    /// The cluster that it is meant for; none = whichever the coordinator has.
    pub cluster: Option<ClusterId>,
    /// The protection that it is meant for; none = whichever the cluster has.
    pub profile: Option<Profile>,
    /// Whether it may be added to a cluster that has formed.
    pub entry: Entry,
    /// Where clients connect.
    pub memcached: SocketAddr,
    /// Where clients of one namespace connect, besides.
    pub bound: Vec<BoundListener>,
    /// Where clients of the native protocol connect; none = nowhere.
    pub native: Option<SocketAddr>,
    /// Whether such clients may ask which keys there are.
    pub native_scans: bool,
    /// Where other nodes connect; port 0 = any free one.
    pub peer: SocketAddr,
    /// Where metrics and status are.
    pub http: SocketAddr,
    /// What others are told of where it listens.
    pub advertise: Advertise,
    /// Where the coordinator is, or how it is elected.
    pub coordinator: Coordination,
    /// Hard cap on what the node holds.
    pub memory_bytes: usize,
    /// Address space of one data role; the same on all nodes of a cluster. None = from the memory.
    pub area_limit_bytes: Option<usize>,
    /// What gives way when memory is full.
    pub eviction: Eviction,
    /// Failure domain; may be empty.
    pub zone: String,
    /// Time-outs; the same on all nodes of a cluster and at its coordinator.
    pub timing: Timing,
    /// Bounds of the protocol.
    pub protocol: Limits,
    /// How chunks are made of others.
    pub graphs: GraphSettings,
    /// Who computes the codes of values in chunks.
    pub coder: Coder,
    /// Bounds of clients.
    pub limits: ConnectionLimits,
    /// How the system schedules the workers.
    pub scheduling: Scheduling,
}

/// Where clients of one namespace connect. As text: as `--memcached` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundListener {
    /// Where.
    #[serde(rename = "address")]
    pub addr: SocketAddr,
    /// Which namespace.
    pub namespace: Name,
}

impl fmt::Display for BoundListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.addr, self.namespace)
    }
}

impl NodeConfig {
    /// A node on this machine's loopback, on free ports, with one worker and 64 MiB.
    #[must_use]
    pub fn local(node: NodeId, coordinator: CoordinatorAddress) -> Self {
        Self::with(node, coordinator.into())
    }

    /// The same with any kind of coordinator.
    #[must_use]
    pub fn with(node: NodeId, coordinator: Coordination) -> Self {
        Self {
            node,
            workers: 1,
            cluster: None,
            profile: None,
            entry: Entry::Founder,
            memcached: LOOPBACK,
            bound: Vec::new(),
            native: Some(LOOPBACK),
            native_scans: false,
            peer: LOOPBACK,
            http: LOOPBACK,
            advertise: Advertise::default(),
            coordinator,
            memory_bytes: 64 << 20,
            area_limit_bytes: None,
            eviction: Eviction::None,
            zone: String::new(),
            timing: Timing::default(),
            protocol: Limits::default(),
            graphs: GraphSettings::default(),
            coder: Coder::default(),
            limits: ConnectionLimits::default(),
            scheduling: Scheduling::default(),
        }
    }

    /// Address space of one data role.
    #[must_use]
    pub fn area_limit(&self) -> usize {
        self.area_limit_bytes
            .unwrap_or_else(|| self.memory_bytes.next_power_of_two())
            .min(types::MAX_AREA_BYTES)
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        let out_of_bounds =
            |what, given: u64, allowed: String| Err(StartError::OutOfBounds { what, given, allowed });
        if self.workers == 0 || self.workers > MAX_WORKERS {
            return out_of_bounds(
                "the number of workers",
                self.workers.into(),
                format!("1 to {MAX_WORKERS}"),
            );
        }
        let needed = least_memory_bytes(self.workers);
        if self.memory_bytes < needed {
            return Err(StartError::TooLittleMemory {
                given: self.memory_bytes,
                needed,
                workers: self.workers,
            });
        }
        if self.bound.len() > MAX_BOUND_LISTENERS {
            let most = format!("at most {MAX_BOUND_LISTENERS}");
            return out_of_bounds("the number of bound listeners", self.bound.len() as u64, most);
        }
        if self.limits.max_connections == 0 {
            return out_of_bounds("the number of connections", 0, "at least 1".to_owned());
        }
        if self.limits.outstanding_requests == 0 {
            return out_of_bounds("the number of outstanding requests", 0, "at least 1".to_owned());
        }
        match &self.coordinator {
            Coordination::Embedded(_) => Ok(()),
            Coordination::Elected(elected) => {
                check_name(&elected.name)?;
                Ok(elected.etcd.check()?)
            }
        }
    }
}

/// The least memory that a node with so many workers starts with: what their buffers may always take is a quarter at most.
#[must_use]
pub fn least_memory_bytes(workers: u16) -> usize {
    MIN_MEMORY_BYTES.max(4 * usize::from(workers) * BUFFER_FLOOR_BYTES)
}

/// What an embedded coordinator is started with.
#[derive(Clone, Debug)]
pub struct CoordinatorServerConfig {
    /// Where nodes connect; port 0 = any free one.
    pub listen: SocketAddr,
    /// Where metrics and status are; none = nowhere.
    pub http: Option<SocketAddr>,
    /// The cluster to form.
    pub cluster: proto::CoordinatorConfig,
    /// What it begins with.
    pub start: CoordinatorStart,
    /// Who starts and stops the nodes' processes for operators; none if nobody here does.
    pub processes: Option<mpsc::Sender<ProcessOrder>>,
}

/// What an embedded coordinator begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorStart {
    /// A new cluster, whatever nodes may know of another one.
    NewCluster,
    /// The cluster whose records its nodes keep, as soon as all of them have answered, or most of them; a new one if nobody
    /// keeps any.
    Gather,
    /// The same, however few have answered.
    WithoutQuorum,
}

/// A free port of this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Most workers of a node.
const MAX_WORKERS: u16 = 256;

/// Where a coordinator is: `embedded://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatorAddress {
    /// `host:port`, resolved anew for every connection.
    pub authority: String,
}

impl From<SocketAddr> for CoordinatorAddress {
    fn from(addr: SocketAddr) -> Self {
        Self { authority: addr.to_string() }
    }
}

impl FromStr for CoordinatorAddress {
    type Err = StartError;

    fn from_str(text: &str) -> Result<Self, StartError> {
        let authority = text.strip_prefix("embedded://").unwrap_or_default();
        let port = authority
            .rsplit_once(':')
            .filter(|(host, _)| !host.is_empty())
            .map(|(_, port)| port.parse::<u16>());
        match port {
            // Port 0 means "any" to who listens, and nothing to who connects.
            Some(Ok(1..)) => Ok(Self { authority: authority.to_owned() }),
            _ => Err(StartError::CoordinatorAddress(text.to_owned())),
        }
    }
}

impl fmt::Display for CoordinatorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "embedded://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinator_addresses_are_checked() {
        for good in ["embedded://127.0.0.1:9000", "embedded://[::1]:9000", "embedded://coordinator.example:1"]
        {
            assert_eq!(good.parse::<CoordinatorAddress>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "127.0.0.1:9000",
            "http://a:1",
            "embedded://",
            "embedded://:9000",
            "embedded://host",
            "embedded://host:0",
        ] {
            assert!(
                matches!(bad.parse::<CoordinatorAddress>(), Err(StartError::CoordinatorAddress(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_what_is_needed() {
        let coordinator = "embedded://127.0.0.1:1".parse::<CoordinatorAddress>().unwrap();
        let mut config = NodeConfig::local(NodeId(0), coordinator);
        config.workers = 2;
        config.memory_bytes = 1 << 20;
        let text = config.check().unwrap_err().to_string();
        assert!(text.contains("needs at least 33554432"), "{text}");
        config.memory_bytes = 32 << 20;
        assert!(config.check().is_ok());
        config.workers = 0;
        assert!(config.check().is_err());
    }

    #[test]
    fn more_bound_listeners_than_there_may_be_are_refused() {
        let coordinator = "embedded://127.0.0.1:1".parse::<CoordinatorAddress>().unwrap();
        let mut config = NodeConfig::local(NodeId(0), coordinator);
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        config.bound =
            vec![BoundListener { addr, namespace: "sessions".parse().unwrap() }; MAX_BOUND_LISTENERS];
        assert!(config.check().is_ok());
        config.bound.push(config.bound[0].clone());
        let text = config.check().unwrap_err().to_string();
        assert_eq!(text, "the number of bound listeners is 65, it must be at most 64");
    }
}
