//! What operators ask of the coordinator, and its answers: plain data.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    BadCatalog, Catalog, ClusterId, GroupId, Layout, LayoutVersion, LossPolicy, Name, NodeId, NodeState,
    OnFinding, Policy, PolicyChange, PoolSlots, Profile, SlotRange,
};

/// One thing that an operator asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminRequest {
    /// The layout that it was decided on: another one is a conflict. None = whatever is there now.
    #[serde(default)]
    pub expect: Option<LayoutVersion>,
    /// What.
    pub command: AdminCommand,
}

/// What an operator may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminCommand {
    /// Make a node empty.
    Drain {
        /// Which.
        node: NodeId,
    },
    /// Let a node host members again.
    Undrain {
        /// Which.
        node: NodeId,
    },
    /// Treat a node's process as dead from now on; it may not come back but as a new one.
    Fence {
        /// Which.
        node: NodeId,
        /// What to do if that loses data.
        loss: OnLoss,
    },
    /// Would it do harm to stop this node now?
    CanStop {
        /// Which.
        node: NodeId,
        /// Who has not been heard for so long, in microseconds, counts as lost: whoever asks again when each has been heard since
        /// the first time knows that nobody had ended before. None = two heartbeats.
        #[serde(default)]
        heard_within_us: Option<u64>,
    },
    /// Rebuild nothing in the background.
    PauseRepair,
    /// Go on.
    ResumeRepair,
    /// Change the limits that are given; 0 = no limit.
    LimitRepair {
        /// Bytes a second of one node.
        bytes_per_second: Option<u64>,
        /// Memory of one node.
        memory_bytes: Option<u64>,
    },
    /// Put this layout in the place of the one whose version it names.
    Apply {
        /// All of it.
        layout: Layout,
    },
    /// Compare all data with its parities, from the beginning.
    StartScrub {
        /// What to do about what is found.
        finding: OnFinding,
        /// Most bytes of parity a second that one node checks; 0 = what repair may take.
        bytes_per_second: u64,
    },
    /// Call the scrub off.
    StopScrub,
    /// Forget a node that is gone for good.
    Remove {
        /// Which.
        node: NodeId,
    },
    /// What is lost in these slots is given up: every lost data role that has one of them begins anew, empty, with all of its
    /// slots.
    AcceptLoss {
        /// Of which pool; none = the namespace's, or the default one.
        #[serde(default)]
        pool: Option<Name>,
        /// Which.
        slots: Vec<SlotRange>,
        /// For this namespace alone; none = for all of the pool's.
        #[serde(default)]
        namespace: Option<Name>,
    },
    /// What becomes of lost data roles from now on.
    SetLossPolicy {
        /// That.
        policy: LossPolicy,
    },
    /// Give up all data: every data role begins anew, empty, on the nodes that live. Nodes that are silent count as fenced.
    Reset,
    /// Other pools or namespaces.
    Catalog(CatalogChange),
}

/// What an operator may ask of pools and namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogChange {
    /// A further pool.
    CreatePool {
        /// What it is called.
        name: Name,
        /// Its protection.
        profile: Profile,
        /// How many groups it has; none = as many as its nodes have use for.
        #[serde(default)]
        groups: Option<u32>,
    },
    /// A pool without namespaces is no more.
    RemovePool {
        /// Which.
        name: Name,
    },
    /// A further namespace.
    CreateNamespace {
        /// What it is called.
        name: Name,
        /// The pool that its keys lie in.
        #[serde(default = "Name::default_name")]
        pool: Name,
        /// What holds for its keys.
        #[serde(default)]
        policy: Policy,
    },
    /// Something else holds for the keys of a namespace.
    SetPolicy {
        /// Which.
        name: Name,
        /// What.
        change: PolicyChange,
    },
    /// A namespace and all of its items are no more.
    RemoveNamespace {
        /// Which.
        name: Name,
    },
    /// The items of a namespace move to another pool.
    ConvertNamespace {
        /// Which.
        name: Name,
        /// Where to.
        to: Name,
    },
    /// A conversion stands still, or goes on.
    PauseConversion {
        /// Of which namespace.
        name: Name,
        /// Whether it stands still.
        paused: bool,
    },
}

