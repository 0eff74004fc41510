//! Data that is lost for good: which slots, what to do about it, and when such a role may begin anew.

use crate::{ClusterMap, DataRole, MemberId, RoleStatus, SLOT_COUNT, Seq, Slot, SlotRange};

/// Records between the numbers of one life of a role and the next: half a year of a million a second.
const LIFE_RECORDS: u64 = 1 << 44;
/// Terms that are told from each other by these numbers, which leaves as many for the last one.
const MOST_TERMS: u64 = 1 << 19;

impl RoleStatus {
    /// Whether the role has no data any more: nobody serves it, and no parity in sync has anything of it.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Lost | Self::Accepted)
    }
}

impl DataRole {
    /// The number before the first record of the role's present life. What an earlier life has numbered is told by that from
    /// what this one has: records, and the versions of items that come from them.
    #[must_use]
    pub fn first_seq(&self) -> Seq {
        Seq(u64::from(self.origin.0).saturating_sub(1).min(MOST_TERMS) * LIFE_RECORDS)
    }

    /// Whether its primary is the first of its life, and starts from nothing.
    #[must_use]
    pub fn starts_from_nothing(&self) -> bool {
        self.status == RoleStatus::Full && self.term == self.origin
    }
}

impl SlotRange {
    /// All slots.
    pub const ALL: Self = Self { first: Slot(0), last: Slot(SLOT_COUNT - 1) };

    /// Number of slots.
    #[must_use]
    pub fn count(self) -> u32 {
        // A range that somebody else names may end before it begins, or with the largest number.
        (u32::from(self.last.0) + 1).saturating_sub(u32::from(self.first.0))
    }

    /// Whether a slot is in both.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The same slots in as few ranges as possible, ascending.
    #[must_use]
    pub fn merged(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.sort_unstable_by_key(|range| range.first);
        let mut merged: Vec<Self> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if u32::from(range.first.0) <= u32::from(last.last.0) + 1 => {
                    last.last = last.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        merged
    }
}

impl ClusterMap {
    /// The data roles of which `is_meant` is true.
    pub fn members_that<'a>(
        &'a self,
        is_meant: impl Fn(&DataRole) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = MemberId> + 'a {
        self.groups.iter().flat_map(move |view| {
            let meant = view.data_roles().filter(move |(_, data)| is_meant(data));
            meant.map(|(role, _)| MemberId { group: view.group, role })
        })
    }

    /// The slots whose data is lost, in as few ranges as possible.
    #[must_use]
    pub fn lost_slots(&self) -> Vec<SlotRange> {
        self.slots_that(|data| data.status.is_lost())
    }

    /// The slots of the roles of which `is_meant` is true, in as few ranges as possible.
    #[must_use]
    pub fn slots_that(&self, is_meant: impl Fn(&DataRole) -> bool + Copy) -> Vec<SlotRange> {
        SlotRange::merged(self.members_that(is_meant).map(|member| self.slots_of(member)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    fn range(first: u16, last: u16) -> SlotRange {
        SlotRange { first: Slot(first), last: Slot(last) }
    }

    #[test]
    fn neighbours_and_overlaps_become_one_range() {
        let ranges = vec![range(200, 299), range(0, 99), range(100, 199), range(301, 301), range(250, 260)];
        assert_eq!(SlotRange::merged(ranges), [range(0, 299), range(301, 301)]);
        assert_eq!(SlotRange::merged(vec![range(5, 16_383), range(0, 4)]), [SlotRange::ALL]);
        assert_eq!((SlotRange::ALL.count(), range(7, 7).count()), (16_384, 1));
        assert!(range(0, 9).intersects(range(9, 20)) && !range(0, 9).intersects(range(10, 20)));
    }

    #[test]
    fn the_numbers_of_two_lives_never_meet() {
        let role = |term, origin| DataRole {
            primary: None,
            term: Term(term),
            origin: Term(origin),
            status: RoleStatus::Full,
        };
        assert_eq!(role(1, 1).first_seq(), Seq(0));
        assert_eq!(role(7, 4).first_seq(), Seq(3 << 44));
        assert!(role(4, 4).starts_from_nothing() && !role(5, 4).starts_from_nothing());
    }
}
