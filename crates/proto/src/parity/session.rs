//! Repair sessions at a parity (group protocol, section 5, R1, R4, R5).
//!
//! A session starts from a copy of the parity's pages and takes one data role after another out of the sum, each at one
//! exact point of that role's stream. What is left is the weighted sum of the lost roles.

use cluster::{HostId, RoleIndex, Time};
use store::{Addr, Category, PAGE_BYTES, PageRange};
use wire::message::{Abort, GroupBody, Open, Opened, Page, Residual, SessionId, Write};

use super::Parity;
use crate::Impossible;
use crate::outbox::Context;
use crate::roles::RoleSet;

/// Most pages of a session: a 64 KiB run.
pub(super) const MAX_PAGES: u32 = (store::RUN_BYTES / PAGE_BYTES) as u32;

/// Sessions that a stand-in may have open at a time, by far.
const WINDOW: u64 = 256;

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
enum Cause {
    /// A stand-in, which lacks these pages.
    Repair(HostId),
    /// This parity.
    Scrub,
}

impl Session {
    /// A session of the parity itself, in which nothing of what is in the sum is lost. Nobody is asked for the roles of `gone`,
    /// which are not in it.
    pub(super) fn of_scrub(pages: PageRange, opened_at: Time, sum: Vec<u8>, gone: RoleSet) -> Self {
        let (lost, wrong) = (RoleSet::default(), Vec::new());
        Self { pages, opened_at, sum, gone, lost, wrong, cause: Cause::Scrub }
    }

