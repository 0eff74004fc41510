//! Page repair: at a stand-in (R1, R2, R6) and at the other primaries (R3). Group protocol, section 5.
//!
//! A stand-in without memory for all of its pages stays one that is rebuilding: what requests wait for is repaired in place of
//! other pages (`DataStore::surrender`), and the sweep pauses until there is memory. If that lasts, the coordinator hears of it: a node
//! that has memory may be found.

mod read;
mod session;

use std::collections::BTreeMap;

use smallvec::SmallVec;
use store::{DataStore, OutOfMemory};
use types::{EXTENT_BYTES, PAGE_BYTES, PageRange, RUN_BYTES, RoleIndex, RoleStatus, Time};
use wire::message::{Abort, GroupBody, Open, Read, Residual, SessionId, ToCoordinator};

use super::core::Core;
use super::stream::SendStream;
use super::waiting::PageWaiters;
use crate::Impossible;
use crate::outbox::{Context, Peer};
pub(super) use read::answer_read;
use session::{Cause, Session};

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
    /// When the coordinator was told that all pages are here; none if it is to be told again.
    reported: Option<Time>,
    /// When this node had no memory for swept pages, as long as the sweep pauses for that: a retry time-out.
    starved: Option<Time>,
    /// When there was none for the first time, as long as pages are absent.
    first_starved: Option<Time>,
    surrenders: Surrenders,
    /// When to try again what came to nothing; none if nothing did.
    again_at: Option<Time>,
    /// Whether the sweep waits for the pace of background work.
    is_held: bool,
    /// Sessions in a row that came to nothing: each doubles the next ones' time.
    failures: u32,
    /// Bytes that sessions have brought.
    repaired_bytes: u64,
    /// See [`Repair::rows`].
    rows: Option<SmallVec<[RoleIndex; 4]>>,
}

/// Extents that were given up within the window that began then.
#[derive(Default)]
struct Surrenders {
    since: Time,
    count: u32,
}

/// Pages that a session has brought.
pub(super) struct Repaired {
    pub pages: PageRange,
    bytes: Vec<u8>,
    cause: Cause,
}

/// Where sessions are opened: at a store in which pages are absent.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    core: &'a Core,
    stream: &'a SendStream,
    store: &'a DataStore,
}

impl<'a> Site<'a> {
    /// The site, if sessions can succeed now: every lost role's stream has one settled end, so that all parities hold the
    /// same bytes of it in their sums.
    pub(super) fn if_ready(
        core: &'a Core,
        stream: &'a SendStream,
        store: &'a DataStore,
        has_parities: bool,
    ) -> Option<Self> {
        let settled = core.view().data.iter().all(|role| role.status != RoleStatus::Fenced);
        let may_open = core.rules().session_needs_settled_streams(settled);
        (may_open && has_parities).then_some(Self { core, stream, store })
    }
}

impl Repair {
    /// Bytes that sessions have brought so far.
    pub(super) fn repaired_bytes(&self) -> u64 {
        self.repaired_bytes
    }

    /// What the sessions have brought and what they take themselves.
    pub(super) fn memory_bytes(&self) -> usize {
        let brought: usize = self.sessions.values().map(Session::residual_bytes).sum();
        brought + self.sessions.len() * size_of::<Session>()
    }

    /// A new view ends all sessions (I7); the pages that are here stay.
    pub(super) fn forget_sessions(&mut self) {
        // Their ids are never given again, so what still comes of them is of none.
        self.sessions.clear();
        // A view that still says "rebuilding" may have crossed the report.
        self.reported = None;
        self.rows = None;
    }

    /// Opens sessions for those of `pages` that are absent and not under repair, run by run.
    pub(super) fn demand(&mut self, context: &mut Context<'_>, site: Site<'_>, pages: PageRange) {
        for piece in split_by_run(pages) {
            if !self.has_place(Cause::Demand, context.limits.demand_sessions) {
                return;
            }
            if let Some(absent) = self.absent_part(site.store, piece) {
                self.open(context, site, absent, Cause::Demand);
            }
        }
    }

    /// Opens sessions for the pages that requests wait for.
    pub(super) fn demand_waiting(
        &mut self,
        context: &mut Context<'_>,
        site: Site<'_>,
        waiters: &mut PageWaiters,
    ) {
        let mut round = waiters.round();
        while self.has_place(Cause::Demand, context.limits.demand_sessions)
            && let Some(pages) = waiters.next_wanted(&mut round)
        {
            self.demand(context, site, pages);
        }
    }

