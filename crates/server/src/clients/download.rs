//! The bytes of a value that lies in chunks, on their way to a client that reads it.
//!
//! A connection fetches one such value at a time: the one whose turn it is to be printed. What has come is moved into the output while that has
//! room, and only then asked for anew: so a slow reader holds one window of parts and one full output. Before anything of a value is
//! printed a failure is that of any read; later there is no way to tell but to close the connection.

use std::collections::VecDeque;

use bytes::Bytes;
use proto::NewGather;
use types::op::{Bump, Failure, Get, Op, Outcome, Request};

use crate::clients::connection::{Connection, Phase, State};
use crate::limits::CLIENT_OUT_HIGH_BYTES;
use crate::workers::streams::{News, Order};
use crate::workers::worker::Worker;

/// See the module.
pub(crate) struct Download {
    /// Of the reply that it is a part of.
    slot: u64,
    /// The worker that has the object's groups.
    shard: u16,
    parts: VecDeque<Bytes>,
    /// Bytes of them.
    held: usize,
    /// Whether something of the value has been printed.
    begun: bool,
    end: Option<Result<(), Failure>>,
}

impl Download {
    fn new(slot: u64, shard: u16) -> Self {
        Self { slot, shard, parts: VecDeque::new(), held: 0, begun: false, end: None }
    }

    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Bytes that it holds.
    pub(crate) fn weight(&self) -> usize {
        self.held
    }

    /// Whether there is something to be printed.
    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The host says something.
    pub(crate) fn hear(&mut self, news: News) {
        match news {
            News::Part(bytes) => {
                self.held += bytes.len();
                self.parts.push_back(bytes);
            }
            News::Whole => self.end = Some(Ok(())),
            News::Ended(Outcome::Failed(failure)) => self.end = Some(Err(failure)),
            News::Ended(_) | News::Room(_) => debug_assert!(false, "a read ends whole or with a failure"),
        }
    }

    fn take_part(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front()?;
        self.held -= part.len();
        Some(part)
    }
}

impl Connection {
    /// Prints what is due, the bytes of values in chunks as far as the output has room.
    pub(super) fn print_due(&self, worker: &Worker, state: &mut State) {
        state.replies.drain(&mut state.output);
        while self.begin_download(worker, state) && self.print_download(worker, state) {
            state.replies.drain(&mut state.output);
        }
    }

    /// Begins to fetch the value whose turn it is; whether one is being fetched.
    fn begin_download(&self, worker: &Worker, state: &mut State) -> bool {
        if state.download.is_some() {
            return true;
        }
        let Some((slot, key, object)) = state.replies.due_object() else { return false };
        let object = object.clone();
        let place = worker.host.borrow().locate(&key);
        let shard = object.descriptor.id.owner.group.shard(worker.shared.config.workers);
        let new = NewGather { key, object, start: 0, end: u64::MAX };
        let order = Order::Gather(place.hash, Box::new(new));
        let mut download = Download::new(slot, shard);
        let news = worker.order(worker.clock.now(), shard, self.stream_asker(worker, slot), order);
        news.into_iter().for_each(|news| download.hear(news));
        state.download = Some(Box::new(download));
        true
    }

    /// Prints what has come of a value; whether it has come to its end.
    fn print_download(&self, worker: &Worker, state: &mut State) -> bool {
        self.move_parts(worker, state);
        let Some(download) = state.download.as_ref().filter(|download| !download.has_parts()) else {
            return false;
        };
        match download.end {
            None => return false,
            Some(Ok(())) => state.replies.end_value(&mut state.output),
            Some(Err(Failure::Replaced)) if !download.begun && state.asked_again != Some(download.slot) => {
                self.ask_again(worker, state);
                return true;
            }
            Some(Err(failure)) if !download.begun => {
                let outcome = Outcome::Failed(failure);
                worker.counters.count_outcome(types::op::OpKind::Object, &outcome);
                state.replies.replace_value(outcome, &mut state.output);
            }
            Some(Err(failure)) => {
                tracing::debug!(?failure, "a value broke off, and its client's connection with it");
                state.phase = Phase::Broken;
                return false;
            }
        }
        state.download = None;
        true
    }

    /// The value has waited for its turn for longer than it is kept for a reader, and was replaced meanwhile: what is there now is asked for.
    fn ask_again(&self, worker: &Worker, state: &mut State) {
        let Some(download) = state.download.take() else { return };
        let Some(key) = state.replies.reopen() else { return };
        state.asked_again = Some(download.slot);
        let place = worker.host.borrow().locate(&key);
        let get = Get { bump: Bump::Silent, ..Get::default() };
        let asker = self.asker(worker, download.slot);
        let now = worker.clock.now();
        if let Some(outcome) = worker.submit(now, asker, place, Request::on(key, Op::Get(get))) {
            self.settle(worker, state, now.time, download.slot, outcome);
        }
    }

    fn move_parts(&self, worker: &Worker, state: &mut State) {
        let mut moved = 0;
        while state.output_len() < CLIENT_OUT_HIGH_BYTES
            && let Some(download) = &mut state.download
            && let Some(part) = download.take_part()
        {
            if !std::mem::replace(&mut download.begun, true) {
                state.replies.begin_value(&mut state.output);
            }
            state.output.extend_from_slice(&part);
            moved += part.len();
        }
        if moved > 0
            && let Some(download) = state.download.as_ref().filter(|download| download.end.is_none())
        {
            let asker = self.stream_asker(worker, download.slot);
            worker.order(worker.clock.now(), download.shard, asker, Order::Taken(moved));
        }
    }

    /// The host is told that nobody reads any more.
    pub(super) fn abandon_download(&self, worker: &Worker, state: &mut State) {
        if let Some(download) = state.download.take().filter(|download| download.end.is_none()) {
            let asker = self.stream_asker(worker, download.slot);
            worker.order(worker.clock.now(), download.shard, asker, Order::Abandon);
        }
    }
}
