//! Page repair: at a stand-in (R1, R2, R6) and at the other primaries (R3). Group protocol, section 5.
//!
//! A stand-in without memory for all of its pages stays one that is rebuilding: what requests wait for is repaired in place of
//! other pages (`DataStore::surrender`), and the sweep pauses until there is memory.

use std::collections::BTreeMap;

use cluster::{HostId, RoleIndex, RoleStatus, Time};
use smallvec::SmallVec;
use store::{Addr, EXTENT_BYTES, OutOfMemory, PAGE_BYTES, PageRange, RUN_BYTES};
use wire::message::{
    Abort, GroupBody, MAX_WRONG_ITEMS, Open, Page, Read, Residual, SessionId, ToCoordinator,
};

use super::{Phase, Primary};
use crate::Impossible;
use crate::outbox::Context;

/// Extents that a starved stand-in may give up within an eighth of a retry time-out.
const SURRENDERS_PER_WINDOW: u32 = 16;

/// Pages of a 64 KiB run: the most that one session repairs.
const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

const EXTENT_PAGES: u32 = (EXTENT_BYTES / PAGE_BYTES) as u32;

/// How often the time of a session is doubled on a slow network.
const MAX_DOUBLINGS: u32 = 5;

/// A stand-in's sessions.
#[derive(Default)]
pub(super) struct Repair {
    sessions: BTreeMap<u64, Session>,
    count: u64,
    /// When the coordinator was last told that all pages are here.
    reported: Option<Time>,
    /// When this node last had no memory for swept pages; the sweep pauses for a retry time-out after it.
    starved: Option<Time>,
    /// Extents given up since this time.
    surrendered: (Time, u32),
    /// Sessions in a row that came to nothing: each doubles the next ones' time.
    failures: u32,
    /// Bytes that sessions have brought.
    repaired_bytes: u64,
}

struct Session {
    pages: PageRange,
    parities: SmallVec<[RoleIndex; 4]>,
    opened: SmallVec<[RoleIndex; 4]>,
    residuals: Vec<(RoleIndex, Residual)>,
    started: Time,
    cause: Cause,
}

/// Why a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A request waits for the pages.
    Demand,
    /// The background sweep.
    Sweep,
}

impl Repair {
    /// Whether one more extent may be given up now. A request that needs more extents than there is memory for takes them
    /// from itself, and beside a parity on the same node it would do so for ever without a pause.
    fn may_surrender(&mut self, now: Time, window_us: u64) -> bool {
        let (since, count) = &mut self.surrendered;
        if now.since(*since) >= window_us {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= SURRENDERS_PER_WINDOW
    }

    /// A new view ends all sessions (I7); the pages that are here stay.
    pub(super) fn forget_sessions(&mut self) {
        self.sessions.clear();
        self.reported = None;
    }

    /// What the sessions have brought and what they take themselves.
    pub(super) fn memory_bytes(&self) -> usize {
        let brought = self.sessions.values().flat_map(|session| &session.residuals);
        let brought: usize = brought.map(|(_, residual)| residual.bytes.len()).sum();
        brought + self.sessions.len() * size_of::<Session>()
    }

    pub(super) fn is_active(&self) -> bool {
        !self.sessions.is_empty()
    }

    fn covers(&self, page: u32) -> bool {
        self.sessions.values().any(|s| page >= s.pages.first && page < s.pages.first + s.pages.count)
    }

    fn sessions_over(&self, extent: u32) -> Vec<u64> {
        let pages = PageRange { first: extent * EXTENT_PAGES, count: EXTENT_PAGES };
        let over = self.sessions.iter().filter(|(_, session)| overlap(session.pages, pages));
        over.map(|(number, _)| *number).collect()
    }

    fn count_of(&self, cause: Cause) -> usize {
        self.sessions.values().filter(|session| session.cause == cause).count()
    }
}

impl Primary {
    /// Whether sessions can succeed now: every lost role's stream has one settled end, so that all parities hold the
    /// same bytes of it in their sums.
    fn may_repair(&self) -> bool {
        let settled = self.view.data.iter().all(|role| role.status != RoleStatus::Fenced)
            || crate::planted(crate::Bug::SessionWhileFenced);
        settled && !self.parities.is_empty() && matches!(self.phase, Phase::Serving(_))
    }