    /// The background sweep: keeps a few sessions open until no page is absent.
    pub(super) fn sweep(&mut self, context: &mut Context<'_>, site: Site<'_>) {
        self.is_held = false;
        if self.starved.is_some() {
            return;
        }
        let mut from = 0;
        while self.has_place(Cause::Sweep, context.limits.sweep_sessions)
            && let Some(pages) = site.store.next_absent(from)
        {
            // Pages stay absent until their session ends: it would find the same ones again.
            from = pages.first + pages.count;
            let Some(absent) = self.absent_part(site.store, pages) else { continue };
            self.is_held = !context.pace.allows(context.now.time);
            if self.is_held {
                return;
            }
            context.pace.spend(absent.len_bytes());
            self.open(context, site, absent, Cause::Sweep);
        }
    }

    /// Tells the coordinator that no page is absent.
    pub(super) fn report_if_whole(&mut self, context: &mut Context<'_>, core: &Core, store: &DataStore) {
        if self.reported.is_none() && self.starved.is_none() && store.absent_count() == 0 {
            self.first_starved = None;
            self.reported = Some(context.now.time);
            let (group, role) = (core.member().group, core.member().role);
            context.coordinator(ToCoordinator::Repaired { group, role, term: core.term() });
        }
    }

    fn has_place(&self, cause: Cause, most: usize) -> bool {
        self.sessions.values().filter(|session| session.cause() == cause).count() < most
    }

    /// The smallest range within `piece` that covers its absent pages; none if all are here or being repaired.
    fn absent_part(&self, store: &DataStore, piece: PageRange) -> Option<PageRange> {
        let is_wanted = |page: &u32| {
            let here = store.pages_present(PageRange { first: *page, count: 1 });
            !here && !self.sessions.values().any(|session| session.covers(*page))
        };
        // Pages between that are here come once more, and `fill` leaves them as they are: one session costs less than
        // two.
        let first = piece.iter().find(is_wanted)?;
        let last = piece.iter().filter(is_wanted).last()?;
        Some(PageRange { first, count: last - first + 1 })
    }

    /// The parities whose rows make up for this role, with whatever else is lost, and read as little as any; found once a view.
    fn rows(&mut self, core: &Core) -> SmallVec<[RoleIndex; 4]> {
        let rows = || core.protection().cheapest_rows(core.view(), core.member().role);
        self.rows.get_or_insert_with(|| rows().into()).clone()
    }

    /// R1, to those parities.
    fn open(&mut self, context: &mut Context<'_>, site: Site<'_>, pages: PageRange, cause: Cause) {
        let Site { core, stream, .. } = site;
        let parities = self.rows(core);
        self.count += 1;
        let session = Session::new(pages, parities, cause, context.now.time);
        let open = Open { session: session_id(core, self.count), pages, committed: stream.committed() };
        for parity in session.peers(core) {
            core.sender().send(context, parity, GroupBody::Open(open.clone()));
        }
        self.sessions.insert(self.count, session);
    }

    /// The session, if it is one of this primary's.
    fn session(&mut self, core: &Core, id: SessionId) -> Option<&mut Session> {
        if id.role != core.member().role || id.term != core.term() {
            return None;
        }
        self.sessions.get_mut(&id.number)
    }

    /// R2: after all snapshots are taken, every other primary is asked for its pages that is in one of the sums.
    pub(super) fn opened(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        parity: RoleIndex,
        id: SessionId,
    ) {
        let Some(session) = self.session(core, id) else { return };
        // A role has to leave all sums at one record of its stream, so no page is read before all copies are taken.
        if !session.opened(parity) {
            return;
        }
        let (pages, rows) = (session.pages(), session.parities().clone());
        for primary in core.other_primaries() {
            let covering = rows.iter().copied().filter(|row| core.protection().covers(*row, primary.role));
            let parities: SmallVec<[RoleIndex; 4]> = covering.collect();
            if !parities.is_empty() {
                let read = Read { session: id, pages, parities };
                core.sender().send(context, primary, GroupBody::Read(read));
            }
        }
    }

