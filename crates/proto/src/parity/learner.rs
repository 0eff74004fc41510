//! A parity that is being built (group protocol, section 6).
//!
//! It starts empty and takes lessons from all primaries at once. A lesson comes in the FIFO of the primary's records: first
//! the pages run by run, then the index segment by segment, each as it is after the newest committed record. Records that
//! the learner applies meanwhile change only what has come; the rest will come as it is then.
//!
//! As long as one lesson has not ended, nobody counts on the learner, and it may start again from nothing. When all have ended
//! it is a parity like any other that waits for its view.

use cluster::{DataRole, GroupView, HostId, RoleIndex, Seq, Term, Time, ViewVersion};
use store::{INDEX_SEGMENTS, OutOfMemory, PAGE_BYTES, PageSet, RUN_BYTES, Replica};
use wire::message::{GroupBody, Learn, LearnHello, LearnPart, Learned, Lesson, Record, ToCoordinator, Write};

use super::rejoin::Rejoined;
use super::{Parity, Stream};
use crate::outbox::Context;
use crate::roles::RoleSet;

const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// What a learner knows of itself.
pub(super) struct Learner {
    pub(super) lesson: Lesson,
    pub(super) asked_at: Option<Time>,
    /// Roles whose lesson has ended.
    pub(super) ended: RoleSet,
    /// Without memory, it waits for the view that releases it.
    pub(super) gave_up: bool,
    /// As long as it goes on from what it had: what has come so far.
    pub(super) resuming: Option<Rejoined>,
}

impl Learner {
    pub(super) fn new(since: ViewVersion) -> Self {
        let lesson = Lesson { since, attempt: 0 };
        Self { lesson, asked_at: None, ended: RoleSet::default(), gave_up: false, resuming: None }
    }

    /// One that has been a parity of this role before.
    pub(super) fn resuming(since: ViewVersion) -> Self {
        Self { resuming: Some(Rejoined::default()), ..Self::new(since) }
    }

    pub(super) fn is_named_by(&self, view: &GroupView, role: RoleIndex) -> bool {
        view.learner(role).is_some_and(|learner| learner.since == self.lesson.since)
    }
}

/// How far one role's lesson has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Runs below this one are known.
    pub(super) runs: u32,
    /// Segments of the index below this one are known.
    pub(super) segments: usize,
    /// Number of the next part.
    pub(super) number: u32,
}

/// Why a part cannot be taken in.
enum Unfit {
    NoMemory,
    /// It goes on from what the primary has not got any more.
    Gone,
    Broken,
}

impl From<OutOfMemory> for Unfit {
    fn from(_: OutOfMemory) -> Self {
        Self::NoMemory
    }
}

impl Progress {
    /// The pieces of `write` that change what is known.
    fn known_part<'a>(&self, write: &'a Write) -> &'a [u8] {
        let end = (self.runs as usize).saturating_mul(RUN_BYTES);
        let len = end.saturating_sub(write.addr.byte()).min(write.delta.len());
        &write.delta[..len]
    }
}

impl Parity {
    /// Whether it is the learner that the view `since` appointed.
    pub(crate) fn is_learner_since(&self, since: ViewVersion) -> bool {
        self.learner.as_ref().is_some_and(|learner| learner.lesson.since == since)
    }

    pub(super) fn has_learned_all(&self) -> bool {
        self.learner.as_ref().is_none_or(|learner| learner.ended == self.support())
    }

    /// A role whose records mean nothing here yet.
    pub(super) fn is_unknown(&self, role: RoleIndex) -> bool {
        self.learner.is_some() && !self.streams.get(usize::from(role.0)).is_some_and(Stream::has_begun)
    }

    /// Asks the primaries whose lessons have not begun.
    pub(super) fn ask_for_lessons(&mut self, context: &mut Context<'_>) {
        let sender = self.sender();
        let support = self.support();
        let offer = self.offer();
        let now = context.now.time;
        let Some(learner) = &mut self.learner else { return };
        let early = learner.asked_at.is_some_and(|at| now.since(at) < context.timing.retry_us);
        if learner.gave_up || early {
            return;
        }
        learner.asked_at = Some(now);
        let lesson = learner.lesson;
        for (role, data) in self.view.data_roles().filter(|(role, _)| support.contains(*role)) {
            let at = usize::from(role.0);
            if let (Some(host), false) = (data.primary, self.streams[at].has_begun()) {
                let applied = offer.as_ref().map(|offer| offer[at]);
                sender.send(context, host, role, GroupBody::LearnHello(LearnHello { lesson, applied }));
            }
        }
    }

