//! Commit: what every required parity has is committed, and what waited for that goes on.

use types::op::Outcome;

use super::departures::Site;
use super::{Primary, Touched, yielding};
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
        self.give_away(context);
        self.retry_waiting(context);
        yielding::go_on(self, context);
    }

    /// Items of namespaces that move to another pool go, as many as may be on their way.
    #[inline]
    pub(super) fn give_away(&mut self, context: &mut Context<'_>) {
        if !self.departures.have_heeded(context.edition) || !self.departures.is_empty() {
            give_some_away(self, context);
        }
    }

    /// A data role of another pool has answered.
    pub(crate) fn hear_receiver(&mut self, context: &mut Context<'_>, number: u64, outcome: &Outcome) {
        self.touch(Touched::ByEvents);
        let may_serve = self.may_serve(context.now.time, context.timing);
        let Self { core, phase, stream, departures, objects, wall, .. } = self;
        match phase.store_mut().filter(|_| may_serve) {
            Some(store) => {
                let mut site = Site { core, stream, store, objects, told: wall.told() };
                departures.hear(context, &mut site, number, outcome);
            }
            None => departures.hear_too_late(context.rules, number),
        }
        self.give_away(context);
        self.retry_waiting(context);
    }
}

/// Other namespaces may move by now, from here or to here.
#[inline]
pub(super) fn heed_conversions(primary: &mut Primary, context: &Context<'_>) {
    if !primary.departures.have_heeded(context.edition) {
        heed_other_conversions(primary, context);
    }
}

#[cold]
fn heed_other_conversions(primary: &mut Primary, context: &Context<'_>) {
    primary.departures.heed(context, &primary.core, primary.stream.last());
    // Who may be evicted, and whose items are nobody's any more, is another question then.
    primary.heed_catalog(context);
    primary.touch(Touched::ByEvents);
}

#[cold]
fn give_some_away(primary: &mut Primary, context: &mut Context<'_>) {
    heed_conversions(primary, context);
    if primary.departures.is_empty() {
        return;
    }
    primary.departures.look(context.now.time);
    if !primary.may_serve(context.now.time, context.timing) {
        return;
    }
    let Primary { core, phase, stream, departures, objects, wall, .. } = primary;
    let (store, told) = (phase.serving_mut(), wall.told());
    departures.go_on(context, &mut Site { core, stream, store, objects, told });
}
