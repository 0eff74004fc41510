//! What the planner is asked about, and what it answers: nodes, moves, limits.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::{GroupId, HostId, RoleIndex};

/// What the planner needs to know of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// The process.
    pub host: HostId,
    /// Failure domain; empty if none was given: then the node is its own.
    pub zone: String,
    /// To be emptied: it gets nothing new.
    pub draining: bool,
    /// It lives, has memory, and has not refused a role lately.
    pub can_host: bool,
    /// Memory in use.
    pub bytes: u64,
    /// Memory that is free, as far as it has said; else as much as there can be.
    pub room: u64,
    /// Parities that it had until it was given up, and may still have the bytes of.
    pub former: Vec<(GroupId, RoleIndex)>,
}

/// A role that is to be built on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The group.
    pub group: GroupId,
    /// Its role.
    pub role: RoleIndex,
    /// Who serves it until then; none if the role is missing.
    pub from: Option<HostId>,
    /// Who is to serve it.
    pub to: HostId,
    /// What it is good for.
    pub reason: Reason,
}

/// Why a role moves; the most important reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A parity is missing.
    Rebuild,
    /// Two roles of the group are on one node, as after a stand-in went to a parity's node.
    Crowded,
    /// The node is to be emptied.
    Drain,
    /// The zone has more roles of the group than another one would have.
    Zone,
    /// The node has more roles or bytes than another one.
    Balance,
}

/// How much may be under way at a time, and which differences do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// Roles that are built on one node at a time. Repairs count repairs only; so there may be twice as many when a loss
    /// comes while a node is being filled.
    pub per_node: usize,
    /// Builds at a time that one node is read for: it is the primary of a data role that moves, or of a group whose
    /// parity is built. Counted like `per_node`.
    pub per_source: usize,
    /// Builds at a time in the cluster. Counted like `per_node`.
    pub total: usize,
    /// By how many data roles, parities, or roles in all a node may exceed another; 0 is taken as 1, as no move
    /// would make a difference of 1 smaller.
    pub balance_slack: usize,
    /// By what part of the mean, in percent, a node's bytes may exceed another's.
    pub bytes_slack_percent: u8,
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self { per_node: 1, per_source: 2, total: 16, balance_slack: 1, bytes_slack_percent: 25 }
    }
}

impl Reason {
    /// Whether a group is worse protected as long as this has not been done.
    #[must_use]
    pub fn is_repair(self) -> bool {
        matches!(self, Self::Rebuild | Self::Crowded)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rebuild => "rebuild",
            Self::Crowded => "crowded",
            Self::Drain => "drain",
            Self::Zone => "zone",
            Self::Balance => "balance",
        })
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.reason, self.group, self.role)?;
        if let Some(from) = self.from {
            write!(f, " from {}", from.node)?;
        }
        write!(f, " to {}", self.to.node)
    }
}
