//! Zones of nodes as numbers, by the names that the map has: what planners of graphs count bytes between.

use std::collections::{BTreeMap, BTreeSet};

use types::{NodeId, NodeInfo};

/// Of all nodes, where there are several zones; else of none.
#[derive(Default)]
pub(crate) struct Zones {
    nodes: BTreeMap<NodeId, u16>,
}

impl Zones {
    /// Nodes whose zone has no name are in one of their own.
    pub(super) fn of_nodes(nodes: &[NodeInfo]) -> Self {
        let names: BTreeSet<&str> = nodes.iter().map(|info| info.zone.as_str()).collect();
        if names.len() < 2 {
            return Self::default();
        }
        let numbers: BTreeMap<&str, u16> = names.into_iter().zip(0..).collect();
        let number = |info: &NodeInfo| numbers.get(info.zone.as_str()).copied().unwrap_or(0);
        Self { nodes: nodes.iter().map(|info| (info.host.node, number(info))).collect() }
    }

    /// Whether all nodes are in one.
    pub(crate) fn are_one(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where a node is.
    pub(crate) fn of(&self, node: NodeId) -> u16 {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    /// All nodes with their zones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, u16)> {
        self.nodes.iter().map(|(node, zone)| (*node, *zone))
    }
}
