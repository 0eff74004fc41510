//! The rules of the group protocol (docs/protocol.md) that a test can leave out, one at a time, to see what they prevent.
//!
//! The machines ask for a rule by its name, and read as the protocol does. That a rule may be left out is known here alone.
//! Rules travel with the configuration of a host and of a coordinator; where the feature `planted-bugs` is off there is nothing
//! to leave out, they have no size, and every answer is a constant.
//!
//! A rule has one of three forms: something that is done (`if rules.frozen_roles_stay_out()`); a condition that something needs,
//! and that is all that it needs (`rules.read_needs_lease(is_leased)`); or a choice (`rules.common_end(received)`).

mod bug;
mod conversions;
mod graphs;
mod hand_overs;
mod objects;
mod scans;
mod sessions;
mod silence;

use types::{RoleIndex, Seq, UnixSeconds};

pub use bug::Bug;
pub(crate) use scans::ScanRules;
pub(crate) use silence::SilenceRules;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    #[cfg(feature = "planted-bugs")]
    broken: Option<Bug>,
}

#[cfg(not(feature = "planted-bugs"))]
const _: () = assert!(size_of::<Rules>() == 0, "whoever keeps all rules pays for none");

/// How far a record of a primary has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has a number.
    Logged,
    /// All parities have it.
    Committed,
}

/// What is done about a change of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Record,
    Tell,
}

#[cfg(feature = "planted-bugs")]
impl Rules {
    /// All of them.
    #[must_use]
    pub const fn all() -> Self {
        Self { broken: None }
    }

    /// All but the one that prevents `bug`.
    #[must_use]
    pub const fn without(bug: Bug) -> Self {
        Self { broken: Some(bug) }
    }

    /// Whether the rule is kept that prevents `bug`.
    fn prevent(self, bug: Bug) -> bool {
        self.broken != Some(bug)
    }

    /// What holds by the rules, of which all have to be kept for that: whoever leaves one out is to be found by what comes of it.
    pub(crate) fn promise(self, holds: bool) -> bool {
        holds || self.broken.is_some()
    }
}

#[cfg(not(feature = "planted-bugs"))]
impl Rules {
    /// All of them.
    #[must_use]
    pub const fn all() -> Self {
        Self {}
    }

    /// Whether the rule is kept that prevents such a bug.
    #[inline(always)]
    const fn prevent(self, _: Bug) -> bool {
        true
    }

    /// What holds by the rules.
    pub(crate) const fn promise(self, holds: bool) -> bool {
        holds
    }
}

/// What a primary does.
impl Rules {
    /// A client hears of its write when all parities have the record.
    pub(crate) fn answers_at(self) -> Stage {
        if self.prevent(Bug::AckBeforeParity) { Stage::Committed } else { Stage::Logged }
    }

    /// While a flush is in the log nothing is decided: of which cohort a new item is, is known when it is committed.
    pub(crate) fn flushes_hold_writes_up(self) -> bool {
        self.prevent(Bug::WriteDuringFlush)
    }

    /// What was flushed is nothing to its key, under which something else may have been written since.
    pub(crate) fn flushed_items_have_no_key(self) -> bool {
        self.prevent(Bug::SweptItemIsItsKey)
    }

    /// A lesson begins with the cohorts of what the role has.
    pub(crate) fn lessons_tell_of_cohorts(self) -> bool {
        self.prevent(Bug::CohortsForgotten)
    }

    /// Readers see committed state only.
    pub(crate) fn shows_at(self) -> Stage {
        if self.prevent(Bug::IndexSwitchBeforeCommit) { Stage::Committed } else { Stage::Logged }
    }

    /// Every parity of the view is waited for: only a recorded view without it ends that.
    pub(crate) fn is_waited_for(self, is_silent: impl FnOnce() -> bool) -> bool {
        self.prevent(Bug::UnilateralRemoval) || !is_silent()
    }

    /// A read needs a lease.
    pub(crate) fn read_needs_lease(self, is_leased: bool) -> bool {
        is_leased || !self.prevent(Bug::ReadWithoutLease)
    }

    /// A stand-in serves when the lease of the former primary has surely ended: after so many microseconds.
    pub(crate) fn waits_for_old_lease(self, left_us: u64) -> u64 {
        if self.prevent(Bug::ServeBeforeLeaseEnds) { left_us } else { 0 }
    }

    /// The wall time of a role never decreases: the highest second that was sent, or that the clock shows.
    pub(crate) fn role_time(self, sent: UnixSeconds, clock: UnixSeconds) -> UnixSeconds {
        if self.prevent(Bug::ExpiredComesBack) { sent.max(clock) } else { clock }
    }

