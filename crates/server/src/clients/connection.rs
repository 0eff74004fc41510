//! One memcached connection: a task that reads and executes, and replies that whoever has them writes.
//!
//! The task reads what is there, executes all complete commands (`commands`), and writes all replies that are due with
//! one system call. Answers that come later are printed and written by the pump, straight to the socket; the task is
//! woken only if it has more to do: input that had to wait, a socket that is full, the end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use proto::Now;
use tokio::time::timeout;
use types::Time;
use types::op::Outcome;

use crate::clients::Protocol;
use crate::clients::client::{Client, Overdue};
use crate::clients::commands::Work;
use crate::clients::download::Download;
use crate::clients::gate::{AtGate, Load};
use crate::clients::output::Output;
use crate::clients::replies::ReplyQueue;
use crate::clients::upload::Upload;
use crate::limits::{
    CLIENT_OUT_HIGH_BYTES, CLIENT_READ_BYTES, CLIENT_READS_PER_TURN, FAREWELL, FAREWELL_BYTES,
};
use crate::places::{Kept, Place};
use crate::transport::{Reader, Writer};
use crate::workers::bindings::Binding;
use crate::workers::buffers;
use crate::workers::streams::News;
use crate::workers::waker::WakerCell;
use crate::workers::worker::Worker;

/// See the module.
pub(crate) struct Connection {
    /// Its worker's number for it.
    pub(crate) id: u64,
    /// The namespace that its listener is bound to; none = the default one.
    pub(crate) binding: Option<Binding>,
    /// Whether the gate knows that this connection waits.
    pub(crate) at_gate: Cell<bool>,
    /// Whether the worker knows that this connection has answers to print.
    answered: Cell<bool>,
    waker: WakerCell,
    pub(crate) state: RefCell<State>,
}

/// What a connection holds.
pub(crate) struct State {
    /// None once the connection has ended, and if it never had one.
    socket: Option<Writer>,
    pub input: BytesMut,
    pub parser: Protocol,
    pub output: Output,
    pub replies: ReplyQueue,
    /// A value that the client is sending bit by bit.
    pub upload: Option<Box<Upload>>,
    /// A value that is fetched for the client bit by bit.
    pub download: Option<Box<Download>>,
    /// The slot of the last such value that was asked for again.
    pub asked_again: Option<u64>,
    /// The version of the map that the parser's limits are of.
    limits_of: Option<Option<u64>>,
    /// A command that had to wait.
    pub work: Option<Work>,
    /// When the command that is being carried out was understood.
    pub began: Time,
    pub phase: Phase,
    /// Its place among the clients, until the first command has come.
    pub silent: Option<Rc<Place>>,
    /// What must happen before more can be executed.
    pub stall: Option<Stall>,
    /// What the gate has been told that this connection weighs.
    told: Load,
    pub times: Times,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Commands are read.
    Open,
    /// What is due is answered, then the connection is closed.
    Closing,
    /// Nothing can be sent any more.
    Broken,
}

/// What a connection waits for before it executes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stall {
    /// Answers to what it has submitted.
    Answers,
    /// The client, which must read its replies.
    Output,
    /// The worker's gate.
    Gate,
    /// The host, which takes no more of the value that the client sends, or has all of it.
    Upload,
}

/// What a turn goes on with.
enum Next {
    /// To read more.
    Read,
    /// To execute more.
    Again,
    /// Somebody wakes the task.
    Wait,
    /// The connection is over.
    End,
}

/// When what happened, for the deadlines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Bytes came.
    pub read: Time,
    /// The command that has come in part began.
    pub half_sent: Option<Time>,
    /// The socket was full, and how much was sent since.
    pub unread: Option<(Time, usize)>,
}

impl AtGate for Connection {
    fn admit(&self) {
        self.at_gate.set(false);
        self.wake();
    }
}

impl Connection {
    /// Without a socket nothing is sent, and without a place nobody can take it.
    pub(crate) fn new(
        id: u64,
        binding: Option<Binding>,
        socket: Option<Writer>,
        place: Option<Rc<Place>>,
        now: Time,
    ) -> Self {
        let state = State {
            socket,
            input: BytesMut::new(),
            parser: Protocol::default(),
            output: Output::default(),
            replies: ReplyQueue::default(),
            upload: None,
            download: None,
            asked_again: None,
            limits_of: None,
            work: None,
            began: now,
            phase: Phase::Open,
            silent: place,
            stall: None,
            told: Load::default(),
            times: Times { read: now, half_sent: None, unread: None },
        };
        Self {
            id,
            binding,
            at_gate: Cell::new(false),
            answered: Cell::new(false),
            waker: WakerCell::default(),
            state: RefCell::new(state),
        }
    }

