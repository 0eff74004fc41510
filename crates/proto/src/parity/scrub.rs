//! Scrub (group protocol, section 7): a session over pages of this parity in which no role is lost must end in zero.
//!
//! The parity opens a session at itself, run by run: a copy of its pages, from which every primary of its row takes its own
//! out, in the FIFO of its records like any page of a repair. What is left is damage: in memory, or done by a broken rule.
//! Each primary says which items over these pages are wrong by their checksums. Where none is, the parity is wrong, and
//! what is left of the sum is the very correction.
//!
//! One session at a time, in the background, and only while every data role of the group is full, or lost and so in no sum.

use smallvec::smallvec;
use store::Area;
use types::{Addr, MemberId, PAGE_BYTES, PageRange, RoleIndex, ScrubProgress, ScrubSettings, Term, Time};
use wire::message::{GroupBody, Read, SessionId};

use super::core::Core;
use super::session::{MAX_PAGES, Session, Sessions};
use super::sum::Sum;
use crate::Timing;
use crate::outbox::{Context, Peer};
use crate::roles::RoleSet;

/// Runs that nobody ever wrote to, and that are zero, which are passed at once.
const MAX_PASSED_RUNS: usize = 64;
/// Findings that one parity remembers of a scrub; what is beyond is counted.
const MAX_FINDINGS: usize = 16;
/// How often the time of a session is doubled on a slow network.
const MAX_DOUBLINGS: u32 = 5;

/// Something that a scrub has found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubFinding {
    /// The parity that was compared.
    pub parity: MemberId,
    /// The pages that differ; all that were compared if only items are wrong.
    pub pages: PageRange,
    /// Whether the parity is not the weighted sum of the data. If it is, what is wrong was wrong when it was written.
    pub differs: bool,
    /// Items over these pages that are wrong by their checksums: data role and slot.
    pub items: Vec<(RoleIndex, Addr)>,
    /// Whether the parity has been corrected.
    pub corrected: bool,
}

/// What a parity knows of its scrub.
#[derive(Default)]
pub(super) struct Scrub {
    progress: ScrubProgress,
    /// First page that has not been compared; a multiple of a run.
    next: u32,
    ended: bool,
    open: Option<SessionId>,
    /// Sessions ever.
    count: u64,
    /// Sessions in a row that came to nothing.
    failures: u32,
    /// Whether the pages at `next` have just been corrected.
    corrected: bool,
    findings: Vec<ScrubFinding>,
    /// Pages and places of all scrubs.
    totals: (u64, u64),
}

impl Scrub {
    /// The scrub of `generation` begins.
    fn begin(&mut self, generation: u64) {
        let Self { count, totals, .. } = *self;
        let progress = ScrubProgress { generation, ..ScrubProgress::default() };
        *self = Self { progress, count, totals, ..Self::default() };
    }

    /// `pages` have been compared.
    fn pass(&mut self, pages: PageRange) {
        self.next = pages.first + pages.count;
        self.corrected = false;
        self.progress.checked_pages += u64::from(pages.count);
        self.totals.0 += u64::from(pages.count);
    }

    fn remember(&mut self, finding: ScrubFinding) {
        self.progress.mismatches += 1;
        self.totals.1 += 1;
        self.progress.corrected += u64::from(finding.corrected);
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// A session has ended without an answer, or ends with its view.
    pub(super) fn forget_session(&mut self) {
        self.open = None;
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self, sessions: &Sessions) {
        assert!(self.open.is_none_or(|id| sessions.get(id).is_some()), "what is open is a session");
    }

    /// Whether a session is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How far the scrub has come that `settings` ask for, at a parity that has so many `pages`.
    pub(super) fn progress(&self, settings: ScrubSettings, pages: u64) -> ScrubProgress {
        let known = self.progress;
        let current = known.generation == settings.generation;
        let fresh = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
        let mut progress = if current { known } else { fresh };
        if settings.generation > 0 && !(current && self.ended) {
            progress.left_pages = pages.saturating_sub(progress.checked_pages);
        }
        progress
    }

    /// Pages compared and places found wrong by all scrubs.
    pub(super) fn totals(&self) -> (u64, u64) {
        self.totals
    }

    /// The same; it counts from nothing again.
    pub(super) fn take_totals(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.totals)
    }

    /// What the newest scrub has found.
    pub(super) fn findings(&self) -> &[ScrubFinding] {
        &self.findings
    }

    /// Gives up a session that takes too long. It is tried again.
    pub(super) fn tick(&mut self, context: &Context<'_>, sessions: &mut Sessions) {
        if let Some(id) = self.open
            && context.now.time >= self.due(context.timing, sessions)
        {
            self.give_up(sessions, id);
        }
    }

    /// When the open session has taken too long.
    pub(super) fn due(&self, timing: &Timing, sessions: &Sessions) -> Time {
        let patience = timing.retry_us << self.failures.min(MAX_DOUBLINGS);
        let opened_at = |id| sessions.get(id).map_or(Time(0), Session::opened_at);
        self.open.map_or(Time::NEVER, |id| opened_at(id) + patience)
    }

