//! Values that are read out of chunks: rows are fetched, decoded where something is missing, and given to the client in order.
//!
//! The gatherer is the host whose client reads. It asks the data holders for the runs of a window: the cells of one row that follow each
//! other in the value, all of a row or one, as the layout has it, and none that is not wanted. It asks the others for the same row where one
//! of them is missing, silent or gone; where one is merely slower than usual as many others as it takes to make it (`types::Hedging`). What it gives
//! out comes from the front, so its memory is that of the window.

mod made;
mod row;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cluster::Protection;
use codec::Coder;
use types::op::{Bump, Failure, Get, Object, ObjectOp, Op, Outcome, Request, Unpin, Want};
use types::{
    CellAt, ChunkId, Descriptor, GroupId, Hedging, HostId, Key, KeyHash, MemberId, NodeId, RoleIndex, Run,
    Stripe, Time,
};
use wire::object::{Ask, Asked, Cell, Fetch, Harm, Missing, ObjectMessage};

use super::names::{Client, GatherId, OwnerRequest, StreamId, Told};
use super::order::Made;
use super::scope::Scope;
use crate::Timing;
use row::Row;

/// Reads share a part of this node's memory, one in so many: slow readers, however many, hold no more, but for a row each.
const MEMORY_SHARE: u64 = 8;
/// A reader's place is told to the owner so often while a pin lasts.
const PROGRESS: u64 = 6;

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
    /// Whether the request that has found it may have changed something, as one that touches: no failure of the read may say that
    /// nothing was done then.
    pub changed: bool,
    /// Whether graphs are to make what lies in one lost chunk, whatever this host is told to do by itself.
    pub by_graph: bool,
}

/// The reads of one host.
#[derive(Default)]
pub(crate) struct Gathers {
    all: BTreeMap<GatherId, Gather>,
    /// Bytes that all of them have asked for and not given out, or that were not taken.
    outstanding: usize,
    started: u64,
    hedging: Hedging,
    /// Nodes whose links are down: nothing is asked of them.
    unlinked: BTreeSet<NodeId>,
    /// Reads of what lies in a lost chunk, which a graph may make.
    lacking: BTreeSet<GatherId>,
    /// What graphs have made, or have not, and nobody has heard of.
    made: VecDeque<(GatherId, Made)>,
    orders: u64,
}

struct Gather {
    client: Client,
    key: Key,
    hash: KeyHash,
    descriptor: Descriptor,
    pin: Option<u64>,
    protection: Arc<Protection>,
    /// Bytes that are still to be given out: from, up to.
    start: u64,
    end: u64,
    /// The first byte that was not asked for.
    next: u64,
    /// Runs that were asked for, in order.
    rows: VecDeque<Row>,
    /// Bytes that were given out and not taken yet.
    untaken: usize,
    /// Its share of what is outstanding, as it is in the sum.
    counted: usize,
    told: Time,
    deadline: Time,
    /// Whether the owner is asked if this is still what the key has.
    asking: bool,
    /// A group whose view here says that its chunks are lost.
    doubt: Option<Doubt>,
    changed: bool,
    by_graph: bool,
}

/// A view by which chunks are lost. It may be old, so nothing is said of it before the coordinator has said what it is.
#[derive(Clone, Copy)]
struct Doubt {
    group: GroupId,
    is_told: bool,
}

impl Gathers {
    /// Begins one.
    pub(super) fn begin(
        &mut self,
        scope: &mut Scope<'_>,
        client: Client,
        hash: KeyHash,
        new: NewGather,
    ) -> Result<GatherId, Failure> {
        let NewGather { key, object: Object { descriptor, pin }, start, end, changed, by_graph } = new;
        if self.all.len() >= scope.limits().gathers {
            return Err(of_read(Failure::Busy, changed));
        }
        let protection = scope.protection(descriptor.id.owner.group);
        let protection = protection.ok_or(of_read(Failure::Unavailable, changed))?;
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        self.started += 1;
        let id = GatherId(self.started);
        let end = end.min(descriptor.geometry.len);
        let (rows, untaken, asking, deadline) = (VecDeque::new(), 0, false, now + patience);
        let gather = Gather {
            client,
            key,
            hash,
            descriptor,
            pin,
            protection,
            start,
            end,
            next: start,
            rows,
            untaken,
            counted: 0,
            told: now,
            deadline,
            asking,
            doubt: None,
            changed,
            by_graph,
        };
        self.all.insert(id, gather);
        Ok(id)
    }

