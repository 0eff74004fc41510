//! What frames ask, begun.

use std::rc::Rc;

use bytes::Bytes;
use native::{
    Answer, Ask, Capabilities, Code, Content, Frame, GetAsk, Heard, MAX_PIECE_BYTES, MAX_REQUEST_ID, Meta,
    Reason, Request, ScanAsk, StoreAsk, Value, Welcome,
};
use proto::{Now, Place, QuickRead, Read};
use types::op::{Get, Key, Op, OpKind, Outcome, Store};
use types::{ClusterId, Once};

use super::sendings::Source;
use super::{NativeConnection, Reading, State, Wants};
use crate::workers::worker::Worker;

impl NativeConnection {
    pub(super) fn take_frame(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        frame: Frame,
    ) {
        let most = worker.shared.config.limits.outstanding_requests;
        let credits = most.saturating_sub(state.outstanding());
        let heard = match state.dialogue.hear(frame, credits) {
            Ok(heard) => heard,
            Err(breach) => {
                tracing::debug!(?breach, "a client's frame");
                return state.close(breach.reason, breach.id);
            }
        };
        match heard {
            Heard::Hello(version, both) => welcome(worker, state, version, both),
            Heard::MapWanted(has) => {
                if let Some(map) = worker.route_map() {
                    state.dialogue.tell_whole_map(&map, has, state.output.text());
                }
            }
            Heard::Request(id, request) => self.take_request(worker, state, now, id, *request),
            Heard::Scan(id, ask) => self.scan(worker, state, now, id, *ask),
            Heard::Piece(piece) if self.take_cell(worker, state, &piece) => {}
            Heard::Piece(piece) => {
                if state.uploads.take_piece(piece.id, &piece.bytes).is_err() {
                    state.close(Reason::TooManyBytes, piece.id);
                }
            }
            Heard::Window(window) => state.sendings.grant(window.id, window.bytes),
            Heard::Cancel(id) => self.cancel(worker, state, id),
        }
    }

    fn take_request(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        id: u64,
        request: Request,
    ) {
        if state.silent.is_some() && !state.keep_place() {
            return;
        }
        worker.counters.native_requests.inc();
        if request.is_late(now.time.since(state.times.read)) {
            return Answer::Just(Code::Late).put(id, state.output.text());
        }
        let Request { key, once, ask, .. } = request;
        let place = worker.host.borrow().locate(&key);
        match ask {
            Ask::Get(get) if get.touch.is_none() => self.get(worker, state, now, id, (key, place, get)),
            Ask::Store(store) => self.store(worker, state, now, id, (key, place, once), store),
            Ask::Fetch(fetch) => self.fetch(worker, state, id, (&key, place), &fetch),
            Ask::Put(put) => self.put(worker, state, id, (&key, place), *put),
            Ask::Begin(begin) => self.begin(worker, state, now, id, (key, place, once), begin),
            Ask::Commit(commit) => self.commit(worker, state, now, id, (key, place, once), commit),
            Ask::Abandon(written) => self.abandon_object(worker, state, now, id, (key, place), written),
            ask => {
                let wants = wants(&ask, &key, place);
                let Some(op) = ask.operation(now.unix) else { return };
                state.expect(worker, now, id, op.kind(), 0, wants);
                let request = types::op::Request::on(key, op).once(once);
                self.submit(worker, state, now, (id, place), request);
            }
        }
    }

    /// Which keys a data role has, if clients of this node may know that.
    fn scan(&self, worker: &Worker, state: &mut State, now: Now, id: u64, ask: ScanAsk) {
        if state.silent.is_some() && !state.keep_place() {
            return;
        }
        worker.counters.native_requests.inc();
        if !worker.shared.config.native_scans {
            return Answer::Just(Code::ScansOff).put(id, state.output.text());
        }
        if ask.is_late(now.time.since(state.times.read)) {
            return Answer::Just(Code::Late).put(id, state.output.text());
        }
        let place = proto::locate_scan(&worker.host.borrow(), &ask.scan);
        state.expect(worker, now, id, OpKind::Scan, 0, Wants::Code);
        self.submit(worker, state, now, (id, place), types::op::Request::scan(ask.scan));
    }

    /// Answers here and now if that can be, else asks.
    fn get(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        id: u64,
        (key, place, get): (Key, Place, GetAsk),
    ) {
        let read = read_here(worker, state, now, id, (&key, place, &get));
        worker.counters.count_read(read);
        match read {
            Read::Hit | Read::Miss => {
                if read == Read::Miss {
                    Answer::Just(Code::Miss).put(id, state.output.text());
                }
                let text = faces::memcache::ReplyStyle::Text;
                let operation = crate::clients::latency::Operation::of(OpKind::Get, &text);
                worker.stopwatch.served(operation, now.time, now.time);
            }
            Read::Submit => {
                let request = types::op::Request::on(key.clone(), Op::Get(Get::default()));
                let reading = Reading { key, place, get, asked_again: false, is_cancelled: false };
                state.expect(worker, now, id, OpKind::Get, 0, Wants::Value(reading));
                worker.counters.count_command(OpKind::Get);
                self.submit_counted(worker, state, now, (id, place), request);
            }
        }
    }

