//! A data role moves (group protocol, section 6): its mirror is whole, and the primary makes way.
//!
//! The primary begins nothing new and finishes what is under way. When the log is empty it says so, and keeps still for one
//! read lease from each question on: as long as the coordinator fences the role within that time, nobody has to wait for the
//! lease to end. If no view follows, the primary goes on, with a new lease.

use types::{Epoch, Time, ViewVersion};
use wire::message::ToCoordinator;

use super::core::Core;
use super::parities::Parities;
use super::stream::SendStream;
use crate::Rules;
use crate::outbox::Context;

/// What the coordinator has asked, if it has.
#[derive(Default)]
pub(super) struct HandOver {
    asked: Option<Asked>,
}

/// What makes an answer that of one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// View since which the mirror is a learner.
    pub since: ViewVersion,
    /// The coordinator's time.
    pub asked_at: Time,
    pub epoch: Epoch,
}

struct Asked {
    question: Question,
    /// When this primary goes on if nothing happens.
    until: Time,
    answered: bool,
}

impl HandOver {
    /// The coordinator asks this primary to make way for its mirror.
    pub(super) fn ask(&mut self, question: Question, until: Time) {
        // Each question is answered anew: the stillness counts from when the last one was asked.
        self.asked = Some(Asked { question, until, answered: false });
    }

    /// Whether the primary keeps still.
    pub(super) fn keeps_still(&self, rules: Rules) -> bool {
        rules.who_makes_way_keeps_still() && self.asked.is_some()
    }

    /// When the primary goes on if nothing happens; never if nothing was asked.
    pub(super) fn due(&self) -> Time {
        self.asked.as_ref().map_or(Time::NEVER, |asked| asked.until)
    }

    /// Says that nothing is under way any more, once per question.
    pub(super) fn answer_if(&mut self, is_idle: bool, context: &mut Context<'_>, core: &Core) {
        // Not for safety, Fence and Settle see to that: so that no client's write has an unknown outcome.
        let unanswered = self.asked.as_mut().filter(|asked| is_idle && !asked.answered);
        let Some(asked) = unanswered else { return };
        asked.answered = true;
        let (group, role, term) = (core.member().group, core.member().role, core.term());
        let Question { since, asked_at, epoch } = asked.question;
        context.coordinator(ToCoordinator::HandedOver { group, role, term, since, asked_at, epoch });
    }

    /// The primary goes on, with a new lease, if the mirror is gone or no view has followed.
    pub(super) fn reconsider(
        &mut self,
        now: Time,
        core: &Core,
        parities: &mut Parities,
        stream: &mut SendStream,
    ) {
        if self.ends(core, now) && core.rules().vain_hand_over_costs_the_lease() {
            // The role may be fenced by now, and somebody may serve it who did not wait for the leases of before.
            parities.renounce_lease(now);
            stream.stir();
        }
    }

    /// Whether the primary goes on now. The coordinator may have fenced the role on the strength of the answer, so the old
    /// lease is worth nothing then.
    fn ends(&mut self, core: &Core, now: Time) -> bool {
        let over = |asked: &mut Asked| now >= asked.until || !core.has_whole_mirror(asked.question.since);
        self.asked.take_if(over).is_some()
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self, core: &Core) {
        let has_mirror = |asked: &Asked| core.has_whole_mirror(asked.question.since);
        assert!(self.asked.as_ref().is_none_or(has_mirror), "way is made for a whole mirror only");
    }
}
