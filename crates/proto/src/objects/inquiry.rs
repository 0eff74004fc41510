//! What a holder asks the owners of its chunks: what has become of their objects?
//!
//! Owner by owner, a batch at a time. All of an owner's chunks are asked about after each new term of it, and once a day, by a holder
//! that no view names any more at each ask interval; tentative ones whenever they have been that for the ask interval.

use std::collections::BTreeMap;

use store::{ChunkEntry, ChunkStore};
use types::{ChunkId, MemberId, NamespaceId, ObjectId, Term, Time};
use wire::object::{Ask, Asked, Harm, ObjectMessage, Verdict, Verdicts};

use super::scope::Scope;
use crate::{Rules, Timing};

/// Objects of one Ask.
const BATCH: usize = 256;
/// Chunks that are looked at for one.
const LOOK: usize = 4096;
/// After so long everything is asked about again, in microseconds.
const DAY_US: u64 = 24 * 3600 * 1_000_000;

/// See the module.
#[derive(Default)]
pub(super) struct Inquiry {
    owners: BTreeMap<MemberId, Known>,
    /// Whether chunks have come from other holders, of which their owners may have said more to those.
    filled: bool,
    /// When owners were last looked at.
    looked: Time,
    /// The question that is to be answered, and by which owner.
    pass: Option<Pass>,
}

/// What an owner has said.
#[derive(Clone, Copy)]
struct Known {
    /// The term in which it was asked about everything, or in which everything here was put.
    term: Term,
    /// When that was.
    at: Time,
    /// When it was last asked anything.
    asked: Time,
}

/// A walk over the chunks of one owner.
struct Pass {
    owner: MemberId,
    term: Term,
    /// Also about what is known to be committed.
    everything: bool,
    /// What comes next is after this.
    after: Option<ChunkId>,
    /// What was asked about last, to where, and when.
    asked: Vec<ObjectId>,
    upto: Option<ChunkId>,
    at: Time,
    /// Whether something has had no answer: then the owner is asked again.
    is_partial: bool,
    /// Whether the owner has forgotten much since some of it was answered: then it is asked again at once.
    is_overtaken: bool,
}

impl Inquiry {
    /// Goes on as far as it can.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, member: MemberId, chunks: &mut ChunkStore) {
        let (now, timing) = (scope.now.time, scope.timing());
        if self
            .pass
            .as_ref()
            .is_some_and(|pass| !pass.asked.is_empty() && now.since(pass.at) < timing.retry_us)
        {
            return;
        }
        while let Some(pass) = self.pass.take().or_else(|| self.next_pass(scope, member, chunks)) {
            if let Some(asking) = ask(pass, scope, member, chunks, &mut self.owners) {
                self.pass = Some(asking);
                return;
            }
        }
    }

    /// The next owner that is to be asked something.
    fn next_pass(
        &mut self,
        scope: &mut Scope<'_>,
        member: MemberId,
        chunks: &mut ChunkStore,
    ) -> Option<Pass> {
        let (now, timing) = (scope.now.time, scope.timing());
        if now.since(self.looked) < timing.ask_us {
            return None;
        }
        // Whom no view names nobody tells anything.
        let every_us = if is_named(scope, member) { DAY_US } else { timing.ask_us };
        let mut after = None;
        let object_after =
            |chunks: &ChunkStore, after| chunks.list_after(after, 1).next().map(|(id, _)| id.object);
        while let Some(first) = object_after(chunks, after) {
            let owner = first.owner;
            after = Some(last_of(owner));
            if is_dead(scope, owner) {
                forget_owner(chunks, owner);
                continue;
            }
            let view = scope.view(owner.group).and_then(|view| view.data_role(owner.role));
            let Some(term) = view.filter(|role| role.primary.is_some()).map(|role| role.term) else {
                continue;
            };
            // Of what was put in this term nobody has to be asked because of it.
            let term_of_all = if self.filled { Term(0) } else { first.term };
            let new = Known { term: term_of_all, at: now, asked: Time(0) };
            let known = *self.owners.entry(owner).or_insert(new);
            if known.asked > Time(0) && now.since(known.asked) < timing.ask_us {
                continue;
            }
            let everything = known.term < term || now.since(known.at) >= every_us;
            let is_due = |(_, entry): (ChunkId, &ChunkEntry)| is_due(entry, now, &timing);
            let of_owner = |id: &ChunkId| id.object.owner == owner;
            let mut all = chunks.list_after(before(owner), usize::MAX).take_while(|(id, _)| of_owner(id));
            if everything || chunks.tentative_count() > 0 && all.any(is_due) {
                return Some(Pass::of(owner, term, everything));
            }
        }
        self.looked = now;
        None
    }

    /// What an owner says is dead, and what it says is committed.
    pub(super) fn hear(&mut self, rules: Rules, verdicts: &Verdicts) -> (Vec<ObjectId>, Vec<ObjectId>) {
        // An answer of a lower term than the id's is of somebody who knows nothing of it.
        let knows = |id: &ObjectId| rules.objects().owner_knows(id.term, verdicts.term);
        let counts = |id: &ObjectId| id.owner == verdicts.owner && knows(id);
        let of = |wanted: Verdict| {
            let all = verdicts.verdicts.iter().filter(move |(id, verdict)| *verdict == wanted && counts(id));
            all.map(|(id, _)| *id).collect::<Vec<ObjectId>>()
        };
        if let Some(pass) = self.pass.as_mut().filter(|pass| pass.owner == verdicts.owner) {
            pass.answered(verdicts);
        }
        (of(Verdict::Dead), of(Verdict::Committed))
    }

    /// What is here has come from others, who may have known more: every owner is asked about everything.
    pub(super) fn ask_anew(&mut self) {
        self.owners.clear();
        (self.filled, self.looked) = (true, Time(0));
    }

    /// This owner is asked about everything of its own, for it may have forgotten much at once.
    pub(super) fn ask_anew_about(&mut self, owner: MemberId) {
        // Of an owner that was never asked nothing is known anyway: it is taken for one that is as old as can be.
        let anew = Known { term: Term(0), at: Time(0), asked: Time(0) };
        self.owners.insert(owner, anew);
        self.looked = Time(0);
        if let Some(pass) = self.pass.as_mut().filter(|pass| pass.owner == owner) {
            pass.is_overtaken = true;
        }
    }

    /// When there is something to ask.
    pub(super) fn due(&self, timing: &Timing, chunks: &ChunkStore) -> Time {
        match &self.pass {
            Some(pass) if !pass.asked.is_empty() => pass.at + timing.retry_us,
            Some(_) => Time(0),
            None if chunks.count() == 0 => Time::NEVER,
            None => self.looked + timing.ask_us,
        }
    }
}

