//! The sending side of a link to the same worker of another node.
//!
//! What a pump cycle produces for a link is gathered and written at once. The unsent part has a bound: a peer that
//! does not read is dropped, and the protocol resumes with the next link. `incoming` is the other side.
//!
//! Chunks of long values have a lane of their own: they go when nothing else waits, so that records do not wait for megabytes. Those that
//! no client waits for go behind these: one now and then, all where no others wait. Beyond its bound cells are dropped, which their holder or
//! gatherer notices.

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
    LINK_PAUSE_BYTES, LINK_REPAIR_AT_ONCE, LINK_REPAIR_EVERY, LINK_TURN_BYTES,
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
    /// What goes last.
    repair: Bulk,
    /// Bytes of `bulk` that have gone while some of `repair` waited.
    passed: usize,
    /// Whether the pump knows that there is something to write.
    queued: bool,
}

impl Link {
    /// A link to `peer` that is open in both directions; nothing waits to be sent.
    pub(crate) fn new(peer: HostId, socket: Writer, encoder: Encoder) -> Rc<Self> {
        Rc::new(Self {
            peer,
            socket,
            out: RefCell::new(Outgoing::new(encoder)),
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
        if out.is_overfull() {
            self.close(LinkEnd::Overflow);
        }
        if std::mem::replace(&mut out.queued, true) { Pushed::More } else { Pushed::First }
    }

    /// Writes what is there; what the socket does not take is left to the link's task.
    pub(crate) fn write(&self, gate: &Gate, counters: &Counters) {
        let mut out = self.out.borrow_mut();
        out.queued = false;
        let (before, mut turn) = (out.unsent(), LINK_TURN_BYTES);
        while turn > 0 && self.end.get().is_none() && out.refill() {
            counters.peer_writes.inc();
            let written = match &out.segments.slices()[..] {
                [one] => self.socket.try_write(one),
                several => self.socket.try_write_vectored(several),
            };
            match written {
                Ok(len) => {
                    counters.peer_bytes_written.add(len);
                    out.segments.advance(len);
                    turn = turn.saturating_sub(len);
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
        // A peer that takes all at once must not keep this worker from everything else.
        let has_more = turn == 0 && out.unsent() > 0;
        out.segments.tidy(LINK_BUFFER_KEPT_BYTES);
        drop(out);
        if self.paused.get() && may_go_on || has_more || self.socket.held() > 0 {
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
        (out.bulk, out.repair) = Default::default();
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
    fn new(encoder: Encoder) -> Self {
        let (bulk, repair) = Default::default();
        Self { encoder, segments: Segments::default(), bulk, repair, passed: 0, queued: false }
    }

    /// Takes a message in; whether it did.
    fn take(&mut self, message: PeerMessage) -> bool {
        match message.lane() {
            Lane::Urgent => self.encoder.encode_shared(&message, &mut self.segments).is_ok(),
            Lane::Bulk => self.bulk.push(message),
            Lane::Repair => self.repair.push(message),
        }
    }

    /// Bulk follows where little is left to be written; whether there is anything to write.
    fn refill(&mut self) -> bool {
        while let Some(message) = self.next() {
            // One that fits into no frame is none that a host makes.
            let encoded = self.encoder.encode_shared(&message, &mut self.segments);
            debug_assert!(encoded.is_ok(), "a cell fits into a frame");
        }
        !self.segments.is_empty()
    }

    /// What goes behind the segments, if little enough of them is left.
    fn next(&mut self) -> Option<PeerMessage> {
        let waiting = self.segments.len();
        let most_before_repair = match self.passed {
            LINK_REPAIR_EVERY.. => LINK_BULK_AT_ONCE,
            _ if self.bulk.messages.is_empty() => LINK_REPAIR_AT_ONCE,
            _ => 0,
        };
        if waiting < most_before_repair {
            self.passed = 0;
            if let Some(message) = self.repair.pop() {
                return Some(message);
            }
        }
        let message = if waiting < LINK_BULK_AT_ONCE { self.bulk.pop() } else { None }?;
        self.passed += message.weight();
        Some(message)
    }

    fn urgent(&self) -> usize {
        self.segments.len()
    }

    fn unsent(&self) -> usize {
        self.segments.len() + self.bulk.bytes + self.repair.bytes
    }

    /// Whether more waits than a peer that reads would ever let gather.
    fn is_overfull(&self) -> bool {
        self.urgent() > LINK_OUT_BYTES || self.bulk.bytes > LINK_BULK_BYTES + LINK_OUT_BYTES
    }
}

/// Messages of a lane that wait.
#[derive(Default)]
struct Bulk {
    messages: VecDeque<PeerMessage>,
    bytes: usize,
}

impl Bulk {
    /// Whether there was room. There always is for what is no cell: cells are got rid of by it.
    fn push(&mut self, message: PeerMessage) -> bool {
        let has_room = !message.is_cell() || self.bytes < LINK_BULK_BYTES;
        if has_room {
            self.bytes += message.weight();
            self.messages.push_back(message);
        }
        has_room
    }

    fn pop(&mut self) -> Option<PeerMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.weight();
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::BytesMut;
    use store::Budget;
    use types::op::Outcome;
    use types::{
        ChunkId, ClusterId, GroupId, Incarnation, MemberId, NamespaceId, NodeId, ObjectId, RoleIndex, Term,
    };
    use wire::frame::{Decoder, Message};
    use wire::message::Answer;
    use wire::object::{Checked, Free, ObjectMessage};

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

    fn cell(row: u32) -> PeerMessage {
        cell_for(1, row)
    }

    fn cell_for(number: u64, row: u32) -> PeerMessage {
        let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
        let object = ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
        let cell = Checked::new(vec![0; 64 << 10].into());
        let chunk = ChunkId { object, stripe: 0 };
        ObjectMessage::Cell(wire::object::Cell { number, member: owner, chunk, row, cell }).into()
    }

    fn outgoing() -> Outgoing {
        Outgoing::new(Encoder::new(CLUSTER, ME))
    }

    /// What comes out when a peer reads a little at a time.
    fn read_all(out: &mut Outgoing, mut meanwhile: Option<PeerMessage>) -> Vec<PeerMessage> {
        let (mut decoder, mut bytes, mut read) = (Decoder::new(CLUSTER), BytesMut::new(), Vec::new());
        while out.refill() {
            let first = out.segments.slices()[0].len().min(10_000);
            bytes.extend_from_slice(&out.segments.slices()[0][..first]);
            out.segments.advance(first);
            meanwhile.take().into_iter().for_each(|message| assert!(out.take(message)));
            while let Some((_, message)) = decoder.next(&mut bytes).unwrap() {
                let Message::Peer(message) = message else { panic!("{message:?}") };
                read.push(message);
            }
        }
        read
    }

    #[test]
    fn records_pass_chunks_and_each_lane_keeps_its_order() {
        let mut out = outgoing();
        (0..100).for_each(|row| assert!(out.take(cell(row))));
        let urgent = PeerMessage::Answer(Answer { id: 7, outcome: Outcome::Miss });
        let read = read_all(&mut out, Some(urgent.clone()));
        let place = read.iter().position(|message| *message == urgent).unwrap();
        assert!(place <= LINK_BULK_AT_ONCE / (64 << 10) + 1, "{place} cells went before it");
        let cells: Vec<PeerMessage> = read.into_iter().filter(|message| *message != urgent).collect();
        assert_eq!(cells, (0..100).map(cell).collect::<Vec<_>>());
        assert_eq!(out.unsent(), 0);
    }

    #[test]
    fn cells_that_no_client_waits_for_let_others_pass_and_do_not_wait_for_ever() {
        let mut out = outgoing();
        let ours = |row| cell_for(wire::object::FILL_BIT, row);
        (0..50).for_each(|row| assert!(out.take(ours(row))));
        (0..50).for_each(|row| assert!(out.take(cell(row))));
        let read = read_all(&mut out, None);
        let cells = read.iter().filter(|message| message.lane() == Lane::Bulk);
        assert!(cells.eq(&(0..50).map(cell).collect::<Vec<_>>()), "each lane keeps its order");
        let places: Vec<usize> = (0..100).filter(|place| read[*place].lane() == Lane::Repair).collect();
        // 50 cells are three times the bytes behind which one goes.
        let early = places.iter().filter(|place| **place < 50).count();
        assert!((2..=4).contains(&early), "{places:?}");
        assert_eq!(places.len(), 50);
    }

    #[test]
    fn a_cell_that_a_client_waits_for_passes_those_that_none_waits_for() {
        let mut out = outgoing();
        (0..50).for_each(|row| assert!(out.take(cell_for(wire::object::SCRUB_BIT, row))));
        let read = read_all(&mut out, Some(cell(7)));
        let place = read.iter().position(|message| *message == cell(7)).unwrap();
        assert!(place <= LINK_REPAIR_AT_ONCE / (64 << 10) + 1, "{place} cells went before it");
    }

    #[test]
    fn cells_beyond_the_bound_are_dropped_and_what_frees_them_is_not() {
        let mut out = outgoing();
        let taken = (0..2_000).take_while(|row| out.take(cell(*row))).count();
        assert!(out.bulk.bytes >= LINK_BULK_BYTES && taken * (64 << 10) <= LINK_BULK_BYTES, "{taken}");
        let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
        let free = Free { owner, term: Term(1), member: owner, number: 1, objects: Vec::new() };
        assert!(out.take(ObjectMessage::Free(free).into()) && !out.is_overfull());
        assert_eq!(read_all(&mut out, None).len(), taken + 1);
    }
}
