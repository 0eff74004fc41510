//! The receiving side of a link, and the task that runs both.
//!
//! Requests of the peer's clients are handed over at the pace at which their answers leave. They wait here rather than
//! in the socket, for the messages of the groups behind them must not wait: two nodes that stop reading each other
//! would do so for ever.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use types::HostId;
use types::op::{Failure, Outcome};
use wire::frame::{Decoder, FrameError, Message};
use wire::message::{Answer, Forward, PeerMessage};

use crate::limits::{
    FORWARDS_KEPT, FORWARDS_KEPT_BYTES, LINK_BUFFER_KEPT_BYTES, LINK_FRAME_BYTES, LINK_LONG_READ_BYTES,
    LINK_READ_BYTES, LINK_TURN_BYTES, REQUEST_OVERHEAD_BYTES,
};
use crate::peers::handshake::Opened;
use crate::peers::link::{Link, LinkEnd};
use crate::transport::Reader;
use crate::workers::buffers;
use crate::workers::worker::Worker;

/// The receiving side.
struct Incoming {
    socket: Reader,
    decoder: Decoder,
    bytes: BytesMut,
    /// Bytes that the next read asks for: more while reads fill what they are given.
    read_bytes: usize,
    /// Requests that wait until the link is written.
    forwards: VecDeque<Forward>,
    forwards_bytes: usize,
    /// How many more may be handed over before the pump has run.
    room: usize,
    /// What the gate knows of the bytes held here.
    weighed: usize,
}

impl Incoming {
    /// Writes what waits, reads what is there, and hands it over; how the link ends, if it does.
    fn poll_turn(&mut self, worker: &Worker, link: &Link, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        link.poll_write(&worker.gate, &worker.counters, cx);
        // After the write: what has left makes room for further answers.
        self.room = link.room_for_answers();
        self.resume(worker, link);
        let mut left = LINK_TURN_BYTES;
        while left > 0 {
            if let Some(end) = link.end() {
                return Poll::Ready(end);
            }
            match self.poll_read(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(LinkEnd::Lost),
                Poll::Ready(Some(len)) => {
                    worker.counters.peer_reads.inc();
                    worker.counters.peer_bytes_read.add(len);
                    left = left.saturating_sub(len.max(LINK_READ_BYTES));
                }
            }
            if let Err(error) = self.deliver(worker, link) {
                tracing::warn!(peer = %link.peer, %error, "link closed");
                worker.counters.peer_malformed.inc();
                return Poll::Ready(LinkEnd::Malformed);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads what is there: how much, none at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let wanted = self.decoder.wanted(&self.bytes);
        // A peer's word is taken for a record: a buffer that follows its bytes is copied each time that it grows.
        buffers::make_room(&mut self.bytes, wanted, self.read_bytes.max(wanted.min(LINK_FRAME_BYTES)));
        let room = self.bytes.capacity() - self.bytes.len();
        let read = self.socket.poll_read(&mut self.bytes, cx);
        if let Poll::Ready(Ok(len)) = &read {
            self.read_bytes = next_read(self.read_bytes, room, *len);
        }
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
                // While some wait there is no room (`resume` uses it up first), so requests stay in their order.
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
        // By capacity: the memory for a long frame is there before its bytes are.
        let held = self.bytes.capacity() + self.forwards_bytes;
        link.note_incoming(held);
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
            // Nothing was done, so the client is told at once that it may ask again.
            let answer = Answer { id: forward.id, outcome: Outcome::Failed(Failure::Busy) };
            return worker.links.push(
                &worker.gate,
                &worker.counters,
                link.peer.node,
                PeerMessage::Answer(answer),
            );
        }
        self.forwards_bytes += bytes;
        self.forwards.push_back(forward);
    }
}

/// What the next read asks for, when the last one asked for `asked` and got `len` of the `room` that there was.
fn next_read(asked: usize, room: usize, len: usize) -> usize {
    if len == room {
        (asked * 2).min(LINK_LONG_READ_BYTES)
    } else if len < asked / 4 {
        (asked / 2).max(LINK_READ_BYTES)
    } else {
        asked
    }
}

/// What a waiting request holds.
fn bytes_of(forward: &Forward) -> usize {
    REQUEST_OVERHEAD_BYTES + forward.request.op.value_bytes()
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
    let (read, write) = stream.split();
    let link = Link::new(peer, write, encoder);
    let mut incoming = Incoming {
        socket: read,
        decoder,
        bytes: input,
        read_bytes: LINK_READ_BYTES,
        forwards: VecDeque::new(),
        forwards_bytes: 0,
        room: 0,
        weighed: 0,
    };
    worker.link_up(&link);
    // What came together with the handshake.
    let end = match incoming.deliver(worker, &link) {
        Ok(()) => std::future::poll_fn(|cx| incoming.poll_turn(worker, &link, cx)).await,
        Err(_) => LinkEnd::Malformed,
    };
    worker.link_down(&link, end);
    // The pump's list may still hold the link. It has nothing then, so the gate is not told twice.
    worker.gate.shift(link.unsent() + incoming.weighed, 0);
    link.drop_unsent();
    end
}
