//! Data that is lost for good: which slots, what to do about it, and when such a role may begin anew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClusterMap, DataRole, MemberId, Name, PoolId, RoleStatus, Seq, Slot, SlotRange};

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
    /// Number of slots.
    #[must_use]
    pub fn count(self) -> u32 {
        // A range that somebody else names may end before it begins, or with the largest number.
        self.last.0.saturating_add(1).saturating_sub(self.first.0)
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
                Some(last) if range.first.0 <= last.last.0.saturating_add(1) => {
                    last.last = last.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        merged
    }

    /// The slots of this range that are in none of `others`, and those that are in one of them; `others` are
    /// [merged](Self::merged).
    #[must_use]
    pub fn split_by(self, others: &[Self]) -> (Vec<Self>, Vec<Self>) {
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        let mut rest = Some(self);
        for other in others.iter().filter(|other| other.intersects(self)) {
            let Some(Self { first, last }) = rest else { break };
            if first < other.first {
                outside.push(Self { first, last: Slot(other.first.0 - 1) });
            }
            inside.push(Self { first: first.max(other.first), last: last.min(other.last) });
            rest = (other.last < last).then(|| Self { first: Slot(other.last.0 + 1), last });
        }
        outside.extend(rest);
        (outside, inside)
    }

    /// Whether `slot` is in one of `ranges`, which are [merged](Self::merged).
    #[must_use]
    pub fn any_has(ranges: &[Self], slot: Slot) -> bool {
        let at = ranges.partition_point(|range| range.last < slot);
        ranges.get(at).is_some_and(|range| range.first <= slot)
    }
}

/// Slots of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSlots {
    /// Which pool.
    pub pool: Name,
    /// Which of its slots.
    #[serde(flatten)]
    pub slots: SlotRange,
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

    /// The slots whose data is lost, be it to some namespace alone, in as few ranges as possible.
    #[must_use]
    pub fn lost_slots(&self) -> Vec<PoolSlots> {
        let of_roles = self.ranges_of(self.members_that(|data| data.status.is_lost()));
        // Where the role has begun anew, and they have not accepted that.
        let namespaces = self.catalog.namespaces.iter();
        let of_namespaces = namespaces.flat_map(|known| known.lost.iter().map(|slots| (known.pool, *slots)));
        self.by_pool(of_roles.chain(of_namespaces))
    }

    /// The slots of the roles of which `is_meant` is true, in as few ranges as possible.
    #[must_use]
    pub fn slots_that(&self, is_meant: impl Fn(&DataRole) -> bool + Copy) -> Vec<PoolSlots> {
        self.slots_of_all(self.members_that(is_meant))
    }

    /// The slots of `members`, in as few ranges as possible, pool by pool.
    #[must_use]
    pub fn slots_of_all(&self, members: impl Iterator<Item = MemberId>) -> Vec<PoolSlots> {
        self.by_pool(self.ranges_of(members))
    }

    fn ranges_of(
        &self,
        members: impl Iterator<Item = MemberId>,
    ) -> impl Iterator<Item = (PoolId, SlotRange)> {
        members.filter_map(|member| {
            let pool = self.catalog.pool_of_group(member.group)?;
            Some((pool.id, pool.slots_of(member)))
        })
    }

    fn by_pool(&self, all: impl Iterator<Item = (PoolId, SlotRange)>) -> Vec<PoolSlots> {
        let mut ranges: BTreeMap<PoolId, Vec<SlotRange>> = BTreeMap::new();
        for (pool, slots) in all {
            ranges.entry(pool).or_default().push(slots);
        }
        let pools = self.catalog.pools.iter();
        let of_pool = pools.filter_map(|pool| Some((pool.name.clone(), ranges.remove(&pool.id)?)));
        let merged = of_pool.flat_map(|(pool, ranges)| {
            SlotRange::merged(ranges).into_iter().map(move |slots| PoolSlots { pool: pool.clone(), slots })
        });
        merged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    fn range(first: u32, last: u32) -> SlotRange {
        SlotRange { first: Slot(first), last: Slot(last) }
    }

    #[test]
    fn a_range_is_split_by_others() {
        let split = |first, last| range(first, last).split_by(&[range(3, 5), range(9, 9)]);
        assert_eq!(split(0, 2), (vec![range(0, 2)], vec![]));
        assert_eq!(split(3, 4), (vec![], vec![range(3, 4)]));
        assert_eq!(
            split(1, 12),
            (vec![range(1, 2), range(6, 8), range(10, 12)], vec![range(3, 5), range(9, 9)])
        );
        assert_eq!(
            range(0, u32::MAX).split_by(&[range(7, u32::MAX)]),
            (vec![range(0, 6)], vec![range(7, u32::MAX)])
        );
    }

    #[test]
    fn neighbours_and_overlaps_become_one_range() {
        let ranges = vec![range(200, 299), range(0, 99), range(100, 199), range(301, 301), range(250, 260)];
        assert_eq!(SlotRange::merged(ranges), [range(0, 299), range(301, 301)]);
        assert_eq!(SlotRange::merged(vec![range(5, 16_383), range(0, 4)]), [range(0, 16_383)]);
        assert_eq!((range(0, 16_383).count(), range(7, 7).count()), (16_384, 1));
        let ranges = [range(3, 5), range(9, 9)];
        let found: Vec<u32> = (0..12).filter(|slot| SlotRange::any_has(&ranges, Slot(*slot))).collect();
        assert_eq!(found, [3, 4, 5, 9]);
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
