//! A chunk that is there as a whole.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use types::{CHUNK_PAGE_BYTES, ChunkPageRange, checksum_append};

use super::leased::LeasedPages;
use super::pool::ChunkPages;

/// Cells of equal length and their checksums, which never change. Clones share them; the last one, or the last [`Bytes`] of
/// it, gives the pages back, on whatever thread.
#[derive(Clone, Debug)]
pub struct Chunk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pages: LeasedPages,
    /// CRC32C of each cell.
    checksums: Box<[u32]>,
    cell_len: u32,
    /// CRC32C of all cells in their order.
    checksum: u32,
}

impl Chunk {
    pub(super) fn new(pages: LeasedPages, checksums: Box<[u32]>, cell_len: u32, checksum: u32) -> Self {
        Self(Arc::new(Inner { pages, checksums, cell_len, checksum }))
    }

    /// Length of each cell in bytes.
    #[must_use]
    pub fn cell_len(&self) -> u32 {
        self.0.cell_len
    }

    /// How many cells it has.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.0.checksums.len() as u32
    }

    /// Bytes of all cells.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.checksums.len() * self.0.cell_len as usize
    }

    /// How many pages of [`CHUNK_PAGE_BYTES`] its bytes take.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.len_bytes().div_ceil(CHUNK_PAGE_BYTES)
    }

    /// Bytes of its pages.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.pages() * CHUNK_PAGE_BYTES
    }

    /// CRC32C of each cell.
    #[must_use]
    pub fn cell_checksums(&self) -> &[u32] {
        &self.0.checksums
    }

    /// CRC32C of the whole chunk.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.0.checksum
    }

    /// The cell of a row. Not copied where its pages lie in a row, as they do unless the pool had no such room, or, for a cell
    /// that begins within a page, other chunks came between it and the one before. None beyond the last row.
    #[must_use]
    pub fn cell(&self, row: u32) -> Option<Bytes> {
        self.part(row, 0..self.cell_len())
    }

    /// As [`Self::cell`], the bytes `within` the cell. None if it has no such bytes.
    #[must_use]
    pub fn part(&self, row: u32, within: Range<u32>) -> Option<Bytes> {
        let is_there = row < self.rows() && within.start <= within.end && within.end <= self.cell_len();
        is_there.then(|| self.bytes(self.place_of(row, &within)))
    }

    /// Bytes from `offset` on: as many as lie in a row, at most to the end of their cell. Empty beyond the chunk.
    #[must_use]
    pub fn piece(&self, offset: usize) -> &[u8] {
        let cell_len = self.cell_len() as usize;
        let end = (offset + 1).next_multiple_of(cell_len.max(1));
        self.0.pages.parts(offset..end.min(self.len_bytes())).next().unwrap_or_default()
    }

    /// Whether the cell of a row is in memory what came. False beyond the last row.
    #[must_use]
    pub fn verify(&self, row: u32) -> bool {
        let Some(expected) = self.cell_checksums().get(row as usize) else { return false };
        let parts = self.0.pages.parts(self.place_of(row, &(0..self.cell_len())));
        parts.fold(0, checksum_append) == *expected
    }

    /// Whether all cells are in memory what came.
    #[must_use]
    pub fn verify_all(&self) -> bool {
        (0..self.rows()).all(|row| self.verify(row))
    }

    /// Whether both have the same bytes, by the checksums of their cells.
    #[must_use]
    pub fn is_equal(&self, other: &Self) -> bool {
        self.cell_len() == other.cell_len() && self.cell_checksums() == other.cell_checksums()
    }

    /// Whether both are the same, page by page.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where its pages are, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = ChunkPageRange> {
        self.0.pages.runs()
    }

    /// Where they come from.
    pub(super) fn pool(&self) -> &ChunkPages {
        self.0.pages.pool()
    }

    /// Bytes that it takes beyond its pages, on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        // The two counters of an `Arc`, as well.
        let counters = 2 * size_of::<usize>();
        let pieces = self.0.pages.heap_bytes();
        counters + size_of::<Inner>() + size_of_val(&*self.0.checksums) + pieces
    }

    fn place_of(&self, row: u32, within: &Range<u32>) -> Range<usize> {
        let start = row as usize * self.cell_len() as usize;
        start + within.start as usize..start + within.end as usize
    }

    fn bytes(&self, place: Range<usize>) -> Bytes {
        if self.0.pages.slice(place.clone()).is_some() {
            return Bytes::from_owner(Part { chunk: self.clone(), place });
        }
        let mut copy = Vec::with_capacity(place.len());
        self.0.pages.parts(place).for_each(|part| copy.extend_from_slice(part));
        copy.into()
    }
}

/// Bytes of a chunk that lie in a row, and the chunk with them.
struct Part {
    chunk: Chunk,
    place: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.chunk.0.pages.slice(self.place.clone()).expect("who made it has asked")
    }
}