    /// Lets the task look again.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// The request of slot `slot` has come to its end.
    pub(super) fn settle(&self, worker: &Worker, state: &mut State, now: Time, slot: u64, outcome: Outcome) {
        if let Some(asked) = state.replies.answer(slot, outcome, state.output.text(), &worker.counters) {
            worker.stopwatch.answered(asked.operation, asked.began, now);
        }
    }

    /// Everything that can be done now; ready at the end of the connection.
    fn poll_turn(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        reader: &mut Reader,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.waker.register(cx);
        let state = &mut *self.state.borrow_mut();
        let mut has_read = false;
        for _ in 0..CLIENT_READS_PER_TURN {
            let just_read = std::mem::take(&mut has_read);
            if just_read || !state.waits_for_input() {
                // After the bytes were read: a process that stood still in between must see that its lease is over.
                let now = worker.clock.now();
                if just_read {
                    state.times.read = now.time;
                }
                match self.carry_out(worker, state, now, cx) {
                    Next::Read => {}
                    Next::Again => continue,
                    Next::Wait => return Poll::Pending,
                    Next::End => return Poll::Ready(()),
                }
            }
            match state.poll_read(worker, reader, cx) {
                Poll::Ready(Ok(len)) => {
                    has_read = true;
                    state.note_read(worker, len);
                }
                Poll::Ready(Err(_)) => state.phase = Phase::Broken,
                Poll::Pending => {
                    worker.pool.return_input(&mut state.input);
                    return Poll::Pending;
                }
            }
        }
        worker.counters.conn_yields.inc();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Executes what has come and sends what is due.
    fn carry_out(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        cx: &mut Context<'_>,
    ) -> Next {
        self.execute(worker, state, now);
        self.send(worker, state);
        worker.stopwatch.end_turn(now.time, || worker.clock.time());
        if state.is_finished() {
            return Next::End;
        }
        // The socket has made room since it was full: nobody would wake the task for that any more.
        if state.unsent() > 0 && state.poll_write_ready(cx).is_ready() {
            return Next::Again;
        }
        // `send` itself has ended what it stalled for, and nothing else would wake the task.
        if state.stall == Some(Stall::Output) && state.output_len() < CLIENT_OUT_HIGH_BYTES {
            return Next::Again;
        }
        // What stalls is not read either: so TCP slows the client down, and its input stays bounded.
        if state.phase != Phase::Open || state.stall.is_some() {
            worker.pool.return_input(&mut state.input);
            return Next::Wait;
        }
        Next::Read
    }

    /// Prints what is due and gives it to the socket.
    pub(crate) fn send(&self, worker: &Worker, state: &mut State) {
        state.output.borrow(&worker.pool);
        loop {
            self.print_due(worker, state);
            let end = state.replies.sendable(state.output.end());
            let is_due = state.output.len_until(end) > 0 || state.times.unread.is_some();
            // Also with nothing left to send: a writer that held bytes may be rid of them, and the deadline is to end.
            if is_due && state.phase != Phase::Broken {
                state.write(worker, end);
            }
            state.tidy_output(worker);
            if !state.has_room_for_parts() {
                break;
            }
        }
        state.weigh(worker);
    }
}

impl State {
    /// The first command has come: nobody takes this connection's place from now on. Whether nobody has before; else the command is
    /// not answered, for who has been answered may count on its connection.
    #[cold]
    pub(crate) fn keep_place(&mut self) -> bool {
        let kept = self.silent.take().is_none_or(|place| place.keep() == Kept::Yes);
        if !kept {
            self.phase = Phase::Closing;
        }
        kept
    }

    /// Bytes of replies that may be sent and have not been.
    fn unsent(&mut self) -> usize {
        let end = self.replies.sendable(self.output.end());
        self.output.len_until(end) + self.held()
    }

    /// Whether the output has room again for a value that is being read.
    fn has_room_for_parts(&self) -> bool {
        let has_parts = self.download.as_ref().is_some_and(|download| download.has_parts());
        has_parts && self.phase != Phase::Broken && self.output_len() < CLIENT_OUT_HIGH_BYTES
    }

    /// Which values the client may send, by the newest map.
    #[inline]
    pub(super) fn heed_map(&mut self, worker: &Worker, binding: Option<Binding>) {
        let version = worker.map_version();
        if self.limits_of != Some(version) {
            self.limits_of = Some(version);
            self.parser.limit_values(worker.value_limits(binding));
        }
    }

