//! A node's end of a connection: what it has heard, what it owes, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use native::{
    About, Answer, Ask, Breach, Capabilities, Chunked, Code, Decoder, Dialogue, FoundChunks, GetAsk, Heard,
    MAX_PIECE_BYTES, Meta, Piece, Reason, Request, RouteMap, Value, Welcome, Window, code_of,
};
use types::op::{Failure, Outcome};
use types::{ClusterId, ClusterMap, NodeId};
use wire::object::Checked;

use super::chunks::{self, Chunks, Put};
use super::pieces::{Pieces, TooMany};

/// See the module.
#[derive(Default)]
pub(crate) struct Port {
    dialogue: Dialogue,
    input: BytesMut,
    /// Requests that have no answer yet.
    pending: BTreeMap<u64, Wants>,
    pieces: Pieces,
    chunks: Chunks,
    out: Vec<u8>,
}

/// What a node knows that answers about chunks need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub map: Option<&'a ClusterMap>,
    pub pin_us: u64,
    pub open_ms: u32,
}

/// What an outcome is made into.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wants {
    Code,
    Value(GetAsk),
    About,
    /// A chunk is put.
    Placed,
    /// An id for a value whose chunks its client puts.
    Begun,
}

impl Wants {
    pub(crate) fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Get(get) => Self::Value(*get),
            Ask::Stat => Self::About,
            Ask::Begin(_) => Self::Begun,
            _ => Self::Code,
        }
    }
}

impl Port {
    /// Bytes have come.
    pub(crate) fn take(&mut self, bytes: &Bytes) {
        self.input.extend_from_slice(bytes);
    }

    /// What the next whole frame says, where so many requests may be unanswered.
    pub(crate) fn next(&mut self, credits: u32) -> Result<Option<Heard>, Breach> {
        let malformed = Breach { reason: Reason::Malformed, id: 0 };
        let Some(frame) = Decoder::next(&mut self.input).map_err(|_| malformed)? else { return Ok(None) };
        let unanswered = self.pending.len() + self.pieces.outgoing();
        self.dialogue.hear(frame, (credits as usize).saturating_sub(unanswered)).map(Some)
    }

    /// A write has begun whose value of so many bytes comes in pieces.
    pub(crate) fn expect_pieces(&mut self, id: u64, request: Request, len: u64) {
        self.expect(id, Wants::Code);
        self.pieces.expect(id, request, len, &mut self.out);
    }

    /// A piece of a value has come: the write, if it is whole now.
    pub(crate) fn take_piece(&mut self, piece: &Piece) -> Result<Option<(Request, Bytes)>, Breach> {
        let breach = Breach { reason: Reason::TooManyBytes, id: piece.id };
        self.pieces.take(piece, &mut self.out).map_err(|TooMany| breach)
    }

    /// The client takes more of a value.
    pub(crate) fn granted(&mut self, window: Window) {
        self.pieces.granted(window);
    }

    /// A chunk begins to come.
    pub(crate) fn expect_put(&mut self, id: u64, put: Put) {
        self.expect(id, Wants::Placed);
        self.chunks.expect(id, put);
    }

    /// Whether pieces of this request are cells of a chunk.
    pub(crate) fn puts(&self, id: u64) -> bool {
        self.chunks.knows(id)
    }

    /// A cell of a chunk has come: where it goes, if it is wanted.
    pub(crate) fn take_cell(&mut self, piece: &Piece) -> Result<Option<Put>, Breach> {
        let (put, can_be) = self.chunks.take(piece);
        let breach = Breach { reason: Reason::TooManyBytes, id: piece.id };
        if can_be || !self.pending.contains_key(&piece.id) { Ok(put) } else { Err(breach) }
    }

    /// Chunks that come, when nobody will send the rest.
    pub(crate) fn take_puts(&mut self) -> Vec<Put> {
        self.chunks.take_all()
    }

    /// An id is asked for, for a value whose chunks go there.
    pub(crate) fn expect_id(&mut self, id: u64, chunks: Chunked) {
        self.expect(id, Wants::Begun);
        self.chunks.expect_id(id, chunks);
    }

    /// Rows of a chunk are there, or not.
    pub(crate) fn send_cells(&mut self, id: u64, cells: Option<Vec<Checked>>) {
        chunks::send(id, cells, &mut self.out);
    }

