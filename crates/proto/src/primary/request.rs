//! A client's request: from arrival to an answer, a record, or a place in a queue.

use std::collections::VecDeque;

use bytes::Bytes;
use cluster::{KeyHash, Seq, Time};
use store::{Access, Addr, DataStore, Found, Item, PageRange};
use wire::op::{Failure, Op, Outcome, Request};

use super::execute::{self, Current, Decision};
use super::page_waiters::PageWaiters;
use super::versions::version_of;
use super::{Phase, Primary};
use crate::outbox::{Context, ReplyTo};

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub reply: ReplyTo,
    pub hash: KeyHash,
    pub request: Request,
    pub deadline: Time,
}

impl Pending {
    /// Its key, as a cheap handle; empty for what has none.
    pub(super) fn key(&self) -> Bytes {
        self.request.key.as_ref().map(|key| key.bytes().clone()).unwrap_or_default()
    }
}

/// What a request has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A lease, or the end of the former primary's, or the index.
    Lease,
    /// Room in the log.
    Log,
    /// Room in the area.
    Space,
    /// These pages.
    Pages(PageRange),
}

/// What became of an attempt.
pub(super) enum Attempt {
    /// The answer is known and final.
    Answer(Outcome),
    /// The answer follows with the commit of a record.
    Logged,
    /// Nothing was done.
    Wait(Wait),
}

/// Requests that wait, by what they wait for.
#[derive(Default)]
pub(super) struct Waiting {
    lease: VecDeque<Pending>,
    log: VecDeque<Pending>,
    space: VecDeque<Pending>,
    pub(super) pages: PageWaiters,
    /// Whether the queues are being gone through.
    retrying: bool,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.lease.len() + self.log.len() + self.space.len() + self.pages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let queues = [&self.lease, &self.log, &self.space];
        let places: usize = queues.map(VecDeque::capacity).iter().sum();
        places * size_of::<Pending>() + self.pages.memory_bytes()
    }

    fn push(&mut self, wait: Wait, pending: Pending) {
        match wait {
            Wait::Lease => self.lease.push_back(pending),
            Wait::Log => self.log.push_back(pending),
            Wait::Space => self.space.push_back(pending),
            Wait::Pages(pages) => self.pages.push(pages, pending),
        }
    }

    pub(super) fn take_all(&mut self) -> Vec<Pending> {
        let mut all: Vec<_> =
            self.lease.drain(..).chain(self.log.drain(..)).chain(self.space.drain(..)).collect();
        all.extend(self.pages.take_all());
        all
    }

    fn take_expired(&mut self, now: Time) -> Vec<Pending> {
        let mut expired = Vec::new();
        for queue in [&mut self.lease, &mut self.log, &mut self.space] {
            let (late, rest): (Vec<_>, Vec<_>) = queue.drain(..).partition(|pending| pending.deadline <= now);
            expired.extend(late);
            queue.extend(rest);
        }
        expired.extend(self.pages.take_expired(now));
        expired
    }
}

/// The newest state of a key and what it rests on.
pub(super) struct Newest {
    /// The slot that the index will have when everything pending is committed, expired or not.
    pub occupied: Option<Addr>,
    /// The uncommitted record that this state rests on.
    pub rests_on: Option<Seq>,
    /// The item's bytes if they are not simply those of the area at `occupied`.
    pub image: Option<Vec<u8>>,
}

impl Primary {
    /// Handles a request; an answer that is known at once is returned, any other comes through the outbox.
    pub(crate) fn submit(&mut self, context: &mut Context<'_>, pending: Pending) -> Option<Outcome> {
        match self.attempt(context, &pending) {
            Attempt::Answer(outcome) => return Some(outcome),
            Attempt::Logged => {}
            Attempt::Wait(_) if self.waiting.len() >= context.limits.parked_requests => {
                return Some(Outcome::Failed(Failure::Busy));
            }
            Attempt::Wait(wait) => self.park(context, wait, pending),
        }
        None
    }

