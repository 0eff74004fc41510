//! One link to the same worker of another node: frames out, frames in.
//!
//! What a pump cycle produces for a link is gathered and written at once. The unsent part has a bound: a peer that
//! does not read is dropped, and the protocol resumes with the next link.
//!
//! Requests of the peer's clients are handed over at the pace at which their answers leave. They wait here rather than
//! in the socket, for the messages of the groups behind them must not wait: two nodes that stop reading each other
//! would do so for ever.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use types::HostId;
use types::op::{Failure, Op, Outcome};
use wire::frame::{Decoder, Encoder, FrameError, Message};
use wire::message::{Answer, Forward, PeerMessage};
use wire::segments::Segments;

use crate::limits::{
    FORWARDS_KEPT, FORWARDS_KEPT_BYTES, FORWARDS_PER_TURN, LINK_BUFFER_KEPT_BYTES, LINK_OUT_BYTES,
    LINK_PAUSE_BYTES, LINK_READ_BYTES, LINK_READS_PER_TURN, REQUEST_OVERHEAD_BYTES,
};
use crate::peers::guess::Guess;
use crate::peers::handshake::Opened;
use crate::workers::buffers;
use crate::workers::waker::WakerCell;
use crate::workers::worker::Worker;

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// The peer closed it, or the network failed.
    Lost,
    /// Too much was unsent.
    Overflow,
    /// What came is no message of this peer.
    Malformed,
    /// What came is a message, and cannot be.
    Impossible,
    /// A newer link to the same node, or the end of this node.
    Replaced,
}

/// The sending side of a link, and its end.
pub(crate) struct Link {
    /// Who is on the other side.
    pub peer: HostId,
    socket: OwnedWriteHalf,
    out: RefCell<Outgoing>,
    end: Cell<Option<LinkEnd>>,
    waker: WakerCell,
    /// How long answers to the peer's requests are.
    pub answer_guess: Guess,
    /// Whether requests wait until the link is written.
    paused: Cell<bool>,
    /// Bytes that the receiving side holds.
    incoming_bytes: Cell<usize>,
}

struct Outgoing {
    encoder: Encoder,
    segments: Segments,
    /// Whether the pump knows that there is something to write.
    queued: bool,
}

/// The receiving side.
struct Incoming {
    socket: OwnedReadHalf,
    decoder: Decoder,
    bytes: BytesMut,
    /// Requests that wait until the link is written.
    forwards: VecDeque<Forward>,
    forwards_bytes: usize,
    /// How many more may be handed over before the pump has run.
    room: usize,
    /// What the gate knows of the bytes held here.
    weighed: usize,
}

impl Link {
    /// Puts `message` into the next write.
    pub(crate) fn push(&self, worker: &Worker, message: &PeerMessage) -> Pushed {
        let out = &mut *self.out.borrow_mut();
        let before = out.unsent();
        if self.end.get().is_some() || out.encoder.encode_shared(message, &mut out.segments).is_err() {
            return Pushed::Dropped;
        }
        worker.gate.shift(before, out.unsent());
        if out.unsent() > LINK_OUT_BYTES {
            self.close(LinkEnd::Overflow);
        }
        if std::mem::replace(&mut out.queued, true) { Pushed::More } else { Pushed::First }
    }

