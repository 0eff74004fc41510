//! What a connection does for a client that reads and writes chunks itself.
//!
//! Who may write a key may put what it likes into that key's chunks: what is looked at here is that it can be a chunk of that key, and that
//! it has a place; whether a chunk is what it should be its client says by checksums, to whoever reads it.

use native::{
    Answer, BeginAsk, BegunChunks, Cells, Chunked, Code, CommitAsk, FetchAsk, FoundChunks, MAX_FETCH_BYTES,
    Meta, Piece, PutAsk, Reason, Written,
};
use proto::{NewDeposit, Now, Place};
use types::op::{Begin, ItemView, Key, ObjectOp, Op, OpKind, Outcome, Store};
use types::{Geometry, GroupId, ObjectId, ObjectLayout, ObjectPolicy, Once, Term};

use super::chunks::Said;
use super::sendings::Source;
use super::{NativeConnection, Reading, State, Wants};
use crate::workers::streams::{ChunkRows, News, Order};
use crate::workers::worker::Worker;

impl NativeConnection {
    /// Rows of a chunk are wanted.
    pub(super) fn fetch(
        &self,
        worker: &Worker,
        state: &mut State,
        id: u64,
        (key, place): (&Key, Place),
        fetch: &FetchAsk,
    ) {
        worker.counters.native_fetches.inc();
        let is_of_key = fetch.chunk.object.namespace == key.namespace();
        if !is_of_key || !has_group(worker, fetch.member.group) {
            return Answer::Just(Code::Miss).put(id, state.output.text());
        }
        if !state.chunks.begin_fetch(id, state.sendings.len()) {
            return Answer::Just(Code::Busy).put(id, state.output.text());
        }
        state.fetch_windows.insert(id, fetch.window);
        let shard = fetch.member.group.shard(worker.shared.config.workers);
        let (key_hash, rows) = (place.hash, (fetch.first, fetch.count));
        let rows =
            ChunkRows { key_hash, whose: (fetch.member, fetch.chunk), rows, most_bytes: MAX_FETCH_BYTES };
        let asker = self.stream_asker(worker, id);
        if let Some(news) = worker.order(worker.clock.now(), shard, asker, Order::Read(Box::new(rows))) {
            state.hear_of_chunk(worker, id, &news);
        }
    }

    /// A chunk begins to come.
    pub(super) fn put(
        &self,
        worker: &Worker,
        state: &mut State,
        id: u64,
        (key, place): (&Key, Place),
        put: PutAsk,
    ) {
        worker.counters.native_puts.inc();
        let object = put.chunk.object;
        let is_of_key = object.namespace == key.namespace() && place.member == Some(object.owner);
        let stripe = put.geometry.stripe(put.chunk.stripe);
        let Some(stripe) = stripe.filter(|_| is_of_key && has_group(worker, put.member.group)) else {
            return Answer::Just(Code::Moved).put(id, state.output.text());
        };
        let shard = put.member.group.shard(worker.shared.config.workers);
        if !state.chunks.begin_put(id, shard, stripe.cell_len, stripe.rows) {
            return Answer::Just(Code::Busy).put(id, state.output.text());
        }
        let PutAsk { member, view, chunk, geometry, checksums, trailer } = put;
        let new = NewDeposit { member, view, chunk, geometry, key_hash: place.hash, checksums, trailer };
        let asker = self.stream_asker(worker, id);
        if let Some(news) = worker.order(worker.clock.now(), shard, asker, Order::Deposit(Box::new(new))) {
            state.hear_of_chunk(worker, id, &news);
        }
    }

    /// A piece may be a cell of a chunk that is being put; whether it is.
    pub(super) fn take_cell(&self, worker: &Worker, state: &mut State, piece: &Piece) -> bool {
        match state.chunks.take_piece(piece.id, &piece.bytes) {
            Ok(None) => false,
            Ok(Some(shard)) => {
                let (now, asker) = (worker.clock.now(), self.stream_asker(worker, piece.id));
                if let Some(news) = worker.order(now, shard, asker, Order::Feed(piece.bytes.clone())) {
                    state.hear_of_chunk(worker, piece.id, &news);
                }
                true
            }
            Err(_) => {
                state.close(Reason::TooManyBytes, piece.id);
                true
            }
        }
    }

