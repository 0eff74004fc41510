//! A client's request: from arrival to an answer, a record, or a place in a queue.

use store::{Allocation, DataStore, Found, QuotaShortage, Shortage};
use types::op::{Bump, Departure, Failure, ObjectOp, Op, Outcome};
use types::{
    Addr, GroupId, IndexOp, KeyHash, Namespace, NamespaceId, Once, Scan, Time, WriteResult, split_key,
};

use super::charges::Charged;
use super::commit::heed_conversions;
use super::execute::{self, Current, Decision};
use super::moving;
use super::objects::{Kept, ObjectEffects};
use super::quick::{QuickRead, Seen};
use super::scan::{Look, Paged};
use super::sessions::{Followed, Known};
use super::stream::{Draft, Header, Newest, PlacedItem, Purpose, SendStream, Unknown};
use super::waiting::{Pending, Queue, Wait};
use super::{Phase, Primary, Touched};
use crate::outbox::Context;
use crate::rules::ScanRules;
use crate::{Now, Rules, Timing};

/// What a decision takes of the policy of `namespace`: seconds that an item lives which is written without a time of its own, and
/// whether values may lie in chunks; also how often it has begun to move to another pool when its keys are in that of `group`. None if the namespace is no more; of what this
/// node has not heard of yet neither.
fn policy(context: &Context<'_>, namespace: NamespaceId, group: GroupId) -> Option<(u32, bool, u32)> {
    match context.catalog.namespace(namespace) {
        Some(known @ Namespace { policy, .. }) => {
            let conversions = context.catalog.conversions_of(known, group);
            Some((policy.default_ttl_seconds, policy.objects.striped_above.is_some(), conversions))
        }
        None => (!context.catalog.is_gone(namespace)).then_some((0, false, 0)),
    }
}

/// The version that a write gets which would get `next`, in a namespace that has begun to move to another pool so often: of another
/// quarter of all numbers than those of the pool before, so that no item gets a version again that it had there.
fn version_in(rules: Rules, next: u64, conversions: u32) -> u64 {
    const SHIFT: u32 = u64::BITS - 2;
    let quarter =
        if rules.conversions().versions_tell_conversions_apart() { u64::from(conversions % 4) } else { 0 };
    next ^ quarter << SHIFT
}

/// What a request does to objects that stores an item in the place of what is there now.
#[inline]
pub(super) fn effects_of(
    pending: &Pending,
    newest: &Newest,
    store: &DataStore,
) -> Option<Box<ObjectEffects>> {
    let kept = match &pending.request.op {
        Op::Object(ObjectOp::Commit(commit)) => {
            Some(Kept { descriptor: commit.descriptor.clone(), key_hash: pending.hash })
        }
        _ if newest.is_plain => return None,
        _ => None,
    };
    ObjectEffects::of(kept, newest.descriptor(store))
}

/// What became of an attempt.
pub(super) enum Attempt {
    /// The answer is known and final.
    Answer(Outcome),
    /// The answer follows: with the commit of a record, or from whoever has taken the request.
    Logged,
    /// Nothing was done.
    Wait(Wait),
}

impl Attempt {
    pub(super) fn failed(failure: Failure) -> Self {
        Self::Answer(Outcome::Failed(failure))
    }
}

impl From<Unknown> for Attempt {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Absent(pages) => Self::Wait(Wait::Pages(pages)),
            Unknown::Corrupt => Self::failed(Failure::Corrupt),
        }
    }
}

impl Primary {
    /// Handles a request; an answer that is known at once is returned, any other comes through the outbox.
    pub(crate) fn submit(&mut self, context: &mut Context<'_>, pending: &Pending) -> Option<Outcome> {
        // What a write needs may let others go on.
        if !execute::is_plain_read(&pending.request.op) {
            self.touch(Touched::ByTraffic);
        }
        match self.attempt(context, pending) {
            Attempt::Answer(outcome) => return Some(outcome),
            Attempt::Logged => {}
            Attempt::Wait(_) if self.waiting.len() >= context.limits.parked_requests => {
                return Some(pending.request.in_all(Outcome::Failed(Failure::Busy)));
            }
            Attempt::Wait(wait) => self.park(context, wait, pending.clone()),
        }
        self.touch(Touched::ByTraffic);
        None
    }