    /// Opens sessions for those of `pages` that are absent and not under repair, run by run.
    pub(super) fn demand_pages(&mut self, context: &mut Context<'_>, pages: PageRange) {
        if !self.may_repair() {
            return;
        }
        for piece in split_by_run(pages) {
            if self.repair.count_of(Cause::Demand) >= context.limits.demand_sessions {
                return;
            }
            if let Some(absent) = self.absent_part(piece) {
                self.open_session(context, absent, Cause::Demand);
            }
        }
    }

    /// The smallest range within `piece` that covers its absent pages; none if all are here or being repaired.
    fn absent_part(&self, piece: PageRange) -> Option<PageRange> {
        let store = self.store()?;
        let wanted = |page: &u32| {
            !store.pages_present(PageRange { first: *page, count: 1 }) && !self.repair.covers(*page)
        };
        let first = piece.iter().find(wanted)?;
        let last = piece.iter().filter(wanted).last()?;
        Some(PageRange { first, count: last - first + 1 })
    }

    /// The background sweep: keeps a few sessions open until no page is absent, then reports.
    pub(super) fn sweep(&mut self, context: &mut Context<'_>) {
        let now = context.now.time;
        let starved = self.repair.starved.is_some_and(|at| now.since(at) < context.timing.retry_us);
        if starved || !self.is_rebuilding() {
            return;
        }
        let mut from = 0;
        while self.may_repair()
            && self.repair.count_of(Cause::Sweep) < context.limits.sweep_sessions
            && context.pace.allows(now)
        {
            let Some(pages) = self.store().and_then(|store| store.next_absent(from)) else { break };
            from = pages.first + pages.count;
            if let Some(absent) = self.absent_part(pages) {
                context.pace.spend(absent.len_bytes());
                self.open_session(context, absent, Cause::Sweep);
            }
        }
        // Also when no parity is left to ask: then it decides whether the role is lost.
        self.report_if_whole(context);
    }

    fn report_if_whole(&mut self, context: &mut Context<'_>) {
        let whole = self.store().is_some_and(|store| store.absent_count() == 0);
        let now = context.now.time;
        if whole && self.repair.reported.is_none_or(|at| now.since(at) >= context.timing.retry_us) {
            self.repair.reported = Some(now);
            let (group, role) = (self.member.group, self.member.role);
            context.coordinator(ToCoordinator::Repaired { group, role, term: self.term });
        }
    }

    /// R1, to as many parities as there are lost roles that may still be in their sums.
    fn open_session(&mut self, context: &mut Context<'_>, pages: PageRange, cause: Cause) {
        let unknowns = self.view.roles_in_play();
        let parities: SmallVec<[RoleIndex; 4]> =
            self.view.in_sync().map(|(role, _)| role).take(unknowns).collect();
        self.repair.count += 1;
        let number = self.repair.count;
        let open = Open { session: self.session_id(number), pages, committed: self.committed };
        for &(role, host) in &self.hosts_of(&parities) {
            self.sender().send(context, host, role, GroupBody::Open(open.clone()));
        }
        let started = context.now.time;
        let session =
            Session { pages, parities, opened: SmallVec::new(), residuals: Vec::new(), started, cause };
        self.repair.sessions.insert(number, session);
    }

    fn session_id(&self, number: u64) -> SessionId {
        SessionId { role: self.member.role, term: self.term, number }
    }

    fn hosts_of(&self, parities: &[RoleIndex]) -> SmallVec<[(RoleIndex, HostId); 4]> {
        self.view.in_sync().filter(|(role, _)| parities.contains(role)).collect()
    }

    /// The session, if it is one of this primary's.
    fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        if id.role != self.member.role || id.term != self.term {
            return None;
        }
        self.repair.sessions.get_mut(&id.number)
    }

    /// R2: after all snapshots are taken, every other primary is asked for its pages.
    pub(crate) fn handle_opened(&mut self, context: &mut Context<'_>, parity: RoleIndex, id: SessionId) {
        let Some(session) = self.session(id) else { return };
        if !session.parities.contains(&parity) || session.opened.contains(&parity) {
            return;
        }
        session.opened.push(parity);
        if session.opened.len() < session.parities.len() {
            return;
        }
        let read = Read { session: id, pages: session.pages, parities: session.parities.clone() };
        let others: SmallVec<[(RoleIndex, HostId); 8]> = self
            .view
            .data_roles()
            .filter(|(role, _)| *role != self.member.role)
            .filter_map(|(role, data)| data.primary.map(|host| (role, host)))
            .collect();
        for (role, host) in others {
            self.sender().send(context, host, role, GroupBody::Read(read.clone()));
        }
    }

