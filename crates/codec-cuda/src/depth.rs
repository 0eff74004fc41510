//! How much of a transfer is under way at a time.

/// How much is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Pieces at a time.
    pub slots: usize,
    /// Bytes of sources and outputs of a piece.
    pub slot_bytes: usize,
}

impl Depth {
    /// Where there is little memory: the least with which copies and kernels still overlap.
    pub(crate) const SHALLOW: Self = Self { slots: 2, slot_bytes: 1 << 20 };
}

impl Default for Depth {
    fn default() -> Self {
        Self { slots: 3, slot_bytes: 16 << 20 }
    }
}