    /// An item is told expired once every parity knows a second that is not before that.
    pub(crate) fn expiry_needs_all_parities(self, is_known_to_all: bool) -> bool {
        is_known_to_all || !self.prevent(Bug::ExpiredComesBack)
    }

    /// An extent goes back, and may be asked for anew, once every parity has applied its wipes.
    pub(crate) fn release_needs_applied_wipes(self, are_applied: bool) -> bool {
        are_applied || !self.prevent(Bug::ReleaseBeforeApplied)
    }

    /// No session while a role of the group is fenced: two parities may have applied different prefixes of its stream.
    pub(crate) fn session_needs_settled_streams(self, are_settled: bool) -> bool {
        are_settled || !self.prevent(Bug::SessionWhileFenced)
    }

    /// The record after which a page is what it is: the newest committed one, in the FIFO of the Frames.
    pub(crate) fn page_is_as_of(self, committed: Seq) -> Seq {
        if self.prevent(Bug::RepairOutsideFifo) { committed } else { Seq(committed.0.saturating_sub(2)) }
    }

    /// Who has made way for its mirror neither reads nor writes.
    pub(crate) fn who_makes_way_keeps_still(self) -> bool {
        self.prevent(Bug::ServesAfterHandOver)
    }

    /// Who has made way in vain goes on, reading only what Frames sent from then on allow.
    pub(crate) fn vain_hand_over_costs_the_lease(self) -> bool {
        self.prevent(Bug::LeaseOutlivesHandOver)
    }

    /// A learner has caught up once it is waited for, and has everything; not when all is only sent.
    pub(crate) fn caught_up_needs_everything(self, has_everything: bool, is_all_sent: bool) -> bool {
        has_everything || is_all_sent && !self.prevent(Bug::CaughtUpTooEarly)
    }
}

/// What a parity does, and a learner.
impl Rules {
    /// A parity rejects what is below its fence.
    pub(crate) fn message_needs_unfenced_term(self, is_unfenced: bool) -> bool {
        is_unfenced || !self.prevent(Bug::StaleTermAccepted)
    }

    /// A record that comes twice counts once: what of it changes the sum again.
    pub(crate) fn counts_again<T>(self, writes: &[T]) -> &[T] {
        if self.prevent(Bug::DuplicateApplied) { &[] } else { writes }
    }

    /// A parity applies only what is committed, of what it has received.
    pub(crate) fn applies_up_to(self, committed: Seq, received: Seq) -> Seq {
        if self.prevent(Bug::ApplyOnReceive) { committed } else { received }
    }

    /// A role weighs in the sum of a row what the code says.
    pub(crate) fn weight(self, coefficient: u8, row: Option<usize>, role: RoleIndex) -> u8 {
        let is_right = self.prevent(Bug::WrongCoefficient) || row != Some(1) || role != RoleIndex(1);
        if is_right { coefficient } else { coefficient ^ 1 }
    }

    /// Later records of a role that has left the sum of a session no longer change it.
    pub(crate) fn frozen_roles_stay_out(self) -> bool {
        self.prevent(Bug::NoFreeze)
    }

    /// Before a page of a scrub leaves the sum, the records that it contains are in it.
    pub(crate) fn scrubbed_pages_follow_their_records(self) -> bool {
        self.prevent(Bug::ScrubOutsideFifo)
    }

    /// A Settle is obeyed once a term, and takes nothing back that was applied.
    pub(crate) fn settles_once_a_term(self) -> bool {
        self.prevent(Bug::SettleRepeated)
    }

    /// No stream ends beyond what one of its parities has.
    pub(crate) fn ends_within_what_was_received(self) -> bool {
        self.prevent(Bug::LostTailAfterTakeover)
    }

    /// To settle is to apply what was received up to the end.
    pub(crate) fn settling_applies(self) -> bool {
        self.prevent(Bug::NoSettle)
    }

    /// The newest record in the sum when a stream has ended: the one that was applied last, whatever is said to be the end.
    pub(crate) fn applied_at_the_end(self, applied: Seq, end: Seq) -> Seq {
        let is_known = self.settling_applies() && self.ends_within_what_was_received();
        if is_known { applied } else { end }
    }

    /// A parity that left its view goes on from what it has applied: nobody counts on what was only received.
    pub(crate) fn only_applied_records_stay(self) -> bool {
        self.prevent(Bug::ResumeFromReceived)
    }

