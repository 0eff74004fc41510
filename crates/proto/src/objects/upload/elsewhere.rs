//! Which groups an object's stripes go to: by the hash of its key first, and to others where a group has lost roles, has no room or stands
//! still (docs/objects.md, W4).

use types::op::Failure;
use types::{Exception, GroupId, HostId, MAX_EXCEPTIONS, Stripe};

use super::groups::{groups_beside, is_whole, listed};
use super::stripe::{Fate, Name, StripeUpload, Stuck};
use super::{Counts, MAX_STRIPES, Upload};
use crate::objects::scope::Scope;

impl Upload {
    /// One more stripe has begun to come.
    pub(super) fn begin_stripe(&mut self, scope: &Scope<'_>, stripe: Stripe) {
        let listed = listed(&self.groups, self.owner.group, stripe.index);
        let group = self.first_choice(scope, listed);
        if group != listed {
            self.strayed.insert(group);
        }
        let stripe = StripeUpload::new(stripe, listed, group).charged(self.via.is_some());
        self.stripes.push_back(stripe.with_parities_by(self.by));
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
                self.strayed.extend([self.stripes[at].group(), group]);
                self.stripes[at].move_to(scope, name, group, attempts);
                None
            }
            None => stuck.failure,
        }
    }

    /// Lets go of stripes that are done.
    pub(super) fn take_done(&mut self, scope: &Scope<'_>, counts: &mut Counts) {
        let is_named = scope.rules().objects().exceptions_are_named();
        // Without an id nothing has been put.
        let Some(id) = self.id else { return };
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
            counts.add(&stripe, has_moved);
            self.done.add(stripe.into_done(id));
        }
    }
}
