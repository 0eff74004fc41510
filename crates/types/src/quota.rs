//! What nodes and the coordinator tell each other of quotas (docs/pools.md, "Quotas").
//!
//! A namespace's quota is dealt out in *shares*: what a node's primaries and holders of chunks may take of it together. Nobody asks before a write, and
//! the sum of all shares is never more than the quota.

use serde::{Deserialize, Serialize};

use crate::{Epoch, NamespaceId};

/// What the primaries and the holders of a node take of the quota of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// Whose quota.
    pub namespace: NamespaceId,
    /// How many data roles of its pool the node serves, and of how many roles its chunks count.
    pub roles: u32,
    /// Bytes of slots in these roles' areas, and of those on their way; and of chunks, as much as of `n` the `k` data chunks take.
    pub used_bytes: u64,
    /// How many they may be.
    pub share_bytes: u64,
    /// Whether a coordinator has dealt anything of it to the node yet.
    pub dealt: bool,
}

/// One dealing of shares: a coordinator, and its own count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Round {
    /// The coordinator.
    pub epoch: Epoch,
    /// Which of its dealings to this node.
    pub number: u64,
}

/// What a node tells of quotas with every heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaReport {
    /// The newest round that all its workers have heard, after whatever the coordinator had said before.
    pub heard: Round,
    /// Of each namespace with a quota of which it may have items; ascending.
    pub uses: Vec<QuotaUse>,
}

/// So much is added to a node's share; or taken from it, as far as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose quota.
    pub namespace: NamespaceId,
    /// As in [`QuotaUse::used_bytes`].
    pub bytes: i64,
}
