//! Values that are read out of chunks: rows are fetched, decoded where something is missing, and given to the client in order.
//!
//! The gatherer is the host whose client reads. It asks the data holders for the rows of a window, and the others for the same rows
//! where one of them is missing, silent or gone. What it gives out comes from the front, so its memory is that of the window.

mod row;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use types::op::{Failure, Object, ObjectOp, Op, Request, Unpin};
use types::{ChunkId, Descriptor, HostId, Key, KeyHash, MemberId, RoleIndex, Stripe, Time};
use wire::object::{Cell, Fetch, Missing, ObjectMessage};

use super::scope::Scope;
use crate::host::driver::Token;
use row::{Answer, Row};

/// A reader's place is told to the owner so often, in microseconds.
const PROGRESS_US: u64 = 5_000_000;

/// A read of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GatherId(pub u64);

/// What a client wants to read.
#[derive(Clone, Debug)]
pub struct NewGather {
    /// Of which key.
    pub key: Key,
    /// As the owner has answered.
    pub object: Object,
    /// From this byte on.
    pub start: u64,
    /// Up to this one.
    pub end: u64,
}

/// The reads of one host.
#[derive(Default)]
pub(crate) struct Gathers {
    all: BTreeMap<GatherId, Gather>,
    started: u64,
}

/// What a driver hears of its read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    /// The next bytes.
    Part(Token, Bytes),
    /// That was all.
    Whole(Token),
    /// It cannot go on.
    Failed(Token, Failure),
}

/// What a read tells the owner.
pub(crate) struct OwnerNote {
    pub owner: MemberId,
    pub hash: KeyHash,
    pub request: Request,
}

struct Gather {
    token: Token,
    key: Key,
    hash: KeyHash,
    descriptor: Descriptor,
    pin: Option<u64>,
    protection: Arc<Protection>,
    /// Bytes that are still to be given out: from, up to.
    start: u64,
    end: u64,
    /// The next row to ask for: stripe and row in it.
    next: Option<(Stripe, u32)>,
    /// Rows that were asked for, in order.
    rows: VecDeque<Row>,
    /// Bytes that were given out and not taken yet.
    untaken: usize,
    told: Time,
    deadline: Time,
}

impl Gathers {
    /// Begins one.
    pub(super) fn begin(
        &mut self,
        scope: &mut Scope<'_>,
        token: Token,
        hash: KeyHash,
        new: NewGather,
    ) -> Result<GatherId, Failure> {
        let NewGather { key, object: Object { descriptor, pin }, start, end } = new;
        if self.all.len() >= scope.limits().gathers {
            return Err(Failure::Busy);
        }
        let protection = scope.protection(descriptor.id.owner.group).ok_or(Failure::Unavailable)?;
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        let next = first_row(&descriptor, start);
        self.started += 1;
        let id = GatherId(self.started);
        let end = end.min(descriptor.geometry.len);
        let (rows, untaken, deadline) = (VecDeque::new(), 0, now + patience);
        let gather = Gather {
            token,
            key,
            hash,
            descriptor,
            pin,
            protection,
            start,
            end,
            next,
            rows,
            untaken,
            told: now,
            deadline,
        };
        self.all.insert(id, gather);
        Ok(id)
    }

    /// The client has taken so many bytes.
    pub(super) fn taken(&mut self, id: GatherId, bytes: usize) {
        if let Some(gather) = self.all.get_mut(&id) {
            gather.untaken = gather.untaken.saturating_sub(bytes);
        }
    }

    /// The client is gone; what the owner is told.
    pub(super) fn abandon(&mut self, id: GatherId) -> Option<OwnerNote> {
        self.all.remove(&id).and_then(|gather| gather.unpin(true))
    }

    /// A row's cell has come.
    pub(super) fn hear_cell(&mut self, scope: &mut Scope<'_>, from: HostId, cell: Cell) -> Progress {
        let id = GatherId(cell.number);
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        if !cell.cell.is_right() {
            scope.accuse(from, crate::Impossible::Chunk);
            return Progress::default();
        }
        gather.take(cell);
        self.go_on(scope, id)
    }

    /// A chunk is not where it was asked for.
    pub(super) fn hear_missing(&mut self, scope: &mut Scope<'_>, missing: &Missing) -> Progress {
        let id = GatherId(missing.number);
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        let known = scope.view(missing.member.group).map(|view| view.version);
        if known.is_some_and(|known| known < missing.view) {
            scope.want_view(missing.member.group);
        }
        gather.miss(missing);
        self.go_on(scope, id)
    }

