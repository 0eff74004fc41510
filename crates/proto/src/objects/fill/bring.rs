//! What becomes of a chunk that was got from others.

use store::{Chunk, ChunkHeader, ChunkStore, Inserted};
use types::ChunkId;

use crate::objects::scope::Scope;

/// Keeps what was got from others: whatever its namespace's quota is, it is stored already. None if it is not kept.
pub(super) fn bring(
    scope: &Scope<'_>,
    chunks: &mut ChunkStore,
    id: ChunkId,
    header: ChunkHeader,
    chunk: Chunk,
) -> Option<Inserted> {
    if scope.rules().objects().fills_pass_quotas() {
        Some(chunks.insert(id, header, chunk))
    } else {
        chunks.try_insert(id, header, chunk).ok()
    }
}
