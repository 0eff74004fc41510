//! Whether further extents may be asked for, which is the next, and how much of it.

use crate::{Area, Budget};
use types::{EXTENT_BYTES, RUN_BYTES, Reach};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    open: bool,
    /// All extents below this one are committed, and whole.
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

    /// What to ask for of the lowest extent that is not whole and `suits`, so that `wanted` free runs come, if the area may grow
    /// and the budget has room for it.
    pub(super) fn next_extent(
        &mut self,
        area: &Area,
        budget: &Budget,
        wanted: u32,
        suits: impl Fn(u32) -> bool,
    ) -> Option<Reach> {
        if !self.open || !budget.has_room_to_grow(RUN_BYTES) {
            return None;
        }
        let end = (area.limit_bytes() / EXTENT_BYTES) as u32;
        while self.next < end && area.is_whole(self.next) {
            self.next += 1;
        }
        let extent = (self.next..end).find(|extent| !area.is_whole(*extent) && suits(*extent))?;
        let usable = area.runs_of(extent).count;
        let reach = Reach::step(extent, usable, wanted);
        let missing = reach.runs().len() - usable as usize;
        budget.has_room_to_grow(missing * RUN_BYTES).then_some(reach)
    }

    /// That no extent is passed over for good.
    pub(super) fn check_invariants(&self, area: &Area) {
        let passed_over = (0..self.next).find(|extent| !area.is_whole(*extent));
        assert_eq!(passed_over, None, "an extent that is not committed is never asked for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category;

    #[test]
    fn the_first_extent_grows_in_steps_for_which_there_is_room() {
        let budget = Budget::new(1 << 20);
        let mut area = Area::reserve(4 * EXTENT_BYTES, budget.clone(), Category::Area).unwrap();
        let mut growth = Growth::new();
        let mut next = |area: &Area| growth.next_extent(area, &budget, 1, |_| true);
        assert_eq!(next(&area), Some(Reach(0)));
        area.commit(Reach(7)).unwrap();
        assert_eq!(next(&area), None, "all of the limit is never given to extents");
        assert!(area.decommit(0));
        area.commit(Reach(4)).unwrap();
        assert_eq!(next(&area), Some(Reach(7)));
    }

    #[test]
    #[should_panic(expected = "never asked for")]
    fn an_extent_that_was_passed_over_is_noticed() {
        let budget = Budget::new(1 << 30);
        let mut area = Area::reserve(4 * EXTENT_BYTES, budget.clone(), Category::Area).unwrap();
        area.commit(Reach::whole(0)).unwrap();
        let mut growth = Growth::new();
        assert_eq!(growth.next_extent(&area, &budget, 1, |_| true), Some(Reach::whole(1)));
        growth.check_invariants(&area);
        growth.next = 2;
        growth.check_invariants(&area);
    }
}
