//! What a connection does for a value that its client sends bit by bit.

use std::rc::Rc;

use faces::{Face, Line, Streamed};
use proto::{NewUpload, Now, Place};
use types::ObjectPolicy;
use types::op::{Failure, Key, Op, Outcome, Store};

use crate::clients::commands::{Turn, Work};
use crate::clients::connection::{Connection, Phase, Stall, State};
use crate::clients::gate::Load;
use crate::clients::key_uses::{Access, KeyUse};
use crate::clients::replies::{Expected, Print};
use crate::clients::{Protocol, Style};
use crate::limits::REQUEST_OVERHEAD_BYTES;
use crate::workers::streams::{News, Order};
use crate::workers::worker::Worker;

use super::upload::{Next, Upload};

impl Connection {
    /// Begins to take a value, unless it has to wait for its turn.
    #[inline(never)]
    pub(super) fn run_stream(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        streamed: Box<Streamed<Style>>,
    ) -> Turn {
        let place = worker.host.borrow().locate(streamed.request.key_bytes());
        let used = KeyUse::of(place, Access::Write);
        if state.replies.uses().conflicts(used) {
            return Turn::Wait(Work::Stream(streamed), Stall::Answers);
        }
        let Streamed { request, style, len } = *streamed;
        let kind = request.op.kind();
        let (Some(key), Op::Store(store)) = (request.key, request.op) else { return Turn::Done };
        worker.counters.count_command(kind);
        if Protocol::prints_key(&style) {
            worker.counters.cmd_meta.inc();
        }
        let print = Print::Styled(style.clone(), key.client_bytes());
        let load = Load { held: REQUEST_OVERHEAD_BYTES, expected: 0 };
        let asked = state.asked(&print, kind);
        let slot = state.replies.expect(Expected { print, asked, used: Some(used), load });
        // Its key may be at one worker, and its chunks be for another one.
        let place = proto::locate_chunks(&worker.host.borrow(), &key);
        let shard = worker.shard_of(place);
        let mut upload = Upload::new(slot, shard.unwrap_or(worker.shard), style, len);
        let news = match shard {
            Some(_) => self.begin_upload(worker, now, &upload, place, (key, store)),
            None => Some(News::Ended(Outcome::Failed(Failure::Unavailable))),
        };
        news.into_iter().for_each(|news| upload.hear(news));
        state.upload = Some(Box::new(upload));
        Turn::Done
    }

    fn begin_upload(
        &self,
        worker: &Worker,
        now: Now,
        upload: &Upload,
        place: Place,
        (key, store): (Key, Store),
    ) -> Option<News> {
        let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = worker.object_policy(key.namespace());
        let new = NewUpload { key, store, len: upload.left, chunk_len, layout, once: None, via: None };
        let asker = self.stream_asker(worker, upload.slot);
        worker.order(now, upload.shard, asker, Order::Upload(place, Box::new(new)))
    }

    /// Goes on with the value that the client sends; whether its connection is free for the next command.
    pub(super) fn take_block(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, now: Now) -> bool {
        while let Some(upload) = &mut state.upload {
            match upload.next(&mut state.input) {
                Next::Feed(bytes) => {
                    let asker = self.stream_asker(worker, upload.slot);
                    let news = worker.order(now, upload.shard, asker, Order::Feed(bytes));
                    news.into_iter().for_each(|news| upload.hear(news));
                }
                Next::Host => {
                    self.stall(worker, state, Stall::Upload);
                    return false;
                }
                Next::Bytes if state.phase != Phase::Open => self.drop_upload(worker, state, b""),
                Next::Bytes => {
                    // As long as bytes come nobody dawdles, however long the value is.
                    state.times.half_sent = Some(now.time);
                    if !worker.gate.admits(self.id, true) {
                        self.stall(worker, state, Stall::Gate);
                    }
                    return false;
                }
                Next::Refuse(line) => self.drop_upload(worker, state, line),
                Next::Say(outcome) => {
                    let slot = upload.slot;
                    state.upload = None;
                    self.settle(worker, state, now.time, slot, outcome);
                }
            }
        }
        true
    }

    /// Nothing comes of the upload, and its client is told this.
    fn drop_upload(&self, worker: &Worker, state: &mut State, line: Line) {
        if let Some(slot) = self.abandon_upload(worker, state) {
            state.replies.answer_lines(slot, line.to_vec());
        }
    }

    /// The host is told that nothing comes of the upload, if there is one; the slot of its reply.
    pub(super) fn abandon_upload(&self, worker: &Worker, state: &mut State) -> Option<u64> {
        let upload = state.upload.take()?;
        // Not of what has ended by itself: nobody has it any more.
        if !upload.is_over() {
            worker.order(
                worker.clock.now(),
                upload.shard,
                self.stream_asker(worker, upload.slot),
                Order::Abandon,
            );
        }
        Some(upload.slot)
    }
}