/// What to do about a loss of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLoss {
    /// Do not do it.
    #[default]
    Refuse,
    /// Do it: the data is known to be gone, or is not worth waiting for.
    Accept,
}

/// What an operator is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// It is done; this is the layout now.
    Layout(Layout),
    /// What it would mean to stop a node.
    CanStop(StopReport),
    /// The loss of these slots is accepted; so is what had been before.
    Accepted(Vec<PoolSlots>),
    /// It is done; these are the pools and namespaces now.
    Catalog(Catalog),
}

/// What it would mean to stop a node now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// The node.
    pub node: NodeId,
    /// Data roles that it serves: their keys would pause until a stand-in serves them.
    pub data_roles: u32,
    /// Parity roles that it hosts, learners included.
    pub parity_roles: u32,
    /// Node losses that each of its groups would still survive without it, the least of all; none if one of them would lose
    /// data by the stop itself.
    pub losses_survived_after: Option<u32>,
    /// Groups that would lose data by the stop itself.
    pub groups_lost: Vec<GroupId>,
    /// Other nodes that the map has for alive and that have not been heard as lately as was asked for: they count as lost.
    #[serde(default)]
    pub unheard: Vec<NodeId>,
    /// How often nodes are to be heard, in microseconds.
    #[serde(default)]
    pub heartbeat_us: u64,
}

/// Why the coordinator does not do it. The text says what to do next.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "error")]
pub enum AdminError {
    /// Nothing can be changed yet.
    #[error("the cluster has not formed yet: start the nodes that are missing")]
    NotFormed,
    /// Somebody else was faster.
    #[error(
        "the layout is version {have} by now, this change was made from version {named}: look at `gestalt layout show`, \
         and make the change again if it is still wanted"
    )]
    VersionConflict {
        /// The version that was named.
        named: LayoutVersion,
        /// The version that is there.
        have: LayoutVersion,
    },
    /// There is no such node.
    #[error("{node} is not a node of this cluster: `gestalt node list` names them")]
    UnknownNode {
        /// The id that was named.
        node: NodeId,
    },
    /// Members would have no place to go.
    #[error(
        "without {node} there are {left} nodes that may host members, profile {profile} needs {needed}: start another node \
         first, with `gestalt serve --join`, or undrain one"
    )]
    NotEnoughNodes {
        /// The node that would be emptied.
        node: NodeId,
        /// Living nodes that would remain and are not draining.
        left: u32,
        /// The cluster's protection.
        profile: Profile,
        /// Nodes that it needs.
        needed: u32,
    },
    /// Data would be lost.
    #[error("{reason}: {way_out}")]
    WouldLoseData {
        /// How.
        reason: String,
        /// What to do instead.
        way_out: String,
    },
    /// A node that is still of use.
    #[error("{node} {reason}: {way_out}")]
    StillThere {
        /// The node.
        node: NodeId,
        /// Why it cannot be forgotten.
        reason: String,
        /// What to do first.
        way_out: String,
    },
    /// A layout that makes no sense.
    #[error("{reason}")]
    BadLayout {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Pools and namespaces cannot be changed so.
    #[error("{reason}")]
    BadCatalog {
        /// Why, and what to do.
        reason: String,
    },
}

impl From<BadCatalog> for AdminError {
    fn from(bad: BadCatalog) -> Self {
        Self::BadCatalog { reason: bad.to_string() }
    }
}

/// What the coordinator says to a request.
pub type AdminReply = Result<AdminAnswer, AdminError>;

/// What a node tells of itself with every heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Memory in use, in bytes.
    pub used_bytes: u64,
    /// Its cap; 0 if the node has not said anything yet.
    pub limit_bytes: u64,
    /// What of it members take: areas, parities, indexes, chunks.
    pub member_bytes: u64,
    /// Bytes that were rebuilt since it last had nothing to rebuild.
    pub repair_done_bytes: u64,
    /// Bytes that are still to be rebuilt.
    pub repair_left_bytes: u64,
    /// Bytes a second of late.
    pub repair_bytes_per_second: u64,
    /// How its scrub goes on.
    pub scrub: ScrubProgress,
}

impl NodeLoad {
    /// Memory that is free; as much as there can be if the node has not said anything yet.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        if self.limit_bytes == 0 { u64::MAX } else { self.limit_bytes.saturating_sub(self.used_bytes) }
    }
}

