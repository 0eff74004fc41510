//! One lesson: what is next, what was understood.

use bytes::Bytes;
use store::{DataStore, INDEX_SEGMENTS, PageSet};
use types::{PAGE_BYTES, PageRange, RUN_BYTES, Seq, Term, Time, UnixSeconds};
use wire::message::{Learn, LearnPart, Lesson};

use crate::outbox::Context;
use crate::primary::core::Core;
use crate::primary::parities::ParityPeer;
use crate::primary::stream::SendStream;
use crate::{Impossible, Rules, Timing};

const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// A lesson under way, or ended.
pub(super) struct Teaching {
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
    /// Runs of the newest End.
    runs: Bytes,
    /// When the coordinator was last told that the lesson has ended.
    reported: Option<Time>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The records that a learner lacks which goes on from what it has.
    Records,
    /// The first touched run from this one on.
    Run(u32),
    Segment(usize),
    End,
    /// An answer to the End.
    Answer,
}

impl Teaching {
    /// All pages, the index, and the records meanwhile.
    pub(super) fn from_nothing(lesson: Lesson, peer: ParityPeer) -> Self {
        Self::new(lesson, peer, Next::Run(0))
    }

    /// The records that the learner lacks, and those meanwhile.
    pub(super) fn with_what_it_lacks(lesson: Lesson, peer: ParityPeer) -> Self {
        Self::new(lesson, peer, Next::Records)
    }

    fn new(lesson: Lesson, peer: ParityPeer, next: Next) -> Self {
        Self {
            lesson,
            peer: Some(peer),
            next,
            pages: 0,
            number: 0,
            understood: 0,
            runs: Bytes::new(),
            reported: None,
        }
    }

    pub(super) fn lesson(&self) -> Lesson {
        self.lesson
    }

    pub(super) fn is(&self, lesson: Lesson) -> bool {
        self.lesson == lesson
    }

    /// Which of a learner's attempts this is.
    pub(super) fn attempt(&self) -> u32 {
        self.lesson.attempt
    }

    pub(super) fn has_ended(&self) -> bool {
        self.peer.is_none()
    }

    /// Whether everything was sent.
    pub(super) fn awaits_answer(&self) -> bool {
        self.next == Next::Answer
    }

    /// Whether the learner goes on from what it has, and lacks records.
    pub(super) fn lacks_records(&self) -> bool {
        self.next == Next::Records && self.peer.is_some()
    }