    fn store(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        id: u64,
        (key, place, once): (Key, Place, Option<Once>),
        ask: StoreAsk,
    ) {
        let store = ask.operation(now.unix);
        let (len, value) = match ask.content {
            Content::Here(bytes) => (bytes.len() as u64, bytes),
            Content::Pieces(len) => (len, Bytes::new()),
        };
        let limits = worker.value_limits_of(key.namespace());
        let streams = limits.streams(&key, &store, usize::try_from(len).unwrap_or(usize::MAX));
        let kind = kind_of(&store);
        let fits =
            usize::try_from(len).is_ok_and(|len| !types::op::is_too_large(key.len(), len, store.flags));
        if !streams && !fits {
            worker.counters.count_command(kind);
            worker.counters.count_outcome(kind, &Outcome::Failed(types::op::Failure::TooLarge));
            return Answer::Just(Code::TooLarge).put(id, state.output.text());
        }
        state.expect(worker, now, id, kind, value.len(), Wants::Code);
        worker.counters.count_command(kind);
        if streams || len != value.len() as u64 {
            return state.uploads.add(id, (key, store, place, once), len, &value);
        }
        let request = types::op::Request::on(key, Op::Store(Store { value, ..store })).once(once);
        self.submit_counted(worker, state, now, (id, place), request);
    }

    /// Submits what a client asks, and counts it.
    pub(super) fn submit(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        whose: (u64, Place),
        request: types::op::Request,
    ) {
        // A value that has come in pieces was counted when it was announced.
        if !matches!(request.op, Op::Store(_)) {
            worker.counters.count_command(request.op.kind());
        }
        self.submit_counted(worker, state, now, whose, request);
    }

    fn submit_counted(
        &self,
        worker: &Worker,
        state: &mut State,
        now: Now,
        (id, place): (u64, Place),
        request: types::op::Request,
    ) {
        if let Some(mut outcome) = worker.submit(now, self.asker(worker, id), place, request) {
            worker.spare_memory(&mut outcome, state.load().held);
            state.settle(worker, now.time, id, outcome);
        }
    }

    /// The client does not want to hear of a request any more. What has been submitted is done all the same, and answered.
    fn cancel(&self, worker: &Worker, state: &mut State, id: u64) {
        if self.drop_put(worker, state, id) || self.drop_upload(worker, state, id) {
            state.forget(id);
            Answer::Just(Code::Cancelled).put(id, state.output.text());
        } else if !self.drop_sending(worker, state, id) {
            state.want_no_more(id);
        }
    }
}

/// The name of who asks has 47 bits for the number of a request.
const _: () = assert!(MAX_REQUEST_ID < 1 << 47);

fn welcome(worker: &Worker, state: &mut State, version: u16, capabilities: Capabilities) {
    let limits = &worker.shared.config.limits;
    let welcome = Welcome {
        version,
        capabilities,
        credits: u32::try_from(limits.outstanding_requests).unwrap_or(u32::MAX),
        longest_value: limits.max_value_bytes,
        node: worker.shared.host.node,
        cluster: worker.host.borrow().map().map_or(ClusterId(0), |map| map.cluster),
    };
    welcome.put(state.output.text());
}

/// Reads an item that lies here, straight into the output if it is short.
fn read_here(
    worker: &Worker,
    state: &mut State,
    now: Now,
    id: u64,
    (key, place, get): (&Key, Place, &GetAsk),
) -> Read {
    let State { output, sendings, .. } = state;
    let output = output.text();
    worker.host.borrow_mut().read(now, place, QuickRead::plain(key), |seen| {
        let item = &seen.item;
        let value_len = item.value.len() as u64;
        let ttl = (item.expiry != 0).then(|| item.expiry.saturating_sub(now.unix.0));
        let meta = Meta { version: item.version, flags: item.client_flags, ttl, value_len };
        let (start, end) = get.wanted(value_len);
        // In bounds: `GetAsk::wanted` has cut them to the value.
        let bytes = &item.value[start as usize..end as usize];
        if bytes.len() <= MAX_PIECE_BYTES {
            Value::put_head_of(&meta, (start, end - start), Some(bytes.len()), id, output);
            output.extend_from_slice(bytes);
        } else {
            let source = Source::Here(Bytes::copy_from_slice(bytes));
            sendings.add(id, meta, (start, end), get.window.into(), source);
        }
    })
}

fn kind_of(store: &Store) -> OpKind {
    Op::Store(Store { value: Bytes::new(), ..store.clone() }).kind()
}

/// What the outcome of an operation is made into.
fn wants(ask: &Ask, key: &Key, place: Place) -> Wants {
    match ask {
        Ask::Get(get) => Wants::Value(Reading {
            key: key.clone(),
            place,
            get: *get,
            asked_again: false,
            is_cancelled: false,
        }),
        Ask::Stat => Wants::About,
        Ask::Locate { from } => Wants::Places(key.clone(), place, *from),
        _ => Wants::Code,
    }
}
