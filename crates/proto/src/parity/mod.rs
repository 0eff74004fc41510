//! A parity member: keeps `A_j = sum of c[j][i] * D_i`, a log of each data role's stream, and a replica of each index.
//!
//! The mirror of a data role `i` is a parity, too: its row is the unit vector `e_i`, so it takes one stream, and its area is
//! that of the role.
//!
//! Invariants (group protocol, section 3): I1 the log of a stream is contiguous and `applied <= received`; I3 the area
//! equals the weighted sum of the data areas at the applied records; I4 only committed records are applied, so nothing
//! is ever undone; I7 sessions live inside one view.
//!
//! | part | what it keeps |
//! | --- | --- |
//! | `core` | who this is, and what each role weighs |
//! | `sum` | the area and the `stream` of each role |
//! | `session` | copies of pages, from which the lost ones are computed |
//! | `learner` | how a parity that is being built, or comes back, learns what it lacks |
//! | `scrub` | whether the sum is what it should be |

mod core;
mod events;
mod learner;
mod scrub;
mod session;
mod stream;
mod sum;

#[cfg(test)]
mod tests;

use store::{Area, Budget, Replica};
use types::{
    Epoch, GroupView, HostId, MemberId, PAGE_BYTES, RoleIndex, ScrubProgress, ScrubSettings, Seq, Term, Time,
    UnixSeconds, ViewVersion,
};
use wire::message::ToCoordinator;

use self::core::Core;
use crate::outbox::{Context, Means};
use crate::{Impossible, Timing};
use learner::Learner;
pub(crate) use learner::Rejoined;
use scrub::Scrub;
pub use scrub::ScrubFinding;
use session::Sessions;
pub(crate) use stream::Stream;
use sum::{Sum, Weighted};

/// See the module.
pub(crate) struct Parity {
    core: Core,
    sum: Sum,
    sessions: Sessions,
    /// Until the view calls it in sync.
    learner: Option<Learner>,
    scrub: Scrub,
    budget: Budget,
}

impl Parity {
    /// The parity of a new group, before any record; or a learner, if that is what the view says.
    pub(crate) fn new(
        member: MemberId,
        host: HostId,
        view: GroupView,
        means: Means<'_>,
    ) -> Result<Self, store::AreaError> {
        let sum = Sum::new(&view, means)?;
        let named = view.learner(member.role).filter(|learner| learner.host == host);
        Ok(Self {
            learner: named.map(|learner| Learner::new(learner.since)),
            core: Core::new(member, view, means.protection),
            sum,
            sessions: Sessions::new(means.budget.clone()),
            scrub: Scrub::default(),
            budget: means.budget.clone(),
        })
    }

    pub(crate) fn member(&self) -> MemberId {
        self.core.member()
    }

    pub(crate) fn area(&self) -> &Area {
        self.sum.area()
    }

    pub(crate) fn streams(&self) -> &[Stream] {
        self.sum.streams()
    }

    /// Row of this role in the parity part of the code; none for a mirror.
    pub(crate) fn row(&self) -> Option<usize> {
        self.core.row()
    }

    /// Memory of the sessions, its own included.
    pub(crate) fn session_bytes(&self) -> usize {
        self.sessions.memory_bytes()
    }

    /// What holds after every event.
    pub(crate) fn check_invariants(&self) {
        self.sum.check_invariants();
        self.sessions.check_invariants(self.core.view());
        self.scrub.check_invariants(&self.sessions);
        let is_taught = self.sum.streams().iter().any(Stream::is_being_taught);
        assert!(self.learner.is_some() || !is_taught, "a parity in sync has learned everything");
    }

    /// A newer view: sessions end (I7). What it took if that calls a parity in sync that has come back.
    pub(crate) fn adopt(&mut self, view: &GroupView) -> Option<Rejoined> {
        debug_assert!(view.version > self.core.view().version, "views only grow");
        self.core.adopt(view);
        self.drop_sessions();
        self.sum.begin_new_lives(view);
        let role = self.core.member().role;
        // A mirror stays a learner, as its view has it, until it takes the role over; only a parity can be in sync.
        let learner = self.learner.take_if(|learner| !learner.is_named_by(view, role))?;
        // As a learner it gave nothing back: what became unused meanwhile goes now.
        self.sum.return_unused_extents();
        learner.rejoined(&self.sum)
    }