    /// The client does not go on with a chunk; whether there was one.
    pub(super) fn drop_put(&self, worker: &Worker, state: &mut State, id: u64) -> bool {
        let Some(shard) = state.chunks.remove(id) else { return false };
        worker.order(worker.clock.now(), shard, self.stream_asker(worker, id), Order::Abandon);
        true
    }

    /// The same for all whose cells will not come any more.
    pub(super) fn drop_puts(&self, worker: &Worker, state: &mut State) {
        let gone = if state.socket.is_some() { state.chunks.incomplete() } else { state.chunks.ids() };
        gone.into_iter().for_each(|id| _ = self.drop_put(worker, state, id));
    }

    /// A value is to be put into chunks by its client.
    pub(super) fn begin(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        id: u64,
        (key, place, once): (Key, Place, Option<Once>),
        begin: BeginAsk,
    ) {
        let limits = worker.value_limits_of(key.namespace());
        let len = usize::try_from(begin.len).unwrap_or(usize::MAX);
        let is_dealt_by_cells = worker.object_policy(key.namespace()).layout == ObjectLayout::Spread;
        if !is_dealt_by_cells || is_moving(worker, &key) || !limits.streams(&key, &store_of(&begin, now), len)
        {
            return Answer::Just(Code::NotDirect).put(id, state.output.text());
        }
        // Before its owner is asked for an id: else that would be open for nothing.
        if to_be(worker, now, &key, place, &begin, None).is_none() {
            return Answer::Just(Code::Moved).put(id, state.output.text());
        }
        let op = native::Ask::Begin(begin).operation(now.unix);
        let Some(op) = op.map(|op| placed(worker, &key, place, op)) else { return };
        state.expect(worker, now, id, op.kind(), 0, Wants::Begun(key.clone(), place, begin));
        self.submit(worker, state, now, (id, place), types::op::Request::on(key, op).once(once));
    }

    /// All chunks of a value are there.
    pub(super) fn commit(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        id: u64,
        (key, place, once): (Key, Place, Option<Once>),
        commit: Box<CommitAsk>,
    ) {
        let kind = kind_of(&commit, now);
        let op = native::Ask::Commit(commit.clone()).operation(now.unix);
        let Some(op) = op.filter(|_| may_be_written(worker, &key, place, &commit.written)) else {
            return Answer::Just(Code::NotDirect).put(id, state.output.text());
        };
        state.expect(worker, now, id, kind, 0, Wants::Code);
        worker.counters.count_command(kind);
        self.submit(worker, state, now, (id, place), types::op::Request::on(key, op).once(once));
    }

    /// Nothing comes of a value whose chunks were put.
    pub(super) fn abandon_object(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        id: u64,
        (key, place): (Key, Place),
        written: Box<Written>,
    ) {
        let may = may_be_written(worker, &key, place, &written);
        let op = native::Ask::Abandon(written).operation(now.unix);
        let Some(op) = op.filter(|_| may) else {
            return Answer::Just(Code::NotDirect).put(id, state.output.text());
        };
        state.expect(worker, now, id, op.kind(), 0, Wants::Code);
        self.submit(worker, state, now, (id, place), types::op::Request::on(key, op));
    }
}

impl State {
    /// There is news of a chunk; whether it was of one that is known.
    pub(super) fn hear_of_chunk(&mut self, _: &Worker, id: u64, news: &News) -> bool {
        let Some(said) = self.chunks.hear(id, news) else { return false };
        match said {
            Said::Nothing => {}
            Said::Put(code) => Answer::Just(code).put(id, self.output.text()),
            Said::Cells(cells) => {
                let window = self.fetch_windows.remove(&id).unwrap_or(0);
                let Some((first, _)) = cells.first() else {
                    Answer::Just(Code::Miss).put(id, self.output.text());
                    return true;
                };
                let cell_len = first.len() as u32;
                let (cells, checksums): (_, Vec<u32>) = cells.into_iter().unzip();
                Answer::Cells(Cells { cell_len, checksums }).put(id, self.output.text());
                self.sendings.add_begun(id, window.into(), Source::Cells(cells));
            }
        }
        true
    }

    /// Says where the chunks of a value are, if its client may go there; else it is sent like any other.
    pub(super) fn tell_chunks(&mut self, worker: &Worker, id: u64, reading: Reading, item: ItemView) {
        let pin_us = worker.shared.config.timing.pin_us;
        let meta = Meta::of(&item);
        let found = item.object.as_deref().and_then(|object| {
            let host = worker.host.borrow();
            FoundChunks::of(host.map()?, meta, &reading.get, object, pin_us)
        });
        match found {
            Some(found) => Answer::Chunks(Box::new(found)).put(id, self.output.text()),
            None => self.send(id, reading, item),
        }
    }