    /// What was in flight on the link to `host` is lost, and with it the lesson of a primary there.
    pub(crate) fn link_broken(&mut self, host: HostId) {
        let teaches = |(role, data): (RoleIndex, &DataRole)| {
            data.primary == Some(host) && self.streams[usize::from(role.0)].has_begun()
        };
        if self.has_learned_all() || !self.view.data_roles().any(teaches) {
            return;
        }
        match self.offer() {
            Some(_) => self.offer_again(),
            None => self.start_again(),
        }
    }

    /// From nothing, unless every lesson has ended: then others may count on what is here.
    pub(super) fn start_again(&mut self) {
        if self.has_learned_all() {
            return;
        }
        let new = |role| Stream::new(role, self.budget.clone());
        self.streams = self.view.data.iter().map(new).collect();
        self.area.decommit_all();
        if let Some(learner) = &mut self.learner {
            learner.lesson.attempt = learner.lesson.attempt.saturating_add(1);
            learner.ended = RoleSet::default();
            learner.asked_at = None;
            learner.resuming = None;
        }
        tracing::info!(member = %self.member, "learner starts from nothing");
    }

    /// A part of a lesson.
    pub(crate) fn handle_learn(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        learn: &Learn,
    ) {
        let wanted = self.learner.as_ref().is_some_and(|l| l.lesson == learn.lesson && !l.gave_up);
        let teacher =
            self.view.data_role(role).is_some_and(|r| r.primary == Some(from) && r.term == learn.term);
        if !wanted || !teacher || !self.takes(role) {
            return;
        }
        match self.take_in(context, role, learn) {
            Ok(()) => {
                let learned = Learned { lesson: learn.lesson, term: learn.term, number: learn.number };
                self.sender().send(context, from, role, GroupBody::Learned(learned));
            }
            Err(Unfit::NoMemory) => self.give_up(context),
            Err(Unfit::Gone) => self.start_again(),
            Err(Unfit::Broken) => {
                tracing::warn!(member = %self.member, %role, number = learn.number, "a lesson does not fit");
                self.start_again();
            }
        }
    }

    fn take_in(&mut self, context: &mut Context<'_>, role: RoleIndex, learn: &Learn) -> Result<(), Unfit> {
        let at = usize::from(role.0);
        if matches!(learn.part, LearnPart::Begin { .. } | LearnPart::Resume | LearnPart::Gone) {
            return self.open_lesson(role, learn);
        }
        // An End may come again, with more extents.
        let ended = self.learner.as_ref().is_some_and(|learner| learner.ended.contains(role));
        let due = self.streams[at].progress().is_some_and(|progress| progress.number == learn.number);
        if !due && !ended || learn.tag > self.streams[at].received() {
            return Err(Unfit::Broken);
        }
        // The part is the state after these.
        if !crate::planted(crate::Bug::PartBeforeRecords) {
            self.apply_up_to(context, role, learn.tag);
        }
        match &learn.part {
            LearnPart::Begin { .. } | LearnPart::Resume | LearnPart::Gone => unreachable!("handled above"),
            LearnPart::Run { run, pages, bytes } => self.learn_run(context, role, *run, (*pages, bytes))?,
            LearnPart::Segment { segment, entries } => {
                self.streams[at].learn_segment(usize::from(*segment), entries).map_err(|()| Unfit::Broken)?;
            }
            LearnPart::End { extents } => self.end_lesson(role, extents)?,
        }
        self.streams[at].part_is_in();
        Ok(())
    }

    /// The first part: the primary begins from nothing, or goes on from what is here, or cannot. All of them have to do the
    /// same.
    fn open_lesson(&mut self, role: RoleIndex, learn: &Learn) -> Result<(), Unfit> {
        let resuming = self.offer().is_some();
        let stream = &mut self.streams[usize::from(role.0)];
        let mixed = crate::planted(crate::Bug::MixedLesson);
        match &learn.part {
            LearnPart::Gone if resuming => Err(Unfit::Gone),
            _ if stream.has_begun() || learn.number != 0 => Err(Unfit::Broken),
            LearnPart::Resume if resuming && learn.tag == stream.received() => {
                stream.resume(learn.term);
                Ok(())
            }
            LearnPart::Begin { flush_at, classes } if !resuming || mixed => {
                let replica = Replica::at_begin(self.budget.clone(), classes, *flush_at);
                stream.begin(learn.term, learn.tag, replica.map_err(|_| Unfit::Broken)?);
                Ok(())
            }
            _ => Err(Unfit::Broken),
        }
    }

