//! What a coordinator says of itself, and what it is told to do, for the other threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Gathered;
use tokio::sync::oneshot;
use types::{
    AdminReply, AdminRequest, ClusterId, ClusterMap, Forming, HostId, MapNews, NodeId, NodeLoad, Time,
};

/// What a coordinator says of itself and of its cluster.
#[derive(Clone, Debug, Default)]
pub struct CoordinatorStatus {
    /// The map, once the cluster has formed.
    pub map: Option<Arc<ClusterMap>>,
    /// Nodes that have registered.
    pub registered: Vec<NodeId>,
    /// Nodes that are connected.
    pub connected: Vec<HostId>,
    /// Nodes that the cluster waits for before it forms.
    pub expected: u16,
    /// Who is here of them; none once it has formed.
    pub forming: Option<Forming>,
    /// What the nodes said of themselves last.
    pub loads: BTreeMap<NodeId, NodeLoad>,
    /// What it waits for, if it started with nothing and does not know yet where to go on.
    pub gathered: Option<Gathered>,
    /// When each of them was last heard, by the coordinator's clock.
    pub heard: BTreeMap<NodeId, Time>,
    /// When it was last able to decide anything, by the same clock.
    pub presided: Time,
    /// After how long a silent node counts as lost, in microseconds.
    pub lease_us: u64,
    /// Connections that were closed for bytes that are no message of a node.
    pub malformed_frames: u64,
    /// Connections that were closed for a message that cannot be.
    pub impossible_messages: u64,
}

/// What the owner says, and what operators ask.
#[derive(Debug)]
pub(crate) enum Command {
    Exited(NodeId),
    Admin(AdminRequest, oneshot::Sender<AdminReply>),
    /// What has become of this version of the cluster's map; none if there is no map.
    MapSince(ClusterId, u64, oneshot::Sender<Option<MapNews>>),
}