    /// R3: one snapshot of committed bytes, into the FIFO to each parity of the session.
    pub(crate) fn handle_read(&mut self, context: &mut Context<'_>, read: &Read) {
        let bytes = self.store().and_then(|store| {
            store
                .pages_present(read.pages)
                .then(|| bytes::Bytes::copy_from_slice(store.page_bytes(read.pages)))
        });
        let mut committed = self.committed;
        if crate::planted(crate::Bug::RepairOutsideFifo) {
            committed = cluster::Seq(committed.0.saturating_sub(2));
        }
        let wrong = self.wrong_items(read);
        let page = Page { session: read.session, term: self.term, committed, bytes, wrong };
        for (role, host) in self.hosts_of(&read.parities) {
            self.sender().send(context, host, role, GroupBody::Page(page.clone()));
        }
    }

    /// What a scrub is told of the items over its pages.
    fn wrong_items(&self, read: &Read) -> SmallVec<[Addr; 2]> {
        let of_scrub = usize::from(read.session.role.0) >= self.view.k();
        let store = self.store().filter(|_| of_scrub);
        store.map(|store| store.wrong_items(read.pages, MAX_WRONG_ITEMS).into()).unwrap_or_default()
    }

    /// R6: when all have answered, solve for this role's pages.
    pub(crate) fn handle_residual(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        parity: RoleIndex,
        residual: Residual,
    ) {
        let id = residual.session;
        let (k, own) = (self.view.k(), self.member.role);
        let Some(session) = self.session(id) else { return };
        let known = session.residuals.iter().any(|(role, _)| *role == parity);
        if known || !session.parities.contains(&parity) {
            return;
        }
        let lost = &residual.lost;
        let can_be_lost = lost.is_sorted_by(|before, after| before < after)
            && lost.contains(&own)
            && lost.iter().all(|role| usize::from(role.0) < k);
        if !can_be_lost || residual.bytes.len() != session.pages.len_bytes() {
            return context.impossible(from, Impossible::Pages);
        }
        session.residuals.push((parity, residual));
        if session.residuals.len() < session.parities.len() {
            return;
        }
        let session = self.repair.sessions.remove(&id.number).expect("looked up above");
        self.repair.failures = 0;
        match self.solve(context, &session) {
            Some(bytes) => self.fill(context, &session, &bytes),
            None => self.retry_smaller(context, &session),
        }
    }

    /// This role's pages out of the residuals; none if the members answered differently or too much is lost.
    fn solve(&self, context: &Context<'_>, session: &Session) -> Option<Vec<u8>> {
        let lost = &session.residuals.first()?.1.lost;
        if session.residuals.iter().any(|(_, r)| r.lost != *lost) || lost.len() > session.residuals.len() {
            return None;
        }
        let rows: Vec<usize> =
            session.residuals.iter().map(|(role, _)| usize::from(role.0) - self.view.k()).collect();
        let lost: Vec<usize> = lost.iter().map(|role| usize::from(role.0)).collect();
        let sums: Vec<&[u8]> = session.residuals.iter().map(|(_, r)| r.bytes.as_ref()).collect();
        let mut out = vec![0; session.pages.len_bytes()];
        let wanted = usize::from(self.member.role.0);
        context.code.recover(&rows, &lost, wanted, &sums, &mut out).ok()?;
        Some(out)
    }

    fn fill(&mut self, context: &mut Context<'_>, session: &Session, bytes: &[u8]) {
        // A session of the sweep may be one that requests have come to wait for.
        let wanted = session.cause == Cause::Demand || self.waiting.pages.wants(session.pages);
        if let Err(refused) = self.store_pages(context, session.pages, bytes, wanted) {
            tracing::debug!(member = %self.member, %refused, wanted, "no memory for repaired pages");
            if !wanted {
                self.repair.starved = Some(context.now.time);
            }
            // The timer opens sessions anew for those who wait.
            return;
        }
        self.repair.repaired_bytes += bytes.len() as u64;
        if let Phase::Serving(store) = &self.phase {
            self.waiting.pages.came(session.pages, |pages| store.pages_present(pages));
        }
        self.retry_waiting(context);
        self.demand_waiting(context);
        self.sweep(context);
    }

    /// Bytes that repair sessions have brought so far.
    pub(crate) fn repaired_bytes(&self) -> u64 {
        self.repair.repaired_bytes
    }

