//! One connection of the native protocol (docs/native-protocol.md): a task that reads frames and begins what they ask, and answers that are
//! printed as they come, in any order.
//!
//! | part | what it does |
//! | --- | --- |
//! | `turn` | reads, and decides what the task waits for |
//! | `requests` | begins what a frame asks |
//! | `answers` | makes frames of outcomes |
//! | `uploads`, `uploading` | values that come in pieces |
//! | `sendings`, `sending` | values that leave in pieces, taking turns |
//! | `chunks`, `chunking` | chunks that a client reads and puts itself |
//! | `places` | where the bytes of a key lie |
//!
//! A request is known by its client's number for it. Numbers only grow, so one that is used again is noticed without a list of those before,
//! and a late answer finds nobody. The bounds: requests by credits, bytes of a value by its window each way, output by a mark above which
//! nothing is begun, everything together by the worker's gate. Who breaks one is told why, and closed.

mod answers;
mod chunking;
mod chunks;
mod places;
mod requests;
mod sending;
mod sendings;
mod turn;
mod uploading;
mod uploads;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use native::{BeginAsk, Closing, Dialogue, GetAsk, Reason};
use proto::Now;
use types::Time;
use types::op::{Key, OpKind, Outcome};

use crate::clients::client::{Client, Overdue};
use crate::clients::gate::{AtGate, Load};
use crate::clients::latency::Operation;
use crate::clients::output::Output;
use crate::places::Place;
use crate::transport::Writer;
use crate::workers::streams::News;
use crate::workers::waker::WakerCell;
use crate::workers::worker::Worker;

pub(crate) use turn::serve;

use chunks::Chunks;
use sendings::Sendings;
use uploads::Uploads;

/// See the module.
pub(crate) struct NativeConnection {
    /// Its worker's number for it.
    id: u64,
    /// Whether the gate knows that this connection waits.
    at_gate: Cell<bool>,
    /// Whether the worker knows that this connection has answers to print.
    answered: Cell<bool>,
    waker: WakerCell,
    state: RefCell<State>,
}

/// What a connection holds.
struct State {
    /// None once the connection has ended.
    socket: Option<Writer>,
    input: BytesMut,
    /// Whole frames, and nothing else.
    output: Output,
    dialogue: Dialogue,
    /// What has not been answered, but for values that are being sent.
    pending: BTreeMap<u64, Pending>,
    /// Bytes that these hold, and expect.
    pending_load: Load,
    uploads: Uploads,
    sendings: Sendings,
    chunks: Chunks,
    /// How much of what was asked of chunks may be sent, until it is here.
    fetch_windows: BTreeMap<u64, u32>,
    /// Outcomes that the map is needed for.
    located: Vec<(u64, Outcome)>,
    phase: Phase,
    /// Its place among the clients, until the first request has come.
    silent: Option<Rc<Place>>,
    stall: Option<Stall>,
    /// What the gate has been told that this connection weighs.
    told: Load,
    times: Times,
}

/// A request that has no answer yet.
struct Pending {
    kind: OpKind,
    operation: Operation,
    began: Time,
    load: Load,
    wants: Wants,
}

/// What its outcome is made into.
enum Wants {
    /// A code, with what belongs to it.
    Code,
    /// Bytes of a value.
    Value(Reading),
    /// What is known of an item.
    About,
    /// Where its bytes lie, from one on.
    Places(Key, proto::Place, u64),
    /// Where its chunks go.
    Begun(Key, proto::Place, BeginAsk),
}

/// A read.
struct Reading {
    key: Key,
    place: proto::Place,
    get: GetAsk,
    /// What was there before was replaced while it waited for its turn.
    asked_again: bool,
    /// Nobody takes what is found.
    is_cancelled: bool,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Frames are read.
    Open,
    /// What is due is answered, then the connection is closed.
    Closing,
    /// What is printed is sent, and nothing else.
    Farewell,
    /// Nothing can be sent any more.
    Broken,
}

/// What a connection waits for before it reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// Answers.
    Answers,
    /// The client, which must read.
    Output,
    /// The worker's gate.
    Gate,
}

/// When what happened, for the deadlines.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Bytes came.
    read: Time,
    /// A frame, or a value, that has come in part had its last bytes.
    half_sent: Option<Time>,
    /// The socket was full, and how much was sent since.
    unread: Option<(Time, usize)>,
}

impl AtGate for NativeConnection {
    fn admit(&self) {
        self.at_gate.set(false);
        self.waker.wake();
    }
}

impl NativeConnection {
    fn new(id: u64, socket: Option<Writer>, place: Option<Rc<Place>>, now: Time) -> Self {
        let state = State {
            socket,
            input: BytesMut::new(),
            output: Output::default(),
            dialogue: Dialogue::default(),
            pending: BTreeMap::new(),
            pending_load: Load::default(),
            uploads: Uploads::default(),
            sendings: Sendings::default(),
            chunks: Chunks::default(),
            fetch_windows: BTreeMap::new(),
            located: Vec::new(),
            phase: Phase::Open,
            silent: place,
            stall: None,
            told: Load::default(),
            times: Times { read: now, half_sent: None, unread: None },
        };
        Self {
            id,
            at_gate: Cell::new(false),
            answered: Cell::new(false),
            waker: WakerCell::default(),
            state: RefCell::new(state),
        }
    }
}

impl Client for NativeConnection {
    fn answered(&self) -> &Cell<bool> {
        &self.answered
    }

