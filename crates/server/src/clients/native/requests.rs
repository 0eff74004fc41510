//! What frames ask, begun.

use std::rc::Rc;

use bytes::Bytes;
use native::{
    Answer, Ask, Capabilities, Code, Content, Frame, FromClient, GetAsk, MAX_PIECE_BYTES, Meta, Reason,
    Request, StoreAsk, Value, Welcome, agree,
};
use proto::{Now, Place, Read};
use types::op::{Arith, Bump, Delete, Expiry, Get, Key, Op, OpKind, Outcome, Store, Want};
use types::{ClusterId, Once, UnixSeconds};

use super::answers::wanted;
use super::sendings::Source;
use super::{NativeConnection, Reading, State, Wants};
use crate::workers::worker::Worker;

/// What an operation on an item is, with how its outcome is answered.
type Begun = (Op, Wants);

impl NativeConnection {
    pub(super) fn take_frame(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        frame: Frame,
    ) {
        let id = frame.header.id;
        let message = match FromClient::take(frame) {
            Ok(message) => message,
            Err(malformed) => {
                tracing::debug!(%malformed, "a client's frame");
                let greeted = state.greeted.is_some();
                return state.close(if greeted { Reason::Malformed } else { Reason::NoHello }, id);
            }
        };
        match message {
            FromClient::Hello(hello) if state.greeted.is_none() => greet(worker, state, &hello),
            FromClient::Hello(_) => state.close(Reason::Malformed, 0),
            _ if state.greeted.is_none() => state.close(Reason::NoHello, id),
            FromClient::MapWanted(has) => state.tell_whole_map(worker, has),
            FromClient::Request(id, request) => self.take_request(worker, state, now, id, *request),
            _ if id > state.last_id => state.close(Reason::BadId, id),
            FromClient::Piece(piece) => {
                if state.uploads.take_piece(id, &piece.bytes).is_err() {
                    state.close(Reason::TooManyBytes, id);
                }
            }
            FromClient::Window(window) => state.sendings.grant(id, window.bytes),
            FromClient::Cancel(id) => self.cancel(worker, state, id),
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
        if id <= state.last_id || id > MAX_ID {
            return state.close(Reason::BadId, id);
        }
        state.last_id = id;
        if state.outstanding() >= worker.shared.config.limits.outstanding_requests {
            return state.close(Reason::TooManyRequests, id);
        }
        if state.silent.is_some() && !state.keep_place() {
            return;
        }
        worker.counters.native_requests.inc();
        let Request { key, deadline_ms, once, ask } = request;
        let waited_us = now.time.since(state.times.read);
        if deadline_ms > 0 && waited_us > u64::from(deadline_ms) * 1000 {
            return Answer::Just(Code::Late).put(id, &mut state.output);
        }
        let place = worker.host.borrow().locate(&key);
        match ask {
            Ask::Get(get) if get.touch.is_none() => self.get(worker, state, now, id, (key, place, get)),
            Ask::Store(store) => self.store(worker, state, now, id, (key, place, once), store),
            ask => {
                let (op, wants) = begun(ask, &key, place, now.unix);
                state.expect(worker, now, id, op.kind(), 0, wants);
                let request = types::op::Request::on(key, op).once(once);
                self.submit(worker, state, now, (id, place), request);
            }
        }
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
                    Answer::Just(Code::Miss).put(id, &mut state.output);
                }
                let text = faces::memcache::ReplyStyle::Text;
                let operation = crate::clients::latency::Operation::of(OpKind::Get, &text);
                worker.stopwatch.served(operation, now.time, now.time);
            }
            Read::Submit => {
                let request = types::op::Request::on(key.clone(), Op::Get(Get::default()));
                let reading = Reading { key, place, get, asked_again: false };
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
        let (len, value) = match ask.content {
            Content::Here(bytes) => (bytes.len() as u64, bytes),
            Content::Pieces(len) => (len, Bytes::new()),
        };
        let store = Store {
            mode: ask.mode,
            value: Bytes::new(),
            flags: ask.flags,
            expiry: expiry(ask.ttl, now.unix),
            compare: ask.compare,
            version: None,
            invalidate: false,
            vivify: None,
        };
        let limits = worker.value_limits_of(key.namespace());
        let streams = limits.streams(&key, &store, usize::try_from(len).unwrap_or(usize::MAX));
        let kind = kind_of(&store);
        let fits =
            usize::try_from(len).is_ok_and(|len| !types::op::is_too_large(key.len(), len, store.flags));
        if !streams && !fits {
            worker.counters.count_command(kind);
            worker.counters.count_outcome(kind, &Outcome::Failed(types::op::Failure::TooLarge));
            return Answer::Just(Code::TooLarge).put(id, &mut state.output);
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
        if let Some(outcome) = worker.submit(now, self.asker(worker, id), place, request) {
            let outcome = worker.spare_memory(outcome, state.load().held);
            state.settle(worker, now.time, id, outcome);
        }
    }

    /// The client does not want to hear of a request any more. What has been submitted is done all the same, and answered.
    fn cancel(&self, worker: &Worker, state: &mut State, id: u64) {
        if self.drop_upload(worker, state, id) {
            state.forget(id);
            Answer::Just(Code::Cancelled).put(id, &mut state.output);
        } else {
            self.drop_sending(worker, state, id);
        }
    }
}

/// Highest number of a request: what the name of who asks has room for.
const MAX_ID: u64 = (1 << 47) - 1;

fn greet(worker: &Worker, state: &mut State, hello: &native::Hello) {
    let Some(version) = agree(hello) else { return state.close(Reason::Version, 0) };
    let capabilities = hello.capabilities.both(Capabilities::ALL);
    let limits = &worker.shared.config.limits;
    let welcome = Welcome {
        version,
        capabilities,
        credits: u32::try_from(limits.outstanding_requests).unwrap_or(u32::MAX),
        longest_value: limits.max_value_bytes,
        node: worker.shared.host.node,
        cluster: worker.host.borrow().map().map_or(ClusterId(0), |map| map.cluster),
    };
    welcome.put(&mut state.output);
    state.greeted = Some(capabilities);
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
    worker.host.borrow_mut().read(now, place, key, |item| {
        let value_len = item.value.len() as u64;
        let ttl = (item.expiry != 0).then(|| item.expiry.saturating_sub(now.unix.0));
        let meta = Meta { version: item.version, flags: item.client_flags, ttl, value_len };
        let (start, end) = wanted(get, value_len);
        // In bounds: `wanted` has cut them to the value.
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

/// Seconds to live as a time.
fn expiry(ttl: u32, now: UnixSeconds) -> Expiry {
    match ttl {
        0 => Expiry::Never,
        ttl => Expiry::At(UnixSeconds(now.0.saturating_add(ttl))),
    }
}

fn kind_of(store: &Store) -> OpKind {
    Op::Store(Store { value: Bytes::new(), ..store.clone() }).kind()
}

/// The operation that is asked for, where that is neither a plain read nor a write of a value.
fn begun(ask: Ask, key: &Key, place: Place, now: UnixSeconds) -> Begun {
    match ask {
        Ask::Get(get) => {
            let touch = get.touch.map(|ttl| expiry(ttl, now));
            let reading = Reading { key: key.clone(), place, get, asked_again: false };
            (Op::Get(Get { touch, ..Get::default() }), Wants::Value(reading))
        }
        // Values are written elsewhere.
        Ask::Store(_) => (Op::Debug, Wants::Code),
        Ask::Delete { compare } => (Op::Delete(Delete { compare, ..Delete::default() }), Wants::Code),
        Ask::Arith { direction, delta, initial } => {
            let (vivify, initial) = match initial {
                None => (None, 0),
                Some((number, ttl)) => (Some(expiry(ttl, now)), number),
            };
            (Op::Arith(Arith { direction, delta, vivify, initial, ..Arith::default() }), Wants::Code)
        }
        Ask::Touch { ttl } => (Op::Touch(expiry(ttl, now)), Wants::Code),
        Ask::Session => (Op::Session, Wants::Code),
        Ask::Stat => (look(), Wants::About),
        Ask::Locate => (look(), Wants::Places(key.clone(), place)),
    }
}

/// A read that brings no bytes and leaves no trace.
fn look() -> Op {
    Op::Get(Get { value: Want::NoValue, bump: Bump::Silent, ..Get::default() })
}
