//! Which groups an object's stripes go to: by the hash of its key first, and to others where a group has lost roles, has no room or stands
//! still (docs/objects.md, W4).

use types::op::Failure;
use types::{
    Exception, Geometry, GroupId, GroupView, HostId, KeyHash, MAX_EXCEPTIONS, MemberId, RoleIndex, Stripe,
};

use super::stripe::{Fate, Name, StripeUpload, Stuck};
use super::{MAX_STRIPES, Upload};
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
fn is_whole(scope: &Scope<'_>, group: GroupId) -> bool {
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
fn listed(groups: &[GroupId], owner: GroupId, stripe: u32) -> GroupId {
    groups.get(stripe as usize % groups.len().max(1)).copied().unwrap_or(owner)
}

impl Upload {
    /// One more stripe has begun to come.
    pub(super) fn begin_stripe(&mut self, scope: &Scope<'_>, stripe: Stripe) {
        let listed = listed(&self.groups, self.owner.group, stripe.index);
        let group = self.first_choice(scope, listed);
        self.stripes.push_back(StripeUpload::new(stripe, listed, group));
    }

    /// Where a stripe that the list would have in `listed` is put first.
    fn first_choice(&self, scope: &Scope<'_>, listed: GroupId) -> GroupId {
        if is_whole(scope, listed) {
            return listed;
        }
        self.another_group(scope, &[listed], &[]).unwrap_or(listed)
    }

    /// A group that is whole, none of `left`, and has none of the processes that are to be avoided.
    fn another_group(&self, scope: &Scope<'_>, left: &[GroupId], avoid: &[HostId]) -> Option<GroupId> {
        if self.exceptions.len() + MAX_STRIPES > MAX_EXCEPTIONS {
            return None;
        }
        let has_none_of = |group: GroupId| {
            let view = scope.view(group).filter(|view| view.takes_chunks());
            view.is_some_and(|view| !view.all_holders().any(|(_, holder)| avoid.contains(&holder.host)))
        };
        let all = groups_beside(scope, self.owner.group);
        // From where it is on: so those that leave one group go to different ones.
        let first = all.iter().position(|group| left.contains(group)).unwrap_or(0);
        let mut others = all.iter().cycle().skip(first).take(all.len()).copied();
        others.find(|group| !left.contains(group) && is_whole(scope, *group) && has_none_of(*group))
    }

    /// Has each stripe say what becomes of it, and puts those that are stuck elsewhere. Why the upload fails, if it does.
    pub(super) fn decide(
        &mut self,
        scope: &mut Scope<'_>,
        name: Name,
        attempts: &mut u64,
        mut fate: impl FnMut(&mut StripeUpload, &mut Scope<'_>, &mut u64) -> Fate,
    ) -> Option<Failure> {
        let mut first = None;
        // Of all stripes, not up to the first that fails.
        for at in 0..self.stripes.len() {
            let failure = match fate(&mut self.stripes[at], scope, attempts) {
                Fate::GoesOn => None,
                Fate::Fails(failure) => Some(failure),
                Fate::Stuck(stuck) => self.unstick(scope, name, at, stuck, attempts),
            };
            first = first.or(failure);
        }
        first
    }

    /// Puts a stripe that is stuck into another group; what comes of it if there is none.
    fn unstick(
        &mut self,
        scope: &mut Scope<'_>,
        name: Name,
        at: usize,
        stuck: Stuck,
        attempts: &mut u64,
    ) -> Option<Failure> {
        let stripe = &self.stripes[at];
        let left: Vec<GroupId> = stripe.left().iter().copied().chain([stripe.group()]).collect();
        match self.another_group(scope, &left, &stuck.avoid) {
            Some(group) => {
                self.stripes[at].move_to(scope, name, group, attempts);
                None
            }
            None => stuck.failure,
        }
    }

    /// Lets go of stripes that are done; how many of them lie elsewhere than the list says.
    pub(super) fn take_done(&mut self, scope: &Scope<'_>) -> u64 {
        let is_named = scope.rules().objects().exceptions_are_named();
        // Without an id nothing has been put.
        let Some(id) = self.id else { return 0 };
        let mut moved = 0;
        for stripe in std::mem::take(&mut self.stripes) {
            if !stripe.is_done(scope) {
                self.stripes.push_back(stripe);
                continue;
            }
            // One that was done before under another name is named where it lies already.
            let is_elsewhere = stripe.group() != listed(&self.groups, self.owner.group, stripe.index());
            let has_moved = is_elsewhere && stripe.old().is_none();
            if has_moved && is_named {
                Exception::add(&mut self.exceptions, stripe.index(), stripe.group());
            }
            moved += u64::from(has_moved);
            self.done.add(stripe.into_done(id));
        }
        moved
    }
}
