//! What a coordinator says of itself and of its nodes.

use types::{ClusterId, ClusterMap, Epoch, Forming, MapNews, NodeId, NodeInfo, NodeLoad, Time};

use super::Coordinator;
use super::gathering::Gathered;
use super::nodes::NodeState;

impl Coordinator {
    /// Whether it has resigned: it does nothing any more.
    #[must_use]
    pub fn has_resigned(&self) -> bool {
        self.state.outbox().has_resigned()
    }

    /// Which of the coordinators that follow each other this is.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.state.epoch()
    }

    /// How many records this coordinator has made, and how many of them are in force, where the nodes keep them.
    #[must_use]
    pub fn kept(&self) -> (u64, u64) {
        self.state.outbox().keeping().positions()
    }

    /// How many processes it keeps something of.
    #[cfg(test)]
    pub(super) fn known_processes(&self) -> usize {
        let keepers = self.state.outbox().keeping().keeper_count();
        self.gathering.as_ref().map_or(keepers, |gathering| gathering.witness_count())
    }

    /// The map, once the cluster has formed.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.state.map()
    }

    /// What has become of version `since` of the map of `cluster`, if there is a map.
    #[must_use]
    pub fn map_since(&self, cluster: ClusterId, since: u64) -> Option<MapNews> {
        self.state.map_since(cluster, since)
    }

    /// What it waits for, if it started with nothing and has not gone on yet.
    #[must_use]
    pub fn gathered(&self) -> Option<Gathered> {
        self.gathering.as_ref().map(|gathering| gathering.gathered(self.state.epoch()))
    }

    /// Who is here while it waits for the nodes that its cluster forms with; none if there is a cluster, or may be one.
    #[must_use]
    pub fn forming(&self) -> Option<Forming> {
        match (self.state.map(), &self.gathering) {
            (Some(_), _) => None,
            (None, Some(gathering)) => {
                gathering.forming(self.membership.attention().last_active()?, &self.state)
            }
            (None, None) => {
                let here = self.state.nodes().founders().map(|host| host.node).collect();
                Some(Forming { expected: self.state.config().nodes, here })
            }
        }
    }

    /// What is known of the nodes that have registered.
    pub fn registered(&self) -> impl Iterator<Item = &NodeInfo> {
        self.state.nodes().iter().map(NodeState::info)
    }

    /// What the nodes said of themselves last.
    pub fn loads(&self) -> impl Iterator<Item = (NodeId, NodeLoad)> + '_ {
        self.state.nodes().iter().map(|node| (node.host().node, node.load()))
    }

    /// When each node was last heard; what this process itself has missed while it stood still is not counted.
    pub fn last_heard(&self) -> impl Iterator<Item = (NodeId, Time)> + '_ {
        self.state.nodes().iter().map(|node| (node.host().node, node.seen().last))
    }

    /// When it was last able to decide anything, by its own clock: it may hear too few nodes for that.
    #[must_use]
    pub fn presided(&self) -> Time {
        self.membership.attention().presided()
    }
}