    /// The client has taken so many bytes.
    pub(super) fn taken(&mut self, id: GatherId, bytes: usize) {
        if let Some(gather) = self.all.get_mut(&id) {
            gather.untaken = gather.untaken.saturating_sub(bytes);
        }
        self.recount(id);
    }

    fn recount(&mut self, id: GatherId) {
        if let Some(gather) = self.all.get_mut(&id) {
            let now = gather.outstanding();
            let before = std::mem::replace(&mut gather.counted, now);
            self.outstanding = self.outstanding + gather.counted - before;
        }
    }

    /// The client is gone; what the owner is told.
    pub(super) fn abandon(&mut self, id: GatherId) -> Option<OwnerRequest> {
        let gather = self.all.remove(&id)?;
        self.outstanding -= gather.counted;
        gather.unpin(true)
    }

    /// The owner says what the key has now.
    pub(super) fn hear_owner(&mut self, scope: &mut Scope<'_>, id: GatherId, outcome: &Outcome) -> Progress {
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        let object = gather.descriptor.id;
        gather.asking = false;
        let failure = match outcome {
            Outcome::Failed(failure) => *failure,
            Outcome::Hit(view) if view.object.as_ref().is_some_and(|it| it.descriptor.id == object) => {
                // It is what it was: others may have come meanwhile who have its chunks.
                if !gather.is_surely_lost(scope) {
                    return self.go_on(scope, id);
                }
                gather.tell_of_loss(scope);
                Failure::Lost
            }
            _ => Failure::Replaced,
        };
        self.fail(id, failure)
    }

    fn fail(&mut self, id: GatherId, failure: Failure) -> Progress {
        let told = |gather: &Gather| {
            let failure = of_read(failure, gather.changed);
            (gather.client, Told::Ended(Outcome::Failed(failure)))
        };
        let news = self.all.get(&id).map(told).into_iter().collect();
        Progress { news, request: self.abandon(id) }
    }

    /// A row's cell has come.
    pub(super) fn hear_cell(&mut self, scope: &mut Scope<'_>, from: HostId, cell: Cell) -> Progress {
        let id = GatherId(cell.number);
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        if !cell.cell.is_right() {
            scope.accuse(from, crate::Impossible::Chunk);
            return Progress::default();
        }
        gather.take(scope.coder(), cell);
        self.go_on(scope, id)
    }

    /// A chunk is not where it was asked for.
    pub(super) fn hear_missing(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        missing: &Missing,
    ) -> Progress {
        let id = GatherId(missing.number);
        let Some(gather) = self.all.get_mut(&id) else { return Progress::default() };
        let known = scope.view(missing.member.group).map(|view| view.version);
        if known.is_some_and(|known| known < missing.view) {
            scope.want_view(missing.member.group);
        }
        gather.miss(from, missing, known.is_some_and(|known| known >= missing.view));
        self.go_on(scope, id)
    }

