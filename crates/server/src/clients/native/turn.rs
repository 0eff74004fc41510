//! The task of a connection.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use native::{Closing, Decoder, Reason};
use proto::Now;
use types::Time;

use super::{NativeConnection, Phase, Stall, State};
use crate::clients::connection::farewell;
use crate::clients::gate::{AtGate, Load};
use crate::clients::output::Output;
use crate::limits::{CLIENT_OUT_HIGH_BYTES, CLIENT_READ_BYTES, CLIENT_READS_PER_TURN};
use crate::places::{Kept, Place};
use crate::transport::{Reader, Writer};
use crate::workers::buffers;
use crate::workers::worker::Worker;

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

/// Serves a client until either side has had enough, or until a newcomer gets the place of one that has asked for nothing.
pub(crate) async fn serve(worker: Rc<Worker>, (mut reader, writer): (Reader, Writer), place: Place) {
    let now = worker.clock.time();
    let place = Rc::new(place);
    let connection =
        worker.connect(|id| Rc::new(NativeConnection::new(id, Some(writer), Some(Rc::clone(&place)), now)));
    worker.counters.total_connections.inc();
    worker.counters.native_connections.inc();
    worker.counters.curr_connections.inc();
    if connection.first_request(&worker, &mut reader, &place).await == Kept::Yes {
        poll_fn(|cx| connection.poll_turn(&worker, &mut reader, cx)).await;
    }
    worker.counters.curr_connections.dec();
    worker.connections.borrow_mut().take(connection.id);
    let is_broken = connection.state.borrow().phase == Phase::Broken;
    connection.end(&worker);
    // `end` has dropped the writer: the client sees the end while it is still being read.
    if !is_broken {
        farewell(reader).await;
    }
}

