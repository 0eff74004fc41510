//! The sending side of a link to the same worker of another node.
//!
//! What a pump cycle produces for a link is gathered and written at once. The unsent part has a bound: a peer that
//! does not read is dropped, and the protocol resumes with the next link. `incoming` is the other side.
//!
//! Chunks of long values have a lane of their own: they go when nothing else waits, so that records do not wait for megabytes. Beyond
//! its bound cells are dropped, which their holder or gatherer notices.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use types::HostId;
use wire::Lane;
use wire::frame::Encoder;
use wire::message::PeerMessage;
use wire::segments::Segments;

use crate::clients::gate::Gate;
use crate::limits::{
    FORWARDS_PER_TURN, LINK_BUFFER_KEPT_BYTES, LINK_BULK_AT_ONCE, LINK_BULK_BYTES, LINK_OUT_BYTES,
    LINK_PAUSE_BYTES, REQUEST_OVERHEAD_BYTES,
};
use crate::peers::guess::Guess;
use crate::transport::Writer;
use crate::workers::counters::Counters;
use crate::workers::waker::WakerCell;

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
    socket: Writer,
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
    /// What is written next.
    segments: Segments,
    /// What goes after that.
    bulk: Bulk,
    /// Whether the pump knows that there is something to write.
    queued: bool,
}

impl Link {
    /// A link to `peer` that is open in both directions; nothing waits to be sent.
    pub(crate) fn new(peer: HostId, socket: Writer, encoder: Encoder) -> Rc<Self> {
        Rc::new(Self {
            peer,
            socket,
            out: RefCell::new(Outgoing {
                encoder,
                segments: Segments::default(),
                bulk: Bulk::default(),
                queued: false,
            }),
            end: Cell::new(None),
            waker: WakerCell::default(),
            answer_guess: Guess::default(),
            paused: Cell::new(false),
            incoming_bytes: Cell::new(0),
        })
    }

    /// Puts `message` into the next write, or into the queue of its lane.
    pub(crate) fn push(&self, gate: &Gate, message: PeerMessage) -> Pushed {
        let out = &mut *self.out.borrow_mut();
        let before = out.unsent();
        if self.end.get().is_some() || !out.take(message) {
            return Pushed::Dropped;
        }
        gate.shift(before, out.unsent());
        if out.urgent() > LINK_OUT_BYTES {
            self.close(LinkEnd::Overflow);
        }
        if std::mem::replace(&mut out.queued, true) { Pushed::More } else { Pushed::First }
    }

    /// Writes what is there; what the socket does not take is left to the link's task.
    pub(crate) fn write(&self, gate: &Gate, counters: &Counters) {
        let mut out = self.out.borrow_mut();
        out.queued = false;
        let before = out.unsent();
        while self.end.get().is_none() && out.refill() {
            counters.peer_writes.inc();
            let written = match &out.segments.slices()[..] {
                [one] => self.socket.try_write(one),
                several => self.socket.try_write_vectored(several),
            };
            match written {
                Ok(len) => {
                    counters.peer_bytes_written.add(len);
                    out.segments.advance(len);
                }
                // Only a task can wait for the socket, and the pump, which calls this, must not.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.waker.wake();
                    break;
                }
                Err(_) => self.close(LinkEnd::Lost),
            }
        }
        gate.shift(before, out.unsent());
        let may_go_on = out.urgent() < LINK_PAUSE_BYTES;
        out.segments.tidy(LINK_BUFFER_KEPT_BYTES);
        drop(out);
        if self.paused.get() && may_go_on || self.socket.held() > 0 {
            self.waker.wake();
        }
    }

    /// Writes what waits if the socket takes it by now; wakes the link's task when it does, or when there is something to do.
    pub(super) fn poll_write(&self, gate: &Gate, counters: &Counters, cx: &mut Context<'_>) {
        self.waker.register(cx);
        if self.unsent() == 0 && self.socket.held() == 0 {
            return;
        }
        match self.socket.poll_ready(cx) {
            Poll::Ready(Ok(())) => self.write(gate, counters),
            Poll::Ready(Err(_)) => self.close(LinkEnd::Lost),
            Poll::Pending => (),
        }
    }

    /// Forgets what waits to be sent.
    pub(super) fn drop_unsent(&self) {
        let mut out = self.out.borrow_mut();
        out.segments = Segments::default();
        out.bulk = Bulk::default();
    }

    /// Why it has to end, if it has.
    pub(super) fn end(&self) -> Option<LinkEnd> {
        self.end.get()
    }

    /// The receiving side holds so many bytes.
    pub(super) fn note_incoming(&self, bytes: usize) {
        self.incoming_bytes.set(bytes);
    }

    /// Ends the link; its task does the rest.
    pub(crate) fn close(&self, end: LinkEnd) {
        // The first reason is the true one; those that come later mostly follow from it.
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
        self.waker.wake();
    }

    /// Whether requests wait. Those for which there is room get their turn after the pump.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.set(paused);
        // Else the write that makes room wakes it.
        if paused && self.urgent() < LINK_PAUSE_BYTES {
            self.waker.wake();
        }
    }

    /// How many requests may be handed over now.
    pub(super) fn room_for_answers(&self) -> usize {
        if self.urgent() >= LINK_PAUSE_BYTES {
            return 0;
        }
        (LINK_PAUSE_BYTES / self.answer_guess.len_bytes().max(1)).clamp(1, FORWARDS_PER_TURN)
    }

    /// Bytes that wait to be sent, but for chunks that wait behind them.
    pub(crate) fn urgent(&self) -> usize {
        self.out.borrow().urgent()
    }

    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.out.borrow().unsent()
    }

    /// Memory of its buffers, and of the requests that wait.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.out.borrow().segments.capacity() + self.incoming_bytes.get()
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
    /// Takes a message in; whether it did.
    fn take(&mut self, message: PeerMessage) -> bool {
        match message.lane() {
            Lane::Urgent => self.encoder.encode_shared(&message, &mut self.segments).is_ok(),
            Lane::Bulk => self.bulk.push(message),
        }
    }

    /// Bulk follows where little is left to be written; whether there is anything to write.
    fn refill(&mut self) -> bool {
        while self.segments.len() < LINK_BULK_AT_ONCE
            && let Some(message) = self.bulk.pop()
        {
            // One that fits into no frame is none that a host makes.
            let encoded = self.encoder.encode_shared(&message, &mut self.segments);
            debug_assert!(encoded.is_ok(), "a cell fits into a frame");
        }
        !self.segments.is_empty()
    }

    fn urgent(&self) -> usize {
        self.segments.len()
    }

    fn unsent(&self) -> usize {
        self.segments.len() + self.bulk.bytes
    }
}

