//! A learner that was a parity of this role before goes on from what it has (group protocol, section 6).

use cluster::{HostId, RoleIndex};
use wire::message::{GroupBody, Learn, LearnPart, Lesson};

use super::{LearnerPeer, Next};
use crate::outbox::Context;
use crate::primary::Primary;

impl Primary {
    /// The log does not reach back to what the learner has, or not any more: it has to start from nothing.
    pub(super) fn refuse_to_resume(
        &mut self,
        context: &mut Context<'_>,
        (role, host): (RoleIndex, HostId),
        lesson: Lesson,
    ) {
        let (term, tag) = (self.term, self.committed);
        let learn = Learn { lesson, term, number: 0, tag, part: LearnPart::Gone };
        self.sender().send(context, host, role, GroupBody::Learn(learn));
    }

    /// What a learner lacks that goes on from what it has, a Frame at a time; when all of it is on its way, this is a lesson
    /// like any other, at its end.
    pub(super) fn send_lacking_records(&mut self, context: &mut Context<'_>, at: usize) {
        let sender = self.sender();
        let wall = self.wall.send(context.now.unix);
        let stream = (&self.log, self.term, self.committed, wall);
        let LearnerPeer { role, host, moved, lesson, .. } = &mut self.learners[at];
        let Some(teaching) = lesson.as_mut().filter(|teaching| teaching.next == Next::RecordKeeping) else {
            return;
        };
        let Some(peer) = teaching.peer.as_mut() else { return };
        if peer.sent() < self.log.history().start() {
            let (who, which) = ((*role, *host), teaching.lesson);
            *lesson = None;
            return self.refuse_to_resume(context, who, which);
        }
        if !context.pace.allows(context.now.time) {
            // It is this side that is slow.
            *moved = context.now.time;
            return;
        }
        if !peer.is_outstanding() && peer.sent() < self.log.last() {
            let bytes = peer.send_frame(context, sender, stream);
            context.pace.spend(bytes);
            self.taught_bytes += bytes as u64;
        }
        if peer.sent() == self.log.last() {
            teaching.next = Next::End;
        }
    }
}
