//! Scrub (group protocol, section 7): a session over pages of this parity in which no role is lost must end in zero.
//!
//! The parity opens a session at itself, run by run: a copy of its pages, from which every primary of its row takes its own
//! out, in the FIFO of its records like any page of a repair. What is left is damage: in memory, or done by a broken rule.
//! Each primary says which items over these pages are wrong by their checksums. Where none is, the parity is wrong, and
//! what is left of the sum is the very correction.
//!
//! One session at a time, in the background, and only while every data role of the group is full, or lost and so in no sum.

use cluster::{HostId, MemberId, RoleIndex, ScrubProgress, ScrubSettings, Term, Time};
use smallvec::smallvec;
use store::{Addr, Category, EXTENT_BYTES, PAGE_BYTES, PageRange};
use wire::message::{GroupBody, Read, SessionId};

use super::Parity;
use super::session::{MAX_PAGES, Session};
use crate::outbox::Context;
use crate::roles::RoleSet;

const EXTENT_PAGES: u32 = (EXTENT_BYTES / PAGE_BYTES) as u32;
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
}

impl Parity {
    /// Whether a session of its scrub is open.
    pub(crate) fn is_scrubbing(&self) -> bool {
        self.scrub.open.is_some()
    }

    /// How far the scrub has come that `settings` ask for; none of a mirror, which is the data itself.
    pub(crate) fn scrub_progress(&self, settings: ScrubSettings) -> Option<ScrubProgress> {
        self.row()?;
        let known = self.scrub.progress;
        let current = known.generation == settings.generation;
        let fresh = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
        let mut progress = if current { known } else { fresh };
        if settings.generation > 0 && !(current && self.scrub.ended) {
            let all = (self.area.committed_bytes() / PAGE_BYTES) as u64;
            progress.left_pages = all.saturating_sub(progress.checked_pages);
        }
        Some(progress)
    }

    /// Pages compared and places found wrong by all scrubs.
    pub(crate) fn scrub_totals(&self) -> (u64, u64) {
        self.scrub.totals
    }

    /// What the newest scrub has found.
    pub(crate) fn scrub_findings(&self) -> &[ScrubFinding] {
        &self.scrub.findings
    }

    /// Gives up a session that takes too long. It is tried again.
    pub(super) fn tick_scrub(&mut self, context: &mut Context<'_>) {
        let Some(id) = self.scrub.open else { return };
        let patience = context.timing.retry_us << self.scrub.failures.min(MAX_DOUBLINGS);
        let opened_at = self.sessions.get(&id).map_or(Time(0), Session::opened_at);
        if context.now.time.since(opened_at) >= patience {
            self.give_up_scrub(id);
        }
    }

    /// Session `id` comes to nothing, if it is one of this parity's scrub.
    pub(super) fn give_up_scrub(&mut self, id: SessionId) {
        self.remove_session(id);
        if self.scrub.open == Some(id) {
            self.scrub.open = None;
            self.scrub.failures = self.scrub.failures.saturating_add(1);
        }
    }

    /// Goes on with the scrub that the operators have asked for; whether a session is open now that was not before.
    pub(crate) fn go_on_scrubbing(&mut self, context: &mut Context<'_>) -> bool {
        let settings = context.pace.scrub();
        if settings.generation != self.scrub.progress.generation {
            if let Some(id) = self.scrub.open {
                self.remove_session(id);
            }
            self.scrub.begin(settings.generation);
        }
        if !settings.running || self.scrub.ended || self.is_scrubbing() || !self.may_scrub(context) {
            return false;
        }
        for _ in 0..MAX_PASSED_RUNS {
            let Some(pages) = self.next_to_scrub() else {
                self.scrub.ended = true;
                return false;
            };
            if !self.is_untouched(pages) {
                return self.open_scrub(context, pages);
            }
            self.scrub.pass(pages);
        }
        false
    }