/// How far the scrub of a node has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubProgress {
    /// Which scrub; 0 = none yet.
    pub generation: u64,
    /// Pages of its parities and chunks that were compared.
    pub checked_pages: u64,
    /// Pages that are still to be compared.
    pub left_pages: u64,
    /// Places, of up to 16 pages each, and chunks, at which something was wrong.
    pub mismatches: u64,
    /// Those of them that were corrected. Chunks always are: they are got anew.
    pub corrected: u64,
}

impl ScrubProgress {
    /// Of two that are at the same scrub. Of two scrubs the older one counts: who is at it has all of the newer one to do.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.generation != other.generation {
            return if self.generation < other.generation { self } else { other };
        }
        Self {
            generation: self.generation,
            checked_pages: self.checked_pages.saturating_add(other.checked_pages),
            left_pages: self.left_pages.saturating_add(other.left_pages),
            mismatches: self.mismatches.saturating_add(other.mismatches),
            corrected: self.corrected.saturating_add(other.corrected),
        }
    }
}

/// What a process expects of the cluster that it registers with, and how it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The cluster that it is meant for; none = any.
    pub cluster: Option<ClusterId>,
    /// The protection that it is meant for; none = any.
    pub profile: Option<Profile>,
    /// Its workers; 0 = whatever the cluster has.
    pub shards: u16,
    /// Whether it may become a new node of a cluster that has formed.
    pub entry: Entry,
    /// Its lease in microseconds; 0 = whatever the cluster has.
    pub lease_us: u64,
}

/// As what a process comes to a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// One of those that the cluster forms with, in its first or a later life.
    #[default]
    Founder,
    /// A further node: waits until the cluster has formed, and comes without members.
    Joiner,
}

impl AdminCommand {
    /// The node that is meant, if it is one.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match *self {
            Self::Drain { node }
            | Self::Undrain { node }
            | Self::Fence { node, .. }
            | Self::CanStop { node, .. }
            | Self::Remove { node } => Some(node),
            Self::PauseRepair
            | Self::ResumeRepair
            | Self::LimitRepair { .. }
            | Self::Apply { .. }
            | Self::StartScrub { .. }
            | Self::StopScrub
            | Self::AcceptLoss { .. }
            | Self::SetLossPolicy { .. }
            | Self::Reset
            | Self::Catalog(_) => None,
        }
    }
}

impl Layout {
    /// The layout after `command`, unless it is one that changes nothing of it (`Fence`, `CanStop`). The version is as it was.
    #[must_use]
    pub fn after(&self, command: &AdminCommand) -> Option<Self> {
        let mut layout = self.clone();
        match command {
            AdminCommand::Drain { node } => {
                layout.nodes.entry(*node).or_default().state = NodeState::Draining;
            }
            AdminCommand::Undrain { node } => {
                layout.nodes.entry(*node).or_default().state = NodeState::Active;
            }
            AdminCommand::PauseRepair => layout.repair.paused = true,
            AdminCommand::ResumeRepair => layout.repair.paused = false,
            AdminCommand::LimitRepair { bytes_per_second, memory_bytes } => {
                let repair = &mut layout.repair;
                repair.bytes_per_second = bytes_per_second.unwrap_or(repair.bytes_per_second);
                repair.memory_bytes = memory_bytes.unwrap_or(repair.memory_bytes);
            }
            AdminCommand::Apply { layout: wanted } => {
                layout = Self {
                    version: self.version,
                    scrub: self.scrub,
                    on_loss: self.on_loss,
                    ..wanted.clone()
                };
            }
            AdminCommand::StartScrub { finding, bytes_per_second } => {
                layout.scrub = self.scrub.started(*finding, *bytes_per_second);
            }
            AdminCommand::StopScrub => layout.scrub.running = false,
            AdminCommand::Remove { node } => drop(layout.nodes.remove(node)),
            AdminCommand::SetLossPolicy { policy } => layout.on_loss = *policy,
            AdminCommand::Fence { .. }
            | AdminCommand::CanStop { .. }
            | AdminCommand::AcceptLoss { .. }
            | AdminCommand::Reset
            | AdminCommand::Catalog(_) => return None,
        }
        Some(layout.normalized())
    }
}
