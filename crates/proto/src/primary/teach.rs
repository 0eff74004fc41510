//! Lessons for learners (group protocol, section 6): the state of this data role, in the FIFO of its records.
//!
//! A learner gets every record before it can leave the log, and part after part of the state, each as of the newest
//! committed record. Once it has understood the last part it is waited for like any parity, and only then the coordinator is
//! told; so a record that it lacks was never acknowledged.

mod resume;

use bytes::Bytes;
use cluster::{HostId, Learner, RoleIndex, Seq, Time, ViewVersion};
use smallvec::smallvec;
use store::{DataStore, INDEX_SEGMENTS, PAGE_BYTES, PageRange, PageSet, RUN_BYTES};
use wire::message::{GroupBody, Learn, LearnHello, LearnPart, Learned, Lesson, ToCoordinator};

use super::parities::ParityPeer;
use super::{Phase, Primary};
use crate::Impossible;
use crate::outbox::Context;

const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// A learner that the view names.
pub(super) struct LearnerPeer {
    pub role: RoleIndex,
    pub host: HostId,
    since: ViewVersion,
    lesson: Option<Teaching>,
    /// When it last made progress.
    moved: Time,
}

/// A lesson under way, or ended.
struct Teaching {
    lesson: Lesson,
    /// Its stream; moves to the parities that are waited for when the lesson ends.
    peer: Option<ParityPeer>,
    next: Next,
    /// Pages that were sent.
    pages: u32,
    /// Number of the next part.
    number: u32,
    /// Parts that were understood.
    understood: u32,
    /// Extents of the newest End.
    extents: Bytes,
    /// When the coordinator was last told that the lesson has ended.
    reported: Option<Time>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The records that a learner lacks which goes on from what it has.
    RecordKeeping,
    /// The first touched run from this one on.
    Run(u32),
    Segment(usize),
    End,
    /// An answer to the End.
    Answer,
}

impl Primary {
    /// The view names other learners, or those who were are in sync.
    pub(super) fn adopt_learners(&mut self, now: Time) {
        let mut before = std::mem::take(&mut self.learners);
        let own = self.member.role;
        let taught = |learner: &&Learner| usize::from(learner.role.0) >= self.view.k() || learner.role == own;
        let named = self.view.learners.iter().filter(taught).map(|&Learner { role, host, since, .. }| {
            let same =
                |learner: &LearnerPeer| (learner.role, learner.host, learner.since) == (role, host, since);
            let known = before.iter().position(same).map(|at| before.swap_remove(at));
            known.unwrap_or(LearnerPeer { role, host, since, lesson: None, moved: now })
        });
        self.learners = named.collect();
    }

    /// Whether `peer` is one that has to be waited for.
    pub(super) fn is_required(&self, peer: &ParityPeer) -> bool {
        let in_sync = self.view.in_sync().any(|(role, host)| (role, host) == (peer.role, peer.host));
        in_sync || self.learners.iter().any(|p| (p.role, p.host) == (peer.role, peer.host) && p.has_ended())
    }

