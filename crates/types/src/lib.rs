//! The words that every layer shares: identities, views, the cluster map, profiles, keys, operations and their outcomes,
//! and where bytes lie in an area.
//!
//! Plain data and pure functions of it, without behaviour over time; it depends on nothing of ours. What a view *means* is in
//! `proto`, who should be where is planned in `cluster`, and how the bytes of any of this travel is in `wire`.

mod addr;
mod admin;
mod catalog;
mod change_log;
mod checksum;
pub mod class;
mod deal;
mod forming;
mod hedging;
mod ids;
mod index_op;
mod key;
mod layout;
mod loss;
mod map;
mod map_changes;
mod name;
mod object;
mod object_policy;
pub mod op;
mod profile;
mod quota;
mod scan;
mod session;
pub mod trials;
mod view;

pub use addr::{
    ADDR_UNIT_BYTES, Addr, CHUNK_PAGE_BYTES, ChunkPageRange, EXTENT_BYTES, MAX_AREA_BYTES, MAX_ITEM_BYTES,
    PAGE_BYTES, PageRange, Pages, RUN_BYTES, RUNS_PER_EXTENT, Reach,
};
pub use admin::{
    AdminAnswer, AdminCommand, AdminError, AdminReply, AdminRequest, CatalogChange, Entry, Expectations,
    NodeLoad, OnLoss, ScrubProgress, StopReport,
};
pub use catalog::{
    BadCatalog, Catalog, Conversion, EvictPolicy, MAX_SLOT_BITS, MIN_SLOT_BITS, Namespace,
    NamespaceLossPolicy, Policy, PolicyChange, Pool, slot_bits_for,
};
pub use change_log::{ChangeLog, MapPart};
pub use checksum::{checksum, checksum_append, checksum_combine};
pub use class::{CLASS_COUNT, MIN_SLOT_BYTES, class_of, slot_bytes, slots_in_span};
pub use deal::Deal;
pub use forming::Forming;
pub use hedging::Hedging;
pub use ids::{
    ClusterId, Epoch, GroupId, HostId, Incarnation, IndexHash, KeyHash, MemberId, NamespaceId, NodeId,
    PoolId, RoleIndex, Seq, Slot, Term, Time, UnixSeconds, ViewVersion,
};
pub use index_op::{Cohort, IndexOp, RunClass};
pub use key::{BadKey, Key, KeyBuffer, MAX_ITEM_KEY_BYTES, MAX_KEY_BYTES, qualify, split_key};
pub use layout::{
    Layout, LayoutVersion, LossPolicy, NodeLayout, NodeState, OnFinding, RepairSettings, ScrubSettings,
};

pub use loss::PoolSlots;
pub use map::{ClusterMap, ImpossibleMap, NodeInfo, SlotRange};
pub use map_changes::{Applied, MapChanges, MapNews};
pub use name::{BadName, Name};
pub use object::{
    CELL_ALIGNMENT, CellAt, ChunkId, Descriptor, Exception, Geometry, MAX_CELL_BYTES, MAX_EXCEPTIONS,
    MAX_OBJECT_BYTES, MAX_OBJECT_GROUPS, ObjectId, ObjectLayout, Run, Stripe,
};
pub use object_policy::{BadObjects, MAX_CHUNK_BYTES, MAX_STRIPED_ABOVE, ObjectPolicy, Striped};
pub use profile::{Profile, ProfileError};
pub use quota::{Grant, QuotaReport, QuotaUse, Round};
pub use scan::{MAX_PAGE_KEYS, Scan, ScanBound, ScanPage};
pub use session::{ClientSession, MAX_BEHIND, Once, ResultCode, WriteResult};
pub use view::{DataRole, Exchange, Former, GroupView, Holder, Holders, ImpossibleView, Learner, RoleStatus};

/// A hash map with a fixed hasher, for look-ups only: code that iterates it would not be deterministic across
/// versions, so iterate a `BTreeMap` or a `Vec` instead.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, rustc_hash::FxBuildHasher>;
