//! Lessons for learners (group protocol, section 6): the state of this data role, in the FIFO of its records.
//!
//! A learner gets every record before it can leave the log, and part after part of the state, each as of the newest
//! committed record. Once it has understood the last part it is waited for like any parity, and only then the coordinator is
//! told; so a record that it lacks was never acknowledged.

mod teaching;

use smallvec::smallvec;
use store::DataStore;
use types::{HostId, Learner, PAGE_BYTES, Seq, Time, UnixSeconds, ViewVersion};
use wire::message::{GroupBody, Learn, LearnHello, LearnPart, Learned, Lesson, ToCoordinator};

use super::core::Core;
use super::parities::{Parities, ParityPeer};
use super::stream::SendStream;
use super::wall::Wall;
use crate::outbox::{Context, Peer};
use crate::{Impossible, Timing};
use teaching::Teaching;

/// The learners that the view names, and their lessons.
#[derive(Default)]
pub(super) struct Lessons {
    learners: Vec<LearnerPeer>,
    taught_bytes: u64,
}

/// A learner that the view names.
struct LearnerPeer {
    id: Peer,
    since: ViewVersion,
    lesson: Option<Teaching>,
    /// When it last made progress.
    moved: Time,
    /// Whether its next part waits for the pace of background work.
    is_held: bool,
}

/// What a learner whose lesson has ended must have before the coordinator is told of it.
#[derive(Clone, Copy)]
pub(super) struct Required {
    /// All that is committed.
    committed: Seq,
    /// The second from which on items were said to have expired: it may be all that is left.
    told: UnixSeconds,
}

/// How a lesson has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// With everything.
    Afresh,
    /// With what the learner lacks behind this record.
    After(Seq),
    /// Not at all: the learner has to ask for a lesson from nothing.
    Refused,
}

impl Lessons {
    /// The view names other learners, or those who were are in sync.
    pub(super) fn adopt(&mut self, core: &Core, now: Time) {
        let mut before = std::mem::take(&mut self.learners);
        let (view, own) = (core.view(), core.member().role);
        let taught = |learner: &&Learner| core.covering().contains(&learner.role) || learner.role == own;
        let named = view.learners.iter().filter(taught).map(|&Learner { role, host, since, .. }| {
            let id = Peer { role, host };
            let same = |learner: &LearnerPeer| (learner.id, learner.since) == (id, since);
            let known = before.iter().position(same).map(|at| before.swap_remove(at));
            known.unwrap_or(LearnerPeer { id, since, lesson: None, moved: now, is_held: false })
        });
        self.learners = named.collect();
    }

    /// Whether the view names no learner.
    pub(super) fn is_empty(&self) -> bool {
        self.learners.is_empty()
    }

    /// Whether the lesson of this learner has ended, so that it is waited for like a parity.
    pub(super) fn has_ended(&self, learner: Peer) -> bool {
        self.learners.iter().any(|peer| peer.id == learner && peer.has_ended())
    }