    /// R6: a parity has answered. The pages, when all have and they can be solved for.
    pub(super) fn take_residual(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        from: Peer,
        residual: Residual,
    ) -> Option<Result<Repaired, Unsolved>> {
        let id = residual.session;
        match self.session(core, id)?.add(core, from.role, residual) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(session::NotOfThisSession) => {
                context.impossible(from.host, Impossible::Pages);
                return None;
            }
        }
        let session = self.sessions.remove(&id.number)?;
        self.failures = 0;
        let (pages, cause) = (session.pages(), session.cause());
        let solved = session.solve(core);
        Some(solved.map(|bytes| Repaired { pages, bytes, cause }).ok_or(Unsolved { pages, cause }))
    }

    /// A run may be partly present elsewhere: single pages have fewer unknowns.
    pub(super) fn retry_smaller(&mut self, context: &mut Context<'_>, site: Site<'_>, unsolved: &Unsolved) {
        if unsolved.pages.count == 1 {
            return self.try_again(context);
        }
        for page in unsolved.pages.iter() {
            if let Some(absent) = self.absent_part(site.store, PageRange { first: page, count: 1 }) {
                self.open(context, site, absent, unsolved.cause);
            }
        }
    }

    /// Puts pages where they belong; those that came meanwhile may have been written since: the store keeps those. If there is no
    /// memory for what requests wait for (`is_waited_for`), another extent gives way. Whether the pages are there now.
    pub(super) fn fill(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        store: &mut DataStore,
        repaired: &Repaired,
        is_waited_for: bool,
    ) -> bool {
        // A session of the sweep may be one that requests have come to wait for.
        let wanted = repaired.cause == Cause::Demand || is_waited_for;
        if let Err(refused) = self.fill_or_surrender(context, core, store, repaired, wanted) {
            tracing::debug!(member = %core.member(), %refused, wanted, "no memory for repaired pages");
            if wanted {
                self.try_again(context);
            } else {
                self.starve(context, core, store);
            }
            return false;
        }
        self.repaired_bytes += repaired.bytes.len() as u64;
        true
    }

    /// The sweep pauses. One of several sessions that end without memory is enough for that.
    fn starve(&mut self, context: &mut Context<'_>, core: &Core, store: &DataStore) {
        if self.starved.replace(context.now.time).is_some() {
            return;
        }
        // Once may be by chance, and eviction may make room. That some pages come says nothing: what readers ask for takes the place of
        // other pages, and the sweep brings the rest of its extents.
        let first = *self.first_starved.get_or_insert(context.now.time);
        if context.now.time.since(first) >= context.timing.retry_us {
            let (group, role, bytes) = (core.member().group, core.member().role, store.whole_bytes());
            context.coordinator(ToCoordinator::Starved { group, role, term: core.term(), bytes });
        }
    }

    fn fill_or_surrender(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        store: &mut DataStore,
        Repaired { pages, bytes, .. }: &Repaired,
        wanted: bool,
    ) -> Result<(), OutOfMemory> {
        let Err(refused) = store.fill(*pages, bytes) else { return Ok(()) };
        let window_us = context.timing.retry_us / 8;
        let may_surrender = wanted && self.surrenders.allow(context.now.time, window_us);
        let extent = if may_surrender { store.surrender(pages.first / EXTENT_PAGES) } else { None };
        let extent = extent.ok_or(refused)?;
        // Whether that helps or not, the extent is gone, and with it what sessions over it could rely on.
        let stored = store.fill(*pages, bytes);
        self.end_sessions_over(context, core, extent);
        stored
    }

    /// `extent` went. A session over it may bring bytes from before the last write that went with it; what requests wait
    /// for is demanded anew.
    fn end_sessions_over(&mut self, context: &mut Context<'_>, core: &Core, extent: u32) {
        let pages = PageRange { first: extent * EXTENT_PAGES, count: EXTENT_PAGES };
        self.end_those(context, core, |session| session.overlaps(pages));
    }

    /// A parity could not take part: the others need not wait, and the timer opens the session anew.
    pub(super) fn abort(&mut self, context: &mut Context<'_>, core: &Core, id: SessionId) {
        if self.session(core, id).is_some() {
            self.give_up(context, core, id.number);
            self.try_again(context);
        }
    }

    /// What came to nothing is tried again after a pause, but not put off any more.
    fn try_again(&mut self, context: &Context<'_>) {
        self.again_at.get_or_insert(context.now.time + context.timing.retry_us / 8);
    }

    /// When `tick` has something to do.
    pub(super) fn due(&self, context: &Context<'_>, is_rebuilding: bool) -> Time {
        if !is_rebuilding && self.sessions.is_empty() {
            return Time::NEVER;
        }
        let started = self.sessions.values().map(Session::started).min();
        let late = started.map_or(Time::NEVER, |at| at + self.patience_us(context.timing));
        if !is_rebuilding {
            return late;
        }
        let pause = |since: Option<Time>| since.map_or(Time::NEVER, |at| at + context.timing.retry_us);
        let sweep = if self.is_held { context.pace.resumes_at(context.now.time) } else { Time::NEVER };
        let again = self.again_at.unwrap_or(Time::NEVER);
        late.min(sweep).min(again).min(pause(self.starved)).min(pause(self.reported))
    }

    /// Ends sessions that take too long, and pauses that were long enough.
    pub(super) fn tick(&mut self, context: &mut Context<'_>, core: &Core) {
        let now = context.now.time;
        let retry_us = context.timing.retry_us;
        self.is_held = false;
        self.again_at.take_if(|at| *at <= now);
        self.starved.take_if(|at| *at + retry_us <= now);
        self.reported.take_if(|at| *at + retry_us <= now);
        let patience = self.patience_us(context.timing);
        let sessions = self.sessions.iter();
        let late: SmallVec<[u64; 8]> =
            sessions.filter(|(_, s)| now.since(s.started()) >= patience).map(|(number, _)| *number).collect();
        for number in late {
            self.give_up(context, core, number);
        }
    }

    fn patience_us(&self, timing: &crate::Timing) -> u64 {
        timing.retry_us << self.failures.min(MAX_DOUBLINGS)
    }

    /// Ends a session that came to nothing, at its parities too.
    fn give_up(&mut self, context: &mut Context<'_>, core: &Core, number: u64) {
        self.failures = self.failures.saturating_add(1);
        self.end(context, core, number);
    }

    fn end_those(&mut self, context: &mut Context<'_>, core: &Core, which: impl Fn(&Session) -> bool) {
        let sessions = self.sessions.iter();
        let numbers: SmallVec<[u64; 8]> =
            sessions.filter(|(_, session)| which(session)).map(|(number, _)| *number).collect();
        for number in numbers {
            self.end(context, core, number);
        }
    }

    fn end(&mut self, context: &mut Context<'_>, core: &Core, number: u64) {
        let Some(session) = self.sessions.remove(&number) else { return };
        let abort = Abort { session: session_id(core, number) };
        for parity in session.peers(core) {
            core.sender().send(context, parity, GroupBody::Abort(abort.clone()));
        }
    }
}