    /// Bytes that have left the output, and not this process.
    fn held(&self) -> usize {
        self.socket.as_ref().map_or(0, Writer::held)
    }

    /// Printed bytes that have not been sent.
    pub(crate) fn output_len(&self) -> usize {
        self.output.len()
    }

    fn is_finished(&mut self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Closing => {
                let nothing_to_send = self.output_len() == 0 && self.held() == 0;
                nothing_to_send && self.replies.is_empty() && self.work.is_none()
            }
            Phase::Broken => true,
        }
    }

    /// Gives the socket the output up to `end` of its text, as far as it takes it.
    fn write(&mut self, worker: &Worker, end: usize) {
        let Some(socket) = &self.socket else { return };
        let (len, result) = self.output.write(socket, end, &worker.counters);
        if result.is_err() {
            self.phase = Phase::Broken;
        }
        worker.counters.bytes_written.add(len);
        self.times.unread = match self.times.unread {
            _ if self.output.len_until(end) == 0 && socket.held() == 0 => None,
            Some((since, sent)) => Some((since, sent + len)),
            None => Some((worker.clock.time(), 0)),
        };
    }

    /// Whether the socket takes more, or never will.
    fn poll_write_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(socket) = &self.socket else { return Poll::Pending };
        socket.poll_ready(cx).map(|result| {
            if result.is_err() {
                self.phase = Phase::Broken;
            }
        })
    }

    fn poll_read(
        &mut self,
        worker: &Worker,
        reader: &mut Reader,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some(room) = self.upload.as_mut().and_then(|upload| upload.room()) {
            return reader.poll_read(room, cx);
        }
        worker.pool.lend_input(&mut self.input);
        let wanted = self.parser.wanted(&self.input);
        buffers::make_room(&mut self.input, wanted, CLIENT_READ_BYTES);
        reader.poll_read(&mut self.input, cx)
    }

    /// Whether nothing is to be done before something has been read.
    fn waits_for_input(&mut self) -> bool {
        let has_work = self.work.is_some() || self.stall.is_some() || !self.input.is_empty();
        self.phase == Phase::Open && !has_work && self.unsent() == 0
    }

    fn note_read(&mut self, worker: &Worker, len: usize) {
        if len == 0 {
            // It sends no more, but may still read: what it has asked is answered.
            self.phase = Phase::Closing;
            return;
        }
        if let Some(upload) = &mut self.upload {
            upload.note_read(len, &mut self.input);
        }
        worker.counters.client_reads.inc();
        worker.counters.bytes_read.add(len);
    }

    /// Gives back the output that has been sent.
    pub(crate) fn tidy_output(&mut self, worker: &Worker) {
        self.replies.sent(self.output.tidy());
        // A value that is being read fills it again at once.
        if self.download.is_none() {
            self.output.give_back(&worker.pool);
        }
    }

    /// What this connection weighs.
    pub(crate) fn load(&self) -> Load {
        let work = self.work.as_ref().map_or(0, Work::weight);
        let streams = self.stream_weight();
        let Load { held, expected } = self.replies.load();
        Load { held: held + self.input.len() + self.output_len() + work + streams, expected }
    }

    fn stream_weight(&self) -> usize {
        let upload = self.upload.as_ref().map_or(0, |upload| upload.weight());
        upload + self.download.as_ref().map_or(0, |download| download.weight())
    }

    /// Tells the gate what this connection weighs.
    fn weigh(&mut self, worker: &Worker) {
        let load = self.load();
        if load != self.told {
            worker.gate.shift_load(self.told, load);
            self.told = load;
        }
    }
}

/// Serves a client until either side has had enough, or until a newcomer gets the place of one that has sent no command.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    (mut reader, writer): (Reader, Writer),
    place: Place,
    binding: Option<Binding>,
) {
    let now = worker.clock.time();
    let place = Rc::new(place);
    let connect = |id| Rc::new(Connection::new(id, binding, Some(writer), Some(Rc::clone(&place)), now));
    let connection = worker.connect(connect);
    worker.counters.total_connections.inc();
    worker.counters.curr_connections.inc();
    if connection.first_command(&worker, &mut reader, &place).await == Kept::Yes {
        poll_fn(|cx| connection.poll_turn(&worker, &mut reader, cx)).await;
    }
    worker.counters.curr_connections.dec();
    worker.connections.borrow_mut().take(connection.id);
    connection.end(&worker);
    // `end` has dropped the writer: the client sees the end while it is still being read.
    if connection.state.borrow().phase == Phase::Closing {
        farewell(reader).await;
    }
}