    /// Reads a key at once if nothing stands in the way.
    pub(crate) fn read(
        &mut self,
        now: Now,
        (timing, edition): (&Timing, u64),
        hash: KeyHash,
        asked: QuickRead<'_>,
        found: impl FnOnce(Seen<'_>),
    ) -> crate::Read {
        if !self.may_serve(now.time, timing) {
            return crate::Read::Submit;
        }
        let Phase::Serving(store) = &mut self.phase else { return crate::Read::Submit };
        // The flush has to be a record first, and this path makes none.
        if SendStream::flush_is_due(store, || split_key(asked.key).0, now.unix) {
            return crate::Read::Submit;
        }
        match store.find(hash, asked.key) {
            Found::Absent(_) | Found::Corrupt(_) => crate::Read::Submit,
            // Keys may be elsewhere by what has not been looked at yet.
            Found::Miss if !self.departures.have_none(edition, || split_key(asked.key).0) => {
                crate::Read::Submit
            }
            Found::Miss => crate::Read::Miss,
            Found::Hit(addr, item) => {
                if item.is_expired(self.wall.at(now.unix)) {
                    let known = self.parities.wall_known_to_all();
                    if !self.wall.may_tell(known, now.unix, item.expiry) {
                        return crate::Read::Submit;
                    }
                    self.expired_reads += 1;
                    return crate::Read::Miss;
                }
                // A decoded item is made of what all others have sent, and one wrong byte anywhere is in it.
                if self.core.is_rebuilding() && !item.verify() {
                    return crate::Read::Submit;
                }
                if item.object || asked.leaves(&item) {
                    return crate::Read::Submit;
                }
                found(Seen { item, store, addr, now: now.unix });
                if asked.bump == Bump::Count {
                    store.bump(addr, now.unix);
                }
                crate::Read::Hit
            }
        }
    }

    fn park(&mut self, context: &mut Context<'_>, wait: Wait, pending: Pending) {
        self.waiting.push(wait, pending);
        if let Wait::Pages(pages) = wait
            && let Some((repair, site)) = self.repair_at_site()
        {
            repair.demand(context, site, pages);
        }
    }

    /// Whether reads and new decisions are allowed now.
    pub(crate) fn may_serve(&self, now: Time, timing: &Timing) -> bool {
        let rules = self.core.rules();
        rules.read_needs_lease(now < self.parities.leased_until(timing))
            && now >= self.serve_from
            && !self.hand_over.keeps_still(rules)
            && matches!(self.phase, Phase::Serving(_))
    }

    fn attempt(&mut self, context: &mut Context<'_>, pending: &Pending) -> Attempt {
        let may_serve = self.may_serve(context.now.time, context.timing);
        heed_conversions(self, context);
        if let Op::Scan(scan) = &pending.request.op
            && ScanRules::of(context.rules).need_lease(may_serve)
        {
            return attempt_scan(self, context, scan);
        }
        if !may_serve {
            return Attempt::Wait(Wait::Lease);
        }
        if (pending.request.via.is_some() || self.departures.has_arrivals())
            && let Some(attempt) = moving::receive(self, context, pending)
        {
            return attempt;
        }
        let store = self.phase.serving_mut();
        if self.departures.let_flush(store, context.now.unix) {
            self.stream.flush_due(context, store);
        }
        // A flush that is due takes effect with its commit, which tries this again.
        if SendStream::flush_is_due(store, || pending.request.namespace(), context.now.unix) {
            return Attempt::Wait(Wait::Sweep);
        }
        if execute::is_plain_read(&pending.request.op) {
            return self.attempt_read(context, pending);
        }
        if !self.stream.has_room(context.limits) {
            return Attempt::Wait(Wait::Log);
        }
        match pending.request.op {
            Op::Expect(expect) => return moving::attempt_expect(self, expect),
            // Its keys are at roles of either pool, and go from one to the other.
            Op::Flush(flush) if self.departures.has(|| flush.namespace) => {
                return Attempt::failed(Failure::Busy);
            }
            Op::Flush(flush) => {
                let store = self.phase.serving_mut();
                let logged = self.stream.flush(context, store, flush, pending.reply);
                return logged.map_or_else(Attempt::Wait, |()| Attempt::Logged);
            }
            _ => {}
        }
        if self.stream.is_flushing(context.rules) {
            return Attempt::Wait(Wait::Log);
        }
        if pending.request.once.is_some() {
            return attempt_once(self, context, pending);
        }
        attempt_undone(self, context, pending)
    }

    /// A read of committed state.
    fn attempt_read(&mut self, context: &mut Context<'_>, pending: &Pending) -> Attempt {
        let now = self.wall.at(context.now.unix);
        // A plain read writes nothing that would need a version.
        let next = execute::Context { now, ..execute::Context::default() };
        let store = self.phase.serving_mut();
        let (addr, item) = match store.find(pending.hash, pending.request.key_bytes()) {
            Found::Absent(pages) => return Attempt::Wait(Wait::Pages(pages)),
            Found::Miss => {
                let wall = self.wall.told();
                let number = self.departures.number_of(|| pending.request.namespace());
                return match number.filter(|_| !moving::stays(self, pending)) {
                    Some(number) => moving::departed(self, context, pending, Departure { number, wall }),
                    None => Attempt::Answer(Outcome::Miss),
                };
            }
            Found::Corrupt(_) => return Attempt::failed(Failure::Corrupt),
            Found::Hit(addr, item) => (addr, item),
        };
        let current = Current { item, access: store.access(addr) };
        if self.core.is_rebuilding() && !current.item.verify() {
            return Attempt::failed(Failure::Corrupt);
        }
        if current.item.is_expired(now) {
            let expiry = current.item.expiry;
            if !self.parities.may_tell_expired(&mut self.wall, context.now.unix, expiry) {
                self.stream.stir();
                return Attempt::Wait(Wait::Lease);
            }
            self.expired_reads += u64::from(matches!(pending.request.op, Op::Get(_)));
            return Attempt::Answer(Outcome::Miss);
        }
        let Decision::Answer(mut outcome) = execute::decide(&pending.request, Some(current), next) else {
            unreachable!("a plain read changes nothing")
        };
        if execute::counts(&pending.request.op) {
            store.bump(addr, now);
        }
        if self.objects.pin_if_read(context, &pending.request.op, &mut outcome) {
            self.touch(Touched::ByTraffic);
        }
        Attempt::Answer(outcome)
    }

    /// A request that may change its key, decided against the newest state.
    fn attempt_change(&mut self, context: &mut Context<'_>, pending: &Pending, newest: &Newest) -> Attempt {
        let now = self.wall.at(context.now.unix);
        let store = self.phase.serving();
        let mut current = newest.current(store);
        if let Some(Current { item, .. }) = current.filter(|current| current.item.is_expired(now)) {
            if !self.parities.may_tell_expired(&mut self.wall, context.now.unix, item.expiry) {
                self.stream.stir();
                return Attempt::Wait(Wait::Lease);
            }
            // The index still has it: what comes in its place replaces it there.
            current = None;
        }
        if self.core.is_rebuilding() && current.is_some_and(|current| !current.item.verify()) {
            return Attempt::failed(Failure::Corrupt);
        }
        let next_version = self.stream.next_version(&self.core);
        let namespace = pending.request.namespace();
        let cohort = self.phase.serving().present_cohort(namespace);
        let Some((default_ttl, takes_objects, conversions)) =
            policy(context, namespace, self.core.member().group)
        else {
            return Attempt::failed(Failure::NoNamespace);
        };
        let next_version = version_in(context.rules, next_version, conversions);
        let generation = cohort.generation();
        let next = execute::Context {
            now,
            next_version,
            generation,
            default_ttl,
            takes_objects,
            ..execute::Context::default()
        };
        let decision = execute::decide(&pending.request, current, next);
        self.carry_out(context, pending, newest, decision)
    }

    fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        mut decision: Decision,
    ) -> Attempt {
        if let Decision::Answer(outcome) | Decision::Header { outcome, .. } = &mut decision {
            self.objects.pin_if_read(context, &pending.request.op, outcome);
        }
        let store = self.phase.serving_mut();
        match decision {
            Decision::Answer(outcome) => return self.answer(context, pending, newest, outcome),
            Decision::Session => return begin_session(self, context, pending),
            Decision::Begin => {
                let namespace = pending.request.namespace();
                let whose = (pending.hash, namespace);
                return Attempt::Answer(self.objects.begin(context, &self.core, whose));
            }
            // What is read then is what is committed.
            Decision::Extend if newest.rests_on.is_some() => return Attempt::Wait(Wait::Commit),
            Decision::Extend => {
                context.out.extensions.push_back((pending.clone(), self.core.member()));
            }
            Decision::Put { image, outcome } => return self.put(context, pending, newest, image, outcome),
            Decision::Header { version, expiry, state, outcome } => {
                let header = Header { version, expiry, state };
                self.stream.append_header(context, store, pending, newest, &header, outcome);
            }
            Decision::Remove { outcome } => {
                let addr = newest.occupied.expect("a removal is decided for an item that is there");
                let effects = ObjectEffects::of(None, newest.descriptor(store));
                let mut draft = Draft::answering(pending, outcome).with_objects(effects);
                let cohort = store.present_cohort(pending.request.namespace());
                draft.remove(pending.key(), pending.hash.into(), addr, cohort);
                self.stream.append(context, store, draft);
            }
        }
        Attempt::Logged
    }

