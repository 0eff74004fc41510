//! Ranges of hash slots, as people want to read them.

use types::PoolSlots;

/// How many slots there are in `ranges`, which do not overlap.
#[must_use]
pub fn slot_count(ranges: &[PoolSlots]) -> u64 {
    ranges.iter().map(|range| u64::from(range.slots.count())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Name, Slot, SlotRange};

    #[test]
    fn the_slots_of_all_ranges_count() {
        let range = |first, last| {
            let slots = SlotRange { first: Slot(first), last: Slot(last) };
            PoolSlots { pool: Name::default_name(), slots }
        };
        assert_eq!((slot_count(&[range(0, 9), range(11, 11)]), slot_count(&[])), (11, 0));
    }
}
