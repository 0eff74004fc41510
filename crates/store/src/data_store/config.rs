//! How a data role is set up, and what it says of slots for new items.

use smallvec::SmallVec;
use types::{Addr, ClusterId, IndexOp, PageRange, Reach};

/// How a data role is set up.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The cluster: seed of the key hash, with which victims are named.
    pub cluster: ClusterId,
    /// Length of the area: at most this much is ever used. Rounded up to whole extents.
    pub area_limit_bytes: usize,
    /// What happens when the area or the budget is full.
    pub eviction: Eviction,
}

/// What gives way to new items when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Items that were not read lately (a cache).
    Clock,
    /// Nothing but expired items (a store).
    None,
}

/// A slot for a new item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where.
    pub addr: Addr,
    /// To be logged in the same record, before the index operation. Repeated until one of them has been applied.
    pub assign: SmallVec<[IndexOp; 1]>,
}

/// Why there is no slot right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// This extent is needed so far: have it reserved at the parities, then [`super::DataStore::commit_extent`], then try again.
    Extent(Reach),
    /// Something must give way: call [`super::Reclaiming::propose`].
    Reclaim,
    /// Free slots lie on absent pages only: repair these, then try again.
    Absent(PageRange),
    /// There is no room, and nothing that could give way.
    Full,
    /// No slot will ever be long enough.
    TooLarge,
}