    /// Asks for what is missing, and gives out what is whole.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, id: GatherId) -> Progress {
        let Self { all, hedging, unlinked, .. } = self;
        let Some(gather) = all.get_mut(&id) else { return Progress::default() };
        let most = window(scope, self.outstanding - gather.counted);
        let mut progress = Progress::default();
        gather.ask_for_rows(scope, id, most, hedging, unlinked);
        gather.give_out(scope, hedging, &mut progress);
        gather.ask_for_rows(scope, id, most, hedging, unlinked);
        if gather.start >= gather.end {
            progress.news.push((gather.client, Told::Whole));
            progress.request = self.abandon(id);
        } else if gather.is_late(scope.now.time) {
            let failed = self.fail(id, Failure::Unavailable);
            progress.news.extend(failed.news);
            progress.request = failed.request;
        } else if !gather.asking && gather.is_surely_lost(scope) {
            // Its chunks may be gone because it is not what the key has any more.
            gather.asking = true;
            progress.request = Some(gather.ask_owner(id));
        }
        self.recount(id);
        self.note_lacking(id);
        progress
    }

    /// A group has another view, a link is down, or time has passed: others may have to be asked.
    pub(super) fn reconsider(&mut self, scope: &mut Scope<'_>) -> Vec<Progress> {
        let ids: Vec<GatherId> = self.all.keys().copied().collect();
        let now = scope.now.time;
        let mut all = Vec::new();
        for id in ids {
            let hedging = &mut self.hedging;
            if let Some(gather) = self.all.get_mut(&id) {
                let most_us = scope.timing().hedge_us;
                let patience_us = hedging.patience_us(most_us);
                for row in &mut gather.rows {
                    row.reconsider(now, most_us, scope.view(row.group()));
                    let may = |cells, len| hedging.take(cells, len);
                    row.hedge_if_slow(gather.protection.code(), now, patience_us, may);
                }
                let request = gather.tell_progress(now, scope.timing().pin_us / PROGRESS);
                all.push(Progress { news: Vec::new(), request });
            }
            all.push(self.go_on(scope, id));
        }
        all
    }

    /// The coordinator has said what the view of this group is.
    pub(super) fn hear_view(&mut self, scope: &mut Scope<'_>, group: GroupId) -> Vec<Progress> {
        let doubts = self.all.iter_mut().filter_map(|(id, gather)| Some((*id, gather.doubt.as_mut()?)));
        let told: Vec<GatherId> = doubts
            .filter(|(_, doubt)| doubt.group == group)
            .map(|(id, doubt)| {
                doubt.is_told = true;
                id
            })
            .collect();
        told.into_iter().map(|id| self.go_on(scope, id)).collect()
    }

    /// What was asked of `peer` will not come.
    pub(super) fn lose_link(&mut self, scope: &mut Scope<'_>, peer: HostId) -> Vec<Progress> {
        let ids: Vec<GatherId> = self.all.keys().copied().collect();
        self.unlinked.insert(peer.node);
        self.all.values_mut().for_each(|gather| gather.lose(peer));
        ids.into_iter().map(|id| self.go_on(scope, id)).collect()
    }

    /// A link to `peer` is up.
    pub(super) fn link_up(&mut self, peer: HostId) {
        self.unlinked.remove(&peer.node);
    }

    /// When [`Self::reconsider`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let patience_us = self.hedging.patience_us(timing.hedge_us);
        let of = |gather: &Gather| {
            let late = |row: &Row| row.late_at(patience_us, timing.hedge_us);
            let asked = gather.rows.front().map(|row| late(row).min(gather.deadline));
            asked.unwrap_or(Time::NEVER).min(gather.told + timing.pin_us / PROGRESS)
        };
        self.all.values().map(of).min().unwrap_or(Time::NEVER)
    }

    /// Cells that were asked for because others were slow.
    pub(crate) fn hedged_cells(&self) -> u64 {
        self.hedging.cells()
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
    pub news: Vec<(Client, Told)>,
    pub request: Option<OwnerRequest>,
}

/// Bytes that one may have asked for, or hold, where the others have so many outstanding; one row may be more.
fn window(scope: &Scope<'_>, others: usize) -> usize {
    let workers = scope.views.map().map_or(1, |map| u64::from(map.shards.max(1)));
    let share = usize::try_from(scope.budget().limit() / MEMORY_SHARE / workers).unwrap_or(usize::MAX);
    scope.limits().gather_bytes.min(share.saturating_sub(others))
}