    /// A parity comes back only with sums in which everything is still somebody's.
    pub(crate) fn return_needs_sum_without_loss(self, is_without_loss: bool) -> bool {
        is_without_loss || !self.prevent(Bug::DormantOutlivesLoss)
    }

    /// All primaries go on with a parity that comes back, or none does.
    pub(crate) fn all_resume_or_none(self) -> bool {
        self.prevent(Bug::MixedLesson)
    }

    /// A record changes what of a learner's pages has come, and nothing else.
    pub(crate) fn unknown_pages_stay(self) -> bool {
        self.prevent(Bug::LearnerAppliesUnknown)
    }

    /// Before a part is taken in, the records up to it are applied.
    pub(crate) fn parts_follow_their_records(self) -> bool {
        self.prevent(Bug::PartBeforeRecords)
    }
}

/// What a coordinator does, and a node that hears one.
impl Rules {
    /// A stream ends at the record that all its parities have: what one of them lacks was never acknowledged.
    pub(crate) fn common_end(self, received: impl Iterator<Item = Seq>) -> Option<Seq> {
        if self.prevent(Bug::LostTailAfterTakeover) { received.min() } else { received.max() }
    }

    /// A failure in the group cancels its learners.
    pub(crate) fn failures_cancel_learners(self) -> bool {
        self.prevent(Bug::LearnerSurvivesFailure)
    }

    /// A stand-in without memory for its pages makes way for one that has it.
    pub(crate) fn starved_stand_ins_make_way(self) -> bool {
        self.prevent(Bug::StarvedStandInStays)
    }

    /// No number of a namespace is ever used again: items of the one that had it may still be there.
    pub(crate) fn numbers_are_new(self) -> bool {
        self.prevent(Bug::NumberUsedAgain)
    }

    /// Nobody is given anything of a quota before it is known what everybody takes.
    pub(crate) fn shares_are_known(self, are_known: bool) -> bool {
        are_known || !self.prevent(Bug::QuotaCountedTwice)
    }

    /// Whether something is beyond repair the rows of the code say.
    pub(crate) fn beyond_repair(self, by_rows: bool, by_counting: bool) -> bool {
        if self.prevent(Bug::SolvabilityByCounting) { by_rows } else { by_counting }
    }

    /// A parity is in sync once all `primaries` have caught it up.
    pub(crate) fn teachers_of_parity(self, primaries: usize) -> usize {
        if self.prevent(Bug::OneTeacherEnough) { primaries } else { 1 }
    }

    /// The parities leave the view in the change that declares roles lost.
    pub(crate) fn parities_leave_with_what_is_lost(self) -> bool {
        self.prevent(Bug::ParityOutlivesLoss)
    }

    /// Who was a parity of what is lost is not preferred any more when one is built.
    pub(crate) fn losses_end_returns(self) -> bool {
        self.prevent(Bug::DormantOutlivesLoss)
    }

    /// A role begins anew when nobody can serve what it was.
    pub(crate) fn new_life_needs_end_of_former(self, is_over: bool) -> bool {
        is_over || !self.prevent(Bug::AcceptedBeforeOver)
    }

    /// A change is recorded before anybody is told.
    pub(crate) fn steps_of_change(self) -> [Step; 2] {
        let kept = self.prevent(Bug::SentBeforeRecorded);
        if kept { [Step::Record, Step::Tell] } else { [Step::Tell, Step::Record] }
    }

    /// What a node is like is recorded by itself, so it may be newer than the head.
    pub(crate) fn nodes_change_without_the_head(self) -> bool {
        self.prevent(Bug::NodesAsOldAsHead)
    }

    /// Changes of the map are for maps that have all that was before them.
    pub(crate) fn changes_have_a_base(self) -> bool {
        self.prevent(Bug::ChangesOnAnyBase)
    }

    /// Until a record is in force nobody is told of what follows from it.
    pub(crate) fn news_need_record_in_force(self, is_in_force: bool) -> bool {
        is_in_force || !self.prevent(Bug::ToldBeforeKept)
    }

    /// A coordinator that starts with nothing goes on once enough of each set of electors have answered.
    pub(crate) fn going_on_needs_electors(self, are_enough: bool) -> bool {
        are_enough || !self.prevent(Bug::ResumedWithoutQuorum)
    }

    /// A node obeys no coordinator that another one has followed.
    pub(crate) fn command_needs_newest_epoch(self, is_newest: bool) -> bool {
        is_newest || !self.prevent(Bug::OldCoordinatorObeyed)
    }
}
