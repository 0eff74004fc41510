//! A parity that is being built (group protocol, section 6), or comes back.
//!
//! It takes lessons from all primaries at once. A lesson comes in the FIFO of the primary's records: first the pages run by run,
//! then the index segment by segment, each as it is after the newest committed record. Records that the learner applies
//! meanwhile change only what has come; the rest will come as it is then.
//!
//! As long as one lesson has not ended, nobody counts on the learner, and it may start again from nothing. When all have ended
//! it is a parity like any other that waits for its view.
//!
//! One that was evicted goes on from what it has applied. Its area is the weighted sum of the data areas, each as of what it has
//! applied of that role, at any time: after the eviction, and after every record that it takes since. So it may offer that again
//! after whatever comes between, until one primary says that the records from there on are gone. Then all of it is worth
//! nothing: a sum of which one part is not known is not the parity of anything.

use store::{Budget, OutOfMemory, Replica};
use types::{GroupView, PAGE_BYTES, RUN_BYTES, Reach, RoleIndex, Seq, Time, ViewVersion};
use wire::message::{GroupBody, Learn, LearnHello, LearnPart, Lesson, ToCoordinator};

use super::core::Core;
use super::stream::Stream;
use super::sum::{Sum, Weighted};
use crate::outbox::{Context, Peer};
use crate::roles::RoleSet;
use crate::{Rules, Timing};

/// Bytes of an index entry that travels.
const ENTRY_BYTES: u64 = 9;

/// What a learner knows of itself.
pub(super) struct Learner {
    lesson: Lesson,
    /// Roles whose lesson has ended.
    ended: RoleSet,
    phase: Phase,
}

/// What a learner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has asked for lessons at this time, or is about to.
    Learns { asked_at: Option<Time>, from: From },
    /// Without memory, it waits for the view that releases it.
    GaveUp,
}

/// What a learner starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nothing,
    /// What it had; so much has come since.
    WhatItHad(Rejoined),
}

/// What it took to bring a parity back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejoined {
    /// Records that it lacked, or that came meanwhile.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What a lesson from nothing would have moved.
    pub instead_of_bytes: u64,
}

/// Why a part cannot be taken in.
pub(super) enum Unfit {
    NoMemory,
    /// It goes on from what the primary has not got any more.
    Gone,
    Broken,
}

impl std::convert::From<OutOfMemory> for Unfit {
    fn from(_: OutOfMemory) -> Self {
        Self::NoMemory
    }
}

impl Learner {
    /// The learner that view `since` has appointed, with nothing.
    pub(super) fn new(since: ViewVersion) -> Self {
        Self::starting_from(since, From::Nothing)
    }

    /// One that has been a parity of this role before.
    pub(super) fn resuming(since: ViewVersion) -> Self {
        Self::starting_from(since, From::WhatItHad(Rejoined::default()))
    }

    fn starting_from(since: ViewVersion, from: From) -> Self {
        let phase = Phase::Learns { asked_at: None, from };
        Self { lesson: Lesson { since, attempt: 0 }, ended: RoleSet::default(), phase }
    }

    /// The view that appointed it.
    pub(super) fn since(&self) -> ViewVersion {
        self.lesson.since
    }

    pub(super) fn is_named_by(&self, view: &GroupView, role: RoleIndex) -> bool {
        view.learner(role).is_some_and(|learner| learner.since == self.lesson.since)
    }

    /// Whether parts of `lesson` are taken in.
    pub(super) fn takes(&self, lesson: Lesson) -> bool {
        self.lesson == lesson && self.phase != Phase::GaveUp
    }

    /// Whether the lessons of all of `support` have ended.
    pub(super) fn has_all(&self, support: RoleSet) -> bool {
        self.ended == support
    }

    /// Whether its area is the weighted sum of what it has applied of each role, so that it can go on from there.
    pub(super) fn is_consistent(&self, support: RoleSet) -> bool {
        self.phase != Phase::GaveUp && (self.resumed().is_some() || self.has_all(support))
    }

