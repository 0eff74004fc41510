//! The words that every layer shares: identities, views, the cluster map, placement and profiles.
//!
//! Plain data without behaviour over time: nothing here sends, waits or decides. What a view *means* is in
//! `proto`; who may change it is the coordinator's business.

mod ids;
mod map;
mod placement;
mod profile;
mod view;

pub use ids::{
    ClusterId, GroupId, HostId, Incarnation, KeyHash, MemberId, NodeId, RoleIndex, Seq, Slot, Term, Time,
    UnixSeconds, ViewVersion,
};
pub use map::{ClusterMap, NodeInfo, SLOT_COUNT, SlotRange};
pub use placement::{PlacementError, place};
pub use profile::{Profile, ProfileError};
pub use view::{DataRole, GroupView, Learner, RoleStatus};

/// A hash map with a fixed hasher, for look-ups only: code that iterates it would not be deterministic across
/// versions, so iterate a `BTreeMap` or a `Vec` instead.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, rustc_hash::FxBuildHasher>;
