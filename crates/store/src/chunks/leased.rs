//! Pages that have an owner: the one place where bytes of chunks are read and written.

#![allow(unsafe_code)]

use std::ops::Range;

use smallvec::SmallVec;
use types::ChunkPageRange;

use super::pool::ChunkPages;
use crate::OutOfMemory;
use crate::arena::Lease;

/// A list of pages, taken one after the other as bytes come. They go back to their pool with this value.
///
/// Bytes are named by their place in the list. To find them means to walk over its pieces: one as a rule, and in a pool full
/// of holes at most as many as there are pages.
#[derive(Debug)]
pub(super) struct LeasedPages {
    /// Neighbours are joined.
    pieces: SmallVec<[Lease; 1]>,
    pool: ChunkPages,
}

impl LeasedPages {
    /// Nothing yet.
    pub(super) fn new(pool: &ChunkPages) -> Self {
        Self { pieces: SmallVec::new(), pool: pool.clone() }
    }

    pub(super) fn pool(&self) -> &ChunkPages {
        &self.pool
    }

    /// Takes `count` more pages, at most an extent's.
    ///
    /// # Errors
    /// If there are not as many; nothing is taken then.
    pub(super) fn grow(&mut self, count: u32) -> Result<(), OutOfMemory> {
        if count == 0 {
            return Ok(());
        }
        let end = self.pieces.last().map(|piece| piece.pages().first + piece.pages().count);
        let mut pool = self.pool.lock();
        for run in pool.take(count, end)? {
            // SAFETY: until they are given back, which is when we are dropped and no reference to us is left, the pool gives
            // these pages to nobody else and keeps their extent. The arena lives as long as the pool, and we have a handle of it.
            let lease = unsafe { pool.arena().lease(run) };
            join(&mut self.pieces, lease);
        }
        Ok(())
    }

    /// Copies `bytes` to the place `at`; the pages are there.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let (range, mut end) = (at..at + bytes.len(), 0);
        for piece in &mut self.pieces {
            let start = end;
            end += piece.pages().len_bytes();
            let both = common(&(start..end), &range);
            if !both.is_empty() {
                let target = &mut piece.bytes_mut()[both.start - start..both.end - start];
                target.copy_from_slice(&bytes[both.start - at..both.end - at]);
            }
        }
        debug_assert!(range.end <= end, "bytes beyond the pages");
    }

    /// The bytes of `range`, piece by piece.
    pub(super) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut end = 0;
        self.pieces.iter().filter_map(move |piece| {
            let start = end;
            end += piece.pages().len_bytes();
            let both = common(&(start..end), &range);
            (!both.is_empty()).then(|| &piece.bytes()[both.start - start..both.end - start])
        })
    }

    /// The bytes of `range`, if they lie in one piece.
    pub(super) fn slice(&self, range: Range<usize>) -> Option<&[u8]> {
        let first = self.parts(range.clone()).next().unwrap_or_default();
        (first.len() == range.len()).then_some(first)
    }

    /// Bytes of the list itself on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        if self.pieces.spilled() { self.pieces.capacity() * size_of::<Lease>() } else { 0 }
    }

    /// Where its pages are, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = ChunkPageRange> {
        self.pieces.iter().map(Lease::pages)
    }
}

impl Drop for LeasedPages {
    fn drop(&mut self) {
        if self.pieces.is_empty() {
            return;
        }
        let mut pool = self.pool.lock();
        self.pieces.drain(..).for_each(|piece| pool.give(piece.pages()));
    }
}

/// Appends a lease, to the last one if it goes on where that ends.
fn join(pieces: &mut SmallVec<[Lease; 1]>, lease: Lease) {
    let left = match pieces.last_mut() {
        Some(last) => last.join(lease),
        None => Some(lease),
    };
    pieces.extend(left);
}

/// What two ranges have in common.
fn common(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.max(other.start)..one.end.min(other.end)
}