    /// Says where the chunks of a value go for which there is an id now.
    pub(super) fn tell_begun(
        &mut self,
        worker: &Worker,
        id: u64,
        object: ObjectId,
        (key, place, begin): (&Key, Place, &BeginAsk),
    ) {
        let now = worker.clock.now();
        let open_ms =
            u32::try_from(worker.shared.config.timing.object_deadline_us / 1000).unwrap_or(u32::MAX);
        match to_be(worker, now, key, place, begin, Some(object)) {
            Some(chunks) => {
                Answer::Begun(Box::new(BegunChunks { open_ms, chunks })).put(id, self.output.text());
            }
            // The view has changed in between. The id ends by itself.
            None => Answer::Just(Code::Moved).put(id, self.output.text()),
        }
    }
}

fn has_group(worker: &Worker, group: GroupId) -> bool {
    worker.host.borrow().map().is_some_and(|map| map.group(group).is_some())
}

/// Where the chunks of a value would go, under this name or any; none if the value has to go through a node.
fn to_be(
    worker: &Worker,
    now: Now,
    key: &Key,
    place: Place,
    begin: &BeginAsk,
    object: Option<ObjectId>,
) -> Option<Chunked> {
    let namespace = key.namespace();
    let owner = place.member.filter(|_| place.refusal.is_none())?;
    let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = worker.object_policy(namespace);
    let mut host = worker.host.borrow_mut();
    let k = host.map()?.catalog.pool_of(namespace)?.profile.k() as u8;
    let geometry = Geometry { len: begin.len, chunk_len, k, layout };
    geometry.is_possible().then_some(())?;
    let groups = host.streams(now).groups_for(owner, place.hash, geometry);
    let any = || ObjectId { owner, term: Term(0), number: 0, salt: 0, namespace };
    Chunked::to_be(host.map()?, object.unwrap_or_else(any), geometry, groups)
}

/// Whether the namespace of `key` moves to another pool: where its chunks go, and who decides about it, a node sees to.
fn is_moving(worker: &Worker, key: &Key) -> bool {
    let host = worker.host.borrow();
    host.map().is_some_and(|map| map.catalog.target_of(key.namespace()).is_some())
}

/// What asks for an id says in which pool the chunks are to lie.
fn placed(worker: &Worker, key: &Key, place: Place, op: Op) -> Op {
    match op {
        Op::Object(ObjectOp::Begin(begin)) => {
            let host = worker.host.borrow();
            let into = |map: &types::ClusterMap| {
                let group = place.member?.group;
                Some(map.catalog.conversions_into(key.namespace(), group))
            };
            let conversions = host.map().and_then(into).unwrap_or(begin.conversions);
            Op::Object(ObjectOp::Begin(Begin { conversions, ..begin }))
        }
        op => op,
    }
}

fn may_be_written(worker: &Worker, key: &Key, place: Place, written: &Written) -> bool {
    let longest = worker.shared.config.limits.max_value_bytes;
    let is_taken = place.refusal.is_none() && written.geometry.len <= longest;
    let host = worker.host.borrow();
    is_taken && host.map().is_some_and(|map| written.may_be(map, key.namespace(), place.member))
}

fn store_of(begin: &BeginAsk, now: Now) -> Store {
    let (mode, compare, content) = (begin.mode, begin.compare, native::Content::Pieces(begin.len));
    native::StoreAsk { mode, flags: 0, ttl: 0, compare, content }.operation(now.unix)
}

/// A value is counted as what it is, however its bytes come.
fn kind_of(commit: &CommitAsk, now: Now) -> OpKind {
    let CommitAsk { mode, flags, ttl, compare, .. } = *commit;
    let content = native::Content::Pieces(commit.written.geometry.len);
    Op::Store(native::StoreAsk { mode, flags, ttl, compare, content }.operation(now.unix)).kind()
}

/// Whether what comes of a request is made into frames when the host is not at work.
pub(super) fn needs_host(wants: &Wants, outcome: &Outcome) -> bool {
    match (wants, outcome) {
        (Wants::Places(..), _) | (Wants::Begun(..), Outcome::Begun(_)) => true,
        (Wants::Value(reading), Outcome::Hit(item)) => reading.get.direct && item.object.is_some(),
        _ => false,
    }
}
