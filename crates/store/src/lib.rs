//! What a member keeps in memory: areas, slots, items, indexes, and the budget that bounds them all.
//!
//! No clock, no randomness, no threads, no I/O beyond the reservation of memory. What changes an index or an area is
//! always an applied record; the store never acts by itself. It knows nothing of groups, codes or messages.

mod addr;
mod alloc;
mod area;
mod arena;
mod budget;
mod checksum;
mod class;
mod data_store;
mod index;
mod item;
mod op;
mod pages;
mod replica;
mod replica_parts;

pub use addr::{ADDR_UNIT_BYTES, Addr, EXTENT_BYTES, MAX_ITEM_BYTES, PAGE_BYTES, PageRange, RUN_BYTES};
pub use area::{Area, AreaError, MAX_AREA_BYTES};
pub use budget::{Budget, Category, Charge, HEADROOM_SHARE, OutOfMemory};
pub use checksum::{checksum, checksum_append, checksum_combine};
pub use class::{CLASS_COUNT, MIN_SLOT_BYTES, class_of, slot_bytes, slots_in_span};
pub use data_store::{
    Access, AdoptError, Allocation, ClassUse, CrawlCursor, DataStore, Eviction, Found, Memory, Reclaim,
    Shortage, Stats, StoreConfig, Victim, Wipe,
};
pub use index::{Index, SEGMENTS as INDEX_SEGMENTS};
pub use item::{ITEM_HEADER_BYTES, Item, ItemError, ItemSpec, ItemState, MAX_ITEM_KEY_BYTES, encoded_len};
pub use op::{IndexHash, IndexOp, RunClass};
pub use pages::{PageSet, PageSetError};
pub use replica::Replica;
pub use replica_parts::{ReplicaBuilder, ReplicaError};