    /// What has come so far, as long as it goes on from what it had.
    fn resumed(&self) -> Option<&Rejoined> {
        match &self.phase {
            Phase::Learns { from: From::WhatItHad(rejoined), .. } => Some(rejoined),
            Phase::Learns { from: From::Nothing, .. } | Phase::GaveUp => None,
        }
    }

    /// A record of so many bytes has come.
    pub(super) fn count(&mut self, bytes: usize) {
        if let Phase::Learns { from: From::WhatItHad(rejoined), .. } = &mut self.phase {
            rejoined.records += 1;
            rejoined.bytes += bytes as u64;
        }
    }

    /// What it took, for a learner that went on from what it had and is in sync now.
    pub(super) fn rejoined(&self, sum: &Sum) -> Option<Rejoined> {
        let known = |stream: &Stream| {
            let pages = u64::from(stream.replica().touched().count()) * PAGE_BYTES as u64;
            pages + stream.replica().index().len() as u64 * ENTRY_BYTES
        };
        let instead_of_bytes = sum.streams().iter().map(known).sum();
        self.resumed().map(|rejoined| Rejoined { instead_of_bytes, ..*rejoined })
    }

    /// Asks the primaries whose lessons have not begun.
    pub(super) fn ask(&mut self, context: &mut Context<'_>, core: &Core, sum: &Sum) {
        let now = context.now.time;
        let offers = self.resumed().is_some();
        let Phase::Learns { asked_at, .. } = &mut self.phase else { return };
        if asked_at.is_some_and(|at| now.since(at) < context.timing.retry_us) {
            return;
        }
        *asked_at = Some(now);
        let (lesson, support) = (self.lesson, core.support());
        for (role, data) in core.view().data_roles().filter(|(role, _)| support.contains(*role)) {
            let Some(stream) = sum.stream(role).filter(|stream| !stream.has_begun()) else { continue };
            if let Some(host) = data.primary {
                // All of it is applied: `rest` dropped the others, and none comes before the lesson begins.
                let applied = offers.then(|| stream.received());
                let hello = GroupBody::LearnHello(LearnHello { lesson, applied });
                core.sender().send(context, Peer { role, host }, hello);
            }
        }
    }

