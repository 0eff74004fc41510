//! Ranges of hash slots, as people want to read them.

use types::SlotRange;

/// How many slots there are in `ranges`, which do not overlap.
#[must_use]
pub fn slot_count(ranges: &[SlotRange]) -> u64 {
    ranges.iter().map(|range| u64::from(range.count())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Slot;

    #[test]
    fn neighbours_and_overlaps_become_one_range() {
        let ranges = |all: &[(u16, u16)]| -> Vec<SlotRange> {
            all.iter().map(|&(first, last)| SlotRange { first: Slot(first), last: Slot(last) }).collect()
        };
        assert_eq!(SlotRange::merged(ranges(&[(20, 30), (0, 9), (10, 19)])), ranges(&[(0, 30)]));
        assert_eq!(SlotRange::merged(ranges(&[(0, 9), (3, 5), (11, 12)])), ranges(&[(0, 9), (11, 12)]));
        assert_eq!(slot_count(&ranges(&[(0, 9), (11, 11)])), 11);
        assert_eq!((SlotRange::merged(vec![]), slot_count(&[])), (vec![], 0));
    }
}