    /// Reads `key` at once if nothing stands in the way.
    pub(crate) fn read(
        &mut self,
        now: crate::Now,
        timing: &crate::Timing,
        hash: KeyHash,
        key: &[u8],
        found: impl FnOnce(Item<'_>),
    ) -> crate::Read {
        if !self.may_serve(now.time, timing) || self.flush_is_due(now.unix) {
            return crate::Read::Submit;
        }
        let rebuilding = self.is_rebuilding();
        let Phase::Serving(store) = &mut self.phase else { return crate::Read::Submit };
        match store.find(hash, key) {
            Found::Absent(_) | Found::Corrupt(_) => crate::Read::Submit,
            Found::Miss => crate::Read::Miss,
            Found::Hit(addr, item) => {
                if item.is_expired(self.wall.at(now.unix)) {
                    let settled = self.wall.settles(&self.parities, now.unix, item.expiry);
                    if !settled {
                        return crate::Read::Submit;
                    }
                    self.expired_reads += 1;
                    return crate::Read::Miss;
                }
                if rebuilding && !item.verify() {
                    return crate::Read::Submit;
                }
                found(item);
                store.bump(addr, now.unix);
                crate::Read::Hit
            }
        }
    }

    pub(super) fn park(&mut self, context: &mut Context<'_>, wait: Wait, pending: Pending) {
        self.waiting.push(wait, pending);
        if let Wait::Pages(pages) = wait {
            self.demand_pages(context, pages);
        }
    }

    /// Whether reads and new decisions are allowed now.
    pub(crate) fn may_serve(&self, now: Time, timing: &crate::Timing) -> bool {
        let leased = now < self.leased_until(timing) || crate::planted(crate::Bug::ReadWithoutLease);
        leased && now >= self.serve_from && !self.is_handing_over() && matches!(self.phase, Phase::Serving(_))
    }

    fn attempt(&mut self, context: &mut Context<'_>, pending: &Pending) -> Attempt {
        if !self.may_serve(context.now.time, context.timing) {
            return Attempt::Wait(Wait::Lease);
        }
        let request = &pending.request;
        self.tick_flush(context);
        if execute::is_plain_read(&request.op) {
            // A flush that is due takes effect with its commit, which tries this again.
            let flush_is_due = self.flush_is_due(context.now.unix);
            return if flush_is_due { Attempt::Wait(Wait::Log) } else { self.attempt_read(context, pending) };
        }
        if self.log.bytes() >= context.limits.log_bytes || self.log.len() >= context.limits.log_records {
            return Attempt::Wait(Wait::Log);
        }
        if let Op::Flush(at) = request.op {
            self.log_flush(context, at, pending.reply);
            return Attempt::Logged;
        }
        let newest = match self.newest(pending.hash, request.key_bytes()) {
            Ok(newest) => newest,
            Err(blocked) => return blocked,
        };
        let wall = self.wall.at(context.now.unix);
        let store = self.store().expect("may_serve saw one");
        let next = execute::Context { now: wall, next_version: self.next_version(context) };
        let current = match newest.current(store) {
            Some(Current { item, .. }) if item.is_expired(wall) => {
                if !self.settles_expiry(context.now.unix, item.expiry) {
                    return Attempt::Wait(Wait::Lease);
                }
                None
            }
            current => current,
        };
        if self.is_rebuilding() && current.is_some_and(|c| !c.item.verify()) {
            return Attempt::Answer(Outcome::Failed(Failure::Corrupt));
        }
        let decision = execute::decide(request, current, next);
        self.carry_out(context, pending, &newest, decision)
    }

    /// The version of what the next record writes.
    fn next_version(&self, context: &Context<'_>) -> u64 {
        version_of(self.log.last().next(), self.member, context.groups, self.view.data.len())
    }

    /// A read of committed state.
    fn attempt_read(&mut self, context: &Context<'_>, pending: &Pending) -> Attempt {
        let now = self.wall.at(context.now.unix);
        let next = execute::Context { now, next_version: 0 };
        let rebuilding = self.is_rebuilding();
        let store = self.store_mut().expect("may_serve saw one");
        let (addr, item) = match store.find(pending.hash, pending.request.key_bytes()) {
            Found::Absent(pages) => return Attempt::Wait(Wait::Pages(pages)),
            Found::Miss => return Attempt::Answer(Outcome::Miss),
            Found::Corrupt(_) => return Attempt::Answer(Outcome::Failed(Failure::Corrupt)),
            Found::Hit(addr, item) => (addr, item),
        };
        let current = Current { item, access: store.access(addr) };
        if rebuilding && !current.item.verify() {
            return Attempt::Answer(Outcome::Failed(Failure::Corrupt));
        }
        if current.item.is_expired(now) {
            let expiry = current.item.expiry;
            if !self.settles_expiry(context.now.unix, expiry) {
                return Attempt::Wait(Wait::Lease);
            }
            self.expired_reads += u64::from(matches!(pending.request.op, Op::Get(_)));
            return Attempt::Answer(Outcome::Miss);
        }
        let Decision::Answer(outcome) = execute::decide(&pending.request, Some(current), next) else {
            unreachable!("a plain read changes nothing")
        };
        if execute::counts(&pending.request.op) {
            store.bump(addr, now);
        }
        Attempt::Answer(outcome)
    }

    /// The newest state of `key`, or why it cannot be known.
    pub(super) fn newest(&self, hash: KeyHash, key: &[u8]) -> Result<Newest, Attempt> {
        if let Some(pending) = self.keys.get(key) {
            let image = pending.slot.as_ref().map(|_| self.pending_image(pending));
            return Ok(Newest {
                occupied: pending.slot.as_ref().map(|slot| slot.addr),
                rests_on: Some(pending.newest),
                image,
            });
        }
        if let Some(cleared) = self.cleared {
            return Ok(Newest { occupied: None, rests_on: Some(cleared), image: None });
        }
        let store = self.store().expect("only asked when there is one");
        let occupied = match store.find(hash, key) {
            Found::Hit(addr, _) => Some(addr),
            Found::Miss => None,
            Found::Absent(pages) => return Err(Attempt::Wait(Wait::Pages(pages))),
            Found::Corrupt(_) => return Err(Attempt::Answer(Outcome::Failed(Failure::Corrupt))),
        };
        Ok(Newest { occupied, rests_on: None, image: None })
    }

    fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        decision: Decision,
    ) -> Attempt {
        match decision {
            Decision::Answer(outcome) => self.answer(context, pending, newest, outcome),
            Decision::Put { image, outcome } => self.log_put(context, pending, newest, image, outcome),
            Decision::Header { version, expiry, state, outcome } => {
                self.log_header(context, pending, newest, (version, expiry, state), outcome)
            }
            Decision::Remove { outcome } => self.log_remove(context, pending, newest, outcome),
        }
    }