impl Gather {
    /// Opens the window as far as it goes: to `most` bytes.
    fn ask_for_rows(
        &mut self,
        scope: &mut Scope<'_>,
        id: GatherId,
        most: usize,
        hedging: &mut Hedging,
        unlinked: &BTreeSet<NodeId>,
    ) {
        let now = scope.now.time;
        while let Some((stripe, run)) = self.next_run() {
            let Some(group) = self.descriptor.group_of(stripe.index) else { break };
            let by_graph = self.by_graph || scope.graphs().reads.is_some();
            let row = Row::new(stripe, run, group, self.protection.code(), now, by_graph);
            // However long a run is, one goes: but not while the reader has not taken what came before it.
            let outstanding = self.outstanding();
            if outstanding > 0 && outstanding + row.len_bytes() > most {
                break;
            }
            if self.rows.is_empty() {
                // A reader may have stood still for longer than any holder may.
                self.deadline = now + scope.timing().request_deadline_us;
            }
            hedging.note_asked(row.len_bytes());
            self.next = row.start() + row.len_bytes() as u64;
            self.rows.push_back(row);
        }
        self.fetch(scope, id, unlinked);
    }

    /// Bytes that were asked for and not given out, or that were not taken.
    fn outstanding(&self) -> usize {
        self.untaken + self.rows.iter().map(Row::len_bytes).sum::<usize>()
    }

    /// The run in which the next byte lies.
    fn next_run(&self) -> Option<(Stripe, Run)> {
        let index = u32::try_from(self.next / self.descriptor.geometry.stripe_len()).ok()?;
        let stripe = self.descriptor.geometry.stripe(index)?;
        let end = self.end.checked_sub(stripe.start)?;
        Some((stripe, stripe.run(self.next.checked_sub(stripe.start)?, end)?))
    }

    /// Asks for the cells that rows want: rows that follow each other in one message for each role.
    fn fetch(&mut self, scope: &mut Scope<'_>, id: GatherId, unlinked: &BTreeSet<NodeId>) {
        let now = scope.now.time;
        let mut wanted: BTreeMap<(MemberId, HostId, u32), (u32, u32)> = BTreeMap::new();
        let mut fetches = Vec::new();
        for row in &mut self.rows {
            let group = row.group();
            let Some(view) = scope.view(group) else { continue };
            let is_up = |host: HostId| !unlinked.contains(&host.node);
            for ask in row.take_wanted(self.protection.code(), now, view, is_up) {
                let key = (MemberId { group, role: ask.role }, ask.host, row.stripe().index);
                match wanted.get_mut(&key) {
                    Some((first, count)) if *first + *count == ask.cell => *count += 1,
                    Some(range) => {
                        fetches.push((key, std::mem::replace(range, (ask.cell, 1))));
                    }
                    None => _ = wanted.insert(key, (ask.cell, 1)),
                }
            }
        }
        fetches.extend(wanted);
        for ((member, host, stripe), (first, count)) in fetches {
            let chunk = ChunkId { object: self.descriptor.id, stripe };
            let fetch = Fetch { number: id.0, member, chunk, first, count };
            scope.send(host, ObjectMessage::Fetch(fetch));
        }
    }

    fn take(&mut self, coder: &Coder, cell: Cell) {
        let Cell { member, chunk, row, cell, .. } = cell;
        let Some(stripe) = self.descriptor.geometry.stripe(chunk.stripe) else { return };
        let CellAt { row, role } = stripe.kept_cell(member.role.0, row);
        let of_row = |known: &&mut Row| (known.stripe().index, known.index()) == (chunk.stripe, row);
        for row in self.rows.iter_mut().filter(of_row) {
            row.take(RoleIndex(role), cell.bytes.clone(), self.protection.code(), coder);
        }
    }

    fn miss(&mut self, from: HostId, missing: &Missing, is_known: bool) {
        let of_stripe = |row: &&mut Row| row.stripe().index == missing.chunk.stripe;
        let code = self.protection.code();
        self.rows.iter_mut().filter(of_stripe).for_each(|row| row.miss(code, from, missing, is_known));
    }