    /// Whether it is the learner that the view `since` appointed.
    pub(crate) fn is_learner_since(&self, since: ViewVersion) -> bool {
        self.learner.as_ref().is_some_and(|learner| learner.since() == since)
    }

    fn has_learned_all(&self) -> bool {
        self.learner.as_ref().is_none_or(|learner| learner.has_all(self.core.support()))
    }

    /// Whether its area is the weighted sum of what it has applied of each role, so that it can go on from there.
    pub(crate) fn may_rejoin(&self) -> bool {
        let support = self.core.support();
        // Nobody keeps records for a mirror that is gone (`primary/absentees.rs`): it would have to begin anew anyway.
        self.row().is_some() && self.learner.as_ref().is_none_or(|learner| learner.is_consistent(support))
    }

    /// Whether everything that is in its sum is still somebody's, going by `view`: else nobody can take it out.
    pub(crate) fn has_nothing_lost(&self, view: &GroupView) -> bool {
        self.sum.has_nothing_lost(view)
    }

    /// It has left its view, and is to keep what is worth keeping.
    pub(crate) fn rest(&mut self) {
        self.drop_sessions();
        self.learner = None;
        self.sum.rest();
    }

    /// The view `since` wants it again.
    pub(crate) fn rejoin(&mut self, view: &GroupView, since: ViewVersion) {
        // It may come straight out of a view that had it in sync, if it has missed the one that evicted it.
        self.rest();
        self.core.adopt(view);
        self.sum.begin_new_lives(view);
        self.learner = Some(Learner::resuming(since));
    }

    fn drop_sessions(&mut self) {
        self.sessions.clear();
        self.scrub.forget_session();
    }

    /// What a mirror has, if it is complete and the stream of the role is settled at `end` for `term`: the area, the index and
    /// the second with which it takes the role over.
    pub(crate) fn into_store(self, term: Term, end: Seq) -> Option<(Area, Replica, UnixSeconds)> {
        let role = self.core.member().role;
        let complete = self.row().is_none() && self.learner.is_some() && self.has_learned_all();
        let stream = self.sum.stream(role)?;
        // A mirror that has missed the Settle may lack a record, or have one beyond the end. Then the stand-in starts
        // from the replica of a parity that has not.
        if !complete || stream.settled() != Some(term) || stream.applied() != end {
            return None;
        }
        let (area, stream) = self.sum.into_parts(role);
        let wall = stream.wall();
        Some((area, stream.into_replica(), wall))
    }