    /// An answer that changes nothing: at once, or when the record that it rests on is committed.
    fn answer(
        &mut self,
        context: &Context<'_>,
        pending: &Pending,
        newest: &Newest,
        outcome: Outcome,
    ) -> Attempt {
        if let Some(entry) = newest.rests_on.and_then(|seq| self.log.entry_mut(seq)) {
            entry.answers.push((pending.reply, outcome));
            return Attempt::Logged;
        }
        let now = context.now.unix;
        if let (Some(addr), true) = (newest.occupied, execute::counts(&pending.request.op))
            && let Some(store) = self.store_mut()
        {
            store.bump(addr, now);
        }
        Attempt::Answer(outcome)
    }

    /// Tries again whoever may have a chance by now.
    pub(super) fn retry_waiting(&mut self, context: &mut Context<'_>) {
        // What a retry brings about may want to retry in its turn: one level is enough, the loops below go on.
        if self.waiting.retrying
            || !self.may_serve(context.now.time, context.timing)
            || self.waiting.is_empty()
        {
            return;
        }
        self.waiting.retrying = true;
        self.retry_each(context);
        self.waiting.retrying = false;
    }

    fn retry_each(&mut self, context: &mut Context<'_>) {
        let lease = std::mem::take(&mut self.waiting.lease);
        self.retry_all(context, lease.into());
        let ready = self.waiting.pages.take_ready();
        self.retry_all(context, ready);
        self.retry_in_order(context, |waiting| &mut waiting.log);
        self.retry_in_order(context, |waiting| &mut waiting.space);
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
    fn retry_in_order(
        &mut self,
        context: &mut Context<'_>,
        queue: fn(&mut Waiting) -> &mut VecDeque<Pending>,
    ) {
        let mut tries = queue(&mut self.waiting).len();
        while tries > 0 {
            tries -= 1;
            let Some(pending) = queue(&mut self.waiting).pop_front() else { return };
            match self.attempt(context, &pending) {
                Attempt::Answer(outcome) => context.reply(pending.reply, outcome),
                Attempt::Logged => {}
                Attempt::Wait(Wait::Pages(pages)) => self.park(context, Wait::Pages(pages), pending),
                Attempt::Wait(_) => {
                    queue(&mut self.waiting).push_front(pending);
                    return;
                }
            }
        }
    }

    /// Requests whose record has waited for too long: it stays in the log, but nobody is kept waiting for it.
    pub(super) fn expire_logged(&mut self, context: &mut Context<'_>) {
        let patience = context.timing.request_deadline_us;
        let now = context.now.time;
        for entry in self.log.entries_mut().take_while(|entry| now.since(entry.logged_at) >= patience) {
            for (reply, _) in entry.answers.drain(..) {
                context.reply(reply, Outcome::Failed(Failure::Unknown));
            }
        }
    }

    /// Requests whose time is up before anything was done for them.
    pub(super) fn expire_waiting(&mut self, context: &mut Context<'_>) {
        for pending in self.waiting.take_expired(context.now.time) {
            context.reply(pending.reply, Outcome::Failed(Failure::Unavailable));
        }
    }
}

impl Newest {
    /// The item, unless the key is not there.
    pub(super) fn current<'a>(&'a self, store: &'a DataStore) -> Option<Current<'a>> {
        let addr = self.occupied?;
        match &self.image {
            Some(image) => {
                let item = Item::parse(image).expect("this primary encoded it");
                Some(Current { item, access: Access::default() })
            }
            None => Some(Current { item: store.item(addr), access: store.access(addr) }),
        }
    }
}
