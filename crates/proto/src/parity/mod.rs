//! A parity member: keeps `A_j = sum of c[j][i] * D_i`, a log of each data role's stream, and a replica of each index.
//!
//! The mirror of a data role `i` is a parity, too: its row is the unit vector `e_i`, so it takes one stream, and its area is
//! that of the role.
//!
//! Invariants (group protocol, section 3): I1 the log of a stream is contiguous and `applied <= received`; I3 the area
//! equals the weighted sum of the data areas at the applied records; I4 only committed records are applied, so nothing
//! is ever undone; I7 sessions live inside one view.

mod extents;
mod learner;
mod loss;
mod rejoin;
mod scrub;
mod session;
mod stream;

use std::collections::BTreeMap;

use cluster::{Epoch, GroupView, HostId, MemberId, RoleIndex, Seq, Term, Time, UnixSeconds};
use store::{Area, Budget, Category, Replica, StoreConfig};
use wire::message::{
    Ack, FetchIndex, Frame, GroupBody, IndexPart, Record, Reject, SessionId, ToCoordinator, Welcome,
};

use crate::Impossible;
use crate::outbox::{Context, Sender};
use crate::roles::RoleSet;
use crate::size::record_bytes;
use learner::Learner;
pub(crate) use rejoin::Rejoined;
use scrub::Scrub;
pub use scrub::ScrubFinding;
use session::Session;
pub(crate) use stream::Stream;

/// A session that is older than this many retry time-outs was given up by its stand-in.
const MAX_SESSION_RETRIES: u64 = 64;

/// See the module.
pub(crate) struct Parity {
    member: MemberId,
    view: GroupView,
    area: Area,
    budget: Budget,
    streams: Vec<Stream>,
    sessions: BTreeMap<SessionId, Session>,
    /// Until the view calls it in sync.
    learner: Option<Learner>,
    scrub: Scrub,
}

impl Parity {
    /// The parity of a new group, before any record; or a learner, if that is what the view says.
    pub(crate) fn new(
        member: MemberId,
        host: HostId,
        view: GroupView,
        config: &StoreConfig,
        budget: &Budget,
    ) -> Result<Self, store::AreaError> {
        let area = Area::reserve(config.area_limit_bytes, budget.clone(), Category::Parity)?;
        let streams = view.data.iter().map(|role| Stream::new(role, budget.clone())).collect();
        let learner = view.learner(member.role).filter(|learner| learner.host == host);
        let learner = learner.map(|learner| Learner::new(learner.since));
        Ok(Self {
            member,
            view,
            area,
            budget: budget.clone(),
            streams,
            sessions: BTreeMap::new(),
            learner,
            scrub: Scrub::default(),
        })
    }

    pub(crate) fn member(&self) -> MemberId {
        self.member
    }

    pub(crate) fn area(&self) -> &Area {
        &self.area
    }

    /// Memory of the sessions, its own included.
    pub(crate) fn session_bytes(&self) -> usize {
        self.sessions.values().map(Session::memory_bytes).sum()
    }

    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Row of this role in the parity part of the code; none for a mirror.
    pub(crate) fn row(&self) -> Option<usize> {
        usize::from(self.member.role.0).checked_sub(self.streams.len())
    }

    /// The data roles whose streams it takes: those that weigh something in its row, and are not lost.
    fn support(&self) -> RoleSet {
        match self.row() {
            Some(_) => RoleSet::all(self.streams.len()).without(self.lost_roles()),
            None => RoleSet::only(self.member.role),
        }
    }

    /// Whether `role` is one of them.
    fn takes(&self, role: RoleIndex) -> bool {
        match self.row() {
            Some(_) => self.view.data_role(role).is_some_and(|data| !data.status.is_lost()),
            None => role == self.member.role,
        }
    }

    /// What the bytes of `role` weigh in this area.
    fn coefficient(&self, context: &Context<'_>, role: RoleIndex) -> u8 {
        match self.row() {
            Some(row) => context.code.coefficient(row, usize::from(role.0)),
            None => u8::from(role == self.member.role),
        }
    }

    fn sender(&self) -> Sender {
        Sender { group: self.member.group, role: self.member.role, view: self.view.version }
    }

    fn stream(&mut self, role: RoleIndex) -> Option<&mut Stream> {
        self.streams.get_mut(usize::from(role.0))
    }

