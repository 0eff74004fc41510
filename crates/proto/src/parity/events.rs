//! What reaches a parity: messages and connections. Each goes to the parts that it concerns.

use types::{DataRole, HostId, Reach, RoleIndex, Seq, Term};
use wire::message::{
    Abort, Ack, FetchIndex, Frame, GroupBody, Hello, IndexPart, Learn, LearnPart, Learned, Open, Opened,
    Page, Record, Reject, Reserve, Reserved, SessionId, Welcome,
};

use super::learner::Unfit;
use super::session::{Cause, Session};
use super::stream::Place;
use super::sum::Weighted;
use super::{Parity, Stream};
use crate::Impossible;
use crate::outbox::{Context, Peer};
use crate::roles::RoleSet;
use crate::size::record_bytes;

/// What became of a record.
enum Kept {
    /// It is here, or was before.
    Yes,
    /// Records before it are missing.
    Gap,
    /// There is no memory for it, or no place.
    No,
}

impl Parity {
    /// A message of another member.
    pub(crate) fn handle(&mut self, context: &mut Context<'_>, from: Peer, body: GroupBody) {
        match body {
            GroupBody::Hello(hello) => self.handle_hello(context, from, &hello),
            GroupBody::Frame(frame) => self.handle_frame(context, from, frame),
            GroupBody::Reserve(reserve) => self.handle_reserve(context, from, &reserve),
            GroupBody::FetchIndex(fetch) => self.handle_fetch_index(context, from, &fetch),
            GroupBody::Open(open) => self.handle_open(context, from.host, &open),
            GroupBody::Abort(abort) => self.handle_abort(from.host, abort.session),
            GroupBody::Page(page) => self.handle_page(context, from, &page),
            GroupBody::Learn(learn) => self.handle_learn(context, from, &learn),
            // By name, so that whoever adds a message has to say here who takes it.
            GroupBody::Welcome(_)
            | GroupBody::Ack(_)
            | GroupBody::Reject(_)
            | GroupBody::Reserved(_)
            | GroupBody::IndexPart(_)
            | GroupBody::Opened(_)
            | GroupBody::Read(_)
            | GroupBody::Residual(_)
            | GroupBody::LearnHello(_)
            | GroupBody::Learned(_) => {
                tracing::warn!(from = %from.host, member = %self.member(), "not for a parity");
            }
        }
    }

    fn send(&self, context: &mut Context<'_>, to: Peer, body: GroupBody) {
        self.core.sender().send(context, to, body);
    }

    /// The stream of a primary that may write: answers `Reject` if `term` is fenced.
    fn admit(&self, context: &mut Context<'_>, from: Peer, term: Term) -> Option<&Stream> {
        let stream = self.sum.stream(from.role).filter(|_| self.core.takes(from.role))?;
        // Of a role whose lesson has not begun records mean nothing here yet.
        if self.learner.is_some() && !stream.has_begun() {
            return None;
        }
        if context.rules.message_needs_unfenced_term(term >= stream.fence()) {
            return Some(stream);
        }
        // An answer, and not silence: a deposed primary that hears it asks for its view at once.
        self.send(context, from, GroupBody::Reject(Reject { fence: stream.fence() }));
        None
    }

    /// A primary on a new connection, or a new primary: tells it where to go on.
    fn handle_hello(&mut self, context: &mut Context<'_>, from: Peer, hello: &Hello) {
        let Some(stream) = self.admit(context, from, hello.term) else { return };
        if let Err(why) = self.check_committed(hello.committed, stream.received()) {
            return context.impossible(from.host, why);
        }
        // The Frame that told of this commit index may be lost with the connection before.
        self.apply_up_to(context, from.role, hello.committed);
        self.welcome(context, from, hello.term);
    }

    /// Go on after what is here.
    fn welcome(&self, context: &mut Context<'_>, from: Peer, term: Term) {
        let Some(stream) = self.sum.stream(from.role) else { return };
        let welcome = Welcome { term, received: stream.received(), wall: stream.wall() };
        self.send(context, from, GroupBody::Welcome(welcome));
    }

