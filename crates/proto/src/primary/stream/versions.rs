//! Versions (cas uniques): what no other item of the pool has, and what grows with every write of a role.
//!
//! Record `seq` of data role number `index` gives `seq x roles + index`, where `roles` is how many data roles the pool
//! has, which never changes. So two roles never give the same one, and one role gives larger and larger ones, also from one
//! primary to the next, because the numbers of records go on. Nothing but the record's number has to be kept for it.
//!
//! A life of a role has 2^44 numbers ([`types::DataRole::first_seq`]): the product fits into 64 bits as long as roles times
//! lives are fewer than 2^20, and wraps beyond. A client that chooses versions itself (`E`) has to keep them apart itself.

use types::{MemberId, Pool, Seq};

/// The versions of one data role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::primary) struct Versions {
    index: u64,
    roles: u64,
}

impl Versions {
    /// Those of `member`, one of `pool`'s.
    pub(in crate::primary) fn of(pool: &Pool, member: MemberId) -> Self {
        let group = u64::from(member.group.0.saturating_sub(pool.first_group.0));
        let index = group * pool.profile.k() as u64 + u64::from(member.role.0);
        debug_assert!(index < pool.data_roles(), "{member} is one of {pool:?}");
        Self { index, roles: pool.data_roles() }
    }

    /// What record `seq` gives.
    pub(in crate::primary) fn at(self, seq: Seq) -> u64 {
        seq.0.wrapping_mul(self.roles).wrapping_add(self.index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use types::{Catalog, GroupId, Profile, RoleIndex};

    use super::*;

    const FIRST: u32 = 5;

    /// A pool that is not the first.
    fn pool(groups: u32) -> Pool {
        let mut catalog = Catalog::first(Profile::rs(2, 1).unwrap(), FIRST);
        let name = "p".parse().unwrap();
        catalog.create_pool(name, Profile::rs(3, 2).unwrap(), groups).unwrap();
        catalog.pools[1].clone()
    }

    fn versions(pool: &Pool, group: u32, role: u8) -> Versions {
        Versions::of(pool, MemberId { group: GroupId(FIRST + group), role: RoleIndex(role) })
    }

    #[test]
    fn no_two_records_of_a_pool_give_the_same_version() {
        let pool = pool(5);
        let mut seen = BTreeSet::new();
        for seq in (1..200).chain((1 << 44)..(1 << 44) + 200) {
            for group in 0..5 {
                for role in 0..3 {
                    assert!(seen.insert(versions(&pool, group, role).at(Seq(seq))));
                }
            }
        }
    }

    #[test]
    fn the_versions_of_a_role_grow_from_record_to_record_and_from_life_to_life() {
        let given = versions(&pool(5), 4, 2);
        let versions = [1, 2, 1000, 1 << 44, (1 << 44) + 1, 1 << 50].map(|seq| given.at(Seq(seq)));
        assert!(versions.is_sorted_by(|a, b| a < b));
    }
}