    /// Whether nothing in the sum is lost or under repair: then it must end in zero.
    fn may_scrub(&self, context: &mut Context<'_>) -> bool {
        self.row().is_some()
            && self.learner.is_none()
            && self.view.is_steady()
            && self.sessions.len() < context.limits.parity_sessions
            && context.pace.allows_scrub(context.now.time)
    }

    /// The next run that has memory here.
    fn next_to_scrub(&self) -> Option<PageRange> {
        let extent = self.scrub.next / EXTENT_PAGES;
        let first = if self.area.is_committed(extent) {
            self.scrub.next
        } else {
            self.area.next_committed(extent)? * EXTENT_PAGES
        };
        Some(PageRange { first, count: MAX_PAGES })
    }

    /// Whether nobody has ever written to `pages`, and they are zero as they should be.
    fn is_untouched(&self, pages: PageRange) -> bool {
        self.streams.iter().all(|stream| !stream.replica().touched().contains_any(pages))
            && self.area.bytes(pages.start_byte(), pages.len_bytes()).iter().all(|byte| *byte == 0)
    }

    fn open_scrub(&mut self, context: &mut Context<'_>, pages: PageRange) -> bool {
        let len_bytes = pages.len_bytes();
        if !context.pace.has_memory(self.budget.used(Category::Repair), len_bytes)
            || self.budget.try_reserve(Category::Repair, len_bytes).is_err()
        {
            return false;
        }
        context.pace.spend_scrub(len_bytes);
        self.scrub.count += 1;
        let role = self.member.role;
        let id = SessionId { role, term: Term(0), number: self.scrub.count };
        let sum = self.copy_pages(pages);
        self.sessions.insert(id, Session::of_scrub(pages, context.now.time, sum, self.lost_roles()));
        self.scrub.open = Some(id);
        let read = Read { session: id, pages, parities: smallvec![role] };
        let primaries: Vec<(RoleIndex, HostId)> =
            self.view.data_roles().filter_map(|(role, data)| Some((role, data.primary?))).collect();
        for (role, host) in primaries {
            self.sender().send(context, host, role, GroupBody::Read(read.clone()));
        }
        true
    }

    /// Every primary has taken its pages out of the sum.
    pub(super) fn finish_scrub(&mut self, context: &mut Context<'_>, id: SessionId, session: Session) {
        if self.scrub.open != Some(id) {
            return;
        }
        self.scrub.open = None;
        if session.lost() != RoleSet::default() {
            // A primary has not all of its pages: its view will say so.
            self.scrub.failures = self.scrub.failures.saturating_add(1);
            return;
        }
        self.scrub.failures = 0;
        let pages = session.pages();
        if self.judge(context, &session) {
            self.scrub.pass(pages);
        }
        self.go_on_scrubbing(context);
    }

    /// Whether `session` is done with: not if its pages were corrected and are to be compared once more.
    fn judge(&mut self, context: &mut Context<'_>, session: &Session) -> bool {
        let (pages, sum) = (session.pages(), session.sum());
        let differs = sum.iter().any(|byte| *byte != 0);
        let items = session.wrong().to_vec();
        if !differs && items.is_empty() {
            return true;
        }
        // The sum is the correction if the data are right; once, for what comes again is no damage of memory.
        let covered = self.area.covers(pages.start_byte(), pages.len_bytes());
        let may_correct = context.pace.scrub().repair && !self.scrub.corrected && covered;
        let corrected = differs && items.is_empty() && may_correct;
        if corrected {
            self.area.xor(pages.start_byte(), sum);
        }
        let pages = if differs { pages_that_differ(pages, sum) } else { pages };
        let finding = ScrubFinding { parity: self.member, pages, differs, items, corrected };
        log(&finding);
        self.scrub.remember(finding);
        self.scrub.corrected = corrected;
        !corrected
    }
}

/// For tests of what notices.
#[cfg(feature = "planted-bugs")]
impl Parity {
    pub(crate) fn damage(&mut self, byte: usize, mask: u8) {
        self.area.bytes_mut(byte, 1)[0] ^= mask;
    }
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