    /// Records: kept if they follow what is there, applied up to the commit index, acknowledged once.
    fn handle_frame(&mut self, context: &mut Context<'_>, from: Peer, frame: Frame) {
        let Some(stream) = self.admit(context, from, frame.term) else { return };
        let newest = frame.records.last().map_or(Seq(0), |record| record.seq);
        let received = stream.received().max(newest);
        // Before anything is kept: of a Frame that cannot be, nothing counts.
        if let Err(why) = self.check_committed(frame.committed, received) {
            return context.impossible(from.host, why);
        }
        // First what was kept before: what comes is kept in its place, where the lines are near.
        self.apply_up_to(context, from.role, frame.committed);
        for record in frame.records {
            match self.keep(context, from, record) {
                Kept::Yes => {}
                // What is missing may be out of the log by now, and nobody counts on this learner yet.
                Kept::Gap if !self.has_learned_all() => return self.start_again(),
                // The sender believes in records that this parity does not have: make it start from what is there.
                Kept::Gap => return self.welcome(context, from, frame.term),
                // Without an Ack: the primary must not count on what is not here.
                Kept::No => return,
            }
        }
        let received = self.sum.stream(from.role).map_or(Seq(0), Stream::received);
        self.apply_up_to(context, from.role, context.rules.applies_up_to(frame.committed, received));
        let Some(stream) = self.sum.stream_mut(from.role) else { return };
        // Also for a Frame without records: each Ack renews the read lease, and `quiet_us` counts from the last one.
        stream.note_acknowledged(context.now.time, frame.wall);
        let ack = Ack { term: frame.term, received: stream.received(), echo: frame.sent_at };
        self.send(context, from, GroupBody::Ack(ack));
    }

    fn keep(&mut self, context: &mut Context<'_>, from: Peer, record: Record) -> Kept {
        let role = from.role;
        if let Some(learner) = &mut self.learner
            // What of it the role has is told at the end of the lesson.
            && self.sum.commit_for(&record).is_err()
        {
            learner.give_up(context, &self.core);
            return Kept::No;
        }
        match self.sum.stream(role).map_or(Place::Gap, |stream| stream.place(record.seq)) {
            // What was in flight when a link broke is sent again.
            Place::Duplicate => {
                let coefficient = self.core.coefficient(role);
                let again = context.rules.counts_again(&record.writes);
                again.iter().for_each(|write| self.sum.add(coefficient, write.addr.byte(), &write.delta));
            }
            Place::Gap => return Kept::Gap,
            Place::Next => {
                let (bytes, seq) = (record_bytes(&record), record.seq);
                if self.sum.keep(role, record).is_err() {
                    context.impossible(from.host, Impossible::Place { seq });
                    return Kept::No;
                }
                if let Some(learner) = &mut self.learner {
                    learner.count(bytes);
                }
            }
        }
        Kept::Yes
    }

    /// May a data role use an extent so far? Yes if there is memory for its parity.
    fn handle_reserve(&mut self, context: &mut Context<'_>, from: Peer, reserve: &Reserve) {
        if self.admit(context, from, reserve.term).is_none() {
            return;
        }
        let granted = self.sum.grant_growth(from.role, Reach(reserve.run));
        let reserved = Reserved { term: reserve.term, run: reserve.run, granted };
        self.send(context, from, GroupBody::Reserved(reserved));
    }

    /// A stand-in wants the replica of its role. Only answered for the settled stream of its own term.
    fn handle_fetch_index(&self, context: &mut Context<'_>, from: Peer, fetch: &FetchIndex) {
        let Some(stream) = self.sum.stream(from.role) else { return };
        // Before the Settle the replica may lack records that others have applied. After it nothing changes the replica
        // until the stand-in has all of it, for only then can the stand-in write.
        if stream.fence() != fetch.term || stream.settled() != Some(fetch.term) {
            return;
        }
        let (bytes, last) = stream.replica().encode_part(fetch.part, context.limits.index_part_bytes);
        let part = IndexPart { term: fetch.term, part: fetch.part, last, bytes };
        self.send(context, from, GroupBody::IndexPart(part));
    }

