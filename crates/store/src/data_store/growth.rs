//! Whether further extents may be asked for, and which is the next.

use crate::{Area, Budget};
use types::EXTENT_BYTES;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    open: bool,
    /// All extents below this one are committed.
    next: u32,
}

impl Growth {
    pub(super) fn new() -> Self {
        Self { open: true, next: 0 }
    }

    /// Somebody has no memory for a further extent: none is asked for until [`Self::allow`].
    pub(super) fn refuse(&mut self) {
        self.open = false;
    }

    pub(super) fn allow(&mut self) {
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
}