    /// Pages that came meanwhile may have been written since: the store keeps those. If there is no memory for what
    /// requests wait for, another extent gives way.
    fn store_pages(
        &mut self,
        context: &mut Context<'_>,
        pages: PageRange,
        bytes: &[u8],
        wanted: bool,
    ) -> Result<(), OutOfMemory> {
        let Some(store) = self.store_mut() else { return Ok(()) };
        let Err(refused) = store.fill(pages, bytes) else { return Ok(()) };
        let window = context.timing.retry_us / 8;
        let may_surrender = wanted && self.repair.may_surrender(context.now.time, window);
        let Some(store) = self.store_mut() else { return Ok(()) };
        let extent = if may_surrender { store.surrender(pages.first / EXTENT_PAGES) } else { None };
        let extent = extent.ok_or(refused)?;
        let stored = store.fill(pages, bytes);
        self.end_sessions_over(context, extent);
        stored
    }

    /// `extent` went. A session over it may bring bytes from before the last write that went with it; what requests wait
    /// for is demanded anew.
    fn end_sessions_over(&mut self, context: &mut Context<'_>, extent: u32) {
        for number in self.repair.sessions_over(extent) {
            self.end_session(context, number);
        }
    }

    /// A run may be partly present elsewhere: single pages have fewer unknowns.
    fn retry_smaller(&mut self, context: &mut Context<'_>, session: &Session) {
        if session.pages.count > 1 {
            for page in session.pages.iter() {
                if let Some(absent) = self.absent_part(PageRange { first: page, count: 1 }) {
                    self.open_session(context, absent, session.cause);
                }
            }
        }
    }

    /// A parity could not take part: the others need not wait, and the timer opens the session anew.
    pub(crate) fn handle_abort(&mut self, context: &mut Context<'_>, id: SessionId) {
        if self.session(id).is_some() {
            self.give_up(context, id.number);
        }
    }

    /// Ends a session that came to nothing, at its parities too.
    fn give_up(&mut self, context: &mut Context<'_>, number: u64) {
        self.repair.failures = self.repair.failures.saturating_add(1);
        self.end_session(context, number);
    }

    fn end_session(&mut self, context: &mut Context<'_>, number: u64) {
        let Some(session) = self.repair.sessions.remove(&number) else { return };
        let abort = Abort { session: self.session_id(number) };
        for (role, host) in self.hosts_of(&session.parities) {
            self.sender().send(context, host, role, GroupBody::Abort(abort.clone()));
        }
    }

    /// Opens sessions for the pages that requests wait for.
    pub(super) fn demand_waiting(&mut self, context: &mut Context<'_>) {
        let mut round = self.waiting.pages.round();
        while self.may_repair()
            && self.repair.count_of(Cause::Demand) < context.limits.demand_sessions
            && let Some(pages) = self.waiting.pages.next_wanted(&mut round)
        {
            self.demand_pages(context, pages);
        }
    }

    /// Sessions that take too long are tried again; the sweep goes on.
    pub(super) fn tick_repair(&mut self, context: &mut Context<'_>) {
        let now = context.now.time;
        let patience = context.timing.retry_us << self.repair.failures.min(MAX_DOUBLINGS);
        let sessions = self.repair.sessions.iter();
        let late: Vec<u64> =
            sessions.filter(|(_, s)| now.since(s.started) >= patience).map(|(number, _)| *number).collect();
        for number in late {
            self.give_up(context, number);
        }
        if self.is_rebuilding() {
            self.demand_waiting(context);
            self.sweep(context);
        }
    }
}

fn overlap(a: PageRange, b: PageRange) -> bool {
    a.first < b.first + b.count && b.first < a.first + a.count
}

/// Cuts a range at the boundaries of 64 KiB runs.
fn split_by_run(pages: PageRange) -> impl Iterator<Item = PageRange> {
    let end = pages.first + pages.count;
    let mut next = pages.first;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let stop = ((next / RUN_PAGES + 1) * RUN_PAGES).min(end);
        let piece = PageRange { first: next, count: stop - next };
        next = stop;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_over_an_extent_are_found() {
        let mut repair = Repair::default();
        for (number, first) in [(1, 0), (2, EXTENT_PAGES - 1), (3, EXTENT_PAGES), (4, 2 * EXTENT_PAGES - 1)] {
            let session = Session {
                pages: PageRange { first, count: 1 },
                parities: SmallVec::new(),
                opened: SmallVec::new(),
                residuals: Vec::new(),
                started: Time(0),
                cause: Cause::Demand,
            };
            repair.sessions.insert(number, session);
        }
        assert_eq!(repair.sessions_over(1), [3, 4]);
        assert_eq!((repair.sessions_over(0), repair.sessions_over(2)), (vec![1, 2], vec![]));
    }
}