    /// A newer view: sessions end (I7). What it took if that calls a parity in sync that has come back.
    pub(crate) fn adopt(&mut self, view: &GroupView) -> Option<Rejoined> {
        debug_assert!(view.version > self.view.version, "views only grow");
        self.view = view.clone();
        self.drop_sessions();
        self.begin_new_lives();
        if self.learner.as_ref().is_none_or(|learner| learner.is_named_by(view, self.member.role)) {
            return None;
        }
        let rejoined = self.rejoined();
        self.learner = None;
        self.return_unused_extents();
        rejoined
    }

    /// Answers `Reject` and says no if `term` is fenced.
    fn admits(&self, context: &mut Context<'_>, from: HostId, role: RoleIndex, term: Term) -> bool {
        let Some(stream) = self.streams.get(usize::from(role.0)) else { return false };
        if !self.takes(role) || self.is_unknown(role) {
            return false;
        }
        if term >= stream.fence() || crate::planted(crate::Bug::StaleTermAccepted) {
            return true;
        }
        let reject = Reject { fence: stream.fence() };
        self.sender().send(context, from, role, GroupBody::Reject(reject));
        false
    }

    /// A primary on a new connection, or a new primary: tells it where to go on.
    pub(crate) fn handle_hello(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        term: Term,
        committed: Seq,
    ) {
        if !self.admits(context, from, role, term) {
            return;
        }
        let received = self.streams[usize::from(role.0)].received();
        if let Err(why) = self.check_committed(committed, received) {
            return context.impossible(from, why);
        }
        self.apply_up_to(context, role, committed);
        let stream = &self.streams[usize::from(role.0)];
        let welcome = Welcome { term, received: stream.received(), wall: stream.wall() };
        self.sender().send(context, from, role, GroupBody::Welcome(welcome));
    }

    /// What a primary has committed every parity in sync has acknowledged; a learner may lack some of it.
    pub(super) fn check_committed(&self, committed: Seq, received: Seq) -> Result<(), Impossible> {
        let possible = committed <= received || self.learner.is_some();
        if possible { Ok(()) } else { Err(Impossible::Committed { committed, received }) }
    }

    /// Records: kept if they follow what is there, applied up to the commit index, acknowledged once.
    pub(crate) fn handle_frame(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        frame: Frame,
    ) {
        if !self.admits(context, from, role, frame.term) {
            return;
        }
        let is_learning = !self.has_learned_all();
        let newest = frame.records.last().map_or(Seq(0), |record| record.seq);
        let received = self.streams[usize::from(role.0)].received();
        if let Err(why) = self.check_committed(frame.committed, received.max(newest)) {
            return context.impossible(from, why);
        }
        for record in frame.records {
            if self.learner.is_some() && !self.commit_for_record(context, &record) {
                return;
            }
            let stream = &mut self.streams[usize::from(role.0)];
            match stream.place(record.seq) {
                stream::Place::Duplicate => self.apply_again_if_planted(context, role, &record),
                stream::Place::Gap if is_learning => return self.start_again(),
                stream::Place::Gap => {
                    // The sender believes in records that this parity does not have: make it start from what is there.
                    let (term, received, wall) = (frame.term, stream.received(), stream.wall());
                    let welcome = Welcome { term, received, wall };
                    return self.sender().send(context, from, role, GroupBody::Welcome(welcome));
                }
                stream::Place::Next => {
                    let (bytes, seq) = (record_bytes(&record), record.seq);
                    if stream.keep(record, &self.area).is_err() {
                        return context.impossible(from, Impossible::Place { seq });
                    }
                    if crate::planted(crate::Bug::ApplyOnReceive) {
                        let received = stream.received();
                        self.apply_up_to(context, role, received);
                    }
                    self.count_resumed(bytes);
                }
            }
        }
        self.apply_up_to(context, role, frame.committed);
        let stream = &mut self.streams[usize::from(role.0)];
        stream.note_acknowledged(context.now.time, frame.wall);
        let received = stream.received();
        let ack = Ack { term: frame.term, received, echo: frame.sent_at };
        self.sender().send(context, from, role, GroupBody::Ack(ack));
    }

    /// Applies what is kept of `role`'s stream up to `upto`, to the area, the replica and the open sessions.
    fn apply_up_to(&mut self, context: &mut Context<'_>, role: RoleIndex, upto: Seq) {
        let mut coefficient = self.coefficient(context, role);
        if crate::planted(crate::Bug::WrongCoefficient) && self.row() == Some(1) && role.0 == 1 {
            coefficient ^= 1;
        }
        self.streams[usize::from(role.0)].prefetch(upto, &self.area);
        while let Some(record) = self.streams[usize::from(role.0)].pop_applicable(upto) {
            for write in &record.writes {
                let delta = self.streams[usize::from(role.0)].known_part(write);
                codec::mul_add(self.area.bytes_mut(write.addr.byte(), delta.len()), coefficient, delta)
                    .expect("slices of one length");
                for session in self.sessions.values_mut() {
                    session.apply(role, coefficient, write);
                }
            }
            self.streams[usize::from(role.0)].finish(&record);
            self.note_wiped(role, &record);
        }
    }

