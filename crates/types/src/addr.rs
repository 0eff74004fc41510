//! Where bytes lie in an area: addresses, pages, runs and extents.

use std::fmt;
use std::ops::Range;

/// Unit of online repair.
pub const PAGE_BYTES: usize = 4096;

/// A page of chunks of long values: of each chunk at most its last one is partly unused.
pub const CHUNK_PAGE_BYTES: usize = 1024;
/// A slot of up to this size never crosses a boundary of this size.
pub const RUN_BYTES: usize = 64 * 1024;
/// Unit in which an area grows and in which parity hosts reserve memory; the first one of an area comes in steps ([`Reach`]).
pub const EXTENT_BYTES: usize = 1024 * 1024;
/// Unit of an [`Addr`].
pub const ADDR_UNIT_BYTES: usize = 8;
/// Longest area: what an [`Addr`] can reach.
pub const MAX_AREA_BYTES: usize = (1 << 32) * ADDR_UNIT_BYTES;
/// Largest item: header, key and value.
pub const MAX_ITEM_BYTES: usize = 1024 * 1024;

const _: () = assert!(EXTENT_BYTES.is_multiple_of(RUN_BYTES) && RUN_BYTES.is_multiple_of(PAGE_BYTES));

/// Runs in an extent.
pub const RUNS_PER_EXTENT: u32 = (EXTENT_BYTES / RUN_BYTES) as u32;

/// Position of a slot in an area, in units of 8 bytes: 32 GiB an area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub u32);

impl Addr {
    /// From a byte offset.
    ///
    /// # Panics
    /// If `byte` is not a multiple of 8 or lies beyond 32 GiB.
    #[must_use]
    pub fn from_byte(byte: usize) -> Self {
        assert!(byte.is_multiple_of(ADDR_UNIT_BYTES), "slots are aligned to {ADDR_UNIT_BYTES} bytes");
        Self(u32::try_from(byte / ADDR_UNIT_BYTES).expect("an area has at most 32 GiB"))
    }

    /// Offset in bytes from the start of the area.
    #[must_use]
    pub fn byte(self) -> usize {
        self.0 as usize * ADDR_UNIT_BYTES
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.byte())
    }
}

/// The runs of one extent from its first up to this one: as much as an area has of an extent, or asks for.
///
/// Most groups of a cluster with many of them hold little, and each of their members would pay for a whole extent. So the first
/// extent of an area comes in steps, each at least twice as long as the one before; all others come whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reach(
    /// Number of the last run in the area.
    pub u32,
);

impl Reach {
    /// All of `extent`.
    #[must_use]
    pub fn whole(extent: u32) -> Self {
        Self(extent * RUNS_PER_EXTENT + RUNS_PER_EXTENT - 1)
    }

    /// What has to be there so that `run` is.
    #[must_use]
    pub fn of_run(run: u32) -> Self {
        if run < RUNS_PER_EXTENT { Self(run) } else { Self::whole(run / RUNS_PER_EXTENT) }
    }

    /// What to ask for where `extent` has its first `count` runs, not all of them, and `wanted` more are needed, or as many as
    /// an extent can give of them.
    #[must_use]
    pub fn step(extent: u32, count: u32, wanted: u32) -> Self {
        if extent > 0 {
            return Self::whole(extent);
        }
        Self((count + wanted.clamp(1, RUNS_PER_EXTENT)).next_power_of_two().min(RUNS_PER_EXTENT) - 1)
    }

    /// Number of the extent.
    #[must_use]
    pub fn extent(self) -> u32 {
        self.0 / RUNS_PER_EXTENT
    }

    /// The runs.
    #[must_use]
    pub fn runs(self) -> Range<u32> {
        self.extent() * RUNS_PER_EXTENT..self.0.saturating_add(1)
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extent {} up to run {}", self.extent(), self.0)
    }
}

/// Pages `first .. first + count`, of so many bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pages<const BYTES: usize> {
    /// Number of the first page.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// Pages of an area.
pub type PageRange = Pages<PAGE_BYTES>;

/// Pages that chunks lie in.
pub type ChunkPageRange = Pages<CHUNK_PAGE_BYTES>;

impl<const BYTES: usize> Pages<BYTES> {
    /// The pages that `len` bytes at byte offset `start` touch. Empty if `len` is 0.
    #[must_use]
    pub fn covering(start: usize, len: usize) -> Self {
        let first = start / BYTES;
        let end = (start + len).div_ceil(BYTES);
        // Nothing covers no page, wherever it lies.
        let count = if len == 0 { 0 } else { end - first };
        Self { first: first as u32, count: count as u32 }
    }

    /// The page numbers.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        self.first..self.first + self.count
    }

    /// Byte offset of the first page.
    #[must_use]
    pub fn start_byte(self) -> usize {
        self.first as usize * BYTES
    }

    /// Length in bytes.
    #[must_use]
    pub fn len_bytes(self) -> usize {
        self.count as usize * BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_extent_comes_in_steps_and_all_others_whole() {
        let step = |count, wanted| Reach::step(0, count, wanted).runs().len();
        assert_eq!([step(0, 1), step(1, 1), step(2, 1), step(3, 1), step(5, 1)], [1, 2, 4, 4, 8]);
        // A span of eight runs begins at a multiple of eight; what takes more than an extent takes all of this one.
        assert_eq!([step(0, 8), step(1, 8), step(0, 17), step(15, 1)], [8, 16, 16, 16]);
        assert_eq!(Reach::step(3, 0, 1), Reach::whole(3));
    }

    #[test]
    fn a_run_is_there_with_those_before_it_or_with_all_of_its_extent() {
        assert_eq!(Reach::of_run(3).runs(), 0..4);
        assert_eq!(Reach::of_run(17).runs(), 16..32);
        assert_eq!((Reach::of_run(17).extent(), Reach::of_run(17)), (1, Reach::whole(1)));
    }
}