    /// Whether some of these records are not here any more.
    pub(super) fn lacks_what_is_gone(&self, stream: &SendStream) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.sent() < stream.history_start())
    }

    /// The learner's stream, until the lesson has ended.
    pub(super) fn stream(&mut self) -> Option<&mut ParityPeer> {
        self.peer.as_mut()
    }

    /// The same, if the learner lacks nothing that was before the lesson.
    pub(super) fn up_to_date_stream(&mut self) -> Option<&mut ParityPeer> {
        if self.next == Next::Records { None } else { self.peer.as_mut() }
    }

    /// Sends some of the records that the learner lacks; returns how many bytes.
    pub(super) fn send_lacking(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        wall: UnixSeconds,
    ) -> usize {
        let Some(peer) = &mut self.peer else { return 0 };
        let is_due = !peer.is_outstanding() && peer.sent() < stream.last();
        let bytes = if is_due { peer.send_frame(context, core, stream, wall) } else { 0 };
        if peer.sent() == stream.last() {
            // From here on each record goes to it before it commits.
            self.next = Next::End;
        }
        bytes
    }

    /// `part`, as of record `tag`, with the next number.
    pub(super) fn number_part(&mut self, term: Term, part: LearnPart, tag: Seq) -> Learn {
        let learn = Learn { lesson: self.lesson, term, number: self.number, tag, part };
        self.number += 1;
        learn
    }

    /// The next part, unless `most` are under way.
    pub(super) fn next_part(&mut self, store: &DataStore, most: usize) -> Option<LearnPart> {
        if (self.number - self.understood) as usize >= most {
            return None;
        }
        if let Next::Run(from) = self.next {
            match touched_run(store, from) {
                Some((run, part)) => {
                    self.next = Next::Run(run + 1);
                    self.pages += pages_of(&part);
                    return Some(part);
                }
                None => self.next = Next::Segment(0),
            }
        }
        match self.next {
            Next::Records | Next::Run(_) | Next::Answer => None,
            Next::Segment(segment) if segment < INDEX_SEGMENTS => {
                self.next = Next::Segment(segment + 1);
                let entries = store.replica().encode_segment(segment);
                Some(LearnPart::Segment { segment: segment as u16, entries })
            }
            Next::Segment(_) | Next::End => {
                self.next = Next::Answer;
                self.runs = encoded_runs(store);
                Some(LearnPart::End { runs: self.runs.clone() })
            }
        }
    }

    /// The learner has understood part `number`.
    pub(super) fn understood(&mut self, number: u32) -> Result<(), Impossible> {
        if number >= self.number {
            return Err(Impossible::Part { number, sent: self.number });
        }
        self.understood = self.understood.max(number + 1);
        Ok(())
    }

    /// Ends the lesson if everything was understood, and the area has not grown meanwhile; gives its stream away.
    pub(super) fn end(&mut self, store: &DataStore) -> Option<ParityPeer> {
        if self.next != Next::Answer || self.understood < self.number {
            return None;
        }
        // Nobody has asked the learner for runs that came meanwhile: it was no parity yet. So they are told again.
        if self.runs != encoded_runs(store) {
            self.next = Next::End;
            return None;
        }
        self.peer.take()
    }

    /// The lesson, if it is time to say that it has ended.
    pub(super) fn report(&mut self, now: Time, timing: &Timing) -> Option<Lesson> {
        if self.reported.is_some_and(|at| now.since(at) < timing.retry_us) {
            return None;
        }
        self.reported = Some(now);
        Some(self.lesson)
    }

    /// When it has to be said again that the lesson has ended; the first time it is said when the learner has everything.
    pub(super) fn report_due(&self, timing: &Timing) -> Time {
        self.reported.map_or(Time::NEVER, |at| at + timing.retry_us)
    }

    /// Bytes that are still to be taught, of so many that are `touched` and so many in the `history`.
    pub(super) fn untaught_bytes(&self, touched: u64, history: u64) -> u64 {
        match self.next {
            Next::Run(_) => touched.saturating_sub(u64::from(self.pages) * PAGE_BYTES as u64),
            Next::Records => history,
            Next::Segment(_) | Next::End | Next::Answer => 0,
        }
    }
}

fn pages_of(part: &LearnPart) -> u32 {
    match part {
        LearnPart::Run { pages, .. } => pages.count_ones(),
        LearnPart::Begin { .. }
        | LearnPart::Segment { .. }
        | LearnPart::End { .. }
        | LearnPart::Resume
        | LearnPart::Gone => 0,
    }
}

/// The first part of a lesson from nothing.
pub(super) fn begin(rules: Rules, store: &DataStore) -> LearnPart {
    let classes = store.replica().classes().iter().map(|class| class.0).collect::<Vec<u8>>().into();
    let mut rows = Vec::new();
    if rules.lessons_tell_of_cohorts() {
        rows.extend_from_slice(&store.replica().encode_cohorts());
    }
    if rules.sessions().lessons_tell_of_sessions() {
        rows.extend_from_slice(&store.replica().encode_sessions());
    }
    LearnPart::Begin { rows: rows.into(), classes }
}

/// What weighs in a part.
pub(super) fn part_bytes(part: &LearnPart) -> usize {
    match part {
        LearnPart::Begin { rows, classes } => rows.len() + classes.len(),
        LearnPart::Run { bytes, .. } => bytes.len(),
        LearnPart::Segment { entries, .. } => entries.len(),
        LearnPart::End { runs } => runs.len(),
        LearnPart::Resume | LearnPart::Gone => 0,
    }
}

/// The runs that may be used.
fn encoded_runs(store: &DataStore) -> Bytes {
    let mut runs = PageSet::new();
    for run in store.area().runs() {
        runs.insert(run);
    }
    let mut bytes = Vec::new();
    runs.encode(&mut bytes);
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
