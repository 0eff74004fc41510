//! Versions (cas uniques): what no other item of the cluster has, and what grows with every write of a role.
//!
//! Record `seq` of data role number `index` gives `seq x roles + index`, where `roles` is how many data roles the cluster
//! has, which never changes. So two roles never give the same one, and one role gives larger and larger ones, also from one
//! primary to the next, because the numbers of records go on. Nothing but the record's number has to be kept for it.
//!
//! A life of a role has 2^44 numbers ([`types::DataRole::first_seq`]): the product fits into 64 bits as long as roles times
//! lives are fewer than 2^20, and wraps beyond. A client that chooses versions itself (`E`) has to keep them apart itself.

use types::{MemberId, Seq};

/// What record `seq` of `member` gives in a cluster of so many groups with `k` data roles each.
pub(super) fn version_of(seq: Seq, member: MemberId, groups: usize, k: usize) -> u64 {
    let roles = (groups * k) as u64;
    let index = u64::from(member.group.0) * k as u64 + u64::from(member.role.0);
    debug_assert!(index < roles, "{member:?} is one of {groups} groups of {k}");
    seq.0.wrapping_mul(roles).wrapping_add(index)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use types::{GroupId, RoleIndex};

    use super::*;

    fn member(group: u32, role: u8) -> MemberId {
        MemberId { group: GroupId(group), role: RoleIndex(role) }
    }

    #[test]
    fn no_two_records_of_a_cluster_give_the_same_version() {
        let (groups, k) = (5, 3);
        let mut seen = BTreeSet::new();
        for seq in (1..200).chain((1 << 44)..(1 << 44) + 200) {
            for group in 0..groups {
                for role in 0..k {
                    let member = member(group, role);
                    assert!(seen.insert(version_of(Seq(seq), member, groups as usize, usize::from(k))));
                }
            }
        }
    }

    #[test]
    fn the_versions_of_a_role_grow_from_record_to_record_and_from_life_to_life() {
        let versions =
            [1, 2, 1000, 1 << 44, (1 << 44) + 1, 1 << 50].map(|seq| version_of(Seq(seq), member(4, 2), 5, 3));
        assert!(versions.is_sorted_by(|a, b| a < b));
    }
}
