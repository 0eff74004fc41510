//! Outcomes into frames.

use bytes::Bytes;
use native::{About, Answer, Code, GetAsk, Layout, MAX_PIECE_BYTES, Meta, Value, code_of};
use proto::Now;
use types::Time;
use types::op::{ItemView, OpKind, Outcome};

use super::sendings::Source;
use super::{Pending, Reading, State, Wants, slice_of};
use crate::clients::gate::Load;
use crate::clients::latency::Operation;
use crate::limits::REQUEST_OVERHEAD_BYTES;
use crate::workers::worker::Worker;

/// What is known of an item.
pub(super) fn meta_of(item: &ItemView) -> Meta {
    let ItemView { version, flags, ttl_seconds, value_len, .. } = *item;
    Meta { version, flags, ttl: ttl_seconds, value_len }
}

fn about(item: &ItemView) -> About {
    let layout = item.object.as_ref().map_or(Layout::Packed, |object| {
        let geometry = object.descriptor.geometry;
        Layout::Chunks { chunk_len: geometry.chunk_len, k: geometry.k }
    });
    About { meta: meta_of(item), idle: item.idle_seconds, fetched: item.fetched, layout }
}

/// Which bytes of a value are wanted: from where to where.
pub(super) fn wanted(get: &GetAsk, value_len: u64) -> (u64, u64) {
    get.range.map_or((0, value_len), |range| range.within(value_len))
}

impl State {
    /// A request has begun, of which `value_bytes` are held.
    pub(super) fn expect(
        &mut self,
        worker: &Worker,
        now: Now,
        id: u64,
        kind: OpKind,
        value_bytes: usize,
        wants: Wants,
    ) {
        let reads = matches!(wants, Wants::Value(_));
        let expected = if reads { worker.reply_guess.len_bytes() } else { 0 };
        let load = Load { held: REQUEST_OVERHEAD_BYTES + value_bytes, expected };
        self.pending_load.held += load.held;
        self.pending_load.expected += load.expected;
        let operation = Operation::of(kind, &faces::memcache::ReplyStyle::Text);
        self.pending.insert(id, Pending { kind, operation, began: now.time, load, wants });
    }

    /// A request is not waited for any more; it, if it was.
    pub(super) fn forget(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.pending_load.held -= pending.load.held;
        self.pending_load.expected -= pending.load.expected;
        Some(pending)
    }

    /// Request `id` has come to its end: what is said of it. Nothing if nobody waits for it.
    pub(super) fn settle(&mut self, worker: &Worker, now: Time, id: u64, outcome: Outcome) {
        // What needs the map waits until the host is not at work.
        if matches!(self.pending.get(&id), Some(Pending { wants: Wants::Places(..), .. })) {
            return self.located.push((id, outcome));
        }
        let Some(pending) = self.forget(id) else { return };
        worker.counters.count_outcome(pending.kind, &outcome);
        worker.stopwatch.served(pending.operation, pending.began, now);
        match (pending.wants, outcome) {
            (Wants::Value(reading), Outcome::Hit(item)) => self.send(id, reading, item),
            (Wants::About, Outcome::Hit(item)) => Answer::About(about(&item)).put(id, &mut self.output),
            (_, outcome) => answer_of(&outcome).put(id, &mut self.output),
        }
    }

    /// A value was found: all of it is said at once if it is short, else it is sent in pieces.
    fn send(&mut self, id: u64, reading: Reading, mut item: ItemView) {
        let window = reading.get.window.into();
        let (meta, range) = (meta_of(&item), wanted(&reading.get, item.value_len));
        let source = match item.object.take() {
            // Its pin ends by itself.
            Some(_) if range.0 == range.1 => Source::Here(Bytes::new()),
            Some(object) => Source::of_object(reading, *object),
            None => Source::Here(slice_of(&item.value, range)),
        };
        match source {
            Source::Here(bytes) if bytes.len() <= MAX_PIECE_BYTES => {
                let part = (range.0, bytes.len() as u64);
                Value::put_head_of(&meta, part, Some(bytes.len()), id, &mut self.output);
                self.output.extend_from_slice(&bytes);
            }
            source => self.sendings.add(id, meta, range, window, source),
        }
    }
}

/// The answer that has nothing to do with a value's bytes.
fn answer_of(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Stored(item) => Answer::Stored(item.version),
        Outcome::Number(number, item) => Answer::Number(*number, item.version),
        Outcome::Session(session) => Answer::Session(*session),
        // It was asked for something else than a value.
        Outcome::Hit(_) => Answer::Just(Code::Touched),
        outcome => Answer::Just(code_of(outcome)),
    }
}
