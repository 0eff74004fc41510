//! Outcomes into frames.

use bytes::Bytes;
use native::{About, Answer, Code, MAX_PIECE_BYTES, Meta, Value};
use proto::Now;
use types::Time;
use types::op::{ItemView, OpKind, Outcome};

use super::chunking::needs_host;
use super::sendings::Source;
use super::{Pending, Reading, State, Wants, slice_of};
use crate::clients::gate::Load;
use crate::clients::latency::Operation;
use crate::limits::REQUEST_OVERHEAD_BYTES;
use crate::workers::worker::Worker;

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

    /// What this request is to find nobody will take: it is not begun, for nobody would make room for more of it.
    pub(super) fn want_no_more(&mut self, id: u64) {
        if let Some(Pending { wants: Wants::Value(reading), .. }) = self.pending.get_mut(&id) {
            reading.is_cancelled = true;
        }
        // Cells are no more than was asked for.
        if let Some(window) = self.fetch_windows.get_mut(&id) {
            *window = u32::MAX;
        }
    }

    /// Request `id` has come to its end: what is said of it. Nothing if nobody waits for it.
    pub(super) fn settle(&mut self, worker: &Worker, now: Time, id: u64, outcome: Outcome) {
        // What needs the map waits until the host is not at work.
        if self.pending.get(&id).is_some_and(|pending| needs_host(&pending.wants, &outcome)) {
            return self.located.push((id, outcome));
        }
        let Some(pending) = self.forget(id) else { return };
        worker.counters.count_outcome(pending.kind, &outcome);
        worker.stopwatch.served(pending.operation, pending.began, now);
        match (pending.wants, outcome) {
            (Wants::Value(reading), Outcome::Hit(item)) => self.send(id, reading, item),
            (Wants::About, Outcome::Hit(item)) => Answer::About(About::of(&item)).put(id, self.output.text()),
            (_, outcome) => Answer::of(&outcome).put(id, self.output.text()),
        }
    }

    /// A value was found: all of it is said at once if it is short, else it is sent in pieces.
    pub(super) fn send(&mut self, id: u64, reading: Reading, mut item: ItemView) {
        if reading.is_cancelled {
            // A pin ends by itself.
            return Answer::Just(Code::Cancelled).put(id, self.output.text());
        }
        let window = reading.get.window.into();
        let (meta, range) = (Meta::of(&item), reading.get.wanted(item.value_len));
        let source = match item.object.take() {
            // Its pin ends by itself.
            Some(_) if range.0 == range.1 => Source::Here(Bytes::new()),
            Some(object) => Source::of_object(reading, *object),
            None => Source::Here(slice_of(&item.value, range)),
        };
        match source {
            Source::Here(bytes) if bytes.len() <= MAX_PIECE_BYTES => {
                let part = (range.0, bytes.len() as u64);
                Value::put_head_of(&meta, part, Some(bytes.len()), id, self.output.text());
                self.output.share(bytes);
            }
            source => self.sendings.add(id, meta, range, window, source),
        }
    }
}
