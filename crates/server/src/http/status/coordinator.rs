//! What a coordinator's `/status` says.

use std::collections::BTreeMap;

use cluster::health::Assessment;
use proto::Gathered;
use serde::{Deserialize, Serialize};
use types::{ClusterId, Forming, HostId, NodeId, NodeLoad};

use super::ClusterStatus;
use crate::CoordinatorStatus;
use crate::clock::Clock;
use crate::node::knowledge;

/// A coordinator, as it sees its cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoordinatorReport {
    /// Nodes that the cluster waits for before it forms.
    pub expected_nodes: u16,
    /// Nodes that have registered.
    pub registered: Vec<NodeId>,
    /// Nodes that are connected.
    pub connected: Vec<HostId>,
    /// What the nodes said of themselves last.
    pub loads: BTreeMap<NodeId, NodeLoad>,
    /// When they were last heard.
    #[serde(default)]
    pub nodes: Vec<HeardNode>,
    /// After how long a silent node counts as lost.
    #[serde(default)]
    pub lease_seconds: f64,
    /// For how long it has not been able to decide anything, because it hears too few nodes.
    #[serde(default)]
    pub idle_seconds: f64,
    /// Who is here and who is missing, while the cluster has not formed.
    #[serde(default)]
    pub forming: Option<Forming>,
    /// How well the cluster is, as far as the coordinator can tell; none before it has formed.
    #[serde(default)]
    pub assessment: Option<Assessment>,
    /// What it waits for, if it started with nothing and does not know yet where to go on.
    #[serde(default)]
    pub gathered: Option<GatheredReport>,
    /// The cluster, once it has formed.
    pub cluster: Option<ClusterStatus>,
}

/// When a coordinator has last heard a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeardNode {
    /// Which.
    pub node: NodeId,
    /// Whether that is longer ago than a lease.
    pub silent: bool,
    /// Seconds since then.
    pub age_seconds: f64,
}

/// A coordinator that started with nothing has found records, and not heard enough to go on from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatheredReport {
    /// The cluster that they are of.
    pub cluster: ClusterId,
    /// Nodes of that cluster that have answered.
    pub heard: Vec<NodeId>,
    /// Those that have not.
    pub missing: Vec<NodeId>,
    /// How many more of them have to answer, at least; with 0 it waits for the others for two leases.
    pub lacking: usize,
}

impl GatheredReport {
    fn of(gathered: &Gathered) -> Option<Self> {
        let Gathered { cluster, heard, missing, lacking } = gathered.clone();
        Some(Self { cluster: cluster?, heard, missing, lacking })
    }
}

impl CoordinatorReport {
    pub(crate) fn of(status: &CoordinatorStatus, clock: &Clock) -> Self {
        let now = clock.time();
        let heard = |(node, silence_us)| HeardNode {
            node,
            silent: knowledge::is_silent(status, silence_us),
            age_seconds: knowledge::seconds(silence_us),
        };
        let map = status.map.as_deref();
        Self {
            nodes: knowledge::silences(status, now).map(heard).collect(),
            lease_seconds: knowledge::seconds(status.lease_us),
            idle_seconds: knowledge::seconds(knowledge::idle_us(status, now)),
            assessment: map.map(|map| knowledge::assess_at_coordinator(status, map, now)),
            forming: status.forming.clone(),
            expected_nodes: status.expected,
            registered: status.registered.clone(),
            connected: status.connected.clone(),
            loads: status.loads.clone(),
            gathered: status.gathered.as_ref().and_then(GatheredReport::of),
            cluster: status.map.as_deref().map(ClusterStatus::of),
        }
    }
}