    /// An answer that changes nothing: at once, or when the record that it rests on is committed.
    fn answer(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        outcome: Outcome,
    ) -> Attempt {
        free_if_refused(self, context, pending);
        let mut outcome = outcome;
        if pending.request.comes_again() && keep_refusal(self, context, pending, &outcome) {
            return Attempt::Logged;
        }
        if let Some(seq) = newest.rests_on {
            match self.stream.answer_with(seq, pending.reply, outcome) {
                // To answer now would tell of what is not committed, and may still be lost.
                Ok(()) => return Attempt::Logged,
                Err(given_back) => outcome = given_back,
            }
        }
        if let (Some(addr), true) = (newest.occupied, execute::counts(&pending.request.op))
            && let Phase::Serving(store) = &mut self.phase
        {
            store.bump(addr, context.now.unix);
        }
        Attempt::Answer(outcome)
    }

    /// A whole new item, into a slot of its own.
    fn put(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        image: Vec<u8>,
        outcome: Outcome,
    ) -> Attempt {
        let (namespace, occupied) = (pending.request.namespace(), newest.occupied);
        let charged = match self.charge(context, namespace, image.len(), occupied) {
            Ok(charged) => charged,
            Err(attempt) => return not_put(self, context, pending, attempt),
        };
        let allocation = match self.allocate(context, image.len()) {
            Ok(allocation) => allocation,
            Err(attempt) => {
                let cohorts = self.phase.serving().replica().cohorts();
                charged.into_iter().for_each(|charged| self.charges.settle(charged, cohorts));
                return not_put(self, context, pending, attempt);
            }
        };
        let store = self.phase.serving_mut();
        let (key, hash, cohort) = (pending.key(), pending.hash.into(), store.present_cohort(namespace));
        let placed = PlacedItem { key, hash, occupied, cohort, allocation, image };
        let effects = effects_of(pending, newest, store);
        let kept = effects.as_ref().and_then(|effects| effects.kept.as_ref()).map(|kept| kept.descriptor.id);
        let mut draft = Draft::answering(pending, outcome).charged(charged).with_objects(effects);
        if kept.is_some() && !context.rules.sessions().commits_are_named() {
            draft.ops.clear();
        }
        self.stream.append_item(context, store, placed, draft);
        kept.into_iter().for_each(|id| self.objects.note_logged(id));
        Attempt::Logged
    }