    /// R1: take the copy.
    fn handle_open(&mut self, context: &mut Context<'_>, from: HostId, open: &Open) {
        let id = open.session;
        if let Err(why) = self.check_open(from, open) {
            return context.impossible(from, why);
        }
        if !self.may_open(context, from, open) {
            return self.abort(context, from, id);
        }
        // First, for the memory of sessions that were given up is needed for this one.
        self.sessions.make_way_for(id);
        if !self.sessions.reserve(context, open.pages.len_bytes()) {
            return self.abort(context, from, id);
        }
        if self.core.takes(id.role) {
            // The stand-in may have written these pages, and given them up since for want of memory. All parities of
            // the session need the same bytes of its role.
            self.apply_up_to(context, id.role, open.committed);
        }
        let mut gone = RoleSet::only(id.role);
        for (role, _) in self.core.view().data_roles().filter(|(_, data)| data.primary.is_none()) {
            gone.insert(role);
        }
        // Nothing is in the sum of a role that is lost for good, or that this row does not cover.
        let absent = self.core.absent_roles();
        let lost = gone.without(absent);
        let gone = gone.with(absent);
        let copy = self.sum.copy_pages(open.pages);
        let session = Session::of_repair(from, open.pages, context.now.time, copy, gone, lost);
        self.sessions.insert(id, session);
        self.send(context, Peer { role: id.role, host: from }, GroupBody::Opened(Opened { session: id }));
        // Where this row covers nobody else that is served, nobody is asked: the copy is the answer.
        self.finish_if_complete(context, id);
    }

    /// What is committed by the stand-in this parity has, if it takes its records, and the pages are in the area.
    fn check_open(&self, from: HostId, open: &Open) -> Result<(), Impossible> {
        // From who is no stand-in here it is only late: `may_open` refuses it.
        let Some(stream) = self.stand_in_stream(from, open) else { return Ok(()) };
        if self.core.takes(open.session.role) {
            self.check_committed(open.committed, stream.received())?;
        }
        if self.sum.has_place_for(open.pages) { Ok(()) } else { Err(Impossible::Pages) }
    }

    fn stand_in_stream(&self, from: HostId, open: &Open) -> Option<&Stream> {
        let stand_in = self.core.view().data_role(open.session.role)?.primary;
        self.sum.stream(open.session.role).filter(|_| stand_in == Some(from))
    }

    fn may_open(&self, context: &Context<'_>, from: HostId, open: &Open) -> bool {
        // A row that does not cover the stand-in's role may be needed to take another lost one out of the rest.
        let is_covered = self.core.takes(open.session.role);
        let has_all = |stream: &Stream| !is_covered || open.committed <= stream.received();
        self.row().is_some()
            && self.stand_in_stream(from, open).is_some_and(has_all)
            && self.sessions.have_place(context.limits)
    }

    /// R4: `role`'s bytes as of `page.committed` leave the sum, or the role is lost here too; either way it is gone.
    fn handle_page(&mut self, context: &mut Context<'_>, from: Peer, page: &Page) {
        let (id, role) = (page.session, from.role);
        let Some(stream) = self.admit(context, from, page.term) else { return };
        // A role leaves a sum once: a second Page of it would be taken out twice.
        let Some(session) = self.sessions.get(id).filter(|session| session.awaits(role)) else { return };
        let (cause, expected_len) = (session.cause(), session.pages().len_bytes());
        let fits = page.bytes.as_ref().is_none_or(|bytes| bytes.len() == expected_len);
        let length = if fits { Ok(()) } else { Err(Impossible::Pages) };
        if let Err(why) = self.check_committed(page.committed, stream.received()).and(length) {
            context.impossible(from.host, why);
            return self.call_off(context, id, cause);
        }
        // First the records that these bytes contain. Once the role is gone they would not reach the sum any more.
        if cause != Cause::Scrub || context.rules.scrubbed_pages_follow_their_records() {
            self.apply_up_to(context, role, page.committed);
        }
        self.sessions.take_out(id, role, self.core.coefficient(role), page);
        self.finish_if_complete(context, id);
    }

    /// R5: nobody is left to wait for.
    fn finish_if_complete(&mut self, context: &mut Context<'_>, id: SessionId) {
        let all = RoleSet::all(self.core.view().k());
        let Some(session) = self.sessions.remove_complete(id, all) else { return };
        match session.cause() {
            Cause::Repair(stand_in) => {
                let residual = GroupBody::Residual(session.into_residual(id).into());
                self.send(context, Peer { role: id.role, host: stand_in }, residual);
            }
            Cause::Scrub => {
                if self.scrub.finish(context, &self.core, self.sum.area_mut(), id, &session) {
                    self.go_on_scrubbing(context);
                }
            }
        }
    }

