//! Where bytes lie in an area: addresses, pages, runs and extents.

use std::fmt;

/// Unit of online repair.
pub const PAGE_BYTES: usize = 4096;
/// A slot of up to this size never crosses a boundary of this size.
pub const RUN_BYTES: usize = 64 * 1024;
/// Unit in which an area grows and in which parity hosts reserve memory.
pub const EXTENT_BYTES: usize = 1024 * 1024;
/// Unit of an [`Addr`].
pub const ADDR_UNIT_BYTES: usize = 8;
/// Longest area: what an [`Addr`] can reach.
pub const MAX_AREA_BYTES: usize = (1 << 32) * ADDR_UNIT_BYTES;
/// Largest item: header, key and value.
pub const MAX_ITEM_BYTES: usize = 1024 * 1024;

const _: () = assert!(EXTENT_BYTES.is_multiple_of(RUN_BYTES) && RUN_BYTES.is_multiple_of(PAGE_BYTES));

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

/// Pages `first .. first + count` of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRange {
    /// Number of the first page.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl PageRange {
    /// The pages that `len` bytes at byte offset `start` touch. Empty if `len` is 0.
    #[must_use]
    pub fn covering(start: usize, len: usize) -> Self {
        let first = start / PAGE_BYTES;
        let end = (start + len).div_ceil(PAGE_BYTES);
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
        self.first as usize * PAGE_BYTES
    }

    /// Length in bytes.
    #[must_use]
    pub fn len_bytes(self) -> usize {
        self.count as usize * PAGE_BYTES
    }
}