    /// A learner wants its lesson; none if it gets none.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        store: &DataStore,
        from: Peer,
        hello: &LearnHello,
    ) -> Option<Begun> {
        let lesson = hello.lesson;
        let is_named = |peer: &&mut LearnerPeer| peer.id == from && peer.since == lesson.since;
        let learner = self.learners.iter_mut().find(is_named)?;
        let is_old = learner.lesson.as_ref().is_some_and(|known| known.attempt() >= lesson.attempt);
        // A stand-in lacks pages itself. And a question that was repeated must not begin the same attempt twice.
        if core.is_rebuilding() || is_old {
            return None;
        }
        let committed = stream.committed();
        if let Some(applied) = hello.applied.filter(|applied| *applied > committed) {
            context.impossible(from.host, Impossible::Applied { applied, committed });
            return None;
        }
        let now = context.now.time;
        // It starts anew: what it had understood before counts for nothing.
        (learner.moved, learner.lesson) = (now, None);
        match hello.applied {
            Some(applied) if stream.reaches_back_to(applied) => {
                let peer = ParityPeer::for_learner(from, applied, now);
                learner.lesson = Some(Teaching::with_what_it_lacks(lesson, peer));
                learner.send_part(context, core, LearnPart::Resume, applied);
                Some(Begun::After(applied))
            }
            Some(_) if context.rules.all_resume_or_none() => {
                refuse_to_resume(context, core, stream, from, lesson);
                Some(Begun::Refused)
            }
            Some(_) | None => {
                let peer = ParityPeer::for_learner(from, committed, now);
                learner.lesson = Some(Teaching::from_nothing(lesson, peer));
                learner.send_part(context, core, teaching::begin(context.rules, store), committed);
                Some(Begun::Afresh)
            }
        }
    }

    /// A learner has understood a part. If it was the last one, its stream is from now on that of a parity which is waited for.
    pub(super) fn understood(
        &mut self,
        context: &mut Context<'_>,
        store: Option<&DataStore>,
        from: Peer,
        learned: &Learned,
    ) -> Option<ParityPeer> {
        self.note_moved(context.now.time, from);
        let teaching = self.teaching(from).filter(|teaching| teaching.is(learned.lesson))?;
        if let Err(why) = teaching.understood(learned.number) {
            context.impossible(from.host, why);
            return None;
        }
        teaching.end(store?)
    }

    /// Before anything else of a batch: records to all learners, then as many parts as may be under way.
    pub(super) fn teach(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        store: Option<&DataStore>,
        wall: UnixSeconds,
    ) {
        // First: a part is the state as of `committed`, and the learner needs all records up to there to take it in.
        self.send_records(context, core, stream, wall);
        for learner in &mut self.learners {
            self.taught_bytes += learner.send_lacking_records(context, core, stream, wall) as u64;
            while let Some(part) = store.and_then(|store| learner.next_part(context, store)) {
                let bytes = teaching::part_bytes(&part);
                self.taught_bytes += bytes as u64;
                context.pace.spend(bytes);
                learner.send_part(context, core, part, stream.committed());
            }
        }
    }

    /// All records of the log: they must be on their way before they commit. Those that a learner lacks which goes on from
    /// what it has stay in the history meanwhile.
    pub(super) fn send_records(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        wall: UnixSeconds,
    ) {
        let lessons = self.learners.iter_mut().filter_map(|learner| learner.lesson.as_mut());
        for peer in lessons.filter_map(Teaching::up_to_date_stream) {
            while peer.sent() < stream.last() {
                peer.send_frame(context, core, stream, wall);
            }
        }
    }

    /// Tells the coordinator of lessons that have ended, until the view says so. A learner that is waited for may still lack
    /// records that were acknowledged before: first it has to have what is `required`.
    pub(super) fn report_ended(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        parities: &Parities,
        required: Required,
    ) {
        let (group, role, term) = (core.member().group, core.member().role, core.term());
        for learner in &mut self.learners {
            let has_everything = learner.has_ended() && learner.has_all(parities, required);
            let Some(teaching) = &mut learner.lesson else { continue };
            if !context.rules.caught_up_needs_everything(has_everything, teaching.awaits_answer()) {
                continue;
            }
            if let Some(lesson) = teaching.report(context.now.time, context.timing) {
                let learner = learner.id.role;
                context.coordinator(ToCoordinator::CaughtUp { group, role, term, learner, lesson });
            }
        }
    }

    /// A learner that has not moved for long will not: its last answer was lost, or its host has not noticed something. The
    /// coordinator gives it up; the next one begins afresh.
    pub(super) fn complain(&mut self, context: &mut Context<'_>, core: &Core) {
        let now = context.now.time;
        let patience = patience_us(context.timing);
        let (group, role, term) = (core.member().group, core.member().role, core.term());
        for learner in self.learners.iter_mut().filter(|learner| !learner.has_ended()) {
            if now.since(learner.moved) >= patience {
                // To be said again after as long, and not at every tick.
                learner.moved = now;
                let (view, silent) = (core.view().version, smallvec![(learner.id.role, learner.id.host)]);
                context.coordinator(ToCoordinator::Stalled { group, role, term, view, silent });
            }
        }
    }

    /// When a learner has to be taught, reported or complained of, if nothing is heard before.
    pub(super) fn due(&self, context: &Context<'_>, parities: &Parities, required: Required) -> Time {
        let of_one = |learner: &LearnerPeer| learner.due(context, parities, required);
        self.learners.iter().map(of_one).min().unwrap_or(Time::NEVER)
    }

    /// Records are progress, too.
    pub(super) fn note_moved(&mut self, now: Time, from: Peer) {
        if let Some(learner) = self.learners.iter_mut().find(|learner| learner.id == from) {
            learner.moved = now;
        }
    }

    /// The connection to `host` is gone: a lesson that was under way is lost; the learner asks for another one.
    pub(super) fn lose_link(&mut self, host: HostId) {
        // One whose lesson has ended is greeted anew, like any parity.
        for learner in
            self.learners.iter_mut().filter(|learner| learner.id.host == host && !learner.has_ended())
        {
            learner.lesson = None;
        }
    }

    /// The stream of a learner that is not waited for yet.
    pub(super) fn stream_to(&mut self, learner: Peer) -> Option<&mut ParityPeer> {
        self.teaching(learner)?.stream()
    }

    /// Bytes taught so far.
    pub(super) fn taught_bytes(&self) -> u64 {
        self.taught_bytes
    }

    /// Bytes of the area that are still to be taught.
    pub(super) fn untaught_bytes(&self, store: &DataStore, stream: &SendStream) -> u64 {
        let touched = u64::from(store.replica().touched().count()) * PAGE_BYTES as u64;
        let left = |learner: &LearnerPeer| match &learner.lesson {
            Some(teaching) => teaching.untaught_bytes(touched, stream.history_bytes() as u64),
            None => touched,
        };
        self.learners.iter().map(left).sum()
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self, parities: &Parities) {
        let is_waited_for = |learner: &LearnerPeer| parities.contain(learner.id);
        let mut taught = self.learners.iter().filter(|learner| learner.has_ended());
        assert!(taught.all(is_waited_for), "who has been taught everything is waited for");
    }

    fn teaching(&mut self, learner: Peer) -> Option<&mut Teaching> {
        self.learners.iter_mut().find(|peer| peer.id == learner)?.lesson.as_mut()
    }
}