/// Messages of the bulk lane that wait.
#[derive(Default)]
struct Bulk {
    messages: VecDeque<PeerMessage>,
    bytes: usize,
}

impl Bulk {
    /// Whether there was room.
    fn push(&mut self, message: PeerMessage) -> bool {
        // What is no cell is bounded by whom it is about, and needed to get rid of cells.
        let has_room = message.cell_bytes() == 0 || self.bytes < LINK_BULK_BYTES;
        if has_room {
            self.bytes += weight(&message);
            self.messages.push_back(message);
        }
        has_room
    }

    fn pop(&mut self) -> Option<PeerMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= weight(&message);
        Some(message)
    }
}

/// About as many bytes as it has on the link.
fn weight(message: &PeerMessage) -> usize {
    REQUEST_OVERHEAD_BYTES + message.cell_bytes()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::BytesMut;
    use store::Budget;
    use types::op::Outcome;
    use types::{ClusterId, Incarnation, NodeId};
    use wire::frame::{Decoder, Message};
    use wire::message::Answer;

    use super::*;
    use crate::transport;

    const ME: HostId = HostId { node: NodeId(0), incarnation: Incarnation(1) };
    const PEER: HostId = HostId { node: NodeId(1), incarnation: Incarnation(1) };
    const CLUSTER: ClusterId = ClusterId(7);

    #[tokio::test(flavor = "current_thread")]
    async fn all_that_was_pushed_arrives_where_a_writer_holds_bytes_back() {
        let [(_, writer), (mut reader, _)] = transport::in_memory(7);
        let (gate, counters) = (Gate::new(Budget::new(64 << 20), 0), Counters::default());
        let link = Link::new(PEER, writer, Encoder::new(CLUSTER, ME));
        let message = |id| PeerMessage::Answer(Answer { id, outcome: Outcome::Miss });
        (0..20).for_each(|id| _ = link.push(&gate, message(id)));
        link.write(&gate, &counters);
        let writing = poll_fn(|cx| {
            link.poll_write(&gate, &counters, cx);
            Poll::<()>::Pending
        });
        let reading = async {
            let (mut bytes, mut decoder) = (BytesMut::new(), Decoder::new(CLUSTER));
            for id in 0..20 {
                let (_, read) = loop {
                    if let Some(read) = decoder.next(&mut bytes).unwrap() {
                        break read;
                    }
                    reader.read(&mut bytes).await.unwrap();
                };
                assert_eq!(read, Message::Peer(message(id)));
            }
        };
        tokio::select! {
            () = writing => (),
            () = reading => (),
        }
        assert_eq!((link.unsent(), gate.held()), (0, 0));
    }
}