    fn lose(&mut self, peer: HostId) {
        let code = self.protection.code();
        self.rows.iter_mut().for_each(|row| row.lose(code, peer));
    }

    /// Gives out the rows that are whole, from the front.
    fn give_out(&mut self, scope: &Scope<'_>, hedging: &mut Hedging, progress: &mut Progress) {
        while let Some(row) = self.rows.front() {
            let Some(cells) = row.data() else { return };
            hedging.note_whole(scope.now.time.since(row.wanted_at()));
            let mut at = row.start();
            for (cell, filled) in cells {
                let (from, to) = (self.start.max(at), self.end.min(at + u64::from(filled)));
                if from < to {
                    let bytes = cell.slice((from - at) as usize..(to - at) as usize);
                    self.untaken += bytes.len();
                    progress.news.push((self.client, Told::Part(bytes)));
                }
                at += u64::from(filled);
            }
            self.start = self.start.max(at.min(self.end));
            self.rows.pop_front();
            self.deadline = scope.now.time + scope.timing().request_deadline_us;
        }
    }

    /// Whether so many have said that they lack chunks of it that a row cannot be made, and the coordinator has said who they are. It
    /// is asked for that if it has not.
    fn is_surely_lost(&mut self, scope: &mut Scope<'_>) -> bool {
        let code = self.protection.code();
        let lost = self.rows.iter().find(|row| row.is_lost(code, scope.view(row.group())));
        let Some(group) = lost.map(Row::group) else {
            self.doubt = None;
            return false;
        };
        if self.doubt.is_none_or(|doubt| doubt.group != group) {
            self.doubt = Some(Doubt { group, is_told: false });
        }
        let is_told = self.doubt.is_some_and(|doubt| doubt.is_told);
        if !is_told {
            scope.want_view(group);
        }
        is_told
    }

    /// The owner is told that too few chunks are left, so that the key can be named.
    fn tell_of_loss(&self, scope: &mut Scope<'_>) {
        let (object, key_hash) = (self.descriptor.id, self.hash);
        let member = MemberId { group: object.owner.group, role: RoleIndex(0) };
        let ask =
            Ask { owner: object.owner, member, objects: vec![Asked { object, key_hash }], found: Harm::Lost };
        if let Some(primary) = scope.primary_of(object.owner) {
            scope.send(primary, ObjectMessage::Ask(ask));
        }
    }

    /// Whether nothing has come for too long that was to come.
    fn is_late(&self, now: Time) -> bool {
        self.deadline <= now && !self.rows.is_empty()
    }

    /// Whether this is still what the key has.
    fn ask_owner(&self, id: GatherId) -> OwnerRequest {
        let get = Get { value: Want::NoValue, bump: Bump::Silent, ..Get::default() };
        let request = Request::on(self.key.clone(), Op::Get(get));
        let (stream, owner) = (Some(StreamId::Gather(id)), self.descriptor.id.owner);
        OwnerRequest { stream, owner, hash: self.hash, request }
    }

    fn tell_progress(&mut self, now: Time, every_us: u64) -> Option<OwnerRequest> {
        if now.since(self.told) < every_us {
            return None;
        }
        self.told = now;
        self.unpin(false)
    }

    fn unpin(&self, done: bool) -> Option<OwnerRequest> {
        let pin = self.pin?;
        let object = self.descriptor.id;
        let op = Op::Object(ObjectOp::Unpin(Unpin { object, pin, done }));
        let request = Request::on(self.key.clone(), op);
        Some(OwnerRequest { stream: None, owner: object.owner, hash: self.hash, request })
    }
}

/// What a read that fails so is to its client, if its request has `changed` something: what is said of the value stands, but not that
/// nothing was done, or that it may be done again.
fn of_read(failure: Failure, changed: bool) -> Failure {
    match failure {
        Failure::Lost | Failure::Corrupt => failure,
        _ if changed => Failure::Unknown,
        _ => failure,
    }
}
