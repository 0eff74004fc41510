//! Chunks of large values: beside the coded area, in the same budget.
//!
//! A chunk is a list of cells that came in one by one and never change afterwards. Its bytes lie in pages of 1 KiB that its
//! worker's pool ([`ChunkPages`]) cuts from extents; there is no compaction, and of each chunk at most its last page is partly
//! unused. [`ChunkBuilder`] takes cells in, [`Chunk`] gives them out, [`ChunkStore`] knows what a role has.
//!
//! Pages belong to their chunk, the chunk to whoever holds it: the store, a fill that copies it, bytes on their way into a
//! socket. They are free when the last of them lets go, not when the store forgets the chunk.
//!
//! From the bottom: `bits` (one extent's free pages), `room` (where a free run is long enough), `pool` (both, and the budget),
//! `leased` (pages that have an owner: where memory is touched), `builder`, `chunk`, `entry`, `charges` (quotas), `store`.

mod bits;
mod builder;
mod charges;
mod chunk;
mod entry;
mod leased;
mod pool;
mod room;
mod store;
#[cfg(test)]
mod tests;

pub use builder::{ChunkBuilder, PushError};
pub use chunk::Chunk;
pub use entry::{Checksums, ChunkEntry, ChunkHeader};
pub use pool::ChunkPages;
pub use store::{ChunkStore, Inserted};