    /// When it has to ask, for the first time or again.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        match self.phase {
            Phase::Learns { asked_at, .. } => asked_at.map_or(Time(0), |at| at + timing.retry_us),
            Phase::GaveUp => Time::NEVER,
        }
    }

    /// Lessons broke off. What has been applied by now is offered in the next ones, if it went on from what it had; else the
    /// next ones begin with nothing.
    pub(super) fn begin_again(&mut self, core: &Core, sum: &mut Sum) {
        match self.resumed() {
            Some(&rejoined) => {
                sum.rest();
                self.next_attempt(From::WhatItHad(rejoined));
            }
            None => self.begin_from_nothing(core, sum),
        }
    }

    pub(super) fn begin_from_nothing(&mut self, core: &Core, sum: &mut Sum) {
        sum.clear(core.view());
        self.next_attempt(From::Nothing);
        tracing::info!(member = %core.member(), "learner starts from nothing");
    }

    fn next_attempt(&mut self, from: From) {
        self.lesson.attempt = self.lesson.attempt.saturating_add(1);
        self.ended = RoleSet::default();
        // Who gave up for want of memory asks for nothing more, however its lessons break off.
        if self.phase != Phase::GaveUp {
            self.phase = Phase::Learns { asked_at: None, from };
        }
    }

    /// There is no memory for the group here: the coordinator finds another host, or tries again later.
    pub(super) fn give_up(&mut self, context: &mut Context<'_>, core: &Core) {
        let (group, learner, since) = (core.member().group, core.member().role, self.lesson.since);
        self.phase = Phase::GaveUp;
        tracing::warn!(member = %core.member(), "no memory for a learner");
        context.coordinator(ToCoordinator::GaveUp { group, learner, since });
    }

    /// The first part: the primary begins from nothing, or goes on from what is here, or cannot. All of them have to do the
    /// same.
    pub(super) fn open(
        &self,
        rules: Rules,
        sum: &mut Sum,
        role: RoleIndex,
        learn: &Learn,
        budget: &Budget,
    ) -> Result<(), Unfit> {
        let resuming = self.resumed().is_some();
        let Some(stream) = sum.stream_mut(role) else { return Err(Unfit::Broken) };
        // Others may go on with what is here already: to take everything of one role would count it twice in the sum.
        let wants_all = !(resuming && rules.all_resume_or_none());
        let is_first = !stream.has_begun() && learn.number == 0;
        match &learn.part {
            // At any time: the records may leave the log while they are being sent.
            LearnPart::Gone if resuming => Err(Unfit::Gone),
            // Only exactly from what is here: a gap would never close.
            LearnPart::Resume if is_first && resuming && learn.tag == stream.received() => {
                stream.resume(learn.term);
                Ok(())
            }
            LearnPart::Begin { rows, classes } if is_first && wants_all => {
                let replica = Replica::at_begin(budget.clone(), classes, rows);
                stream.begin(learn.term, learn.tag, replica.map_err(|_| Unfit::Broken)?);
                Ok(())
            }
            LearnPart::Gone
            | LearnPart::Resume
            | LearnPart::Begin { .. }
            | LearnPart::Run { .. }
            | LearnPart::Segment { .. }
            | LearnPart::End { .. } => Err(Unfit::Broken),
        }
    }

    /// Whether a later part comes in its turn: the state after record `tag`, which must be here.
    pub(super) fn awaits(&self, sum: &Sum, role: RoleIndex, number: u32, tag: Seq) -> bool {
        // An End may come again, with more runs.
        let ended = self.ended.contains(role);
        sum.stream(role)
            .is_some_and(|stream| (ended || stream.awaits_part(number)) && tag <= stream.received())
    }

    /// Takes a later part in.
    pub(super) fn take_in(
        &mut self,
        sum: &mut Sum,
        weighted: Weighted,
        part: &LearnPart,
    ) -> Result<(), Unfit> {
        match part {
            LearnPart::Begin { .. } | LearnPart::Resume | LearnPart::Gone => return Err(Unfit::Broken),
            LearnPart::Run { run, pages, bytes } => learn_run(sum, weighted, *run, *pages, bytes)?,
            LearnPart::Segment { segment, entries } => {
                let stream = sum.stream_mut(weighted.role).ok_or(Unfit::Broken)?;
                if !stream.learn_segment(usize::from(*segment), entries) {
                    return Err(Unfit::Broken);
                }
            }
            LearnPart::End { runs } => self.end(sum, weighted.role, runs)?,
        }
        if let Some(stream) = sum.stream_mut(weighted.role) {
            stream.part_is_in();
        }
        Ok(())
    }

    fn end(&mut self, sum: &mut Sum, role: RoleIndex, runs: &[u8]) -> Result<(), Unfit> {
        let runs = sum.decode_runs(runs).ok_or(Unfit::Broken)?;
        // Also those that were never written to, which no part has brought: the primary may write there without asking.
        for run in runs.iter() {
            sum.grant(role, Reach::of_run(run))?;
        }
        self.ended.insert(role);
        if let Some(stream) = sum.stream_mut(role) {
            stream.all_is_in();
        }
        Ok(())
    }
}

/// The touched `pages` of a run, bit by bit, and their bytes.
fn learn_run(sum: &mut Sum, weighted: Weighted, run: u32, pages: u16, bytes: &[u8]) -> Result<(), Unfit> {
    let awaited = sum.stream(weighted.role).is_some_and(|stream| stream.awaits_run(run));
    let in_area = (run as usize).saturating_mul(RUN_BYTES) < sum.area().limit_bytes();
    if !awaited || !in_area || bytes.len() != pages.count_ones() as usize * PAGE_BYTES {
        return Err(Unfit::Broken);
    }
    Ok(sum.add_run(weighted, run, pages, bytes)?)
}