    /// The client wants a request no more: what was submitted is done all the same, and answered. A chunk that it was putting, if it was.
    pub(crate) fn cancel(&mut self, id: u64) -> Option<Put> {
        let put = self.chunks.cancel(id);
        if put.is_some() {
            self.answer_early(id, Code::Cancelled);
            return put;
        }
        self.cancel_value(id);
        None
    }

    fn cancel_value(&mut self, id: u64) {
        if self.pieces.drop_incoming(id) {
            self.answer_early(id, Code::Cancelled);
        } else {
            self.pieces.end(id, Code::Cancelled, &mut self.out);
        }
    }

    /// A write is answered before all of its value has come; what still comes is thrown away.
    pub(crate) fn answer_early(&mut self, id: u64, code: Code) {
        self.pieces.drop_incoming(id);
        if self.pending.remove(&id).is_some() {
            Answer::Just(code).put(id, &mut self.out);
        }
    }

    /// The next value that is on its way to the client is not to be had any more.
    pub(crate) fn break_off(&mut self) {
        if let Some(id) = self.pieces.next_outgoing() {
            self.pieces.end(id, Code::Busy, &mut self.out);
        }
    }

    /// Answers a request that was not begun.
    pub(crate) fn say(&mut self, id: u64, code: Code) {
        Answer::Just(code).put(id, &mut self.out);
    }

    pub(crate) fn welcome(&mut self, version: u16, capabilities: Capabilities, credits: u32, node: NodeId) {
        let (cluster, longest_value) = (ClusterId(0), 1 << 20);
        Welcome { version, capabilities, credits, longest_value, node, cluster }.put(&mut self.out);
    }

    /// Whether the client does not know this version of the map.
    pub(crate) fn lacks_map(&self, version: Option<u64>) -> bool {
        self.dialogue.lacks_map(version)
    }

    pub(crate) fn tell_map(&mut self, map: RouteMap) {
        self.dialogue.tell_map(&Arc::new(map), &mut self.out);
    }

    pub(crate) fn tell_whole_map(&mut self, map: RouteMap, has: u64) {
        self.dialogue.tell_whole_map(&Arc::new(map), has, &mut self.out);
    }

    /// A request has begun.
    pub(crate) fn expect(&mut self, id: u64, wants: Wants) {
        self.pending.insert(id, wants);
    }

    /// A request has come to its end; whether it was waited for.
    pub(crate) fn settle(&mut self, id: u64, outcome: &Outcome, around: Around<'_>) -> bool {
        let was_cancelled = self.chunks.end(id);
        let Some(wants) = self.pending.remove(&id) else { return was_cancelled };
        match (wants, outcome) {
            (Wants::Value(get), Outcome::Hit(item)) if item.object.is_some() => {
                let found = item.object.as_deref().and_then(|object| {
                    FoundChunks::of(around.map?, Meta::of(item), &get, object, around.pin_us)
                });
                let unavailable = Answer::Just(Code::Unavailable);
                found.map_or(unavailable, |found| Answer::Chunks(found.into())).put(id, &mut self.out);
            }
            (Wants::Begun, Outcome::Begun(object)) => {
                let begun = self.chunks.begun(id, *object, around.open_ms);
                begun.unwrap_or(Answer::Just(Code::NotDirect)).put(id, &mut self.out);
            }
            (Wants::Placed, outcome) => {
                let code = match outcome {
                    Outcome::Noted => Code::Placed,
                    Outcome::Failed(Failure::WrongPrimary) => Code::Moved,
                    outcome => code_of(outcome),
                };
                Answer::Just(code).put(id, &mut self.out);
            }
            (Wants::Value(get), Outcome::Hit(item)) => {
                let meta = Meta { value_len: item.value.len() as u64, ..Meta::of(item) };
                let (start, end) = get.wanted(meta.value_len);
                let bytes = item.value.slice(start as usize..end as usize);
                if bytes.len() > MAX_PIECE_BYTES {
                    self.pieces.send(id, meta, start, bytes, get.window, &mut self.out);
                    return true;
                }
                let value = Value { meta, start, len: end - start, bytes: Some(bytes) };
                Answer::Value(value).put(id, &mut self.out);
            }
            (Wants::About, Outcome::Hit(item)) => Answer::About(About::of(item)).put(id, &mut self.out),
            (_, outcome) => Answer::of(outcome).put(id, &mut self.out),
        }
        true
    }

    /// What is to be sent.
    pub(crate) fn take_output(&mut self) -> Bytes {
        self.pieces.go_on(&mut self.out);
        std::mem::take(&mut self.out).into()
    }
}