    pub(super) fn pages(&self) -> PageRange {
        self.pages
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.sum.capacity()
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

    pub(super) fn opened_at(&self) -> Time {
        self.opened_at
    }

    /// A record of `role` was applied to the area: the copy follows, unless the role has left the sum.
    pub(super) fn apply(&mut self, role: RoleIndex, coefficient: u8, write: &Write) {
        if self.gone.contains(role) && !crate::planted(crate::Bug::NoFreeze) {
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

impl Parity {
    /// R1: take the copy.
    pub(crate) fn handle_open(&mut self, context: &mut Context<'_>, from: HostId, open: &Open) {
        let id = open.session;
        if let Err(why) = self.check_open(from, open) {
            return context.impossible(from, why);
        }
        if !self.may_open(context, from, open) {
            return self.abort(context, from, id);
        }
        self.remove_session(id);
        self.remove_abandoned(id);
        let len_bytes = open.pages.len_bytes();
        if !context.pace.has_memory(self.budget.used(Category::Repair), len_bytes)
            || self.budget.try_reserve(Category::Repair, len_bytes).is_err()
        {
            return self.abort(context, from, id);
        }
        self.apply_up_to(context, id.role, open.committed);
        let empty = self.lost_roles();
        let mut gone = RoleSet::only(id.role);
        for (role, _) in self.view.data_roles().filter(|(_, data)| data.primary.is_none()) {
            gone.insert(role);
        }
        let session = Session {
            pages: open.pages,
            opened_at: context.now.time,
            sum: self.copy_pages(open.pages),
            gone,
            lost: gone.without(empty),
            wrong: Vec::new(),
            cause: Cause::Repair(from),
        };
        self.sessions.insert(id, session);
        self.sender().send(context, from, id.role, GroupBody::Opened(Opened { session: id }));
        self.finish_if_complete(context, id);
    }

    /// What is committed by the stand-in this parity has, and the pages are in the area.
    fn check_open(&self, from: HostId, open: &Open) -> Result<(), Impossible> {
        let Some(stream) = self.stand_in_stream(from, open) else { return Ok(()) };
        self.check_committed(open.committed, stream.received())?;
        let in_area = open.pages.start_byte() + open.pages.len_bytes() <= self.area.limit_bytes();
        if in_area { Ok(()) } else { Err(Impossible::Pages) }
    }

    fn stand_in_stream(&self, from: HostId, open: &Open) -> Option<&super::Stream> {
        let stand_in = self.view.data_role(open.session.role)?.primary;
        self.streams.get(usize::from(open.session.role.0)).filter(|_| stand_in == Some(from))
    }

    fn may_open(&self, context: &Context<'_>, from: HostId, open: &Open) -> bool {
        let received = self.stand_in_stream(from, open).map(super::Stream::received);
        self.row().is_some()
            && received.is_some_and(|received| open.committed <= received)
            && self.sessions.len() < context.limits.parity_sessions
    }

    /// The pages' bytes; zero where nothing was ever reserved.
    pub(super) fn copy_pages(&self, pages: PageRange) -> Vec<u8> {
        if self.area.covers(pages.start_byte(), pages.len_bytes()) {
            self.area.bytes(pages.start_byte(), pages.len_bytes()).to_vec()
        } else {
            vec![0; pages.len_bytes()]
        }
    }

    /// R4: `role`'s bytes as of `page.committed` leave the sum, or the role is lost here too; either way it is gone.
    pub(crate) fn handle_page(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        page: &Page,
    ) {
        let id = page.session;
        if !self.admits(context, from, role, page.term) {
            return;
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if session.gone.contains(role) {
            return;
        }
        let cause = session.cause;
        let expected_len = session.pages.len_bytes();
        let received = self.streams[usize::from(role.0)].received();
        let fits = page.bytes.as_ref().is_none_or(|bytes| bytes.len() == expected_len);
        let length = if fits { Ok(()) } else { Err(Impossible::Pages) };
        if let Err(why) = self.check_committed(page.committed, received).and(length) {
            context.impossible(from, why);
            return self.call_off(context, id, cause);
        }
        if cause != Cause::Scrub || !crate::planted(crate::Bug::ScrubOutsideFifo) {
            self.apply_up_to(context, role, page.committed);
        }
        let coefficient = self.coefficient(context, role);
        let session = self.sessions.get_mut(&id).expect("looked up above; applying records ends no session");
        match &page.bytes {
            Some(bytes) => {
                codec::mul_add(&mut session.sum, coefficient, bytes).expect("slices of one length")
            }
            None => session.lost.insert(role),
        }
        session.gone.insert(role);
        session.wrong.extend(page.wrong.iter().map(|addr| (role, *addr)));
        self.finish_if_complete(context, id);
    }

    /// R5: nobody is left to wait for.
    fn finish_if_complete(&mut self, context: &mut Context<'_>, id: SessionId) {
        let all = RoleSet::all(self.streams.len());
        if self.sessions.get(&id).is_none_or(|session| session.gone != all) {
            return;
        }
        let session = self.remove_session(id).expect("checked above");
        match session.cause {
            Cause::Repair(stand_in) => {
                let residual = Residual { session: id, lost: session.lost.list(), bytes: session.sum.into() };
                self.sender().send(context, stand_in, id.role, GroupBody::Residual(residual));
            }
            Cause::Scrub => self.finish_scrub(context, id, session),
        }
    }

    /// The stand-in has given the session up.
    pub(crate) fn handle_abort(&mut self, from: HostId, id: SessionId) {
        if self.sessions.get(&id).is_some_and(|session| session.cause == Cause::Repair(from)) {
            self.remove_session(id);
        }
    }

    /// The session cannot be brought to an end.
    fn call_off(&mut self, context: &mut Context<'_>, id: SessionId, cause: Cause) {
        match cause {
            Cause::Repair(stand_in) => {
                self.remove_session(id);
                self.abort(context, stand_in, id);
            }
            Cause::Scrub => self.give_up_scrub(id),
        }
    }

    fn abort(&self, context: &mut Context<'_>, stand_in: HostId, id: SessionId) {
        self.sender().send(context, stand_in, id.role, GroupBody::Abort(Abort { session: id }));
    }

    /// A stand-in has at most `WINDOW` sessions open: older ones were given up without a word.
    fn remove_abandoned(&mut self, newest: SessionId) {
        let oldest = SessionId { number: newest.number.saturating_sub(WINDOW), ..newest };
        let from = SessionId { number: 0, ..newest };
        let abandoned: Vec<SessionId> = self.sessions.range(from..oldest).map(|(id, _)| *id).collect();
        for id in abandoned {
            self.remove_session(id);
        }
    }

    pub(super) fn remove_session(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.budget.release(Category::Repair, session.pages.len_bytes());
        Some(session)
    }

    pub(super) fn drop_sessions(&mut self) {
        while let Some((&id, _)) = self.sessions.first_key_value() {
            self.remove_session(id);
        }
        self.scrub.forget_session();
    }
}

impl Drop for Parity {
    fn drop(&mut self) {
        self.drop_sessions();
    }
}