    // It comes while the host is at work: what needs the host waits for `deliver`.
    fn answer(&self, worker: &Worker, now: Time, id: u64, mut outcome: Outcome) {
        let state = &mut *self.state.borrow_mut();
        worker.spare_memory(&mut outcome, state.load().held);
        state.output.borrow(&worker.pool);
        state.settle(worker, now, id, outcome);
    }

    fn hear(&self, worker: &Worker, id: u64, news: News) {
        let state = &mut *self.state.borrow_mut();
        if !state.sendings.hear(id, &news)
            && !state.hear_of_chunk(worker, id, &news)
            && let Some(outcome) = state.uploads.hear(id, news)
        {
            state.settle(worker, worker.clock.time(), id, outcome);
        }
    }

    fn deliver(&self, worker: &Worker) {
        let state = &mut *self.state.borrow_mut();
        self.go_on(worker, state);
        if state.stall.is_some() || state.unsent() > 0 || state.is_finished() {
            self.waker.wake();
        }
    }

    fn waiting(&self) -> usize {
        self.state.borrow().outstanding()
    }

    fn memory_bytes(&self) -> usize {
        let state = self.state.borrow();
        let buffers = state.input.capacity() + state.output.memory_bytes();
        let pending = state.pending.len() * size_of::<(u64, Pending)>();
        size_of::<Self>() + buffers + pending + state.streams_weight() + state.pending_load.held
    }

    // The client is told, if it still reads.
    fn close(&self, worker: &Worker, why: Overdue) {
        let state = &mut *self.state.borrow_mut();
        let reason = match why {
            Overdue::Idle => Reason::Idle,
            Overdue::HalfSent => Reason::HalfSent,
            Overdue::Unread => Reason::SlowReader,
        };
        // Who reads nothing is waited for no longer.
        let reads = state.times.unread.is_none();
        state.close(reason, 0);
        if reads {
            state.write(worker);
        }
        state.phase = Phase::Broken;
        self.waker.wake();
    }

    // Who is not overdue is told of a new map.
    fn overdue(&self, worker: &Worker, now: Now, pressed: bool) -> Option<Overdue> {
        let limits = &worker.shared.config.limits;
        let state = &mut *self.state.borrow_mut();
        if state.phase == Phase::Broken {
            return None;
        }
        let passed =
            |since: Time, limit: std::time::Duration| u128::from(now.time.since(since)) >= limit.as_micros();
        let unread = if pressed { limits.unread / 10 } else { limits.unread };
        if state.is_unread(|since| passed(since, unread), now.time) {
            return Some(Overdue::Unread);
        }
        let silence = worker.longest_silence_within(!state.uploads.is_empty());
        if state.times.half_sent.is_some_and(|since| state.stall.is_none() && passed(since, silence)) {
            return Some(Overdue::HalfSent);
        }
        let quiet = state.outstanding() == 0 && state.output_len() == 0;
        if limits.idle.is_some_and(|idle| quiet && passed(state.times.read, idle)) {
            return Some(Overdue::Idle);
        }
        if state.lacks_map(worker) {
            self.go_on(worker, state);
        }
        None
    }
}

impl State {
    /// Requests that have no last frame yet.
    fn outstanding(&self) -> usize {
        self.pending.len() + self.sendings.len() + self.chunks.len()
    }

    /// Printed bytes that have not been sent.
    fn output_len(&self) -> usize {
        self.output.len()
    }

    /// The same, and what the socket holds.
    fn unsent(&self) -> usize {
        self.output_len() + self.socket.as_ref().map_or(0, Writer::held)
    }

    fn streams_weight(&self) -> usize {
        self.uploads.weight() + self.sendings.weight() + self.chunks.untaken()
    }

    /// What this connection weighs.
    fn load(&self) -> Load {
        let Load { held, expected } = self.pending_load;
        let held = held + self.input.len() + self.output_len() + self.streams_weight();
        Load { held, expected }
    }

    /// Tells the gate what this connection weighs.
    fn weigh(&mut self, worker: &Worker) {
        let load = self.load();
        if load != self.told {
            worker.gate.shift_load(self.told, load);
            self.told = load;
        }
    }

    /// Says why, and no more.
    fn close(&mut self, reason: Reason, id: u64) {
        if matches!(self.phase, Phase::Open | Phase::Closing) {
            Closing::with(reason).put(id, self.output.text());
            self.phase = Phase::Farewell;
        }
    }

    fn is_finished(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Closing => self.unsent() == 0 && self.outstanding() == 0,
            Phase::Farewell => self.unsent() == 0,
            Phase::Broken => true,
        }
    }

    /// Whether the client has left unread what was sent to it, or not asked for what it wanted, since a time that `passed`.
    fn is_unread(&mut self, passed: impl Fn(Time) -> bool, now: Time) -> bool {
        if let Some((since, sent)) = self.times.unread
            && passed(since)
        {
            // Who has taken less than one full output in all that time only pretends to read.
            if sent < crate::limits::CLIENT_OUT_HIGH_BYTES {
                return true;
            }
            self.times.unread = Some((now, 0));
        }
        self.sendings.blocked_since().is_some_and(passed)
    }
}

/// Some of the bytes of a value, in as many allocations as there are pieces at most.
fn slice_of(bytes: &Bytes, (start, end): (u64, u64)) -> Bytes {
    let at = |place: u64| usize::try_from(place).map_or(bytes.len(), |place| place.min(bytes.len()));
    bytes.slice(at(start)..at(end))
}