    /// Recovery, F1: nothing below `term` any more. Answers what this parity has; none for a role that it does not know.
    pub(crate) fn fence(
        &mut self,
        now: Time,
        role: RoleIndex,
        term: Term,
        epoch: Epoch,
    ) -> Option<ToCoordinator> {
        let MemberId { group, role: parity } = self.core.member();
        let stream = self.sum.stream_mut(role)?;
        stream.raise_fence(term);
        let (received, applied, quiet_us) = (stream.received(), stream.applied(), stream.quiet_us(now));
        let fenced = ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch };
        // Under a later fence what was received says nothing of where the older stream ended: no answer.
        (stream.fence() == term).then_some(fenced)
    }

    /// Recovery, F3: the old stream ends at `upto`. Whether this is done (also if it was before).
    pub(crate) fn settle(
        &mut self,
        context: &mut Context<'_>,
        role: RoleIndex,
        term: Term,
        upto: Seq,
    ) -> bool {
        let (member, rules) = (self.core.member(), context.rules);
        // Below the fence the term is over. Above it F1 has not been here: records of the old term could still come.
        let Some(stream) = self.sum.stream(role).filter(|stream| stream.fence() == term) else {
            return false;
        };
        // A copy that comes late: records of the stand-in may be here by now, and a second cut would drop them.
        if rules.settles_once_a_term() && stream.settled() == Some(term) {
            return true;
        }
        // F2 takes the least of what all have. To agree to more would be to claim records that are not here.
        if rules.ends_within_what_was_received() && upto > stream.received() {
            tracing::error!(%member, %role, %upto, "told to settle beyond what was received; refusing");
            return false;
        }
        // What is in the sum was committed, and nothing is ever taken out again (I4).
        if rules.settles_once_a_term() && upto < stream.applied() {
            tracing::error!(%member, %role, %upto, "told to settle before what was applied; refusing");
            return false;
        }
        if rules.settling_applies() {
            self.apply_up_to(context, role, upto);
        }
        if let Some(stream) = self.sum.stream_mut(role) {
            stream.settle(rules, term, upto);
        }
        // Extents that `settle` has taken from the role may be nobody's now. A mirror becomes the store of the role,
        // which sees to that itself.
        if self.learner.is_none() {
            self.sum.return_unused_extents();
        }
        true
    }

    /// Applies what is kept of `role`'s stream up to `upto`.
    #[inline]
    fn apply_up_to(&mut self, context: &Context<'_>, role: RoleIndex, upto: Seq) {
        if self.sum.stream(role).is_some_and(|stream| stream.has_applicable(upto)) {
            self.apply(context, role, upto);
        }
    }

    #[inline(never)]
    fn apply(&mut self, context: &Context<'_>, role: RoleIndex, upto: Seq) {
        let coefficient = self.core.coefficient(role);
        let coefficient = context.rules.weight(coefficient, self.row(), role);
        // A learner gives nothing back: what it has been told of is not all yet.
        let gives_back = self.learner.is_none();
        self.sum.apply(Weighted { role, coefficient }, upto, &mut self.sessions, gives_back);
    }

    /// What a primary has committed every parity in sync has acknowledged; a learner may lack some of it.
    fn check_committed(&self, committed: Seq, received: Seq) -> Result<(), Impossible> {
        let possible = committed <= received || self.learner.is_some();
        if possible { Ok(()) } else { Err(Impossible::Committed { committed, received }) }
    }

    /// Timers.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        if let Some(learner) = &mut self.learner {
            learner.ask(context, &self.core, &self.sum);
        }
        self.scrub.tick(context, &mut self.sessions);
        self.sessions.remove_stale(context.now.time, context.timing);
    }

    /// Whether it waits for anything but records.
    pub(crate) fn waits(&self) -> bool {
        self.learner.is_some() || !self.sessions.is_empty() || self.scrub.is_open()
    }

    /// When `tick` has something to do.
    pub(crate) fn due(&self, timing: &Timing) -> Time {
        let learner = self.learner.as_ref().map_or(Time::NEVER, |learner| learner.due(timing));
        learner.min(self.scrub.due(timing, &self.sessions)).min(self.sessions.due(timing))
    }

    /// Whether a session of its scrub is open.
    pub(crate) fn is_scrubbing(&self) -> bool {
        self.scrub.is_open()
    }

    /// How far the scrub has come that `settings` ask for; none of a mirror, which is the data itself.
    pub(crate) fn scrub_progress(&self, settings: ScrubSettings) -> Option<ScrubProgress> {
        let pages = (self.area().committed_bytes() / PAGE_BYTES) as u64;
        self.row().map(|_| self.scrub.progress(settings, pages))
    }

    /// Pages compared and places found wrong by all scrubs.
    pub(crate) fn scrub_totals(&self) -> (u64, u64) {
        self.scrub.totals()
    }

    /// The same; it counts from nothing again.
    pub(crate) fn take_scrub_totals(&mut self) -> (u64, u64) {
        self.scrub.take_totals()
    }

    /// What the newest scrub has found.
    pub(crate) fn scrub_findings(&self) -> &[ScrubFinding] {
        self.scrub.findings()
    }

    /// Goes on with the scrub that the operators have asked for; whether a session is open now that was not before.
    pub(crate) fn go_on_scrubbing(&mut self, context: &mut Context<'_>) -> bool {
        self.scrub.follow(context.pace.scrub(), &mut self.sessions);
        // The area of a learner is not the sum yet, and every session would find a difference.
        self.learner.is_none() && self.scrub.go_on(context, &self.core, &self.sum, &mut self.sessions)
    }

    /// For tests of what notices.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn damage(&mut self, byte: usize, mask: u8) {
        self.sum.area_mut().bytes_mut(byte, 1)[0] ^= mask;
    }
}