    /// The stand-in has given the session up.
    fn handle_abort(&mut self, from: HostId, id: SessionId) {
        // Nobody else can end it, and nobody at all a scrub of this parity.
        if self.sessions.get(id).is_some_and(|session| session.cause() == Cause::Repair(from)) {
            self.sessions.remove(id);
        }
    }

    /// The session cannot be brought to an end.
    fn call_off(&mut self, context: &mut Context<'_>, id: SessionId, cause: Cause) {
        match cause {
            // The stand-in need not wait for its time-out.
            Cause::Repair(stand_in) => {
                self.sessions.remove(id);
                self.abort(context, stand_in, id);
            }
            Cause::Scrub => self.scrub.give_up(&mut self.sessions, id),
        }
    }

    fn abort(&self, context: &mut Context<'_>, stand_in: HostId, id: SessionId) {
        let to = Peer { role: id.role, host: stand_in };
        self.send(context, to, GroupBody::Abort(Abort { session: id }));
    }

    /// What was in flight on the link to `host` is lost, and with it the lesson of a primary there.
    pub(crate) fn link_broken(&mut self, host: HostId) {
        let has_begun = |role| self.sum.stream(role).is_some_and(Stream::has_begun);
        let teaches = |(role, data): (RoleIndex, &DataRole)| data.primary == Some(host) && has_begun(role);
        // With all lessons over it is in no danger: what was lost in flight is sent again after the Hello. And it must
        // not start again, for the view may already call it in sync (I6).
        if self.has_learned_all() || !self.core.view().data_roles().any(teaches) {
            return;
        }
        if let Some(learner) = &mut self.learner {
            learner.begin_again(&self.core, &mut self.sum);
        }
    }

    /// From nothing, unless every lesson has ended: then others may count on what is here.
    fn start_again(&mut self) {
        if !self.has_learned_all()
            && let Some(learner) = &mut self.learner
        {
            learner.begin_from_nothing(&self.core, &mut self.sum);
        }
    }

    /// A part of a lesson.
    fn handle_learn(&mut self, context: &mut Context<'_>, from: Peer, learn: &Learn) {
        let wanted = self.learner.as_ref().is_some_and(|learner| learner.takes(learn.lesson));
        let teacher = self.core.view().data_role(from.role);
        let teaches = teacher.is_some_and(|role| role.primary == Some(from.host) && role.term == learn.term);
        if !wanted || !teaches || !self.core.takes(from.role) {
            return;
        }
        match self.take_in(context, from.role, learn) {
            Ok(()) => {
                let learned = Learned { lesson: learn.lesson, term: learn.term, number: learn.number };
                self.send(context, from, GroupBody::Learned(learned));
            }
            Err(Unfit::NoMemory) => {
                if let Some(learner) = &mut self.learner {
                    learner.give_up(context, &self.core);
                }
            }
            // One primary cannot go on, so none can: the sum is of all roles together.
            Err(Unfit::Gone) => self.start_again(),
            Err(Unfit::Broken) => {
                tracing::warn!(member = %self.member(), role = %from.role, number = learn.number, "a lesson does not fit");
                self.start_again();
            }
        }
    }

    fn take_in(&mut self, context: &Context<'_>, role: RoleIndex, learn: &Learn) -> Result<(), Unfit> {
        let Some(learner) = &self.learner else { return Err(Unfit::Broken) };
        match learn.part {
            LearnPart::Begin { .. } | LearnPart::Resume | LearnPart::Gone => {
                return learner.open(context.rules, &mut self.sum, role, learn, &self.budget);
            }
            LearnPart::Run { .. } | LearnPart::Segment { .. } | LearnPart::End { .. } => {}
        }
        if !learner.awaits(&self.sum, role, learn.number, learn.tag) {
            return Err(Unfit::Broken);
        }
        // The part is the state after these.
        if context.rules.parts_follow_their_records() {
            self.apply_up_to(context, role, learn.tag);
        }
        let coefficient = self.core.coefficient(role);
        let Some(learner) = &mut self.learner else { return Err(Unfit::Broken) };
        learner.take_in(&mut self.sum, Weighted { role, coefficient }, &learn.part)
    }
}
