//! A data role moves (group protocol, section 6): its mirror is whole, and the primary makes way.
//!
//! The primary begins nothing new and finishes what is under way. When the log is empty it says so, and keeps still for one
//! read lease from each question on: as long as the coordinator fences the role within that time, nobody has to wait for the
//! lease to end. If no view follows, the primary goes on, with a new lease.

use cluster::{Epoch, RoleIndex, Time, ViewVersion};
use wire::message::ToCoordinator;

use super::Primary;
use crate::outbox::Context;

/// What was asked.
pub(super) struct HandingOver {
    since: ViewVersion,
    asked_at: Time,
    epoch: Epoch,
    /// When this primary goes on if nothing happens.
    until: Time,
    answered: bool,
}

impl HandingOver {
    pub(super) fn until(&self) -> Time {
        self.until
    }
}

impl Primary {
    /// The coordinator asks this primary to make way for its mirror.
    pub(crate) fn handle_hand_over(
        &mut self,
        context: &mut Context<'_>,
        term: cluster::Term,
        (since, asked_at, epoch): (ViewVersion, Time, Epoch),
    ) {
        if term != self.term || !self.has_whole_mirror(since) {
            return;
        }
        let until = context.now.time + context.timing.read_lease_us;
        self.handing_over = Some(HandingOver { since, asked_at, epoch, until, answered: false });
        self.answer_hand_over(context);
    }

    /// Whether it keeps still.
    pub(super) fn is_handing_over(&self) -> bool {
        self.handing_over.is_some() && !crate::planted(crate::Bug::ServesAfterHandOver)
    }

    /// Says that nothing is under way any more, once per question.
    pub(super) fn answer_hand_over(&mut self, context: &mut Context<'_>) {
        let (group, role, term) = (self.member.group, self.member.role, self.term);
        // Not for safety, Fence and Settle see to that: so that no client's write has an unknown outcome.
        let idle = self.log.is_empty();
        let Some(asked) = self.handing_over.as_mut().filter(|asked| idle && !asked.answered) else { return };
        asked.answered = true;
        let (since, asked_at, epoch) = (asked.since, asked.asked_at, asked.epoch);
        context.coordinator(ToCoordinator::HandedOver { group, role, term, since, asked_at, epoch });
    }

    /// A view: if the mirror is gone, so is the reason to keep still.
    pub(super) fn reconsider_hand_over(&mut self, now: Time) {
        if self.handing_over.as_ref().is_some_and(|asked| !self.has_whole_mirror(asked.since)) {
            self.go_on(now);
        }
    }

    pub(super) fn tick_hand_over(&mut self, context: &mut Context<'_>) {
        self.answer_hand_over(context);
        if self.handing_over.as_ref().is_some_and(|asked| context.now.time >= asked.until) {
            self.go_on(context.now.time);
        }
    }

    /// The coordinator may have fenced the role on the strength of the answer, so the old lease is worth nothing.
    fn go_on(&mut self, now: Time) {
        self.handing_over = None;
        if !crate::planted(crate::Bug::LeaseOutlivesHandOver) {
            self.renounce_lease(now);
        }
    }

    fn has_whole_mirror(&self, since: ViewVersion) -> bool {
        let role: RoleIndex = self.member.role;
        self.view.learner(role).is_some_and(|learner| learner.whole && learner.since == since)
    }
}