    /// A learner wants its lesson.
    pub(crate) fn handle_learn_hello(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        hello: &LearnHello,
    ) {
        let lesson = hello.lesson;
        let rebuilding = self.is_rebuilding();
        let Phase::Serving(store) = &self.phase else { return };
        let is_known = |p: &LearnerPeer| (p.role, p.host, p.since) == (role, from, lesson.since);
        let Some(at) = self.learners.iter().position(is_known) else { return };
        let learner = &self.learners[at];
        if rebuilding || learner.lesson.as_ref().is_some_and(|known| known.lesson.attempt >= lesson.attempt) {
            return;
        }
        let committed = self.committed;
        if let Some(applied) = hello.applied.filter(|applied| *applied > committed) {
            return context.impossible(from, Impossible::Applied { applied, committed });
        }
        let (opening, base) = match hello.applied {
            Some(applied) if self.reaches_back_to(applied) => (LearnPart::Resume, applied),
            Some(_) if !crate::planted(crate::Bug::MixedLesson) => (LearnPart::Gone, self.committed),
            _ => (begin(store), self.committed),
        };
        // It starts anew: what it had understood before counts for nothing.
        self.parities.retain(|peer| (peer.role, peer.host) != (role, from));
        let now = context.now.time;
        let learner = &mut self.learners[at];
        (learner.moved, learner.lesson) = (now, None);
        if opening == LearnPart::Gone {
            self.refuse_to_resume(context, (role, from), lesson);
        } else {
            let next = if opening == LearnPart::Resume { Next::RecordKeeping } else { Next::Run(0) };
            let peer = ParityPeer::for_learner(role, from, base, now);
            learner.lesson = Some(Teaching::new(lesson, peer, next));
            if opening == LearnPart::Resume {
                self.expect_back(role, base, now);
            }
            self.send_part(context, role, opening, base);
        }
        self.dirty = true;
        self.advance(context);
    }

    /// A learner has understood a part.
    pub(crate) fn handle_learned(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        learned: &Learned,
    ) {
        if learned.term != self.term {
            return;
        }
        self.dirty = true;
        self.note_learner_moved(context.now.time, from, role);
        let Some(teaching) = self.teaching(from, role).filter(|t| t.lesson == learned.lesson) else { return };
        if learned.number >= teaching.number {
            let (number, sent) = (learned.number, teaching.number);
            return context.impossible(from, Impossible::Part { number, sent });
        }
        teaching.understood = teaching.understood.max(learned.number + 1);
        if teaching.next != Next::Answer || teaching.understood < teaching.number {
            return;
        }
        let Some(extents) = self.store().map(encoded_extents) else { return };
        let Some(teaching) = self.teaching(from, role) else { return };
        if teaching.extents != extents {
            // The area has grown meanwhile.
            teaching.next = Next::End;
            return;
        }
        if let Some(peer) = teaching.peer.take() {
            self.parities.push(peer);
            self.retry_growth(context);
        }
        self.report_ended_lessons(context);
    }

    /// Before anything else of a batch: records to all learners, then as many parts as may be under way.
    pub(super) fn teach(&mut self, context: &mut Context<'_>) {
        self.send_records_to_learners(context);
        for at in 0..self.learners.len() {
            let role = self.learners[at].role;
            self.send_lacking_records(context, at);
            while let Some(part) = self.next_part(context, at) {
                self.taught_bytes += part_bytes(&part) as u64;
                context.pace.spend(part_bytes(&part));
                self.send_part(context, role, part, self.committed);
            }
        }
    }

    /// All records of the log: they must be on their way before they commit. Those that a learner lacks which goes on from
    /// what it has stay in the history meanwhile.
    pub(super) fn send_records_to_learners(&mut self, context: &mut Context<'_>) {
        let sender = self.sender();
        let wall = self.wall.send(context.now.unix);
        let stream = (&self.log, self.term, self.committed, wall);
        let lessons = self.learners.iter_mut().filter_map(|learner| learner.lesson.as_mut());
        let lessons = lessons.filter(|teaching| teaching.next != Next::RecordKeeping);
        for peer in lessons.filter_map(|teaching| teaching.peer.as_mut()) {
            while peer.sent() < self.log.last() {
                peer.send_frame(context, sender, stream);
            }
        }
    }