    /// Session `id` comes to nothing, if it is one of this scrub.
    pub(super) fn give_up(&mut self, sessions: &mut Sessions, id: SessionId) {
        sessions.remove(id);
        if self.open.take_if(|open| *open == id).is_some() {
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// Begins anew if the operators have asked for another scrub than the one that is under way.
    pub(super) fn follow(&mut self, settings: ScrubSettings, sessions: &mut Sessions) {
        if settings.generation != self.progress.generation {
            if let Some(id) = self.open {
                sessions.remove(id);
            }
            self.begin(settings.generation);
        }
    }

    /// Goes on at a parity in sync; whether a session is open now that was not before.
    pub(super) fn go_on(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        sum: &Sum,
        sessions: &mut Sessions,
    ) -> bool {
        let wanted = context.pace.scrub().running && !self.ended && !self.is_open();
        if !wanted || !may_scrub(context, core, sessions) {
            return false;
        }
        // What nobody wrote is compared here alone and costs no message. But requests wait meanwhile.
        for _ in 0..MAX_PASSED_RUNS {
            let Some(pages) = self.next_run(sum.area()) else {
                self.ended = true;
                return false;
            };
            if !sum.is_untouched(pages) {
                return self.open_session(context, core, sum, sessions, pages);
            }
            self.pass(pages);
        }
        false
    }

    /// The next run that has memory here.
    fn next_run(&self, area: &Area) -> Option<PageRange> {
        let run = area.next_run(self.next / MAX_PAGES)?;
        Some(PageRange { first: run * MAX_PAGES, count: MAX_PAGES })
    }

    fn open_session(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        sum: &Sum,
        sessions: &mut Sessions,
        pages: PageRange,
    ) -> bool {
        if !sessions.reserve(context, pages.len_bytes()) {
            return false;
        }
        context.pace.spend_scrub(pages.len_bytes());
        self.count += 1;
        let role = core.member().role;
        // A parity's role: it cannot be taken for the session of a stand-in.
        let id = SessionId { role, term: Term(0), number: self.count };
        let copy = sum.copy_pages(pages);
        sessions.insert(id, Session::of_scrub(pages, context.now.time, copy, core.absent_roles()));
        self.open = Some(id);
        let read = Read { session: id, pages, parities: smallvec![role] };
        for (role, data) in core.view().data_roles() {
            if let Some(host) = data.primary.filter(|_| core.takes(role)) {
                core.sender().send(context, Peer { role, host }, GroupBody::Read(read.clone()));
            }
        }
        true
    }

    /// Every primary has taken its pages out of the sum. Whether the next pages may follow at once.
    pub(super) fn finish(
        &mut self,
        context: &Context<'_>,
        core: &Core,
        area: &mut Area,
        id: SessionId,
        session: &Session,
    ) -> bool {
        if self.open.take_if(|open| *open == id).is_none() {
            return false;
        }
        if session.lost() != RoleSet::default() {
            // A primary has not all of its pages: its view will say so.
            self.failures = self.failures.saturating_add(1);
            return false;
        }
        self.failures = 0;
        if self.judge(context, core, area, session) {
            self.pass(session.pages());
        }
        true
    }

    /// Whether `session` is done with: not if its pages were corrected and are to be compared once more.
    fn judge(&mut self, context: &Context<'_>, core: &Core, area: &mut Area, session: &Session) -> bool {
        let (pages, sum) = (session.pages(), session.sum());
        let differs = sum.iter().any(|byte| *byte != 0);
        let items = session.wrong().to_vec();
        if !differs && items.is_empty() {
            return true;
        }
        // The sum is the correction if the data are right; once, for what comes again is no damage of memory.
        let covered = area.covers(pages.start_byte(), pages.len_bytes());
        let may_correct = context.pace.scrub().repair && !self.corrected && covered;
        let corrected = differs && items.is_empty() && may_correct;
        if corrected {
            area.xor(pages.start_byte(), sum);
        }
        let pages = if differs { pages_that_differ(pages, sum) } else { pages };
        let finding = ScrubFinding { parity: core.member(), pages, differs, items, corrected };
        log(&finding);
        self.remember(finding);
        self.corrected = corrected;
        !corrected
    }
}

/// Whether nothing in the sum is lost or under repair, so that it must end in zero, and there is time and room for a session.
fn may_scrub(context: &mut Context<'_>, core: &Core, sessions: &Sessions) -> bool {
    core.row().is_some()
        && core.view().is_steady()
        && sessions.have_place(context.limits)
        && context.pace.allows_scrub(context.now.time)
}

/// The range of pages of `sum`, which begins at `pages`, that are not zero.
fn pages_that_differ(pages: PageRange, sum: &[u8]) -> PageRange {
    let differs = |page: &&[u8]| page.iter().any(|byte| *byte != 0);
    let mut numbered = pages.iter().zip(sum.chunks(PAGE_BYTES)).filter(|(_, page)| differs(page));
    let first = numbered.next().map_or(pages.first, |(page, _)| page);
    let last = numbered.last().map_or(first, |(page, _)| page);
    PageRange { first, count: last - first + 1 }
}

fn log(finding: &ScrubFinding) {
    let ScrubFinding { parity, pages, differs, items, corrected } = finding;
    let slots: Vec<String> = items.iter().map(|(role, addr)| format!("{role} at {}", addr.byte())).collect();
    tracing::error!(
        member = %parity, first_page = pages.first, pages = pages.count, differs, corrected, wrong_items = ?slots,
        "scrub: parity and data do not agree, or items are wrong"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_that_differ_are_named() {
        let pages = PageRange { first: 32, count: 4 };
        let mut sum = vec![0; pages.len_bytes()];
        sum[PAGE_BYTES] = 1;
        assert_eq!(pages_that_differ(pages, &sum), PageRange { first: 33, count: 1 });
        sum[3 * PAGE_BYTES - 1] = 1;
        assert_eq!(pages_that_differ(pages, &sum), PageRange { first: 33, count: 2 });
    }
}