    /// Writes what is there; what the socket does not take is left to the link's task.
    pub(crate) fn write(&self, worker: &Worker) {
        let mut out = self.out.borrow_mut();
        out.queued = false;
        let before = out.unsent();
        while out.unsent() > 0 && self.end.get().is_none() {
            worker.counters.peer_writes.inc();
            let written = match &out.segments.slices()[..] {
                [one] => self.socket.try_write(one),
                several => self.socket.try_write_vectored(several),
            };
            match written {
                Ok(len) => out.segments.advance(len),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.waker.wake();
                    break;
                }
                Err(_) => self.close(LinkEnd::Lost),
            }
        }
        worker.counters.peer_bytes_written.add(before - out.unsent());
        worker.gate.shift(before, out.unsent());
        let may_go_on = out.unsent() < LINK_PAUSE_BYTES;
        out.segments.tidy(LINK_BUFFER_KEPT_BYTES);
        drop(out);
        if self.paused.get() && may_go_on {
            self.waker.wake();
        }
    }

    /// Ends the link; its task does the rest.
    pub(crate) fn close(&self, end: LinkEnd) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
        self.waker.wake();
    }

    /// Whether requests wait. Those for which there is room get their turn after the pump.
    fn pause(&self, paused: bool) {
        self.paused.set(paused);
        if paused && self.unsent() < LINK_PAUSE_BYTES {
            self.waker.wake();
        }
    }

    /// How many requests may be handed over now.
    fn room_for_answers(&self) -> usize {
        if self.unsent() >= LINK_PAUSE_BYTES {
            return 0;
        }
        (LINK_PAUSE_BYTES / self.answer_guess.len_bytes().max(1)).clamp(1, FORWARDS_PER_TURN)
    }

    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.out.borrow().unsent()
    }

    /// Memory of its buffers, and of the requests that wait.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.out.borrow().segments.capacity() + self.incoming_bytes.get()
    }

    fn poll_turn(&self, worker: &Worker, incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        self.waker.register(cx);
        if self.unsent() > 0 && self.socket.as_ref().poll_write_ready(cx).is_ready() {
            self.write(worker);
        }
        incoming.room = self.room_for_answers();
        incoming.resume(worker, self);
        for _ in 0..LINK_READS_PER_TURN {
            if let Some(end) = self.end.get() {
                return Poll::Ready(end);
            }
            match incoming.poll_read(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(LinkEnd::Lost),
                Poll::Ready(Some(len)) => {
                    worker.counters.peer_reads.inc();
                    worker.counters.peer_bytes_read.add(len);
                }
            }
            if let Err(error) = incoming.deliver(worker, self) {
                tracing::warn!(peer = %self.peer, %error, "link closed");
                worker.counters.peer_malformed.inc();
                return Poll::Ready(LinkEnd::Malformed);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is the first since the last write.
    First,
    /// Others wait before it.
    More,
    /// The link has ended, or the message fits into no frame.
    Dropped,
}

impl Outgoing {
    fn unsent(&self) -> usize {
        self.segments.len()
    }
}

impl Incoming {
    /// Reads what is there: how much, none at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let wanted = self.decoder.wanted(&self.bytes);
        buffers::make_room(&mut self.bytes, wanted, LINK_READ_BYTES);
        let read = pin!(self.socket.read_buf(&mut self.bytes)).poll(cx);
        read.map(|result| result.ok().filter(|len| *len > 0))
    }

    /// Hands over every complete message, requests only as far as their answers will fit.
    fn deliver(&mut self, worker: &Worker, link: &Link) -> Result<(), BadPeer> {
        let now = worker.clock.now();
        let mut host = worker.host.borrow_mut();
        while let Some((header, message)) = self.decoder.next(&mut self.bytes)? {
            let Message::Peer(message) = message else { return Err(BadPeer::Unexpected) };
            if header.source != link.peer {
                return Err(BadPeer::Source(header.source));
            }
            worker.counters.peer_messages_read.inc();
            match message {
                PeerMessage::Forward(forward) if self.room == 0 => self.keep(worker, link, forward),
                message => {
                    self.room -= usize::from(matches!(message, PeerMessage::Forward(_)));
                    host.handle_peer(now, link.peer, message);
                }
            }
        }
        worker.pump.request();
        link.pause(!self.forwards.is_empty());
        if self.bytes.is_empty() && self.bytes.capacity() > LINK_BUFFER_KEPT_BYTES {
            self.bytes = BytesMut::new();
        }
        self.weigh(worker, link);
        Ok(())
    }

    /// Tells the gate how much is held here.
    fn weigh(&mut self, worker: &Worker, link: &Link) {
        let held = self.bytes.capacity() + self.forwards_bytes;
        link.incoming_bytes.set(held);
        worker.gate.shift(std::mem::replace(&mut self.weighed, held), held);
    }

    /// Hands over requests that have waited, as far as their answers will fit.
    fn resume(&mut self, worker: &Worker, link: &Link) {
        let count = self.room.min(self.forwards.len());
        if count == 0 {
            return;
        }
        let now = worker.clock.now();
        let mut host = worker.host.borrow_mut();
        for forward in self.forwards.drain(..count) {
            self.forwards_bytes -= bytes_of(&forward);
            host.handle_peer(now, link.peer, PeerMessage::Forward(forward));
        }
        self.room -= count;
        worker.pump.request();
        link.pause(!self.forwards.is_empty());
        self.weigh(worker, link);
    }

    /// Lets a request wait, or refuses it.
    fn keep(&mut self, worker: &Worker, link: &Link, forward: Forward) {
        let bytes = bytes_of(&forward);
        if self.forwards.len() >= FORWARDS_KEPT || self.forwards_bytes + bytes > FORWARDS_KEPT_BYTES {
            let answer = Answer { id: forward.id, outcome: Outcome::Failed(Failure::Busy) };
            return worker.links.push(worker, link.peer.node, PeerMessage::Answer(answer));
        }
        self.forwards_bytes += bytes;
        self.forwards.push_back(forward);
    }
}

/// What a waiting request holds.
fn bytes_of(forward: &Forward) -> usize {
    let value = match &forward.request.op {
        Op::Store(store) => store.value.len(),
        _ => 0,
    };
    REQUEST_OVERHEAD_BYTES + value
}

/// Why a peer's stream cannot go on.
#[derive(Debug, thiserror::Error)]
enum BadPeer {
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("message of another conversation")]
    Unexpected,
    #[error("message of {0}")]
    Source(HostId),
}

/// Runs an opened link until it ends.
pub(crate) async fn run(worker: &Rc<Worker>, opened: Opened) -> LinkEnd {
    let Opened { peer, stream, encoder, decoder, input } = opened;
    let (read, write) = stream.into_split();
    let out = Outgoing { encoder, segments: Segments::default(), queued: false };
    let link = Rc::new(Link {
        peer,
        socket: write,
        out: RefCell::new(out),
        end: Cell::new(None),
        waker: WakerCell::default(),
        answer_guess: Guess::default(),
        paused: Cell::new(false),
        incoming_bytes: Cell::new(0),
    });
    let mut incoming = Incoming {
        socket: read,
        decoder,
        bytes: input,
        forwards: VecDeque::new(),
        forwards_bytes: 0,
        room: 0,
        weighed: 0,
    };
    worker.link_up(&link);
    // What came together with the handshake.
    let end = match incoming.deliver(worker, &link) {
        Ok(()) => std::future::poll_fn(|cx| link.poll_turn(worker, &mut incoming, cx)).await,
        Err(_) => LinkEnd::Malformed,
    };
    worker.link_down(&link, end);
    worker.gate.shift(link.unsent() + incoming.weighed, 0);
    link.out.borrow_mut().segments = Segments::default();
    end
}