    /// Tells the coordinator of lessons that have ended, until the view says so. A learner that is waited for may still lack
    /// records that were acknowledged before: first it has to have what is committed.
    pub(super) fn report_ended_lessons(&mut self, context: &mut Context<'_>) {
        let (group, role, term) = (self.member.group, self.member.role, self.term);
        let now = context.now.time;
        let (committed, told) = (self.committed, self.wall.told());
        let early = crate::planted(crate::Bug::CaughtUpTooEarly);
        for learner in &mut self.learners {
            // Also the second from which on items have expired: it may be all that is left.
            let has_all = |peer: &ParityPeer| {
                let same = peer.id() == (learner.role, learner.host);
                same && peer.acked() >= committed && peer.wall() >= told
            };
            if !early && !self.parities.iter().any(has_all) {
                continue;
            }
            let ended = |t: &&mut Teaching| t.peer.is_none() || early && t.next == Next::Answer;
            let Some(teaching) = learner.lesson.as_mut().filter(ended) else { continue };
            if teaching.reported.is_none_or(|at| now.since(at) >= context.timing.retry_us) {
                teaching.reported = Some(now);
                let (learner, lesson) = (learner.role, teaching.lesson);
                context.coordinator(ToCoordinator::CaughtUp { group, role, term, learner, lesson });
            }
        }
    }

    /// A learner that has not moved for long will not: its last answer was lost, or its host has not noticed something. The
    /// coordinator gives it up; the next one begins afresh.
    pub(super) fn complain_of_learners(&mut self, context: &mut Context<'_>) {
        let now = context.now.time;
        let patience = 2 * context.timing.node_lease_us;
        let (group, role, term, view) = (self.member.group, self.member.role, self.term, self.view.version);
        for learner in self.learners.iter_mut().filter(|learner| !learner.has_ended()) {
            if now.since(learner.moved) >= patience {
                learner.moved = now;
                let silent = smallvec![(learner.role, learner.host)];
                context.coordinator(ToCoordinator::Stalled { group, role, term, view, silent });
            }
        }
    }

    /// Records are progress, too.
    pub(super) fn note_learner_moved(&mut self, now: Time, from: HostId, role: RoleIndex) {
        let known = |learner: &&mut LearnerPeer| (learner.role, learner.host) == (role, from);
        if let Some(learner) = self.learners.iter_mut().find(known) {
            learner.moved = now;
        }
    }

    /// The connection to `host` is gone: a lesson that was under way is lost; the learner asks for another one.
    pub(super) fn forget_lessons(&mut self, host: HostId) {
        for learner in self.learners.iter_mut().filter(|learner| learner.host == host && !learner.has_ended())
        {
            learner.lesson = None;
        }
    }

    pub(super) fn learner_stream(&mut self, from: HostId, role: RoleIndex) -> Option<&mut ParityPeer> {
        self.teaching(from, role)?.peer.as_mut()
    }

    /// Bytes that this primary has taught so far.
    pub(crate) fn taught_bytes(&self) -> u64 {
        self.taught_bytes
    }

    /// Bytes of the area that are still to be taught.
    pub(crate) fn untaught_bytes(&self) -> u64 {
        let Some(touched) = self.store().map(|store| u64::from(store.replica().touched().count())) else {
            return 0;
        };
        let left = |learner: &LearnerPeer| match &learner.lesson {
            Some(teaching) if matches!(teaching.next, Next::Run(_)) => {
                touched.saturating_sub(teaching.pages.into()) * PAGE_BYTES as u64
            }
            Some(teaching) if teaching.next == Next::RecordKeeping => self.log.history().bytes() as u64,
            Some(_) => 0,
            None => touched * PAGE_BYTES as u64,
        };
        self.learners.iter().map(left).sum()
    }

    pub(super) fn is_teaching(&self) -> bool {
        !self.learners.is_empty()
    }

    fn teaching(&mut self, from: HostId, role: RoleIndex) -> Option<&mut Teaching> {
        self.learners.iter_mut().find(|learner| (learner.role, learner.host) == (role, from))?.lesson.as_mut()
    }

    fn send_part(&mut self, context: &mut Context<'_>, role: RoleIndex, part: LearnPart, tag: Seq) {
        let (sender, term) = (self.sender(), self.term);
        let Some(learner) = self.learners.iter_mut().find(|learner| learner.role == role) else { return };
        let Some(teaching) = &mut learner.lesson else { return };
        let learn = Learn { lesson: teaching.lesson, term, number: teaching.number, tag, part };
        teaching.number += 1;
        sender.send(context, learner.host, role, GroupBody::Learn(learn));
    }

