//! Chunks that one graph makes together: slices cross their borders, so that short ones fill a pipeline, too.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use graph::Part;
use graph::limits::MAX_PARTS;
use store::{ChunkBuilder, ChunkHeader, ChunkStore, Inserted};
use types::{ChunkId, MemberId, Time};
use wire::object::ListedChunk;

use super::bring::bring;
use super::window::{Came, Claim, Window};
use crate::objects::order::{Made, Order, Purpose, Whose};
use crate::objects::scope::Scope;

/// Bytes of chunks of one graph, unless one chunk is longer.
const BATCH_BYTES: u64 = 4 << 20;
/// Graphs at once: while one ends the next one begins.
const MAX_BATCHES: usize = 2;

/// See the module.
#[derive(Default)]
pub(super) struct Batches {
    /// Chunks to get.
    todo: VecDeque<ListedChunk>,
    /// Those that were not made together: fewer of them may be.
    halves: VecDeque<Vec<ListedChunk>>,
    /// Those that are being made, by the numbers of their orders.
    all: BTreeMap<u64, Batch>,
    /// There was no room for the next one when it was looked for last: some that is under way has to end before.
    is_held: bool,
    numbers: u64,
}

/// Chunks that are being made together.
struct Batch {
    chunks: Vec<Batched>,
    /// What is to come, and since when.
    claim: Claim,
    asked_at: Time,
}

/// What has become of a batch.
#[derive(Default)]
pub(super) struct Taken {
    /// Its chunks, with their bytes; without them if one alone could not be made.
    pub chunks: Vec<(ListedChunk, Option<Bytes>)>,
    /// What has come.
    pub came: Option<Came>,
}

/// A chunk of a strand.
struct Batched {
    listed: ListedChunk,
    /// Where it begins in the strand.
    start: usize,
    len: usize,
}

impl Batches {
    /// A chunk is to be got.
    pub(super) fn want(&mut self, listed: ListedChunk) {
        self.todo.push_back(listed);
    }

    /// The next of them, as many as one graph makes and there is room for.
    pub(super) fn take_order(
        &mut self,
        now: Time,
        member: MemberId,
        chunks: &ChunkStore,
        most_bytes: u64,
        window: &Window,
    ) -> Option<Order> {
        if self.all.len() >= MAX_BATCHES {
            return None;
        }
        let batch = self.next(chunks, most_bytes.min(BATCH_BYTES).min(window.bytes()));
        self.is_held = batch.is_empty() && !self.all.is_empty();
        if batch.is_empty() {
            return None;
        }
        self.numbers += 1;
        let order = order_of(member, self.numbers, &batch);
        let mut claim = window.claim();
        claim.add(order.len().into());
        self.all.insert(self.numbers, Batch { chunks: batch, claim, asked_at: now });
        Some(order)
    }

    /// Whether it would have more made, if there was room for it.
    pub(super) fn wants_more(&self) -> bool {
        let has_more = !(self.todo.is_empty() && self.halves.is_empty());
        has_more && !self.is_held && self.all.len() < MAX_BATCHES
    }

