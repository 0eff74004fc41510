//! What a connection does for a value that its client is given bit by bit.

use proto::NewGather;
use types::op::{Bump, Failure, Get, Op, Outcome, Request};

use crate::clients::connection::{Connection, Phase, State};
use crate::limits::CLIENT_OUT_HIGH_BYTES;
use crate::workers::streams::Order;
use crate::workers::worker::Worker;

use super::download::Download;
use super::replies::DueObject;

impl Connection {
    /// Prints what is due, the bytes of values in chunks as far as the output has room.
    #[inline]
    pub(super) fn print_due(&self, worker: &Worker, state: &mut State) {
        state.replies.drain(state.output.text());
        if state.download.is_some() || state.replies.is_held_up() {
            self.print_objects(worker, state);
        }
    }

    #[inline(never)]
    fn print_objects(&self, worker: &Worker, state: &mut State) {
        while self.begin_download(worker, state) && self.print_download(worker, state) {
            state.replies.drain(state.output.text());
        }
    }

    /// Begins to fetch the value whose turn it is; whether one is being fetched.
    fn begin_download(&self, worker: &Worker, state: &mut State) -> bool {
        if state.download.is_some() {
            return true;
        }
        let Some(DueObject { slot, key, object, changed }) = state.replies.due_object() else { return false };
        let object = object.clone();
        let place = worker.host.borrow().locate(&key);
        let shard = object.descriptor.id.owner.group.shard(worker.shared.config.workers);
        let new = NewGather { key, object, start: 0, end: u64::MAX, changed, by_graph: false };
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
            Some(Ok(())) => state.replies.end_value(state.output.text()),
            Some(Err(Failure::Replaced)) if !download.begun && state.asked_again != Some(download.slot) => {
                self.ask_again(worker, state);
                return true;
            }
            Some(Err(failure)) if !download.begun => {
                let outcome = Outcome::Failed(failure);
                worker.counters.count_outcome(types::op::OpKind::Object, &outcome);
                state.replies.replace_value(outcome, state.output.text());
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
                state.replies.begin_value(state.output.text());
            }
            moved += part.len();
            state.replies.let_go(state.output.end());
            state.output.share(part);
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