    /// The next part, if the learner may get one more now.
    fn next_part(&mut self, context: &mut Context<'_>, at: usize) -> Option<LearnPart> {
        let Phase::Serving(store) = &self.phase else { return None };
        let learner = &mut self.learners[at];
        let teaching = learner.lesson.as_mut().filter(|t| t.peer.is_some())?;
        if teaching.next != Next::Answer && !context.pace.allows(context.now.time) {
            // It is this side that is slow.
            learner.moved = context.now.time;
            return None;
        }
        if (teaching.number - teaching.understood) as usize >= context.limits.lesson_parts {
            return None;
        }
        if let Next::Run(from) = teaching.next {
            match touched_run(store, from) {
                Some((run, part)) => {
                    teaching.next = Next::Run(run + 1);
                    teaching.pages += pages_of(&part);
                    return Some(part);
                }
                None => teaching.next = Next::Segment(0),
            }
        }
        match teaching.next {
            Next::RecordKeeping | Next::Run(_) | Next::Answer => None,
            Next::Segment(segment) if segment < INDEX_SEGMENTS => {
                teaching.next = Next::Segment(segment + 1);
                let entries = store.replica().encode_segment(segment);
                Some(LearnPart::Segment { segment: segment as u16, entries })
            }
            Next::Segment(_) | Next::End => {
                teaching.next = Next::Answer;
                teaching.extents = encoded_extents(store);
                Some(LearnPart::End { extents: teaching.extents.clone() })
            }
        }
    }
}

impl Teaching {
    fn new(lesson: Lesson, peer: ParityPeer, next: Next) -> Self {
        Self {
            lesson,
            peer: Some(peer),
            next,
            pages: 0,
            number: 0,
            understood: 0,
            extents: Bytes::new(),
            reported: None,
        }
    }
}

impl LearnerPeer {
    fn has_ended(&self) -> bool {
        self.lesson.as_ref().is_some_and(|teaching| teaching.peer.is_none())
    }
}

fn pages_of(part: &LearnPart) -> u32 {
    match part {
        LearnPart::Run { pages, .. } => pages.count_ones(),
        _ => 0,
    }
}

/// The first part of a lesson from nothing.
fn begin(store: &DataStore) -> LearnPart {
    let classes = store.replica().classes().iter().map(|class| class.0).collect::<Vec<u8>>().into();
    LearnPart::Begin { flush_at: store.flush_at().unwrap_or_default(), classes }
}

/// What weighs in a part.
fn part_bytes(part: &LearnPart) -> usize {
    match part {
        LearnPart::Begin { classes, .. } => classes.len(),
        LearnPart::Run { bytes, .. } => bytes.len(),
        LearnPart::Segment { entries, .. } => entries.len(),
        LearnPart::End { extents } => extents.len(),
        LearnPart::Resume | LearnPart::Gone => 0,
    }
}

/// The extents in use.
fn encoded_extents(store: &DataStore) -> Bytes {
    let mut extents = PageSet::new();
    for extent in store.extents() {
        extents.insert(extent);
    }
    let mut bytes = Vec::new();
    extents.encode(&mut bytes);
    bytes.into()
}

/// The first touched run from `from` on, and what is in it.
fn touched_run(store: &DataStore, from: u32) -> Option<(u32, LearnPart)> {
    let touched = store.replica().touched();
    let run = touched.first_present(from.checked_mul(RUN_PAGES)?)? / RUN_PAGES;
    let (mut pages, mut bytes) = (0u16, Vec::new());
    for page in (0..RUN_PAGES).filter(|page| touched.contains(run * RUN_PAGES + page)) {
        pages |= 1 << page;
        bytes.extend_from_slice(store.page_bytes(PageRange { first: run * RUN_PAGES + page, count: 1 }));
    }
    Some((run, LearnPart::Run { run, pages, bytes: bytes.into() }))
}