impl Pass {
    fn of(owner: MemberId, term: Term, everything: bool) -> Self {
        Self {
            owner,
            term,
            everything,
            after: before(owner),
            asked: Vec::new(),
            upto: None,
            at: Time(0),
            is_partial: false,
            is_overtaken: false,
        }
    }

    fn answered(&mut self, verdicts: &Verdicts) {
        let has_answer = |id: &ObjectId| verdicts.verdicts.iter().any(|(known, _)| known == id);
        // Of an answer to an earlier question nothing is asked here.
        if verdicts.verdicts.iter().any(|(id, _)| self.asked.contains(id)) {
            // What is still read or on its way may be anything later.
            let is_open = |(_, verdict): &(ObjectId, Verdict)| *verdict == Verdict::Open;
            self.is_partial |= !self.asked.iter().all(has_answer) || verdicts.verdicts.iter().any(is_open);
            self.asked.clear();
            self.after = self.upto;
        }
    }
}

/// Asks about the next objects of the pass; none if there are no more, or nobody to ask.
fn ask(
    mut pass: Pass,
    scope: &mut Scope<'_>,
    member: MemberId,
    chunks: &ChunkStore,
    owners: &mut BTreeMap<MemberId, Known>,
) -> Option<Pass> {
    let (now, timing) = (scope.now.time, scope.timing());
    let mut objects: Vec<Asked> = Vec::new();
    let mut upto = None;
    for (id, entry) in chunks.list_after(pass.after, LOOK).take_while(|(id, _)| id.object.owner == pass.owner)
    {
        let is_new = objects.last().is_none_or(|last| last.object != id.object);
        if is_new && objects.len() >= BATCH {
            break;
        }
        upto = Some(id);
        if is_new && (pass.everything || is_due(entry, now, &timing)) {
            objects.push(Asked { object: id.object, key_hash: entry.key_hash() });
        }
    }
    let Some(upto) = upto else {
        if let Some(known) = owners.get_mut(&pass.owner).filter(|_| !pass.is_overtaken) {
            known.asked = now;
            if pass.everything && !pass.is_partial {
                (known.term, known.at) = (pass.term, now);
            }
        }
        return None;
    };
    let primary = scope.primary_of(pass.owner)?;
    (pass.asked, pass.upto, pass.at) = (objects.iter().map(|asked| asked.object).collect(), Some(upto), now);
    if objects.is_empty() {
        pass.after = Some(upto);
    } else {
        scope
            .send(primary, ObjectMessage::Ask(Ask { owner: pass.owner, member, objects, found: Harm::None }));
    }
    Some(pass)
}

fn is_due(entry: &ChunkEntry, now: Time, timing: &Timing) -> bool {
    entry.is_tentative() && now.since(entry.received_at()) >= timing.ask_us
}

fn is_named(scope: &Scope<'_>, member: MemberId) -> bool {
    let view = scope.view(member.group);
    view.is_some_and(|view| view.holds_since(member.role, scope.here()).is_some())
}

/// Whether nothing of this owner can be anything any more: its pool is no more.
fn is_dead(scope: &Scope<'_>, owner: MemberId) -> bool {
    scope.views.map().is_some_and(|map| map.catalog.pool_of_group(owner.group).is_none())
}

fn forget_owner(chunks: &mut ChunkStore, owner: MemberId) {
    let of_owner = |(id, _): &(ChunkId, &ChunkEntry)| id.object.owner == owner;
    let all: Vec<ChunkId> =
        chunks.list_after(before(owner), usize::MAX).take_while(of_owner).map(|(id, _)| id).collect();
    all.into_iter().for_each(|id| drop(chunks.remove(id)));
}

/// A name before all chunks of this owner, and behind those of the owners before.
fn before(owner: MemberId) -> Option<ChunkId> {
    let object = ObjectId { owner, term: Term(0), number: 0, salt: 0, namespace: NamespaceId(0) };
    Some(ChunkId { object, stripe: 0 })
}

/// A name behind all chunks of this owner.
fn last_of(owner: MemberId) -> ChunkId {
    let namespace = NamespaceId(u32::MAX);
    let object = ObjectId { owner, term: Term(u32::MAX), number: u64::MAX, salt: u64::MAX, namespace };
    ChunkId { object, stripe: u32::MAX }
}
