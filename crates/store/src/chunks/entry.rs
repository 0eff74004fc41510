//! What a store knows of a chunk beside its bytes.

use smallvec::SmallVec;
use types::{ChunkId, Geometry, KeyHash, Time, UnixSeconds};

use super::chunk::Chunk;

/// CRC32Cs of the chunks of a stripe, by their roles. Those of RS(3,2) need no memory of their own.
pub type Checksums = SmallVec<[u32; 5]>;

/// What comes with a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The object's key.
    pub key_hash: KeyHash,
    /// The object's.
    pub geometry: Geometry,
    /// CRC32C of each chunk of the stripe, by roles.
    pub trailer: Checksums,
    /// When the last cell came.
    pub received_at: Time,
    /// Where coldness is counted from.
    pub last_access: UnixSeconds,
}

/// A chunk of a store and what is known of it. Tentative until it is told to be kept.
#[derive(Debug)]
pub struct ChunkEntry {
    key_hash: KeyHash,
    geometry: Geometry,
    received_at: Time,
    trailer: Checksums,
    chunk: Chunk,
    last_access: UnixSeconds,
    is_kept: bool,
}

impl ChunkEntry {
    pub(super) fn new(header: ChunkHeader, chunk: Chunk) -> Self {
        let ChunkHeader { key_hash, geometry, trailer, received_at, last_access } = header;
        Self { key_hash, geometry, received_at, trailer, chunk, last_access, is_kept: false }
    }

    /// The object's key.
    #[must_use]
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The object's.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// CRC32C of each chunk of the stripe, by roles.
    #[must_use]
    pub fn trailer(&self) -> &[u32] {
        &self.trailer
    }

    /// Whether it has not been told to be kept.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        !self.is_kept
    }

    /// When its last cell came.
    #[must_use]
    pub fn received_at(&self) -> Time {
        self.received_at
    }

    /// When it was last read, as far as the store was told.
    #[must_use]
    pub fn last_access(&self) -> UnixSeconds {
        self.last_access
    }

    /// Its bytes.
    #[must_use]
    pub fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    pub(super) fn touch(&mut self, now: UnixSeconds) {
        self.last_access = self.last_access.max(now);
    }

    pub(super) fn replace_chunk(&mut self, chunk: Chunk) {
        self.chunk = chunk;
    }

    /// Bytes that it takes beyond the chunk's pages, its share of the map included: with five roles 255 and 4 for each cell.
    pub(super) fn memory_bytes(&self) -> usize {
        let spilled = if self.trailer.spilled() { self.trailer.capacity() * size_of::<u32>() } else { 0 };
        MAP_BYTES + size_of::<Self>() + spilled + self.chunk.heap_bytes()
    }
}

/// What a map's nodes take for each entry where names come in ascending order: of a leaf's eleven places six stay in use, and
/// one more entry stands above it; then there are links and inner nodes.
const MAP_BYTES: usize = size_of::<(ChunkId, Box<ChunkEntry>)>() * 12 / 7 + 12;