    /// Asks for what is missing, and gives out what is whole.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, id: GatherId) -> Progress {
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        let mut progress = Progress::default();
        gather.ask_for_rows(scope, id);
        gather.give_out(scope, &mut progress);
        gather.ask_for_rows(scope, id);
        if let Some(failure) = gather.failure(scope) {
            progress.news.push(News::Failed(gather.token, failure));
            progress.note = self.abandon(id);
        } else if gather.start >= gather.end {
            progress.news.push(News::Whole(gather.token));
            progress.note = self.abandon(id);
        }
        progress
    }

    /// A group has another view, a link is down, or time has passed: others may have to be asked.
    pub(super) fn reconsider(&mut self, scope: &mut Scope<'_>) -> Vec<Progress> {
        let ids: Vec<GatherId> = self.all.keys().copied().collect();
        let now = scope.now.time;
        let mut all = Vec::new();
        for id in ids {
            if let Some(gather) = self.all.get_mut(&id) {
                gather.rows.iter_mut().for_each(|row| row.reconsider(now, scope.timing().hedge_us));
                let note = gather.tell_progress(now);
                all.push(Progress { news: Vec::new(), note });
            }
            all.push(self.go_on(scope, id));
        }
        all
    }

    /// What was asked of `peer` will not come.
    pub(super) fn lose_link(&mut self, scope: &mut Scope<'_>, peer: HostId) -> Vec<Progress> {
        let ids: Vec<GatherId> = self.all.keys().copied().collect();
        for gather in self.all.values_mut() {
            for row in &mut gather.rows {
                let view = scope.view(row.group());
                let of_peer =
                    |(role, holder): (RoleIndex, types::Holder)| (holder.host == peer).then_some(role);
                let roles: Vec<RoleIndex> =
                    view.map(|view| view.all_holders().filter_map(of_peer).collect()).unwrap_or_default();
                roles.into_iter().for_each(|role| row.lose(role));
            }
        }
        ids.into_iter().map(|id| self.go_on(scope, id)).collect()
    }

    /// When [`Self::reconsider`] has something to do.
    pub(super) fn due(&self, hedge_us: u64) -> Time {
        let of = |gather: &Gather| {
            let asked = gather.rows.front().map(|row| (row.asked_at() + hedge_us).min(gather.deadline));
            asked.unwrap_or(Time::NEVER).min(gather.told + PROGRESS_US)
        };
        self.all.values().map(of).min().unwrap_or(Time::NEVER)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes that they hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of = |gather: &Gather| gather.untaken + gather.rows.iter().map(Row::memory_bytes).sum::<usize>();
        self.all.values().map(of).sum()
    }
}

/// What comes of an event for others.
#[derive(Default)]
pub(super) struct Progress {
    pub news: Vec<News>,
    pub note: Option<OwnerNote>,
}

impl Gather {
    /// Opens the window as far as it goes.
    fn ask_for_rows(&mut self, scope: &mut Scope<'_>, id: GatherId) {
        let most = scope.limits().gather_bytes;
        let now = scope.now.time;
        while let Some((stripe, row)) = self.next {
            let held: usize = self.rows.iter().map(Row::len_bytes).sum();
            let row_len = stripe.row_len(self.descriptor.geometry.k) as usize;
            let begins_at = stripe.start + u64::from(row) * stripe.row_len(self.descriptor.geometry.k);
            // However long a row is, one goes: but not while the reader has not taken what came before it.
            let outstanding = held + self.untaken;
            if begins_at >= self.end || outstanding > 0 && outstanding + row_len > most {
                break;
            }
            let Some(group) = self.descriptor.group_of(stripe.index) else { break };
            if self.rows.is_empty() {
                // A reader may have stood still for longer than any holder may.
                self.deadline = now + scope.timing().request_deadline_us;
            }
            self.rows.push_back(Row::new(stripe, row, group, self.protection.code(), now));
            let is_last = row + 1 == stripe.rows;
            let after = || self.descriptor.geometry.stripe(stripe.index + 1).map(|stripe| (stripe, 0));
            self.next = if is_last { after() } else { Some((stripe, row + 1)) };
        }
        self.fetch(scope, id);
    }

