//! Repair sessions at a parity (group protocol, section 5, R1, R4, R5).
//!
//! A session starts from a copy of the parity's pages and takes one data role after another out of the sum, each at one
//! exact point of that role's stream. What is left is the weighted sum of the lost roles.

use std::collections::BTreeMap;

use store::{Budget, Category};
use types::{Addr, GroupView, HostId, PAGE_BYTES, PageRange, RoleIndex, Time};
use wire::message::{Page, Residual, SessionId, Write};

use crate::Rules;
use crate::outbox::Context;
use crate::roles::RoleSet;

/// Most pages of a session: a 64 KiB run.
pub(super) const MAX_PAGES: u32 = (types::RUN_BYTES / PAGE_BYTES) as u32;

/// Sessions that a stand-in may have open at a time, by far.
const WINDOW: u64 = 256;

/// A session that is older than this many retry time-outs was given up by its stand-in.
const MAX_SESSION_RETRIES: u64 = 64;

/// One session. Its copy is charged to the budget until [`Sessions::remove`].
pub(super) struct Session {
    pages: PageRange,
    opened_at: Time,
    /// The copy, less what has been taken out.
    sum: Vec<u8>,
    /// Roles whose later records no longer change the sum.
    gone: RoleSet,
    /// Roles of `gone` whose bytes are still in the sum.
    lost: RoleSet,
    /// Items over the pages that their primaries find wrong; told in a scrub only.
    wrong: Vec<(RoleIndex, Addr)>,
    cause: Cause,
}

/// Who wants to know what is left of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A stand-in, which lacks these pages.
    Repair(HostId),
    /// This parity.
    Scrub,
}

impl Session {
    /// For a stand-in: of the roles of `gone` nobody is asked, and those of `lost` are in the sum.
    pub(super) fn of_repair(
        stand_in: HostId,
        pages: PageRange,
        opened_at: Time,
        sum: Vec<u8>,
        gone: RoleSet,
        lost: RoleSet,
    ) -> Self {
        Self { pages, opened_at, sum, gone, lost, wrong: Vec::new(), cause: Cause::Repair(stand_in) }
    }

    /// Of the parity itself, in which nothing of what is in the sum is lost. Nobody is asked for the roles of `gone`, which are
    /// not in it.
    pub(super) fn of_scrub(pages: PageRange, opened_at: Time, sum: Vec<u8>, gone: RoleSet) -> Self {
        let (lost, wrong) = (RoleSet::default(), Vec::new());
        Self { pages, opened_at, sum, gone, lost, wrong, cause: Cause::Scrub }
    }

    pub(super) fn pages(&self) -> PageRange {
        self.pages
    }

    pub(super) fn sum(&self) -> &[u8] {
        &self.sum
    }

    pub(super) fn lost(&self) -> RoleSet {
        self.lost
    }

    pub(super) fn wrong(&self) -> &[(RoleIndex, Addr)] {
        &self.wrong
    }

    pub(super) fn cause(&self) -> Cause {
        self.cause
    }

    pub(super) fn opened_at(&self) -> Time {
        self.opened_at
    }

    /// Whether the bytes of `role` are still to come.
    pub(super) fn awaits(&self, role: RoleIndex) -> bool {
        !self.gone.contains(role)
    }

    /// What a stand-in is told at the end.
    pub(super) fn into_residual(self, session: SessionId) -> Residual {
        Residual { session, lost: self.lost.list(), bytes: self.sum.into() }
    }

    /// `role`'s bytes leave the sum, or the role is lost at its own node; either way it is gone.
    fn take_out(&mut self, role: RoleIndex, coefficient: u8, page: &Page) {
        match &page.bytes {
            Some(bytes) => codec::mul_add(&mut self.sum, coefficient, bytes).expect("slices of one length"),
            None => self.lost.insert(role),
        }
        self.gone.insert(role);
        self.wrong.extend(page.wrong.iter().map(|addr| (role, *addr)));
    }

    /// A record of `role` was applied to the area: the copy follows, unless the role has left the sum.
    fn apply(&mut self, rules: Rules, role: RoleIndex, coefficient: u8, write: &Write) {
        if rules.frozen_roles_stay_out() && self.gone.contains(role) {
            return;
        }
        let start = self.pages.start_byte();
        let end = start + self.pages.len_bytes();
        let from = write.addr.byte().max(start);
        let to = (write.addr.byte() + write.delta.len()).min(end);
        if from < to {
            let delta = &write.delta[from - write.addr.byte()..to - write.addr.byte()];
            codec::mul_add(&mut self.sum[from - start..to - start], coefficient, delta)
                .expect("slices of one length");
        }
    }
}

