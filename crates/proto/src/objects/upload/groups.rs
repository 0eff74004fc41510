//! The groups that an object may use, and which of them are whole.

use types::{Geometry, GroupId, GroupView, KeyHash, MemberId, RoleIndex};

use crate::objects::scope::Scope;

/// The groups that an object uses: those of its pool that the same worker has, from the hash of its key on. While some have lost roles
/// they are left out: what is written there survives less.
pub(crate) fn groups_for(
    scope: &Scope<'_>,
    owner: MemberId,
    hash: KeyHash,
    geometry: Geometry,
) -> Vec<GroupId> {
    let all = groups_beside(scope, owner.group);
    let whole: Vec<GroupId> = all.iter().copied().filter(|group| is_whole(scope, *group)).collect();
    let all = if whole.is_empty() { all } else { whole };
    let count = (geometry.stripe_count() as usize).min(types::MAX_OBJECT_GROUPS).min(all.len());
    // Not the bits that the slot is taken from: else an object would always begin in the group of its key.
    let first = (hash.0 ^ hash.0.rotate_left(29)) as usize % all.len().max(1);
    all.iter().cycle().skip(first).take(count).copied().collect()
}

/// The groups of the same pool that the same worker has.
pub(super) fn groups_beside(scope: &Scope<'_>, group: GroupId) -> Vec<GroupId> {
    let map = scope.views.map();
    let pool = map.and_then(|map| map.catalog.pool_of_group(group));
    let (Some(map), Some(pool)) = (map, pool) else { return vec![group] };
    let shard = group.shard(map.shards);
    pool.group_ids().filter(|group| group.shard(map.shards) == shard).collect()
}

/// Whether somebody takes the chunks of every role, or will: of a group that nobody has put anything into, whose views name no holders yet.
pub(super) fn is_whole(scope: &Scope<'_>, group: GroupId) -> bool {
    scope.view(group).is_some_and(|view| if view.takes_chunks() { takes_all(view) } else { has_all(view) })
}

fn takes_all(view: &GroupView) -> bool {
    let has_holder = |role: usize| view.holders_of(RoleIndex(role as u8)).iter().next().is_some();
    (0..view.holders.len()).all(has_holder)
}

fn has_all(view: &GroupView) -> bool {
    view.data.iter().all(|role| role.primary.is_some()) && view.parity.iter().all(Option::is_some)
}

/// The group that the list has for a stripe.
pub(super) fn listed(groups: &[GroupId], owner: GroupId, stripe: u32) -> GroupId {
    groups.get(stripe as usize % groups.len().max(1)).copied().unwrap_or(owner)
}
