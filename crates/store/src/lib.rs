//! What a member keeps in memory: areas, slots, items, indexes, chunks of large values, and the budget that bounds them all.
//!
//! No clock, no randomness, no threads, no I/O beyond the reservation of memory. What changes an index or an area is
//! always an applied record; the store never acts by itself. It knows nothing of groups, codes or messages.

mod alloc;
mod area;
mod arena;
mod budget;
mod chunks;
mod cohorts;
mod data_store;
pub mod forecast;
mod growing;
mod idle;
mod index;
mod item;
mod pages;
mod quotas;
mod replica;
mod replica_parts;
mod sessions;
mod system;

pub use area::{Area, AreaError};
pub use budget::{Budget, CHUNK_SHARE, Category, Charge, HEADROOM_SHARE, OutOfMemory, SPARE_SHARE};
pub use chunks::{
    Checksums, Chunk, ChunkBuilder, ChunkEntry, ChunkHeader, ChunkPages, ChunkStore, Inserted, PushError,
};
pub use cohorts::{CohortUse, Cohorts};
pub use data_store::{
    Access, AdoptError, Allocation, ClassUse, CrawlCursor, DataStore, Eviction, Found, Growth, Memory,
    Reclaim, Reclaiming, Shortage, Stats, Step, StoreConfig, Tenants, Vacating, Victim, Wipe,
};
pub use index::{Index, SEGMENTS as INDEX_SEGMENTS};
pub use item::{ITEM_HEADER_BYTES, Item, ItemError, ItemSpec, ItemState, encoded_len};
pub use pages::{PageSet, PageSetError};
pub use quotas::{QuotaCharge, QuotaShortage, Quotas, Share};
pub use replica::Replica;
pub use replica_parts::{ReplicaBuilder, ReplicaError};
pub use sessions::{Sessions, Written};
