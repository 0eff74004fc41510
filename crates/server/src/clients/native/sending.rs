//! What a connection does for values that leave in pieces.

use native::{Answer, Code, FromServer, GetAsk, Range};
use proto::NewGather;
use types::op::{Bump, Get, Op, OpKind, Request};

use super::sendings::{Sending, Source, Turn};
use super::{NativeConnection, Reading, State, Wants};
use crate::limits::CLIENT_OUT_HIGH_BYTES;
use crate::workers::streams::Order;
use crate::workers::worker::Worker;

impl NativeConnection {
    /// Prints what values have, as far as the output has room; whether there may be more.
    pub(super) fn go_on_sending(&self, worker: &Worker, state: &mut State) -> bool {
        self.begin_gathers(worker, state);
        while state.output_len() < CLIENT_OUT_HIGH_BYTES {
            match state.sendings.turn(worker.clock.time(), &mut state.output) {
                None => return false,
                Some(Turn::Printed(id, Some(shard), len)) => {
                    let asker = self.stream_asker(worker, id);
                    worker.order(worker.clock.now(), shard, asker, Order::Taken(len));
                }
                Some(Turn::Printed(..)) => {}
                // Its place is the next one's. Where all that were under way have ended at once nothing else would ever begin that.
                Some(Turn::Ended) => self.begin_gathers(worker, state),
                Some(Turn::Replaced(sending)) => {
                    self.ask_again(worker, state, *sending);
                    self.begin_gathers(worker, state);
                }
            }
        }
        true
    }

    /// Has as many values gathered as may be at once.
    fn begin_gathers(&self, worker: &Worker, state: &mut State) {
        while let Some((id, range, chunks)) = state.sendings.next_to_gather() {
            let shard = chunks.object.descriptor.id.owner.group.shard(worker.shared.config.workers);
            chunks.shard = Some(shard);
            let (key, object) = (chunks.key.clone(), chunks.object.clone());
            let (start, end) = range;
            let (changed, by_graph) = (chunks.changed, chunks.by_graph);
            let new = NewGather { key, object, start, end, changed, by_graph };
            let order = Order::Gather(chunks.place.hash, Box::new(new));
            let news = worker.order(worker.clock.now(), shard, self.stream_asker(worker, id), order);
            if let Some(news) = news {
                state.sendings.hear(id, &news);
            }
        }
    }

    /// The value has waited for its turn for longer than it is kept for a reader, and was replaced meanwhile: what is there now is asked for.
    fn ask_again(&self, worker: &Worker, state: &mut State, sending: Sending) {
        let range = Range { start: sending.range.0, len: sending.range.1 - sending.range.0 };
        let all = sending.range == (0, sending.meta.value_len);
        let window = u32::try_from(sending.window()).unwrap_or(u32::MAX);
        let Source::Chunks(chunks) = sending.source else { return };
        let (range, by_graph) = ((!all).then_some(range), chunks.by_graph);
        let get = GetAsk { range, window, by_graph, ..GetAsk::default() };
        let (now, place) = (worker.clock.now(), chunks.place);
        let request = Request::on(chunks.key.clone(), Op::Get(Get { bump: Bump::Silent, ..Get::default() }));
        let reading = Reading { key: chunks.key, place, get, asked_again: true, is_cancelled: false };
        state.expect(worker, now, sending.id, OpKind::Get, 0, Wants::Value(reading));
        self.submit(worker, state, now, (sending.id, place), request);
    }

    /// The client wants no more of a value; whether one was on its way.
    pub(super) fn drop_sending(&self, worker: &Worker, state: &mut State, id: u64) -> bool {
        let Some(sending) = state.sendings.remove(id) else { return false };
        let begun = sending.begun();
        self.abandon(worker, sending);
        if begun {
            FromServer::End(id, Code::Cancelled).put(state.output.text());
        } else {
            Answer::Just(Code::Cancelled).put(id, state.output.text());
        }
        true
    }

    /// Nobody reads any more.
    pub(super) fn drop_sendings(&self, worker: &Worker, state: &mut State) {
        while let Some(sending) = state.sendings.pop() {
            self.abandon(worker, sending);
        }
    }

    fn abandon(&self, worker: &Worker, sending: Sending) {
        if let Source::Chunks(chunks) = sending.source
            && let Some(shard) = chunks.gathering()
        {
            worker.order(worker.clock.now(), shard, self.stream_asker(worker, sending.id), Order::Abandon);
        }
    }
}
