//! What a kernel is made of: the loops of one instruction set.

use std::fmt;

use super::trial::Trials;

/// One instruction set.
pub(super) struct Backend {
    /// As users write it.
    pub(super) name: &'static str,
    /// How the loops want each coefficient in memory.
    pub(super) factors: &'static [u64; 256],
    pub(super) tiles: Tiles,
    /// For transforms of 2, 4, 8 and 16 points: those that store through the caches, and past them. The scalar back end has none: a
    /// matrix is the simpler truth.
    pub(super) transforms: Option<[[Loop; 4]; 2]>,
    /// Where results had better be stored, if it can store them past the caches.
    pub(super) trials: Option<Trials>,
}

/// Computes the first `len` bytes of all outputs from those of all sources. `factors` is what it multiplies by, for a tile one
/// source after the other, a factor for each output. What a loop is for, so many outputs or points, its back end says.
///
/// # Safety
/// There are as many outputs as the loop is for (a transform: at most), and as many more as sources if it copies them; at least one
/// source, and one only if it is for one; a factor wherever the loop wants one. All sources and outputs are at least `len` bytes
/// long. Whoever has a [`Backend`] has a processor for it.
pub(super) type Loop =
    unsafe fn(factors: *const u64, sources: &[&[u8]], outputs: &mut [&mut [u8]], len: usize);

/// One way to compute in GF(2^8) on this machine.
#[derive(Clone, Copy)]
pub struct Kernel(pub(super) &'static Backend);

impl Kernel {
    /// As users write it: `scalar`, `ssse3`, `avx2`, `avx2-gfni`, `avx512`, `avx512-gfni`, `neon`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Most outputs of a tile: that many accumulators stay in registers.
pub(super) const MAX_OUTPUTS: usize = 4;

/// The loops for tiles of one shape, by what becomes of the sums.
pub(super) type Modes = [Loop; 6];

/// The loops for tiles: by what becomes of the sums, by whether the first output is the sum of all sources (so that its factors
/// need not be looked at), by the number of outputs less one. Copies are not counted.
pub(super) type Tiles = [[[Loop; MAX_OUTPUTS]; 2]; 6];

impl Backend {
    /// The loops for tiles of so many outputs, by what becomes of the sums.
    pub(super) fn loops(&self, outputs: usize, ones: bool) -> Modes {
        std::array::from_fn(|mode| self.tiles[mode][usize::from(ones)][outputs - 1])
    }
}