    /// Charges `namespace` for an item of `len_bytes` in the place of the one at `occupied`, or says what becomes of the request that
    /// there is no share left for.
    fn charge(
        &mut self,
        context: &mut Context<'_>,
        namespace: NamespaceId,
        len_bytes: usize,
        occupied: Option<Addr>,
    ) -> Result<Option<Charged>, Attempt> {
        self.heed_catalog(context);
        if self.charges.is_empty() {
            return Ok(None);
        }
        let store = self.phase.serving();
        let old = occupied.map_or(0, |addr| store.slot_bytes_at(addr));
        let bytes = store.slot_bytes_for(len_bytes).saturating_sub(old) as u64;
        match self.charges.charge(namespace, bytes, store.replica().cohorts()) {
            Ok(charged) => return Ok(charged),
            Err(QuotaShortage::Undealt) => return Err(Attempt::Wait(Wait::Share)),
            Err(QuotaShortage::Spent) => {}
        }
        let wall = self.wall.at(context.now.unix);
        let store = self.phase.serving_mut();
        // Of those that may go something goes; of all what was flushed.
        if self.space.make_room_of(context, store, &mut self.stream, (namespace, bytes), wall) {
            return Err(Attempt::Wait(Wait::Space));
        }
        if store.replica().cohorts().has_flushed() {
            return Err(Attempt::Wait(Wait::Sweep));
        }
        self.refused_writes += 1;
        Err(Attempt::failed(Failure::OutOfMemory))
    }

