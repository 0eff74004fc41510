//! Reserved address space: with `system`, the one place of this crate with unsafe code.
//!
//! An arena maps its whole length without access rights, so it costs no memory; runs become readable and writable
//! extent by extent or in part of one, are zero until written, and can be given back. Soundness rests on one invariant: every
//! run in `committed` has read and write access, and every slice is checked against it. Pages may also be leased, each to one
//! owner, who reads and writes them without the arena ([`Lease`]).

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use crate::{PageSet, system};
use types::{ChunkPageRange, EXTENT_BYTES, PAGE_BYTES, PageRange, RUN_BYTES};

/// A large page of the processor: two extents.
const HUGE_PAGE_BYTES: usize = 2 * EXTENT_BYTES;
const _: () = assert!(HUGE_PAGE_BYTES == 2 << 20);

/// Address space of `len` bytes, partly committed.
#[derive(Debug)]
pub(crate) struct Arena {
    /// On the boundary of a large page, inside of the mapping.
    base: NonNull<u8>,
    len: usize,
    mapping: NonNull<u8>,
    /// Runs.
    committed: PageSet,
}

// SAFETY: the mapping is private memory owned by this value alone, as in a Vec<u8>; all access goes through &self or
// &mut self.
unsafe impl Send for Arena {}
// SAFETY: as above; &self gives only shared slices.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves `len` bytes, a positive multiple of [`EXTENT_BYTES`].
    pub(crate) fn reserve(len: usize) -> io::Result<Self> {
        assert!(len > 0 && len.is_multiple_of(EXTENT_BYTES));
        // A large page begins at a multiple of its length, and the system promises that of small ones only.
        let mapping = system::reserve(len + HUGE_PAGE_BYTES)?;
        // SAFETY: at most one large page further, and the mapping is longer than `len` by that.
        let base = unsafe { mapping.add(mapping.align_offset(HUGE_PAGE_BYTES)) };
        Ok(Self { base, len, mapping, committed: PageSet::new() })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_committed(&self, run: u32) -> bool {
        self.committed.contains(run)
    }

    /// Usable runs.
    pub(crate) fn committed_count(&self) -> usize {
        self.committed.count() as usize
    }

    /// Makes `runs` usable, none of which is; they are all zero.
    pub(crate) fn commit(&mut self, runs: PageRange) -> io::Result<()> {
        let (start, len) = self.place_of(runs);
        // SAFETY: the runs lie inside of our own mapping (`place_of`).
        unsafe { system::allow(self.base.as_ptr().add(start), len) }?;
        self.committed.insert_range(runs);
        Ok(())
    }

    /// Lets the system back `extent` and its neighbour, which must lie in the arena, by one large page. The first touch
    /// of one brings memory for both.
    pub(crate) fn share_huge_page(&mut self, extent: u32) -> io::Result<()> {
        let start = (extent as usize & !1) * EXTENT_BYTES;
        assert!(start + HUGE_PAGE_BYTES <= self.len, "extent {extent} has no neighbour in the area");
        // SAFETY: the range lies inside of our own mapping (checked above). More access rights than `committed` tells harm
        // nobody: slices are given out by `committed` alone.
        unsafe {
            let at = self.base.as_ptr().add(start);
            system::allow(at, HUGE_PAGE_BYTES)?;
            system::advise_huge(at, HUGE_PAGE_BYTES)
        }
    }

    /// Brings memory for `runs`, all usable, before it is touched. Where the system cannot, each page comes when it is.
    pub(crate) fn populate(&mut self, runs: PageRange) {
        let (start, len) = self.place_of(runs);
        debug_assert!(self.covers(start, len), "{runs:?} are not committed");
        // SAFETY: the runs lie inside of our own mapping (`place_of`) and are committed; no byte of them changes.
        let _ = unsafe { system::populate(self.base.as_ptr().add(start), len) };
    }

    /// The first usable run from `from` on.
    pub(crate) fn next_committed(&self, from: u32) -> Option<u32> {
        self.committed.first_present(from)
    }

    /// Gives the memory of `runs`, usable or not, back to the system; all zero should they be committed again.
    pub(crate) fn decommit(&mut self, runs: PageRange) -> io::Result<()> {
        let (start, len) = self.place_of(runs);
        // SAFETY: the runs lie inside of our own mapping (`place_of`); &mut self says that no slice of them is alive, and who
        // leased pages has promised that they stay. Private anonymous memory reads as zero afterwards.
        unsafe { system::give_back(self.base.as_ptr().add(start), len) }?;
        self.committed.remove_range(runs);
        // SAFETY: as above. A failure (too many mappings) leaves access rights that nobody uses: no slice is given out
        // of what is not in `committed`, and what nobody writes stays zero and costs nothing.
        let _ = unsafe { system::forbid(self.base.as_ptr().add(start), len) };
        Ok(())
    }

    /// Offset and length of `runs`, which must lie in the arena.
    fn place_of(&self, runs: PageRange) -> (usize, usize) {
        let (start, len) = (runs.first as usize * RUN_BYTES, runs.count as usize * RUN_BYTES);
        assert!(start + len <= self.len, "run {} and those after it lie outside of the area", runs.first);
        (start, len)
    }

    /// Bytes of an extent, usable or not, that memory stands behind: what was never touched has none. 0 where the system
    /// does not say.
    pub(crate) fn resident_bytes(&self, extent: u32) -> usize {
        let start = extent as usize * EXTENT_BYTES;
        assert!(start < self.len, "extent {extent} lies outside of the area");
        let mut pages = [0u8; EXTENT_BYTES / PAGE_BYTES];
        // SAFETY: the extent lies inside of our own mapping (len is a multiple), which is not accessed; one byte is written
        // for each of its pages, and `pages` has as many.
        let asked = unsafe { system::resident(self.base.as_ptr().add(start), EXTENT_BYTES, &mut pages) };
        let resident = pages.iter().filter(|page| **page & 1 != 0).count();
        if asked.is_ok() { resident * PAGE_BYTES } else { 0 }
    }

    /// Whether all of `start .. start + len` is usable.
    #[inline]
    pub(crate) fn covers(&self, start: usize, len: usize) -> bool {
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.len) else { return false };
        let runs = start / RUN_BYTES..end.div_ceil(RUN_BYTES);
        len == 0 || runs.into_iter().all(|run| self.committed.contains(run as u32))
    }

    /// The memory of `pages`, all usable, apart from the arena.
    ///
    /// # Safety
    /// As long as the lease is used, the arena lives, the pages stay usable, and nobody else reads or writes them: no other
    /// lease, and no slice of the arena.
    pub(crate) unsafe fn lease(&self, pages: ChunkPageRange) -> Lease {
        assert!(self.covers(pages.start_byte(), pages.len_bytes()), "{pages:?} are not committed");
        // SAFETY: covers() says that the pages lie in the mapping.
        let at = unsafe { self.base.add(pages.start_byte()) };
        Lease { at, pages }
    }

    pub(crate) fn bytes(&self, start: usize, len: usize) -> &[u8] {
        self.get(start, len).unwrap_or_else(|| panic!("{len} bytes at {start} are not committed"))
    }

    /// The `len` bytes at `start`, if all of them are usable.
    #[inline]
    pub(crate) fn get(&self, start: usize, len: usize) -> Option<&[u8]> {
        if !self.covers(start, len) {
            return None;
        }
        // SAFETY: covers() says that the range lies in the mapping and is readable; anonymous memory is initialised
        // (zero); the lifetime is that of &self, so nobody writes meanwhile.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(start), len) })
    }

    pub(crate) fn bytes_mut(&mut self, start: usize, len: usize) -> &mut [u8] {
        assert!(self.covers(start, len), "{len} bytes at {start} are not committed");
        // SAFETY: as in bytes(), writable as well, and &mut self makes this the only slice.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(start), len) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, as it was made, which nothing borrows any more.
        unsafe { system::release(self.mapping, self.len + HUGE_PAGE_BYTES) };
    }
}