impl Required {
    pub(super) fn of(stream: &SendStream, wall: &Wall) -> Self {
        Self { committed: stream.committed(), told: wall.told() }
    }
}

impl LearnerPeer {
    /// Whether it has all that is required.
    fn has_all(&self, parities: &Parities, required: Required) -> bool {
        let Required { committed, told } = required;
        let has_all = |peer: &ParityPeer| peer.acked() >= committed && peer.wall() >= told;
        parities.find(self.id).is_some_and(has_all)
    }

    /// See [`Lessons::due`].
    fn due(&self, context: &Context<'_>, parities: &Parities, required: Required) -> Time {
        let (now, timing) = (context.now.time, context.timing);
        match &self.lesson {
            // What it lacks comes with an Ack, which says so.
            Some(ended) if ended.has_ended() && !self.has_all(parities, required) => Time::NEVER,
            Some(ended) if ended.has_ended() => ended.report_due(timing),
            Some(_) if self.is_held => context.pace.resumes_at(now),
            Some(_) | None => self.moved + patience_us(timing),
        }
    }

    fn has_ended(&self) -> bool {
        self.lesson.as_ref().is_some_and(Teaching::has_ended)
    }

    fn send_part(&mut self, context: &mut Context<'_>, core: &Core, part: LearnPart, tag: Seq) {
        let Some(teaching) = &mut self.lesson else { return };
        let learn = teaching.number_part(core.term(), part, tag);
        core.sender().send(context, self.id, GroupBody::Learn(learn.into()));
    }

    /// The next part, if the learner may get one more now.
    fn next_part(&mut self, context: &mut Context<'_>, store: &DataStore) -> Option<LearnPart> {
        let teaching = self.lesson.as_mut().filter(|teaching| !teaching.has_ended())?;
        self.is_held = !teaching.awaits_answer() && !context.pace.allows(context.now.time);
        if self.is_held {
            // It is this side that is slow.
            self.moved = context.now.time;
            return None;
        }
        teaching.next_part(store, context.limits.lesson_parts)
    }

    /// What a learner lacks that goes on from what it has, a Frame at a time; when all of it is on its way, this is a lesson
    /// like any other, at its end. Returns how many bytes were sent.
    fn send_lacking_records(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        wall: UnixSeconds,
    ) -> usize {
        let Some(teaching) = self.lesson.as_mut().filter(|teaching| teaching.lacks_records()) else {
            return 0;
        };
        if teaching.lacks_what_is_gone(stream) {
            let lesson = teaching.lesson();
            self.lesson = None;
            refuse_to_resume(context, core, stream, self.id, lesson);
            return 0;
        }
        self.is_held = !context.pace.allows(context.now.time);
        if self.is_held {
            // It is this side that is slow.
            self.moved = context.now.time;
            return 0;
        }
        let bytes = teaching.send_lacking(context, core, stream, wall);
        context.pace.spend(bytes);
        bytes
    }
}

/// For how long a learner may stand still.
fn patience_us(timing: &Timing) -> u64 {
    2 * timing.node_lease_us
}

/// The log does not reach back to what the learner has, or not any more: it has to start from nothing.
fn refuse_to_resume(
    context: &mut Context<'_>,
    core: &Core,
    stream: &SendStream,
    learner: Peer,
    lesson: Lesson,
) {
    let (term, tag) = (core.term(), stream.committed());
    let learn = Learn { lesson, term, number: 0, tag, part: LearnPart::Gone };
    core.sender().send(context, learner, GroupBody::Learn(learn.into()));
}