    /// A slot for `len_bytes`, or what becomes of the request without one.
    pub(super) fn allocate(
        &mut self,
        context: &mut Context<'_>,
        len_bytes: usize,
    ) -> Result<Allocation, Attempt> {
        let store = self.phase.serving_mut();
        match store.allocate(len_bytes) {
            Ok(allocation) => Ok(allocation),
            Err(Shortage::TooLarge) => Err(Attempt::failed(Failure::TooLarge)),
            Err(Shortage::Absent(pages)) => Err(Attempt::Wait(Wait::Pages(pages))),
            Err(Shortage::Extent(reach)) => {
                if !self.space.grow(context, &self.core, &self.parities, store, reach) {
                    return Err(Attempt::Wait(Wait::Space));
                }
                // Without parities the extent is there at once. Those go first that have waited for longer.
                self.retry_waiting(context);
                self.allocate(context, len_bytes)
            }
            // It is the index that has no memory, and an extent is on its way back that nobody needs.
            Err(Shortage::Reclaim | Shortage::Full)
                if self.phase.serving().lacks_index_memory() && self.begin_release(context) =>
            {
                Err(Attempt::Wait(Wait::Space))
            }
            Err(Shortage::Reclaim) => Err(make_room(self, context, len_bytes)),
            Err(Shortage::Full) => Err(wait_or_refuse(self)),
        }
    }

    /// Tries again whoever may have a chance by now.
    pub(crate) fn retry_waiting(&mut self, context: &mut Context<'_>) {
        if !self.may_serve(context.now.time, context.timing) || !self.waiting.begin_retry() {
            return;
        }
        let unordered = self.waiting.take_unordered();
        self.retry_all(context, unordered);
        let ready = self.waiting.for_pages().take_ready();
        self.retry_all(context, ready);
        self.retry_in_order(context, Queue::Log);
        self.retry_in_order(context, Queue::Space);
        self.waiting.end_retry();
    }

    fn retry_all(&mut self, context: &mut Context<'_>, all: Vec<Pending>) {
        for pending in all {
            match self.attempt(context, &pending) {
                Attempt::Answer(outcome) => context.reply(pending.reply, outcome),
                Attempt::Logged => {}
                Attempt::Wait(wait) => self.park(context, wait, pending),
            }
        }
    }

    /// Tries a queue from its front until one has to wait for the same thing again.
    fn retry_in_order(&mut self, context: &mut Context<'_>, queue: Queue) {
        // Only those that wait now: each gets one try a round, whatever comes back to the queue.
        for _ in 0..self.waiting.queue_len(queue) {
            let Some(pending) = self.waiting.pop_front(queue) else { return };
            match self.attempt(context, &pending) {
                Attempt::Answer(outcome) => context.reply(pending.reply, outcome),
                Attempt::Logged => {}
                Attempt::Wait(Wait::Pages(pages)) => self.park(context, Wait::Pages(pages), pending),
                // The others came later, and must not overtake it.
                Attempt::Wait(_) => return self.waiting.push_front(queue, pending),
            }
        }
    }
}