impl NativeConnection {
    /// Until the first request has come, or the connection has ended: whether it goes on.
    async fn first_request(self: &Rc<Self>, worker: &Rc<Worker>, reader: &mut Reader, place: &Place) -> Kept {
        let turns = poll_fn(|cx| {
            let ended = self.poll_turn(worker, reader, cx).is_ready();
            if ended || self.state.borrow().silent.is_none() { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            // First: the newcomer is in already, also if a request comes in the same moment.
            () = place.lost() => Kept::No,
            () = turns => Kept::Yes,
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
        for _ in 0..CLIENT_READS_PER_TURN {
            // After the bytes were read: a process that stood still in between must see that its lease is over.
            let now = worker.clock.now();
            match self.carry_out(worker, state, now, cx) {
                Next::Read => {}
                Next::Again => continue,
                Next::Wait => return Poll::Pending,
                Next::End => return Poll::Ready(()),
            }
            match state.poll_read(worker, reader, cx) {
                Poll::Ready(Ok(0)) => state.phase = Phase::Closing,
                Poll::Ready(Ok(len)) => {
                    worker.counters.client_reads.inc();
                    worker.counters.bytes_read.add(len);
                    state.times.read = worker.clock.time();
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
        state.output.borrow(&worker.pool);
        self.execute(worker, state, now);
        self.go_on(worker, state);
        worker.stopwatch.end_turn(now.time, || worker.clock.time());
        if state.is_finished() {
            return Next::End;
        }
        // The socket has made room since it was full: nobody would wake the task for that any more.
        if state.unsent() > 0 && state.poll_write_ready(cx).is_ready() {
            return Next::Again;
        }
        // `go_on` itself has ended what it stalled for, and nothing else would wake the task.
        let is_over = match state.stall {
            Some(Stall::Output) => state.output_len() < CLIENT_OUT_HIGH_BYTES,
            Some(Stall::Answers) => !waits_for_answers(worker, state),
            Some(Stall::Gate) | None => false,
        };
        if is_over {
            return Next::Again;
        }
        // What stalls is not read either: so TCP slows the client down, and its input stays bounded.
        if state.phase != Phase::Open || state.stall.is_some() {
            worker.pool.return_input(&mut state.input);
            return Next::Wait;
        }
        Next::Read
    }

    /// Begins what the frames that have come ask for.
    fn execute(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, now: Now) {
        state.stall = None;
        while matches!(state.phase, Phase::Open | Phase::Closing) && !state.input.is_empty() {
            if let Some(stall) = self.must_wait(worker, state) {
                self.stall(worker, state, stall);
                break;
            }
            match Decoder::next(&mut state.input) {
                Ok(Some(frame)) => self.take_frame(worker, state, now, frame),
                Ok(None) if state.phase == Phase::Open => break,
                // Nothing more comes: what has come of the frame is not answered.
                Ok(None) => state.input.clear(),
                Err(malformed) => {
                    tracing::debug!(%malformed, "a client's frame");
                    state.close(Reason::Malformed, 0);
                }
            }
        }
        if state.phase == Phase::Closing {
            self.drop_uploads(worker, state);
        }
        self.note_half_sent(worker, state, now.time);
    }

    /// Why nothing more may be begun now, if so. Bytes of values that are on their way do not count: more of them may be what is waited
    /// for, and they have bounds of their own.
    fn must_wait(&self, worker: &Worker, state: &State) -> Option<Stall> {
        if state.output_len() >= CLIENT_OUT_HIGH_BYTES {
            return Some(Stall::Output);
        }
        if waits_for_answers(worker, state) {
            return Some(Stall::Answers);
        }
        let mid_value = !state.uploads.is_empty() || state.chunks.wait_for_client();
        let mid_request = !state.input.is_empty() || mid_value;
        (!worker.gate.admits(self.id, mid_request)).then_some(Stall::Gate)
    }

    /// Remembers to go on when something has changed.
    fn stall(self: &Rc<Self>, worker: &Worker, state: &mut State, stall: Stall) {
        worker.counters.client_stalls.inc();
        state.stall = Some(stall);
        // Once: a connection that is woken for other reasons would come onto the gate's list again each time.
        if stall == Stall::Gate && !self.at_gate.replace(true) {
            worker.gate.wait(Rc::clone(self) as Rc<dyn AtGate>);
        }
    }

    fn note_half_sent(&self, worker: &Worker, state: &mut State, now: Time) {
        let waits = state.uploads.waits_for_client() || state.chunks.wait_for_client();
        if state.input.is_empty() && !waits {
            state.times.half_sent = None;
            // An idle connection must not keep the gate's privilege from others that are in the middle of a request.
            worker.gate.finished(self.id);
        } else if state.times.read == now || state.times.half_sent.is_none() {
            // As long as bytes come nobody dawdles, however long a value is.
            state.times.half_sent = Some(now);
        } else {
            state.times.half_sent = Some(state.times.read);
        }
    }

    /// Goes on with values in both directions, and gives the socket what is due.
    pub(super) fn go_on(&self, worker: &Worker, state: &mut State) {
        state.output.borrow(&worker.pool);
        if state.phase != Phase::Broken && state.phase != Phase::Farewell {
            self.go_on_with_uploads(worker, state);
            state.tell_places(worker);
            state.tell_map(worker);
        }
        loop {
            let is_open = matches!(state.phase, Phase::Open | Phase::Closing);
            let more = is_open && self.go_on_sending(worker, state);
            state.write(worker);
            state.tidy_output(worker);
            if !more || state.output_len() >= CLIENT_OUT_HIGH_BYTES || state.phase == Phase::Broken {
                break;
            }
        }
        state.weigh(worker);
    }

    /// Lets go of everything; answers that still come find nobody.
    fn end(&self, worker: &Worker) {
        let state = &mut *self.state.borrow_mut();
        state.socket = None;
        self.drop_uploads(worker, state);
        self.drop_sendings(worker, state);
        worker.gate.finished(self.id);
        worker.gate.shift_load(state.told, Load::default());
        state.told = Load::default();
        state.pending.clear();
        state.input = BytesMut::new();
        state.output = Output::default();
    }
}

/// Whether so much is unanswered that nothing more may be begun.
fn waits_for_answers(worker: &Worker, state: &State) -> bool {
    if state.chunks.are_full() {
        return true;
    }
    let Load { held, expected } = state.pending_load;
    let full = held + expected + state.sendings.weight() >= worker.shared.config.limits.outstanding_bytes;
    // With nothing unanswered no answer would ever wake the task again, however low the limits are. And who has to send more of a
    // value, or to grant more of one, must be heard.
    full && state.uploads.is_empty() && state.sendings.is_empty() && !state.pending.is_empty()
}

impl State {
    fn poll_read(
        &mut self,
        worker: &Worker,
        reader: &mut Reader,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        worker.pool.lend_input(&mut self.input);
        let wanted = Decoder::wanted(&self.input);
        buffers::make_room(&mut self.input, wanted, CLIENT_READ_BYTES);
        reader.poll_read(&mut self.input, cx)
    }

    /// Gives the socket the output, as far as it takes it.
    pub(super) fn write(&mut self, worker: &Worker) {
        let Some(socket) = &self.socket else { return };
        if self.phase == Phase::Broken || (self.output.len() == 0 && self.times.unread.is_none()) {
            return;
        }
        let (len, result) = self.output.write(socket, self.output.end(), &worker.counters);
        if result.is_err() {
            self.phase = Phase::Broken;
        }
        worker.counters.bytes_written.add(len);
        self.times.unread = match self.times.unread {
            _ if self.output.len() == 0 && socket.held() == 0 => None,
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

    /// Gives back the output that has been sent.
    fn tidy_output(&mut self, worker: &Worker) {
        self.output.tidy();
        if self.sendings.is_empty() {
            self.output.give_back(&worker.pool);
        }
    }

    /// Whether the client wants to hear of maps and has not heard of the newest one.
    pub(super) fn lacks_map(&self, worker: &Worker) -> bool {
        self.dialogue.lacks_map(worker.map_version())
    }

    /// Tells the client of the newest map, if it does not know it.
    fn tell_map(&mut self, worker: &Worker) {
        if self.lacks_map(worker)
            && let Some(map) = worker.route_map()
        {
            self.dialogue.tell_map(&map, self.output.text());
        }
    }

    /// A newcomer may not take this connection's place from now on. Whether none has: else the request is not answered, for who has been
    /// answered may count on its connection.
    pub(super) fn keep_place(&mut self) -> bool {
        let kept = self.silent.take().is_none_or(|place| place.keep() == Kept::Yes);
        if !kept {
            Closing::with(Reason::TooManyConnections).put(0, self.output.text());
            self.phase = Phase::Farewell;
        }
        kept
    }
}
