//! What operators have asked of a cluster, as opposed to what is: who is to be emptied, which zone a node is in, how fast
//! lost members are rebuilt. It travels in the map, so that nodes and clients see the same.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// Number of a layout; grows by one with each change that an operator makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LayoutVersion(pub u64);

impl LayoutVersion {
    /// The largest one that may be sent or stored.
    pub const MAX: Self = Self(u64::MAX / 2);

    /// The version that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for LayoutVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The operators' wishes, changed as a whole and only against the version that they were made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Grows with each change.
    pub version: LayoutVersion,
    /// What was asked of single nodes. A node that is not here is active, in the zone that it names itself.
    #[serde(default)]
    pub nodes: BTreeMap<NodeId, NodeLayout>,
    /// How lost members are rebuilt.
    #[serde(default)]
    pub repair: RepairSettings,
    /// Whether everything is compared with its parities. Not changed with a layout as a whole.
    #[serde(default)]
    pub scrub: ScrubSettings,
    /// What becomes of roles whose data is lost. Not changed with a layout as a whole.
    #[serde(default)]
    pub on_loss: LossPolicy,
}

/// What was asked of one node. The default is what a node is of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeLayout {
    /// Whether it may host members.
    #[serde(default)]
    pub state: NodeState,
    /// Its failure domain; none = the one that it names itself.
    #[serde(default)]
    pub zone: Option<String>,
}

/// Whether a node may host members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It may.
    #[default]
    Active,
    /// It is to become empty: what it hosts moves elsewhere, and nothing new comes. It stays so through restarts.
    Draining,
}

/// How lost members are rebuilt and members are moved. What requests wait for is held back by neither pause nor rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairSettings {
    /// Nothing is rebuilt in the background.
    #[serde(default)]
    pub paused: bool,
    /// Most bytes a second that one node rebuilds or sends for it; 0 = no limit.
    #[serde(default)]
    pub bytes_per_second: u64,
    /// Most memory of one node that open repairs take; 0 = no limit but the node's own.
    #[serde(default)]
    pub memory_bytes: u64,
}

impl RepairSettings {
    /// Smallest memory limit: a few repairs must be possible at a time.
    pub const MIN_MEMORY_BYTES: u64 = 1 << 20;
}

/// The comparison of all data with its parities (group protocol, section 7). A process that comes later takes part, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScrubSettings {
    /// Grows with each start: whoever has not ended the scrub of this number has it to do. 0 = there was none yet.
    pub generation: u64,
    /// Whether it may go on.
    pub running: bool,
    /// Whether a parity that is wrong beside items that are all right is corrected.
    pub repair: bool,
    /// Most bytes of parity a second that one node checks, beside the limit of all repair; 0 = no limit of its own.
    pub bytes_per_second: u64,
}

impl ScrubSettings {
    /// The largest number of a scrub that may be sent or stored.
    pub const MAX_GENERATION: u64 = u64::MAX / 2;

    /// The next one.
    #[must_use]
    pub fn started(self, finding: OnFinding, bytes_per_second: u64) -> Self {
        let repair = finding == OnFinding::Correct;
        Self { generation: self.generation + 1, running: true, repair, bytes_per_second }
    }
}

/// What to do about a parity that a scrub has found wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFinding {
    /// Tell.
    #[default]
    Report,
    /// Correct it, where all items that it covers are right by their checksums.
    Correct,
}

impl Layout {
    /// Whether `node` is to become empty.
    #[must_use]
    pub fn is_draining(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|known| known.state == NodeState::Draining)
    }

    /// The zone that operators have given `node`.
    #[must_use]
    pub fn zone_of(&self, node: NodeId) -> Option<&str> {
        self.nodes.get(&node)?.zone.as_deref()
    }

    /// Nodes that are to become empty, ascending.
    pub fn draining(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(|(_, known)| known.state == NodeState::Draining).map(|(node, _)| *node)
    }

    /// The same wishes without those that say nothing.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        self.nodes.retain(|_, known| *known != NodeLayout::default());
        self
    }

    /// The same wishes with a line for each of `nodes`, to be edited.
    #[must_use]
    pub fn spelled_out(mut self, nodes: impl Iterator<Item = NodeId>) -> Self {
        for node in nodes {
            self.nodes.entry(node).or_default();
        }
        self
    }
}

/// What becomes of a data role whose data is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossPolicy {
    /// Its keys are answered with an error until an operator accepts the loss.
    #[default]
    Error,
    /// It begins anew, empty, as soon as nobody can serve what it was: for caches.
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_left_out_and_spelled_out_again() {
        let mut layout = Layout::default();
        layout.nodes.insert(NodeId(3), NodeLayout { state: NodeState::Draining, zone: None });
        let spelled = layout.clone().spelled_out((0..4).map(NodeId));
        assert_eq!(spelled.nodes.len(), 4);
        assert_eq!(spelled.normalized(), layout);
        assert!(layout.is_draining(NodeId(3)) && !layout.is_draining(NodeId(0)));
        assert_eq!(layout.draining().collect::<Vec<_>>(), [NodeId(3)]);
    }

    #[test]
    fn a_layout_is_a_small_strict_document() {
        let text = r#"{"version":4,"nodes":{"2":{"state":"draining","zone":"b"}},"repair":{"paused":true}}"#;
        let layout: Layout = serde_json::from_str(text).unwrap();
        assert_eq!((layout.version, layout.zone_of(NodeId(2))), (LayoutVersion(4), Some("b")));
        assert!(layout.repair.paused && layout.repair.bytes_per_second == 0);
        let again: Layout = serde_json::from_str(&serde_json::to_string(&layout).unwrap()).unwrap();
        assert_eq!(again, layout);
        assert!(serde_json::from_str::<Layout>(r#"{"version":4,"ndoes":{}}"#).is_err());
        assert!(serde_json::from_str::<Layout>(r#"{"nodes":{}}"#).is_err(), "no version, no layout");
    }
}