/// Nothing comes of a request: if it was to store a value in chunks, these go.
#[inline]
fn free_if_refused(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending) {
    if let Op::Object(ObjectOp::Commit(commit)) = &pending.request.op {
        primary.objects.refuse(context, &primary.core, &commit.descriptor);
    }
}

/// What becomes of a request that there was no room for.
#[cold]
fn not_put(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending, attempt: Attempt) -> Attempt {
    if matches!(attempt, Attempt::Answer(_)) {
        free_if_refused(primary, context, pending);
    }
    attempt
}

/// Something goes so that there is room for `len_bytes`.
fn make_room(primary: &mut Primary, context: &mut Context<'_>, len_bytes: usize) -> Attempt {
    let now = primary.wall.at(context.now.unix);
    let Primary { space, phase, stream, .. } = primary;
    let makes_room = space.make_room(context, phase.serving_mut(), stream, len_bytes, now);
    if makes_room { Attempt::Wait(Wait::Space) } else { wait_or_refuse(primary) }
}

/// Full: but what is in flight may free something.
fn wait_or_refuse(primary: &mut Primary) -> Attempt {
    if primary.stream.is_empty() {
        primary.refused_writes += 1;
        Attempt::failed(Failure::OutOfMemory)
    } else {
        Attempt::Wait(Wait::Space)
    }
}

/// A page of keys of committed state.
fn attempt_scan(primary: &mut Primary, context: &mut Context<'_>, scan: &Scan) -> Attempt {
    let comes = primary.departures.sends_back(scan.namespace, None).is_some();
    if comes || primary.departures.has(|| scan.namespace) {
        return Attempt::failed(Failure::Unavailable);
    }
    let Some(store) = primary.phase.store_mut() else { return Attempt::Wait(Wait::Lease) };
    if primary.departures.let_flush(store, context.now.unix) {
        primary.stream.flush_due(context, store);
    }
    if SendStream::flush_is_due(store, || scan.namespace, context.now.unix) {
        return Attempt::Wait(Wait::Sweep);
    }
    let (now, verifies) = (primary.wall.at(context.now.unix), primary.core.is_rebuilding());
    match (Look { store, now, verifies, rules: ScanRules::of(context.rules) }).page(scan) {
        Paged::Page(page) => Attempt::Answer(Outcome::Keys(Box::new(page))),
        Paged::Absent(pages) => Attempt::Wait(Wait::Pages(pages)),
        Paged::Failed(failure) => Attempt::failed(failure),
    }
}

/// A write that has a name: first of all it is asked whether it was done.
#[cold]
fn attempt_once(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending) -> Attempt {
    let once = pending.request.once.as_deref().expect("the caller has looked");
    let known = primary.sessions.look_up(context, primary.phase.serving(), primary.stream.committed(), once);
    let last = primary.stream.last();
    let attempt = match known {
        // What came of it before the namespace moved is known there alone.
        Known::Nothing if is_of_another_conversion(primary, context, pending, once) => {
            return Attempt::failed(if once.again { Failure::Unknown } else { Failure::NoSession });
        }
        Known::Nothing => attempt_undone(primary, context, pending),
        Known::Answer(Outcome::Failed(Failure::NoSession)) if pending.request.via.is_some() => {
            return follow_session(primary, context, pending, once);
        }
        Known::Answer(outcome) => return Attempt::Answer(pending.request.in_all(outcome)),
        Known::OnItsWay(seq, outcome) => match primary.stream.answer_with(seq, pending.reply, outcome) {
            Ok(()) => return Attempt::Logged,
            Err(outcome) => return Attempt::Answer(outcome),
        },
    };
    match attempt {
        Attempt::Answer(outcome) => Attempt::Answer(pending.request.in_all(outcome)),
        // It may also have been sent on.
        Attempt::Logged if primary.stream.last() == last => Attempt::Logged,
        Attempt::Logged => {
            primary
                .stream
                .newest_record()
                .into_iter()
                .for_each(|record| primary.sessions.note_logged(record));
            Attempt::Logged
        }
        Attempt::Wait(wait) => Attempt::Wait(wait),
    }
}

