//! Ranges of hash slots, as people want to read them.

use crate::SlotRange;

/// The same slots in as few ranges as there can be, ascending.
#[must_use]
pub fn merge_slots(mut ranges: Vec<SlotRange>) -> Vec<SlotRange> {
    ranges.sort_by_key(|range| range.first);
    let mut merged: Vec<SlotRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.first.0 <= last.last.0.saturating_add(1) => {
                last.last = last.last.max(range.last)
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// How many slots there are in `ranges`, which do not overlap.
#[must_use]
pub fn slot_count(ranges: &[SlotRange]) -> u64 {
    ranges.iter().map(|range| u64::from(range.last.0) + 1 - u64::from(range.first.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    #[test]
    fn neighbours_and_overlaps_become_one_range() {
        let ranges = |all: &[(u16, u16)]| -> Vec<SlotRange> {
            all.iter().map(|&(first, last)| SlotRange { first: Slot(first), last: Slot(last) }).collect()
        };
        assert_eq!(merge_slots(ranges(&[(20, 30), (0, 9), (10, 19)])), ranges(&[(0, 30)]));
        assert_eq!(merge_slots(ranges(&[(0, 9), (3, 5), (11, 12)])), ranges(&[(0, 9), (11, 12)]));
        assert_eq!(slot_count(&ranges(&[(0, 9), (11, 11)])), 11);
        assert_eq!((merge_slots(vec![]), slot_count(&[])), (vec![], 0));
    }
}