/// The open sessions of one parity.
pub(super) struct Sessions {
    open: BTreeMap<SessionId, Session>,
    budget: Budget,
}

impl Sessions {
    pub(super) fn new(budget: Budget) -> Self {
        Self { open: BTreeMap::new(), budget }
    }

    /// Memory of all, their own included.
    pub(super) fn memory_bytes(&self) -> usize {
        self.open.values().map(|session| size_of::<Session>() + session.sum.capacity()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether there may be one more.
    pub(super) fn have_place(&self, limits: &crate::Limits) -> bool {
        self.open.len() < limits.parity_sessions
    }

    /// Takes memory for a copy of `len_bytes`; whether there is some. [`Self::insert`] must follow.
    pub(super) fn reserve(&self, context: &Context<'_>, len_bytes: usize) -> bool {
        context.pace.has_memory(self.budget.used(Category::Repair), len_bytes)
            && self.budget.try_reserve(Category::Repair, len_bytes).is_ok()
    }

    pub(super) fn insert(&mut self, id: SessionId, session: Session) {
        self.open.insert(id, session);
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.open.get(&id)
    }

    /// Takes what `page` brings of `role` out of a session.
    pub(super) fn take_out(&mut self, id: SessionId, role: RoleIndex, coefficient: u8, page: &Page) {
        if let Some(session) = self.open.get_mut(&id) {
            session.take_out(role, coefficient, page);
        }
    }

    /// Ends the session if nobody is left of `roles` to wait for.
    pub(super) fn remove_complete(&mut self, id: SessionId, roles: RoleSet) -> Option<Session> {
        let complete = self.open.get(&id).is_some_and(|session| session.gone == roles);
        if complete { self.remove(id) } else { None }
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.open.remove(&id)?;
        self.budget.release(Category::Repair, session.pages.len_bytes());
        Some(session)
    }

    /// A record of `role` was applied to the area.
    pub(super) fn apply(&mut self, rules: Rules, role: RoleIndex, coefficient: u8, write: &Write) {
        for session in self.open.values_mut() {
            session.apply(rules, role, coefficient, write);
        }
    }

    /// A stand-in has at most `WINDOW` sessions open: older ones were given up without a word, and so was one of the same number.
    pub(super) fn make_way_for(&mut self, newest: SessionId) {
        self.remove(newest);
        // Sessions are ordered by role, term and number: those of one stand-in in one term are side by side.
        let oldest = SessionId { number: newest.number.saturating_sub(WINDOW), ..newest };
        let from = SessionId { number: 0, ..newest };
        let abandoned: Vec<SessionId> = self.open.range(from..oldest).map(|(id, _)| *id).collect();
        for id in abandoned {
            self.remove(id);
        }
    }

    /// When a stand-in has been silent for too long.
    pub(super) fn due(&self, timing: &crate::Timing) -> Time {
        let oldest = self.open.values().map(Session::opened_at).min();
        oldest.map_or(Time::NEVER, |at| at + stale_us(timing))
    }

    /// Gives up sessions whose stand-in went silent.
    pub(super) fn remove_stale(&mut self, now: Time, timing: &crate::Timing) {
        let is_stale = |session: &Session| session.opened_at() + stale_us(timing) <= now;
        let open = self.open.iter();
        let stale: Vec<_> = open.filter(|(_, session)| is_stale(session)).map(|(id, _)| *id).collect();
        for id in stale {
            self.remove(id);
        }
    }

    /// What holds after every event: I7.
    pub(super) fn check_invariants(&self, view: &GroupView) {
        for (id, session) in &self.open {
            let is_of_view = match session.cause {
                Cause::Repair(stand_in) => {
                    view.data_role(id.role).is_some_and(|role| role.primary == Some(stand_in))
                }
                Cause::Scrub => view.is_steady(),
            };
            assert!(is_of_view, "a session lives inside one view");
            assert!(session.lost.without(session.gone) == RoleSet::default(), "who is lost is gone");
        }
    }

    pub(super) fn clear(&mut self) {
        while let Some((&id, _)) = self.open.first_key_value() {
            self.remove(id);
        }
    }
}

/// After how long a session is given up.
fn stale_us(timing: &crate::Timing) -> u64 {
    MAX_SESSION_RETRIES * timing.retry_us
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.clear();
    }
}