    fn learn_run(
        &mut self,
        context: &Context<'_>,
        role: RoleIndex,
        run: u32,
        (pages, bytes): (u16, &[u8]),
    ) -> Result<(), Unfit> {
        let at = usize::from(role.0);
        let start = run as usize * RUN_BYTES;
        let fits = self.streams[at]
            .progress()
            .is_some_and(|progress| run >= progress.runs && progress.segments == 0);
        if !fits
            || bytes.len() != pages.count_ones() as usize * PAGE_BYTES
            || start >= self.area.limit_bytes()
        {
            return Err(Unfit::Broken);
        }
        self.commit_for(start, RUN_BYTES)?;
        let coefficient = self.coefficient(context, role);
        let touched = (0..RUN_PAGES).filter(|page| pages >> page & 1 == 1);
        for (page, bytes) in touched.zip(bytes.chunks_exact(PAGE_BYTES)) {
            let byte = start + page as usize * PAGE_BYTES;
            codec::mul_add(self.area.bytes_mut(byte, PAGE_BYTES), coefficient, bytes)
                .expect("slices of one length");
            self.streams[at].touch_page(run * RUN_PAGES + page);
        }
        self.streams[at].run_is_in(run);
        Ok(())
    }

    fn end_lesson(&mut self, role: RoleIndex, extents: &[u8]) -> Result<(), Unfit> {
        let limit = (self.area.limit_bytes() / store::EXTENT_BYTES) as u32;
        let extents = PageSet::decode(&mut &*extents, limit).map_err(|_| Unfit::Broken)?;
        for extent in extents.iter() {
            self.area.commit(extent)?;
            self.streams[usize::from(role.0)].grant(extent);
        }
        if let Some(learner) = &mut self.learner {
            learner.ended.insert(role);
        }
        self.streams[usize::from(role.0)].all_is_in();
        Ok(())
    }

    /// Makes room for what a record of a lesson writes. What of it the role has is told at the end of the lesson.
    pub(super) fn commit_for_record(&mut self, context: &mut Context<'_>, record: &Record) -> bool {
        let room =
            record.writes.iter().try_for_each(|write| self.commit_for(write.addr.byte(), write.delta.len()));
        if room.is_err() {
            self.give_up(context);
        }
        room.is_ok()
    }

    fn commit_for(&mut self, start: usize, len: usize) -> Result<(), OutOfMemory> {
        let end = start + len;
        for extent in start / store::EXTENT_BYTES..end.div_ceil(store::EXTENT_BYTES) {
            self.area.commit(extent as u32)?;
        }
        Ok(())
    }

    /// There is no memory for the group here: the coordinator finds another host, or tries again later.
    fn give_up(&mut self, context: &mut Context<'_>) {
        let (group, role) = (self.member.group, self.member.role);
        let Some(learner) = &mut self.learner else { return };
        learner.gave_up = true;
        let since = learner.lesson.since;
        tracing::warn!(member = %self.member, "no memory for a learner");
        context.coordinator(ToCoordinator::GaveUp { group, learner: role, since });
    }
}

impl Stream {
    fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        self.progress
    }

    fn begin(&mut self, term: Term, base: Seq, replica: Replica) {
        self.fence = term;
        self.received = base;
        self.applied = base;
        self.replica = replica;
        self.begun = true;
        self.progress = Some(Progress { runs: 0, segments: 0, number: 1 });
    }

    fn part_is_in(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.number += 1;
        }
    }

    fn run_is_in(&mut self, run: u32) {
        if let Some(progress) = &mut self.progress {
            progress.runs = run + 1;
        }
    }

    fn touch_page(&mut self, page: u32) {
        self.replica.touch(store::Addr::from_byte(page as usize * PAGE_BYTES), PAGE_BYTES);
    }

    fn learn_segment(&mut self, segment: usize, entries: &[u8]) -> Result<(), ()> {
        let Some(progress) = &mut self.progress else { return Err(()) };
        if segment != progress.segments || segment >= INDEX_SEGMENTS {
            return Err(());
        }
        progress.runs = u32::MAX;
        progress.segments = segment + 1;
        self.replica.learn_segment(segment, entries).map_err(|_| ())
    }

    fn all_is_in(&mut self) {
        self.progress = None;
    }

    /// What of `write` changes the area now.
    pub(super) fn known_part<'a>(&self, write: &'a Write) -> &'a [u8] {
        let all = crate::planted(crate::Bug::LearnerAppliesUnknown);
        self.progress.filter(|_| !all).map_or(&write.delta, |progress| progress.known_part(write))
    }

    /// Segments of the index that have come.
    pub(super) fn known_segments(&self) -> usize {
        self.progress.map_or(INDEX_SEGMENTS, |progress| progress.segments)
    }
}
