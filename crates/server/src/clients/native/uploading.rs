//! What a connection does for values that its client sends in pieces.

use native::Window;
use proto::{NewUpload, Now};
use types::ObjectPolicy;
use types::op::{Failure, Op, Outcome, Request};

use super::uploads::{Stage, Step};
use super::{NativeConnection, State};
use crate::workers::asker::{Asker, Awaits};
use crate::workers::streams::{News, Order};
use crate::workers::worker::Worker;

impl NativeConnection {
    /// Begins what can begin, and hands over what has come.
    pub(super) fn go_on_with_uploads(&self, worker: &Worker, state: &mut State) {
        if state.uploads.is_empty() {
            return;
        }
        let now = worker.clock.now();
        while self.begin_upload(worker, state, now) || self.take_step(worker, state, now) {}
    }

    fn begin_upload(&self, worker: &Worker, state: &mut State, now: Now) -> bool {
        let Some((id, upload)) = state.uploads.next_to_begin() else { return false };
        let policy = worker.object_policy(upload.key.namespace());
        let limits = worker.value_limits_of(upload.key.namespace());
        let len = usize::try_from(upload.len).unwrap_or(usize::MAX);
        if !limits.streams(&upload.key, &upload.store, len) {
            upload.stage = Stage::Whole;
            return true;
        }
        // Its key may be at one worker, and its chunks be for another one.
        let place = proto::locate_chunks(&worker.host.borrow(), &upload.key);
        let Some(shard) = worker.shard_of(place) else {
            state.uploads.remove(id);
            state.settle(worker, now.time, id, Outcome::Failed(Failure::Unavailable));
            return true;
        };
        upload.stage = Stage::Stream { shard, wants: None };
        let (key, store) = (upload.key.clone(), upload.store.clone());
        let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = policy;
        let new = NewUpload { key, store, len: upload.len, chunk_len, layout, once: upload.once, via: None };
        let order = Order::Upload(place, Box::new(new));
        let news = worker.order(now, shard, self.stream_asker(worker, id), order);
        self.hear_of_upload(worker, state, now, id, news);
        true
    }

    fn take_step(&self, worker: &Worker, state: &mut State, now: Now) -> bool {
        let Some((id, step)) = state.uploads.step() else { return false };
        match step {
            Step::Grant(bytes) => Window { id, bytes }.put(state.output.text()),
            Step::Feed(shard, bytes) => {
                let news = worker.order(now, shard, self.stream_asker(worker, id), Order::Feed(bytes));
                self.hear_of_upload(worker, state, now, id, news);
            }
            Step::Store(whole) => {
                let (key, store, place, once) = *whole;
                let request = Request::on(key, Op::Store(store)).once(once);
                self.submit(worker, state, now, (id, place), request);
            }
        }
        true
    }

    fn hear_of_upload(&self, worker: &Worker, state: &mut State, now: Now, id: u64, news: Option<News>) {
        if let Some(outcome) = news.and_then(|news| state.uploads.hear(id, news)) {
            state.settle(worker, now.time, id, outcome);
        }
    }

    /// The host is told that nothing comes of an upload; whether there was one.
    pub(super) fn drop_upload(&self, worker: &Worker, state: &mut State, id: u64) -> bool {
        let Some(upload) = state.uploads.remove(id) else { return false };
        if let Stage::Stream { shard, .. } = upload.stage {
            worker.order(worker.clock.now(), shard, self.stream_asker(worker, id), Order::Abandon);
        }
        true
    }

    /// The same for all that will not get all of their bytes any more, and for their requests.
    pub(super) fn drop_uploads(&self, worker: &Worker, state: &mut State) {
        self.drop_puts(worker, state);
        let gone = if state.socket.is_some() { state.uploads.incomplete() } else { state.uploads.ids() };
        for id in gone {
            self.drop_upload(worker, state, id);
            state.forget(id);
        }
    }

    /// Who is told the answer to request `id`.
    pub(super) fn asker(&self, worker: &Worker, id: u64) -> Asker {
        Asker { shard: worker.shard, connection: self.id, slot: id, awaits: Awaits::Answer }
    }

    /// The same for news of a value that is sent or read bit by bit.
    pub(super) fn stream_asker(&self, worker: &Worker, id: u64) -> Asker {
        Asker { awaits: Awaits::News, ..self.asker(worker, id) }
    }
}
