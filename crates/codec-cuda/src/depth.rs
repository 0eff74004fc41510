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
    /// What [`Pipeline::tuned`](crate::Pipeline::tuned) chooses from.
    pub(crate) const CANDIDATES: [Self; 5] = [
        Self { slots: 2, slot_bytes: 4 << 20 },
        Self { slots: 3, slot_bytes: 4 << 20 },
        Self { slots: 3, slot_bytes: 16 << 20 },
        Self { slots: 4, slot_bytes: 16 << 20 },
        Self { slots: 3, slot_bytes: 64 << 20 },
    ];
}

impl Default for Depth {
    fn default() -> Self {
        Self { slots: 3, slot_bytes: 16 << 20 }
    }
}