impl Connection {
    /// Until the first command has come, or the connection has ended: whether it goes on.
    async fn first_command(self: &Rc<Self>, worker: &Rc<Worker>, reader: &mut Reader, place: &Place) -> Kept {
        let turns = poll_fn(|cx| {
            let ended = self.poll_turn(worker, reader, cx).is_ready();
            if ended || self.state.borrow().silent.is_none() { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            // First: the newcomer is in already, also if a command comes in the same moment.
            () = place.lost() => Kept::No,
            () = turns => Kept::Yes,
        }
    }

    /// Lets go of everything; answers that still come find nobody.
    fn end(&self, worker: &Worker) {
        let state = &mut *self.state.borrow_mut();
        // A task that gathers statistics keeps this connection, but not its socket.
        state.socket = None;
        self.abandon_upload(worker, state);
        self.abandon_download(worker, state);
        worker.gate.finished(self.id);
        worker.gate.shift_load(state.told, Load::default());
        state.told = Load::default();
        state.replies = ReplyQueue::default();
        state.work = None;
        state.input = BytesMut::new();
        state.output = Output::default();
    }
}

/// Reads and forgets what the client still sends, for a while: to close with unread input would destroy the last
/// replies on their way.
pub(super) async fn farewell(mut reader: Reader) {
    let mut scratch = BytesMut::with_capacity(1024);
    let mut left = FAREWELL_BYTES;
    let reading = async {
        while let Ok(len @ 1..) = reader.read(&mut scratch).await {
            scratch.clear();
            left = left.saturating_sub(len);
            if left == 0 {
                break;
            }
        }
    };
    let _: Result<(), _> = timeout(FAREWELL, reading).await;
}

impl Client for Connection {
    fn answered(&self) -> &Cell<bool> {
        &self.answered
    }

    fn answer(&self, worker: &Worker, now: Time, slot: u64, mut outcome: Outcome) {
        let state = &mut *self.state.borrow_mut();
        worker.spare_memory(&mut outcome, state.load().held);
        state.output.borrow(&worker.pool);
        self.settle(worker, state, now, slot, outcome);
    }

    fn hear(&self, _worker: &Worker, slot: u64, news: News) {
        let State { upload, download, .. } = &mut *self.state.borrow_mut();
        if let Some(upload) = upload.as_mut().filter(|upload| upload.slot() == slot) {
            upload.hear(news);
        } else if let Some(download) = download.as_mut().filter(|download| download.slot() == slot) {
            download.hear(news);
        }
    }

    fn deliver(&self, worker: &Worker) {
        let state = &mut *self.state.borrow_mut();
        self.send(worker, state);
        if state.stall.is_some() || state.unsent() > 0 || state.is_finished() {
            self.wake();
        }
    }

    fn waiting(&self) -> usize {
        self.state.borrow().replies.waiting()
    }

    fn memory_bytes(&self) -> usize {
        let state = self.state.borrow();
        let work = state.work.as_ref().map_or(0, Work::weight);
        size_of::<Self>()
            + work
            + state.stream_weight()
            + state.input.capacity()
            + state.output.memory_bytes()
            + state.replies.memory_bytes()
    }

    fn close(&self, _worker: &Worker, _why: Overdue) {
        self.state.borrow_mut().phase = Phase::Broken;
        self.wake();
    }

    fn overdue(&self, worker: &Worker, now: Now, pressed: bool) -> Option<Overdue> {
        let limits = &worker.shared.config.limits;
        let state = &mut *self.state.borrow_mut();
        let passed =
            |since: Time, deadline: Duration| u128::from(now.time.since(since)) >= deadline.as_micros();
        let unread = if pressed { limits.unread / 10 } else { limits.unread };
        if let Some((since, sent)) = state.times.unread
            && passed(since, unread)
        {
            // Who has taken less than one full output in all that time only pretends to read.
            if sent < CLIENT_OUT_HIGH_BYTES {
                return Some(Overdue::Unread);
            }
            state.times.unread = Some((now.time, 0));
        }
        // While it is stalled nobody reads it: the rest of the command may have been sent long ago.
        let silence = worker.longest_silence_within(state.upload.is_some());
        if state.times.half_sent.is_some_and(|since| state.stall.is_none() && passed(since, silence)) {
            return Some(Overdue::HalfSent);
        }
        state.replies.trim();
        // Who waits for an answer is not idle: it is the node that is late.
        let quiet = state.replies.is_empty() && state.output_len() == 0;
        let idle = limits.idle.is_some_and(|idle| quiet && passed(state.times.read, idle));
        idle.then_some(Overdue::Idle)
    }
}