/// Pages of an arena that one owner has for itself, as a `Box` has its memory: who has a reference reads them, who has the only
/// one writes them. That it is so, whoever called [`Arena::lease`] has promised.
#[derive(Debug)]
pub(crate) struct Lease {
    at: NonNull<u8>,
    pages: ChunkPageRange,
}

// SAFETY: the memory is this value's alone (`Arena::lease`), as in a Vec<u8>; all access goes through &self or &mut self.
unsafe impl Send for Lease {}
// SAFETY: as above; &self gives only shared slices.
unsafe impl Sync for Lease {}

impl Lease {
    pub(crate) fn pages(&self) -> ChunkPageRange {
        self.pages
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the pages are readable, initialised (anonymous memory is zero at first) and nobody else's (`Arena::lease`);
        // the lifetime is that of &self, so they are not written meanwhile.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.pages.len_bytes()) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in bytes(), writable as well, and &mut self makes this the only slice.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.pages.len_bytes()) }
    }

    /// Takes `next` over if it goes on where this one ends; gives it back otherwise.
    pub(crate) fn join(&mut self, next: Self) -> Option<Self> {
        // Equal addresses at equal numbers mean the same arena: both count from its base.
        let goes_on = self.pages.first + self.pages.count == next.pages.first
            && self.at.as_ptr().wrapping_add(self.pages.len_bytes()) == next.at.as_ptr();
        if !goes_on {
            return Some(next);
        }
        self.pages.count += next.pages.count;
        None
    }
}

/// Asks the processor to fetch the cache line of `target`; no effect on any result.
#[inline]
pub(crate) fn prefetch<T>(target: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is a hint without effect on memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(target).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = target;
}
