//! Writes that are done once: what is known of a write that has a name, and how long sessions last (docs/protocol.md, "Writes that are
//! done once").
//!
//! What came of writes is in the table of the replica, by the records that did them. Here is what no record says: what is on its
//! way, and when each session was last heard of.

use std::collections::{BTreeMap, VecDeque};

use smallvec::SmallVec;
use store::{DataStore, Written};
use types::op::{Failure, Outcome};
use types::{ClientSession, IndexOp, Once, Seq, Time, WriteResult};
use wire::message::Record;

use super::core::Core;
use super::stream::{Draft, Purpose, SendStream};
use crate::outbox::Context;

/// Sessions that one record ends.
const ENDS_AT_ONCE: usize = 256;
/// Sessions are looked through so often while one lasts.
const LOOKS_A_LEASE: u64 = 8;

/// The name of a write, as the table has it.
type Name = (ClientSession, u32);

/// See the module.
#[derive(Default)]
pub(super) struct Sessions {
    /// When this primary has last heard of each; those of which it never has count from its own beginning.
    heard: BTreeMap<ClientSession, Time>,
    /// Writes whose records are not committed.
    under_way: BTreeMap<Name, (Seq, WriteResult)>,
    /// The same, in the order of their records.
    order: VecDeque<(Seq, Name)>,
    /// Sessions of another data role that go on here, and whose beginnings are not committed.
    beginning: BTreeMap<ClientSession, Seq>,
    /// Sessions whose ends are not committed.
    ending: BTreeMap<ClientSession, Seq>,
    looked: Time,
    /// Those that have begun with this primary, or come to it, and how often their namespaces had begun to move to another pool by then.
    own: BTreeMap<ClientSession, u32>,
}

/// What becomes of a write that has a name.
#[derive(Debug, PartialEq)]
pub(super) enum Known {
    /// It was not done.
    Nothing,
    /// This is said of it now.
    Answer(Outcome),
    /// The same, once this record is committed.
    OnItsWay(Seq, Outcome),
}

/// What becomes of a session of another data role.
#[derive(Debug, PartialEq)]
pub(super) enum Followed {
    /// A record has to begin it.
    Begins,
    /// Such a record is on its way; or one that ends it.
    IsBeginning,
    NoRoom,
}

impl Sessions {
    /// What is known of the write that is called `once`.
    pub(super) fn look_up(
        &mut self,
        context: &Context<'_>,
        store: &DataStore,
        committed: Seq,
        once: &Once,
    ) -> Known {
        self.forget_committed(committed);
        let table = store.replica().sessions();
        let mut written = table.look_up(once.session, once.sequence);
        if self.ending.contains_key(&once.session) {
            written = Written::NoSession;
        }
        if written != Written::NoSession {
            self.heard.insert(once.session, context.now.time);
        }
        let rules = context.rules.sessions();
        if let Some((seq, result)) = self.under_way.get(&(once.session, once.sequence))
            && rules.writes_under_way_count()
        {
            return Known::OnItsWay(*seq, result.outcome());
        }
        match written {
            // What may have been done is not done anew for that.
            Written::NoSession if once.again => Known::Answer(Outcome::Failed(Failure::Expired)),
            Written::NoSession => Known::Answer(Outcome::Failed(Failure::NoSession)),
            Written::Over => Known::Answer(Outcome::Failed(Failure::Unknown)),
            Written::Done(result)
                if rules.results_are_said_again(
                    once,
                    table.newest(once.session),
                    self.own.contains_key(&once.session),
                ) =>
            {
                Known::Answer(result.outcome())
            }
            Written::Not | Written::Done(_) => {
                let kept = table.result_count() + self.under_way.len();
                let is_full = kept >= context.limits.write_results;
                // As above.
                let why = if once.again { Failure::Unknown } else { Failure::Busy };
                if is_full { Known::Answer(Outcome::Failed(why)) } else { Known::Nothing }
            }
        }
    }

    /// One more, which record `seq` begins, of a namespace that has begun to move to another pool so often; none if there is no room for it.
    pub(super) fn begin(
        &mut self,
        context: &Context<'_>,
        core: &Core,
        store: &DataStore,
        seq: Seq,
        conversions: u32,
    ) -> Option<ClientSession> {
        let table = store.replica().sessions();
        let secret = context.secret.session(core.member(), core.term(), seq);
        let is_secret = context.rules.sessions().numbers_are_secret();
        let id = if is_secret { secret } else { ClientSession(seq.0) };
        // One in 2^64 times there is that number: then it is as if there were no room.
        let may = table.len() < context.limits.client_sessions && !table.has(id);
        may.then(|| self.own.insert(id, conversions)).map(|_| id)
    }

