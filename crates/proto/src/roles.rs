//! Sets of the data roles of one group.

use smallvec::SmallVec;
use types::RoleIndex;

/// A set of data roles (`k <= 32`), ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleSet(u32);

const _: () = assert!(types::Profile::MAX_K <= 32);

impl RoleSet {
    /// The roles `0..k`.
    pub(crate) fn all(k: usize) -> Self {
        Self(if k >= 32 { u32::MAX } else { (1 << k) - 1 })
    }

    pub(crate) fn only(role: RoleIndex) -> Self {
        Self(bit(role))
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn insert(&mut self, role: RoleIndex) {
        self.0 |= bit(role);
    }

    pub(crate) fn contains(self, role: RoleIndex) -> bool {
        self.0 & bit(role) != 0
    }

    pub(crate) fn list(self) -> SmallVec<[RoleIndex; 4]> {
        (0..32).filter(|&r| self.contains(RoleIndex(r))).map(RoleIndex).collect()
    }
}

/// None for what is no data role.
fn bit(role: RoleIndex) -> u32 {
    1u32.checked_shl(role.0.into()).unwrap_or(0)
}
