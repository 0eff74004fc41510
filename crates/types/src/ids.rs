//! Newtypes for everything that is counted or named, so that no two integers can be mixed up.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

newtype!(
    /// Identity of a cluster; also the seed of its key hash. Peers of another cluster are refused.
    ClusterId(u64), "cluster-");
newtype!(
    /// One `gestalt serve` process position; stable across restarts.
    NodeId(u16), "node-");
newtype!(
    /// New at each start of a node; a restarted process owns nothing of its former self.
    Incarnation(u64), "#");
newtype!(
    /// A set of roles that code together.
    GroupId(u32), "group-");
newtype!(
    /// Position of a role in its group: data roles `0..k`, parity roles `k..n`.
    RoleIndex(u8), "role-");
newtype!(
    /// How many primaries a data role has had; fences the dead.
    Term(u32), "t");
newtype!(
    /// Version of a group's record at the coordinator.
    ViewVersion(u64), "v");
newtype!(
    /// Number of a coordinator; grows with each that succeeds another. Nodes obey no older one.
    Epoch(u64), "e");
newtype!(
    /// Number of a record in a data role's stream; consecutive, across terms. 0 = before the first record.
    Seq(u64), "");
newtype!(
    /// One of a pool's hash slots: the first bits of the hashes of its keys.
    Slot(u32), "slot-");
newtype!(
    /// A code with its groups; see [`crate::Pool`]. Never used again.
    PoolId(u32), "pool-");
newtype!(
    /// A set of keys in one pool; see [`crate::Namespace`]. Never used again.
    NamespaceId(u32), "namespace-");
newtype!(
    /// Monotonic time of one node, in microseconds from an arbitrary start. Never compared between nodes.
    Time(u64), "");
newtype!(
    /// Wall time in seconds since 1970, for expiry only.
    UnixSeconds(u32), "");

/// Numbers that grow by one at a time have room left above every value that may be sent, so that to count on never
/// overflows: 2^63 records take 290 years at a thousand million a second.
macro_rules! bounded {
    ($($name:ident: $max:expr),* $(,)?) => { $(
        impl $name {
            /// The largest one that may be sent or stored.
            pub const MAX: Self = Self($max);
        }
    )* };
}

bounded! {
    Seq: u64::MAX / 2,
    ViewVersion: u64::MAX / 2,
    Epoch: u64::MAX / 2,
    Term: u32::MAX / 2,
}

impl PoolId {
    /// What every cluster has.
    pub const DEFAULT: Self = Self(0);
}

impl NamespaceId {
    /// What every cluster has, and whoever names none means.
    pub const DEFAULT: Self = Self(0);
    /// Larger than all that are ever given: who has it has none. Keys begin with these numbers, and items are counted by them.
    pub const MAX: Self = Self((1 << 24) - 1);
}

impl Epoch {
    /// The next coordinator's.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Seq {
    /// The number of the next record.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Term {
    /// The term of the next primary.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl ViewVersion {
    /// The version that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Time {
    /// From milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1000)
    }

    /// Microseconds from `earlier` to `self`, 0 if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl GroupId {
    /// The worker, of so many of each node, that has the group.
    #[must_use]
    pub fn shard(self, shards: u16) -> u16 {
        (self.0 % u32::from(shards.max(1))) as u16
    }
}

impl Time {
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);
}

impl Add<u64> for Time {
    type Output = Self;

    /// Later by `rhs` microseconds.
    fn add(self, rhs: u64) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub<u64> for Time {
    type Output = Self;

    /// Earlier by `rhs` microseconds, not before the start of time.
    fn sub(self, rhs: u64) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

/// A process: a node in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId {
    /// Which node.
    pub node: NodeId,
    /// Which life of it.
    pub incarnation: Incarnation,
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.node, self.incarnation)
    }
}

/// A role of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId {
    /// The group.
    pub group: GroupId,
    /// The role in it.
    pub role: RoleIndex,
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.role)
    }
}

/// The hash of a key, from which everything else is cut: the first 14 to 24 bits are the slot in its pool, bits 39..0 go into the
/// index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// Hash of the bytes of a key, which name its namespace, seeded by the cluster so that a client cannot aim at one bucket.
    #[must_use]
    pub fn of(cluster: ClusterId, key: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64_with_seed(key, cluster.0))
    }

    /// The 40 bits that an index keeps.
    #[must_use]
    pub fn index_bits(self) -> u64 {
        self.0 & 0xff_ffff_ffff
    }
}

/// The 40 bits of a key's hash that an index keeps (`KeyHash::index_bits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexHash(pub u64);

impl From<KeyHash> for IndexHash {
    fn from(hash: KeyHash) -> Self {
        Self(hash.index_bits())
    }
}