/// Pages that could not be solved for.
pub(super) struct Unsolved {
    pages: PageRange,
    cause: Cause,
}

impl Surrenders {
    /// Whether one more extent may be given up now. A request that needs more extents than there is memory for takes them
    /// from itself, and beside a parity on the same node it would do so for ever without a pause.
    fn allow(&mut self, now: Time, window_us: u64) -> bool {
        if now.since(self.since) >= window_us {
            *self = Self { since: now, count: 0 };
        }
        self.count += 1;
        self.count <= SURRENDERS_PER_WINDOW
    }
}

fn session_id(core: &Core, number: u64) -> SessionId {
    SessionId { role: core.member().role, term: core.term(), number }
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
        let extent = |number: u32| PageRange { first: number * EXTENT_PAGES, count: EXTENT_PAGES };
        let over = |first: u32, number: u32| {
            let page = PageRange { first, count: 1 };
            Session::new(page, SmallVec::new(), Cause::Demand, Time(0)).overlaps(extent(number))
        };
        assert!(over(0, 0) && over(EXTENT_PAGES - 1, 0) && !over(EXTENT_PAGES, 0));
        assert!(over(EXTENT_PAGES, 1) && over(2 * EXTENT_PAGES - 1, 1) && !over(2 * EXTENT_PAGES, 1));
    }

    #[test]
    fn extents_are_given_up_a_few_in_a_window() {
        let mut surrenders = Surrenders::default();
        let allowed = (0..100).filter(|_| surrenders.allow(Time(1_000), 500)).count();
        assert_eq!(allowed, SURRENDERS_PER_WINDOW as usize);
        assert!(surrenders.allow(Time(1_500), 500), "a new window");
    }
}