/// Whether a session has begun, or has come here, before its namespace began to move to another pool the last time: other data roles may
/// have done writes of it that are not known here, and copies of these may still be on their way.
fn is_of_another_conversion(
    primary: &Primary,
    context: &Context<'_>,
    pending: &Pending,
    once: &Once,
) -> bool {
    let conversions = conversions_of(primary, context, pending);
    conversions > 0 && !primary.sessions.is_of(once.session, conversions)
}

/// How often the namespace of a request has begun to move to another pool, for what is done here: a move that has not begun to take anything
/// from here does not count, for until then writes are done here.
fn conversions_of(primary: &Primary, context: &Context<'_>, pending: &Pending) -> u32 {
    let namespace = pending.request.namespace();
    let known = context.catalog.namespace(namespace).map_or(0, |known| known.conversions);
    known.wrapping_sub(u32::from(primary.departures.are_to_begin(namespace)))
}

/// The session of a client whose key has come here from another pool goes on here under its number: it has begun since, and so nothing of it
/// was done elsewhere. What has been tried before is not begun anew for it.
#[cold]
fn follow_session(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    once: &Once,
) -> Attempt {
    let (seq, conversions) = (primary.stream.last().next(), conversions_of(primary, context, pending));
    let store = primary.phase.serving_mut();
    match primary.sessions.follow(context, store, seq, (once.session, conversions)) {
        Followed::Begins => {
            let mut draft = Draft::of(Purpose::Schedule);
            draft.ops.push(IndexOp::SessionBegins { session: once.session });
            primary.stream.append(context, store, draft);
            Attempt::Wait(Wait::Commit)
        }
        Followed::IsBeginning => Attempt::Wait(Wait::Commit),
        Followed::NoRoom => Attempt::failed(Failure::Busy),
    }
}

/// A session begins.
fn begin_session(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending) -> Attempt {
    let conversions = conversions_of(primary, context, pending);
    let store = primary.phase.serving_mut();
    let seq = primary.stream.last().next();
    let Some(session) = primary.sessions.begin(context, &primary.core, store, seq, conversions) else {
        return Attempt::failed(Failure::Busy);
    };
    let mut draft = Draft::answering(pending, Outcome::Session(session));
    draft.ops.push(IndexOp::SessionBegins { session });
    primary.stream.append(context, store, draft);
    Attempt::Logged
}

/// What is to be done now, if nothing of it was.
fn attempt_undone(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending) -> Attempt {
    if let Op::Object(op) = &pending.request.op
        && let Some(attempt) = moving::attend(primary, context, pending, op)
    {
        return attempt;
    }
    let key = pending.request.key_bytes();
    let newest = match primary.stream.newest(primary.phase.serving(), pending.hash, key) {
        Ok(newest) => newest,
        Err(unknown) => return unknown.into(),
    };
    if (pending.request.via.is_some() || primary.departures.has_any())
        && let Some(attempt) = moving::attempt_between(primary, context, pending, &newest)
    {
        return attempt;
    }
    primary.attempt_change(context, pending, &newest)
}

/// A write that may have come before changes nothing now: a record says so, lest the copy of it that came before is done yet. Whether
/// there is one.
fn keep_refusal(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    outcome: &Outcome,
) -> bool {
    let is_kept = context.rules.sessions().refusals_are_kept()
        && WriteResult::of(outcome).is_some()
        && execute::is_final(&pending.request.op);
    if is_kept {
        let draft = Draft::answering(pending, outcome.clone());
        primary.stream.append(context, primary.phase.serving_mut(), draft);
    }
    is_kept
}

#[cfg(all(test, feature = "planted-bugs"))]
mod tests {
    use super::version_in;
    use crate::{Bug, Rules};

    #[test]
    fn no_item_gets_a_version_again_that_it_had_in_the_pool_before() {
        let of = |rules, conversions| version_in(rules, 1_234, conversions);
        let four: Vec<u64> = (0..4).map(|conversions| of(Rules::all(), conversions)).collect();
        assert!(four[0] == 1_234 && four.is_sorted_by(|one, next| one < next));
        assert_eq!(of(Rules::all(), 4), four[0]);
        let rules = Rules::without(Bug::VersionsRepeat);
        assert_eq!(of(rules, 1), of(rules, 0));
    }
}
