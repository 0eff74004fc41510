//! The words that every layer shares: identities, views, the cluster map, placement and profiles; and the planner, which
//! says what should be where.
//!
//! Plain data and pure functions of it, without behaviour over time: nothing here sends or waits. What a view *means* is
//! in `proto`; who may change it is the coordinator's business.

mod admin;
mod forming;
pub mod health;
mod ids;
mod layout;
mod loss;
mod map;
mod placement;
mod plan;
mod profile;
mod safety;
mod view;

pub use admin::{
    AdminAnswer, AdminCommand, AdminError, AdminReply, AdminRequest, Entry, Expectations, NodeLoad, OnLoss,
    ScrubProgress, StopReport,
};
pub use forming::Forming;
pub use ids::{
    ClusterId, Epoch, GroupId, HostId, Incarnation, KeyHash, MemberId, NodeId, RoleIndex, Seq, Slot, Term,
    Time, UnixSeconds, ViewVersion,
};
pub use layout::{Layout, LayoutVersion, NodeLayout, NodeState, OnFinding, RepairSettings, ScrubSettings};
pub use loss::{Former, LossPolicy};
pub use map::{ClusterMap, ImpossibleMap, NodeInfo, SLOT_COUNT, SlotRange};
pub use placement::{PlacementError, place, place_in_zones};
pub use plan::{
    MAX_PREVIEW_MOVES, Move, PlacementWarning, PlanLimits, PlanNode, Reason, RoleCounts, choose_stand_in,
    choose_successor, next_moves, plan, role_counts, warnings,
};
pub use profile::{Profile, ProfileError};
pub use view::{DataRole, Exchange, GroupView, ImpossibleView, Learner, RoleStatus};

/// A hash map with a fixed hasher, for look-ups only: code that iterates it would not be deterministic across
/// versions, so iterate a `BTreeMap` or a `Vec` instead.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, rustc_hash::FxBuildHasher>;