    /// Asks for the cells that rows want: rows that follow each other in one message for each role.
    fn fetch(&mut self, scope: &mut Scope<'_>, id: GatherId) {
        let now = scope.now.time;
        let mut wanted: BTreeMap<(MemberId, u32), (u32, u32)> = BTreeMap::new();
        let mut fetches = Vec::new();
        for row in &mut self.rows {
            for role in row.take_wanted(now) {
                let member = MemberId { group: row.group(), role: RoleIndex(role) };
                let key = (member, row.stripe().index);
                match wanted.get_mut(&key) {
                    Some((first, count)) if *first + *count == row.index() => *count += 1,
                    Some(range) => {
                        fetches.push((key, std::mem::replace(range, (row.index(), 1))));
                    }
                    None => _ = wanted.insert(key, (row.index(), 1)),
                }
            }
        }
        fetches.extend(wanted);
        for ((member, stripe), (first, count)) in fetches {
            self.ask(scope, id, (member, stripe), (first, count));
        }
    }

    fn ask(
        &mut self,
        scope: &mut Scope<'_>,
        id: GatherId,
        (member, stripe): (MemberId, u32),
        (first, count): (u32, u32),
    ) {
        let chunk = ChunkId { object: self.descriptor.id, stripe };
        let holders = scope.view(member.group).map(|view| view.holders_of(member.role)).unwrap_or_default();
        match holders.iter().next() {
            Some(holder) => {
                let fetch = Fetch { number: id.0, member, chunk, first, count };
                scope.send(holder.host, ObjectMessage::Fetch(fetch));
            }
            None => self.note((stripe, member.role), Answer::NoHolder),
        }
    }

    fn take(&mut self, cell: Cell) {
        let Cell { member, chunk, row, cell, .. } = cell;
        let is_it = |known: &&mut Row| (known.stripe().index, known.index()) == (chunk.stripe, row);
        if let Some(row) = self.rows.iter_mut().find(is_it) {
            row.take(member.role, cell.bytes, self.protection.code());
        }
    }

    fn miss(&mut self, missing: &Missing) {
        let answer = if missing.whole { Answer::Missing } else { Answer::NotWhole };
        self.note((missing.chunk.stripe, missing.member.role), answer);
    }

    fn note(&mut self, (stripe, role): (u32, RoleIndex), answer: Answer) {
        let of_stripe = |row: &&mut Row| row.stripe().index == stripe;
        self.rows.iter_mut().filter(of_stripe).for_each(|row| row.note(role, answer));
    }

    /// Gives out the rows that are whole, from the front.
    fn give_out(&mut self, scope: &Scope<'_>, progress: &mut Progress) {
        while let Some(row) = self.rows.front() {
            let Some(cells) = row.data() else { return };
            let mut at = row.start();
            for (cell, filled) in cells {
                let (from, to) = (self.start.max(at), self.end.min(at + u64::from(filled)));
                if from < to {
                    let bytes = cell.slice((from - at) as usize..(to - at) as usize);
                    self.untaken += bytes.len();
                    progress.news.push(News::Part(self.token, bytes));
                }
                at += u64::from(filled);
            }
            self.start = self.start.max(at.min(self.end));
            self.rows.pop_front();
            self.deadline = scope.now.time + scope.timing().request_deadline_us;
        }
    }

    /// Why it cannot go on.
    fn failure(&self, scope: &Scope<'_>) -> Option<Failure> {
        if self.rows.iter().any(|row| row.is_lost(self.protection.code())) {
            return Some(Failure::Lost);
        }
        let is_late = self.deadline <= scope.now.time && !self.rows.is_empty();
        is_late.then_some(Failure::Unavailable)
    }

    fn tell_progress(&mut self, now: Time) -> Option<OwnerNote> {
        if now.since(self.told) < PROGRESS_US {
            return None;
        }
        self.told = now;
        self.unpin(false)
    }

    fn unpin(&self, done: bool) -> Option<OwnerNote> {
        let pin = self.pin?;
        let object = self.descriptor.id;
        let op = Op::Object(ObjectOp::Unpin(Unpin { object, pin, done }));
        Some(OwnerNote { owner: object.owner, hash: self.hash, request: Request::on(self.key.clone(), op) })
    }
}

/// The row in which the byte at `start` lies.
fn first_row(descriptor: &Descriptor, start: u64) -> Option<(Stripe, u32)> {
    let geometry = descriptor.geometry;
    let index = u32::try_from(start / geometry.stripe_len()).ok()?;
    let stripe = geometry.stripe(index)?;
    let row = (start - stripe.start) / stripe.row_len(geometry.k);
    Some((stripe, row as u32))
}
