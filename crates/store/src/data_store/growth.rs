//! Whether further extents may be asked for, and which is the next.

use crate::{Area, Budget};
use types::EXTENT_BYTES;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    open: bool,
    /// All extents below this one are committed.
    next: u32,
}

impl Growth {
    pub(super) fn new() -> Self {
        Self { open: true, next: 0 }
    }

    /// Somebody has no memory for a further extent, this node or a parity: none is asked for until [`Self::allow`].
    pub fn refuse(&mut self) {
        self.open = false;
    }

    /// Memory may have become free somewhere: extents may be asked for again.
    pub fn allow(&mut self) {
        self.open = true;
    }

    /// `extent` is not committed any more.
    pub(super) fn note_free(&mut self, extent: u32) {
        self.next = self.next.min(extent);
    }

    /// The lowest extent that is not committed and `suits`, if the area may grow and the budget has room for one.
    pub(super) fn next_extent(
        &mut self,
        area: &Area,
        budget: &Budget,
        suits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if !self.open || !budget.has_room_for_extent(EXTENT_BYTES) {
            return None;
        }
        let end = (area.limit_bytes() / EXTENT_BYTES) as u32;
        while self.next < end && area.is_committed(self.next) {
            self.next += 1;
        }
        (self.next..end).find(|extent| !area.is_committed(*extent) && suits(*extent))
    }

    /// That no extent is passed over for good.
    pub(super) fn check_invariants(&self, area: &Area) {
        let passed_over = (0..self.next).find(|extent| !area.is_committed(*extent));
        assert_eq!(passed_over, None, "an extent that is not committed is never asked for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category;

    #[test]
    #[should_panic(expected = "never asked for")]
    fn an_extent_that_was_passed_over_is_noticed() {
        let budget = Budget::new(1 << 30);
        let mut area = Area::reserve(4 * EXTENT_BYTES, budget.clone(), Category::Area).unwrap();
        area.commit(0).unwrap();
        let mut growth = Growth::new();
        assert_eq!(growth.next_extent(&area, &budget, |_| true), Some(1));
        growth.check_invariants(&area);
        growth.next = 2;
        growth.check_invariants(&area);
    }
}