    /// Whether it has begun with this primary, or come to it, when its namespace had begun to move so often.
    pub(super) fn is_of(&self, session: ClientSession, conversions: u32) -> bool {
        self.own.get(&session) == Some(&conversions)
    }

    /// A session of another data role is to go on here, with record `seq`.
    pub(super) fn follow(
        &mut self,
        context: &Context<'_>,
        store: &DataStore,
        seq: Seq,
        (session, conversions): (ClientSession, u32),
    ) -> Followed {
        if self.beginning.contains_key(&session) || self.ending.contains_key(&session) {
            return Followed::IsBeginning;
        }
        if store.replica().sessions().len() + self.beginning.len() >= context.limits.client_sessions {
            return Followed::NoRoom;
        }
        self.beginning.insert(session, seq);
        self.own.insert(session, conversions);
        self.heard.insert(session, context.now.time);
        Followed::Begins
    }

    /// A write was logged: what `record` says of it is on its way.
    pub(super) fn note_logged(&mut self, record: &Record) {
        let mut noted: Option<(Name, WriteResult)> = None;
        for op in &record.ops {
            match *op {
                IndexOp::WriteDone { session, sequence, code, version, .. } => {
                    noted = Some(((session, sequence), WriteResult { code, version, number: 0 }));
                }
                IndexOp::WriteCounted { number, .. } => {
                    if let Some((_, result)) = &mut noted {
                        result.number = number;
                    }
                }
                _ => {}
            }
        }
        if let Some((name, result)) = noted
            && self.under_way.insert(name, (record.seq, result)).is_none()
        {
            self.order.push_back((record.seq, name));
        }
    }

    /// From here on the table has them.
    fn forget_committed(&mut self, committed: Seq) {
        self.beginning.retain(|_, seq| *seq > committed);
        while let Some((_, name)) = self.order.pop_front_if(|(seq, _)| *seq <= committed) {
            self.under_way.remove(&name);
        }
    }

    /// Ends sessions that were not heard of for a lease.
    pub(super) fn expire(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
    ) {
        let (now, lease) = (context.now.time, context.timing.session_lease_us);
        self.forget_committed(stream.committed());
        self.ending.retain(|_, seq| *seq > stream.committed());
        if now.since(self.looked) < lease / LOOKS_A_LEASE {
            return;
        }
        self.looked = now;
        let table = store.replica().sessions();
        if table.is_empty() && self.heard.is_empty() {
            return;
        }
        let before = std::mem::take(&mut self.heard);
        self.heard = table.ids().map(|id| (id, before.get(&id).copied().unwrap_or(now))).collect();
        self.own.retain(|id, _| self.heard.contains_key(id));
        let over = self.heard.iter().filter(|(id, heard)| now.since(**heard) >= lease && !self.is_busy(**id));
        let over: SmallVec<[ClientSession; 4]> = over.map(|(id, _)| *id).take(ENDS_AT_ONCE).collect();
        if over.is_empty() {
            return;
        }
        let mut draft = Draft::of(Purpose::Schedule);
        draft.ops.extend(over.iter().map(|&session| IndexOp::SessionEnds { session }));
        let seq = stream.append(context, store, draft);
        self.ending.extend(over.into_iter().map(|session| (session, seq)));
    }

    /// Whether something of it is on its way.
    fn is_busy(&self, session: ClientSession) -> bool {
        let its = (session, 0)..=(session, u32::MAX);
        self.ending.contains_key(&session) || self.under_way.range(its).next().is_some()
    }

    /// Memory of what is on its way.
    pub(super) fn memory_bytes(&self) -> usize {
        self.under_way.len() * size_of::<(Name, (Seq, WriteResult))>()
            + self.order.capacity() * size_of::<(Seq, Name)>()
            + (self.heard.len() + self.ending.len() + self.beginning.len())
                * size_of::<(ClientSession, Time)>()
            + self.own.len() * size_of::<(ClientSession, u32)>()
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.order.len(), self.under_way.len(), "each write is on its way once");
    }
}
