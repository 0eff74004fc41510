//! A chunk that is arriving, cell by cell.

use types::{CHUNK_PAGE_BYTES, MAX_CELL_BYTES, checksum, checksum_combine};

use super::bits::EXTENT_PAGES;
use super::chunk::Chunk;
use super::leased::LeasedPages;
use super::pool::ChunkPages;
use crate::OutOfMemory;

// What one cell needs, the pool gives at once.
const _: () = assert!(MAX_CELL_BYTES as usize <= EXTENT_PAGES as usize * CHUNK_PAGE_BYTES);

/// Cells in their order, up to now. Memory is taken as they come: nothing is reserved by a declared length. Whoever drops it
/// gives it back.
#[derive(Debug)]
pub struct ChunkBuilder {
    pages: LeasedPages,
    /// CRC32C of each cell that is there.
    checksums: Vec<u32>,
    cell_len: u32,
    rows: u32,
}

/// Why a cell was not taken; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// All of them are there.
    #[error("all {0} cells of the chunk are there")]
    Full(u32),
    /// Its length is not that of a cell.
    #[error("a cell of {len} bytes instead of {cell_len}")]
    Length {
        /// In bytes.
        len: usize,
        /// In bytes.
        cell_len: u32,
    },
    /// No memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

impl ChunkBuilder {
    /// Of a chunk of `rows` cells of `cell_len` bytes each; none is there, and nothing is taken from `pages`.
    ///
    /// # Panics
    /// If cells are longer than [`MAX_CELL_BYTES`].
    #[must_use]
    pub fn new(pages: &ChunkPages, cell_len: u32, rows: u32) -> Self {
        assert!(cell_len <= MAX_CELL_BYTES, "a cell of {cell_len} bytes");
        Self { pages: LeasedPages::new(pages), checksums: Vec::new(), cell_len, rows }
    }

    /// Takes the next cell in.
    ///
    /// # Errors
    /// If the cell has another length, is one too many, or there is no memory for it.
    pub fn push(&mut self, cell: &[u8]) -> Result<(), PushError> {
        self.push_as(cell, checksum(cell))
    }

    /// As [`Self::push`], for whoever has just computed the CRC32C of the cell, to compare it with what it came with.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_checked(&mut self, cell: &[u8], cell_checksum: u32) -> Result<(), PushError> {
        debug_assert_eq!(cell_checksum, checksum(cell), "the caller has compared it");
        self.push_as(cell, cell_checksum)
    }

    /// Takes a cell in whose CRC32C is said to be this one.
    pub(super) fn push_as(&mut self, cell: &[u8], cell_checksum: u32) -> Result<(), PushError> {
        if self.rows_there() == self.rows {
            return Err(PushError::Full(self.rows));
        }
        if cell.len() != self.cell_len as usize {
            return Err(PushError::Length { len: cell.len(), cell_len: self.cell_len });
        }
        let start = self.len_bytes();
        // The rest of the last page is the beginning of this cell.
        let missing = (start + cell.len()).div_ceil(CHUNK_PAGE_BYTES) - start.div_ceil(CHUNK_PAGE_BYTES);
        self.pages.grow(missing as u32)?;
        self.pages.write(start, cell);
        self.checksums.push(cell_checksum);
        Ok(())
    }

    /// How many cells there will be.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// How many cells are there.
    #[must_use]
    pub fn rows_there(&self) -> u32 {
        self.checksums.len() as u32
    }

    /// Bytes of the cells that are there.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.checksums.len() * self.cell_len as usize
    }

    /// Bytes of their pages.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.len_bytes().next_multiple_of(CHUNK_PAGE_BYTES)
    }

    /// The chunk, which never changes again.
    ///
    /// # Errors
    /// If cells are missing: the builder as it is.
    pub fn finish(self) -> Result<Chunk, Self> {
        if self.rows_there() < self.rows {
            return Err(self);
        }
        let cell_len = self.cell_len as usize;
        let sums = self.checksums.iter();
        let whole = sums.fold(0, |sum, cell| checksum_combine(sum, *cell, cell_len));
        Ok(Chunk::new(self.pages, self.checksums.into_boxed_slice(), self.cell_len, whole))
    }
}