    fn apply_again_if_planted(&mut self, context: &Context<'_>, role: RoleIndex, record: &Record) {
        if crate::planted(crate::Bug::DuplicateApplied) {
            let coefficient = self.coefficient(context, role);
            for write in &record.writes {
                codec::mul_add(
                    self.area.bytes_mut(write.addr.byte(), write.delta.len()),
                    coefficient,
                    &write.delta,
                )
                .expect("slices of one length");
            }
        }
    }

    /// What a mirror has, if it is complete and the stream of the role is settled at `end` for `term`: the area, the index and
    /// the second with which it takes the role over.
    pub(crate) fn into_store(mut self, term: Term, end: Seq) -> Option<(Area, Replica, UnixSeconds)> {
        let role = self.member.role;
        let complete = self.row().is_none() && self.learner.is_some() && self.has_learned_all();
        let empty = Area::reserve(0, self.budget.clone(), Category::Parity).ok()?;
        let budget = self.budget.clone();
        let stream = self.stream(role)?;
        if !complete || stream.settled() != Some(term) || stream.applied() != end {
            return None;
        }
        let wall = stream.wall();
        let replica = std::mem::replace(&mut stream.replica, Replica::new(budget));
        Some((std::mem::replace(&mut self.area, empty), replica, wall))
    }

    /// Recovery, F1: nothing below `term` any more. Answers what this parity has; none for a role that it does not know.
    pub(crate) fn fence(
        &mut self,
        now: Time,
        role: RoleIndex,
        (term, epoch): (Term, Epoch),
    ) -> Option<ToCoordinator> {
        let MemberId { group, role: parity } = self.member;
        let stream = self.stream(role)?;
        stream.raise_fence(term);
        let (received, applied, quiet_us) = (stream.received(), stream.applied(), stream.quiet_us(now));
        let fenced = ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch };
        (stream.fence() == term).then_some(fenced)
    }

    /// Recovery, F3: the old stream ends at `upto`. Whether this is done (also if it was before).
    pub(crate) fn settle(
        &mut self,
        context: &mut Context<'_>,
        role: RoleIndex,
        term: Term,
        upto: Seq,
    ) -> bool {
        let Some(stream) = self.stream(role) else { return false };
        if stream.fence() != term {
            return false;
        }
        if stream.settled() == Some(term) && !crate::planted(crate::Bug::SettleRepeated) {
            return true;
        }
        if upto > stream.received() && !crate::planted(crate::Bug::LostTailAfterTakeover) {
            tracing::error!(member = %self.member, %role, %upto, "told to settle beyond what was received; refusing");
            return false;
        }
        if upto < stream.applied() && !crate::planted(crate::Bug::SettleRepeated) {
            tracing::error!(member = %self.member, %role, %upto, "told to settle before what was applied; refusing");
            return false;
        }
        if !crate::planted(crate::Bug::NoSettle) {
            self.apply_up_to(context, role, upto);
        }
        self.streams[usize::from(role.0)].settle(term, upto);
        self.return_unused_extents();
        true
    }

    /// A stand-in wants the replica of its role. Only answered for the settled stream of its own term.
    pub(crate) fn handle_fetch_index(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        fetch: &FetchIndex,
    ) {
        let sender = self.sender();
        let Some(stream) = self.stream(role) else { return };
        if stream.fence() != fetch.term || stream.settled() != Some(fetch.term) {
            return;
        }
        let (bytes, last) = stream.replica().encode_part(fetch.part, context.limits.index_part_bytes);
        let part = IndexPart { term: fetch.term, part: fetch.part, last, bytes };
        sender.send(context, from, role, GroupBody::IndexPart(part));
    }

    /// Gives up sessions whose stand-in went silent.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        self.ask_for_lessons(context);
        self.tick_scrub(context);
        let oldest = context.now.time - MAX_SESSION_RETRIES * context.timing.retry_us;
        let stale: Vec<_> =
            self.sessions.iter().filter(|(_, s)| s.opened_at() < oldest).map(|(id, _)| *id).collect();
        for id in stale {
            self.remove_session(id);
        }
    }
}