    /// What is being made and has not come.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.all.values().map(|batch| batch.claim.bytes()).sum()
    }

    fn under_way(&self) -> impl Iterator<Item = &Batched> {
        self.all.values().flat_map(|batch| &batch.chunks)
    }

    /// The next half, or as many as there are and there is room for.
    fn next(&mut self, chunks: &ChunkStore, most_bytes: u64) -> Vec<Batched> {
        let half = self.halves.pop_front();
        let is_half = half.is_some();
        let mut todo: VecDeque<ListedChunk> = half.map_or_else(|| std::mem::take(&mut self.todo), Into::into);
        let batch = self.cut(&mut todo, chunks, most_bytes);
        match is_half {
            true if !todo.is_empty() => self.halves.push_front(todo.into()),
            true => {}
            false => self.todo = todo,
        }
        batch
    }

    /// As many from the front as fit into one strand.
    fn cut(&self, todo: &mut VecDeque<ListedChunk>, chunks: &ChunkStore, most_bytes: u64) -> Vec<Batched> {
        let mut batch: Vec<Batched> = Vec::new();
        let (mut start, mut room) = (0u64, chunks.pages().room().saturating_sub(self.bytes()));
        while batch.len() < MAX_PARTS
            && let Some(listed) = todo.front()
        {
            let is_known = |batched: &Batched| batched.listed.chunk == listed.chunk;
            let is_here =
                chunks.get(listed.chunk).is_some() || batch.iter().chain(self.under_way()).any(is_known);
            let stripe = listed.geometry.stripe(listed.chunk.stripe).filter(|_| !is_here);
            let Some(len) = stripe.map(|stripe| stripe.chunk_len()) else {
                todo.pop_front();
                continue;
            };
            if !batch.is_empty() && start + len > most_bytes || len > room {
                break;
            }
            let Some(listed) = todo.pop_front() else { break };
            batch.push(Batched { listed, start: start as usize, len: len as usize });
            (start, room) = (start + len, room - len);
        }
        batch
    }

    /// What is under way.
    fn bytes(&self) -> u64 {
        self.under_way().map(|batched| batched.len as u64).sum()
    }

    pub(super) fn awaits(&self, purpose: Purpose) -> bool {
        self.all.contains_key(&purpose.number)
    }

    /// Chunks of an order that has ended. What many could not be made of fewer may be: one of them was perhaps freed meanwhile.
    pub(super) fn take(&mut self, now: Time, made: Made) -> Taken {
        self.is_held = false;
        let Some(Batch { mut chunks, claim, asked_at }) = self.all.remove(&made.purpose.number) else {
            return Taken::default();
        };
        let strand = made.bytes.and_then(|bytes| bytes.into_values().next());
        if strand.is_none() && chunks.len() > 1 {
            let listed = |half: Vec<Batched>| half.into_iter().map(|batched| batched.listed).collect();
            let second = chunks.split_off(chunks.len() / 2);
            self.halves.extend([listed(chunks), listed(second)]);
            return Taken::default();
        }
        let came = strand.as_ref().map(|_| Came { took_us: now.since(asked_at), bytes: claim.bytes() });
        let cut = |batched: Batched| {
            let range = batched.start..batched.start + batched.len;
            let bytes = strand.as_ref().filter(|strand| range.end <= strand.len());
            (batched.listed, bytes.map(|strand| strand.slice(range)))
        };
        Taken { chunks: chunks.into_iter().map(cut).collect(), came }
    }

    /// How many chunks are not here yet.
    pub(super) fn left(&self) -> usize {
        let (under_way, halves) = (self.under_way().count(), self.halves.iter().map(Vec::len));
        self.todo.len() + under_way + halves.sum::<usize>()
    }

    /// The next chunk, if nothing is under way and there is no room for it, or it is longer than a graph may make.
    pub(super) fn take_too_long(&mut self, chunks: &ChunkStore, most_bytes: u64) -> Option<ListedChunk> {
        let most = most_bytes.min(chunks.pages().room());
        let len = |listed: &ListedChunk| Some(listed.geometry.stripe(listed.chunk.stripe)?.chunk_len());
        let is_too_long = |listed: &mut ListedChunk| len(listed).is_some_and(|len| len > most);
        if !self.all.is_empty() {
            return None;
        }
        // Halves of what there was room for before go the way of all others.
        if self.halves.iter_mut().flatten().any(is_too_long) {
            self.todo.extend(std::mem::take(&mut self.halves).into_iter().flatten());
        }
        self.todo.pop_front_if(is_too_long)
    }

    /// They are not wanted any more; what comes of them is nobody's.
    pub(super) fn forget(&mut self) {
        self.is_held = false;
        self.all.clear();
        self.todo.clear();
        self.halves.clear();
    }

    /// These chunks need not be here.
    pub(super) fn leave_out(&mut self, is_meant: impl Fn(ChunkId) -> bool) {
        self.is_held = false;
        self.todo.retain(|listed| !is_meant(listed.chunk));
        self.halves.iter_mut().for_each(|half| half.retain(|listed| !is_meant(listed.chunk)));
        self.all.values_mut().for_each(|batch| batch.chunks.retain(|it| !is_meant(it.listed.chunk)));
    }
}

fn order_of(member: MemberId, number: u64, batch: &[Batched]) -> Order {
    let part = |it: &Batched| Part { chunk: it.listed.chunk, offset: 0, len: it.len as u32 };
    let sum = |it: &Batched| it.listed.trailer.get(usize::from(member.role.0)).copied().unwrap_or(0);
    Order {
        purpose: Purpose { whose: Whose::Holder(member), number },
        group: member.group,
        wanted: vec![member.role],
        strand: batch.iter().map(part).collect(),
        sums: batch.iter().map(sum).collect(),
    }
}

/// Keeps a chunk that was made, if there is room and it is what its writer has put; whether it is here.
pub(super) fn keep_made(
    scope: &Scope<'_>,
    member: MemberId,
    chunks: &mut ChunkStore,
    listed: &ListedChunk,
    bytes: &Bytes,
) -> bool {
    let ListedChunk { chunk, key_hash, geometry, trailer, kept } = listed;
    let Some(stripe) = geometry.stripe(chunk.stripe) else { return false };
    let mut builder = ChunkBuilder::new(chunks.pages(), stripe.cell_len, stripe.cells_of(member.role.0));
    let has_room = bytes.chunks(stripe.cell_len as usize).all(|cell| builder.push(cell).is_ok());
    let Some(built) = builder.finish().ok().filter(|_| has_room) else { return false };
    let (received_at, last_access) = (scope.now.time, scope.now.unix);
    let trailer = trailer.iter().copied().collect();
    let header = ChunkHeader { key_hash: *key_hash, geometry: *geometry, trailer, received_at, last_access };
    if bring(scope, chunks, *chunk, header, built) == Some(Inserted::Wrong) {
        tracing::error!(%member, %chunk, "what a graph has made is not this chunk");
        return false;
    }
    if *kept {
        chunks.keep(*chunk);
    }
    true
}
