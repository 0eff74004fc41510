//! Commit: what every required parity has is committed, and what waited for that goes on.

use super::{Primary, departures, yielding};
use crate::outbox::Context;

impl Primary {
    /// Commits what all parities of the view have acknowledged; everything if there are none.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) {
        let last = self.stream.last();
        let target = self.parities.acked_by_all(last, context);
        // A learner that is waited for since may lack what is committed already: nothing is ever taken back.
        if self.stream.committed() >= target {
            return;
        }
        // A learner must have a record on its way before it is only history.
        let wall = self.wall.send(context.now.unix);
        self.lessons.send_records(context, &self.core, &self.stream, wall);
        let store = self.phase.serving_mut();
        let committed = self.stream.commit_upto(context, store, &mut self.charges, target);
        for effects in committed.objects {
            self.objects.note_committed(context, &self.core, effects);
        }
        self.space.reclaims_committed(committed.reclaims);
        if committed.reclaims > 0 && self.may_serve(context.now.time, context.timing) {
            let store = self.phase.serving_mut();
            let wall = self.wall.at(context.now.unix);
            self.space.sweep(context, store, &mut self.stream, wall);
            self.space.evict_excess(context, store, &mut self.stream, &self.charges, wall);
        }
        self.hand_over.answer_if(self.stream.is_empty(), context, &self.core);
        departures::give_away(self, context);
        self.retry_waiting(context);
        yielding::go_on(self, context);
    }
}
