//! One link to the same worker of another node: frames out, frames in.
//!
//! What a pump cycle produces for a link is gathered and written at once. The unsent part has a bound: a peer that
//! does not read is dropped, and the protocol resumes with the next link.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use cluster::HostId;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use wire::frame::{Decoder, Encoder, FrameError, Message};
use wire::message::PeerMessage;

use crate::buffers;
use crate::handshake::Opened;
use crate::limits::{LINK_BUFFER_KEPT_BYTES, LINK_OUT_BYTES, LINK_READ_BYTES, LINK_READS_PER_TURN};
use crate::waker::WakerCell;
use crate::worker::Worker;

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// The peer closed it, or the network failed.
    Lost,
    /// Too much was unsent.
    Overflow,
    /// What came is no message of this peer.
    Malformed,
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
}

struct Outgoing {
    encoder: Encoder,
    bytes: Vec<u8>,
    sent: usize,
    /// Whether the pump knows that there is something to write.
    queued: bool,
}

/// The receiving side.
struct Incoming {
    socket: OwnedReadHalf,
    decoder: Decoder,
    bytes: BytesMut,
}

impl Link {
    /// Whether the pump has to be told that there is something to write now.
    pub(crate) fn push(&self, message: &PeerMessage) -> Pushed {
        let mut out = self.out.borrow_mut();
        let out = &mut *out;
        if self.end.get().is_some() || out.encoder.encode(message, &mut out.bytes).is_err() {
            return Pushed::Dropped;
        }
        if out.bytes.len() - out.sent > LINK_OUT_BYTES {
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
            match self.socket.try_write(&out.bytes[out.sent..]) {
                Ok(len) => out.sent += len,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.waker.wake();
                    break;
                }
                Err(_) => self.close(LinkEnd::Lost),
            }
        }
        worker.counters.peer_bytes_written.add(before - out.unsent());
        out.tidy();
    }

    /// Ends the link; its task does the rest.
    pub(crate) fn close(&self, end: LinkEnd) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
        self.waker.wake();
    }

    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.out.borrow().unsent()
    }

    fn poll_turn(&self, worker: &Worker, incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        self.waker.register(cx);
        for _ in 0..LINK_READS_PER_TURN {
            if let Some(end) = self.end.get() {
                return Poll::Ready(end);
            }
            if self.unsent() > 0 && self.socket.as_ref().poll_write_ready(cx).is_ready() {
                self.write(worker);
            }
            match incoming.poll_read(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(LinkEnd::Lost),
                Poll::Ready(Some(len)) => {
                    worker.counters.peer_reads.inc();
                    worker.counters.peer_bytes_read.add(len);
                }
            }
            if let Err(error) = incoming.deliver(worker, self.peer) {
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
        self.bytes.len() - self.sent
    }

    /// Gives back what has been sent.
    fn tidy(&mut self) {
        if self.unsent() == 0 {
            self.bytes.clear();
            self.bytes.shrink_to(LINK_BUFFER_KEPT_BYTES);
            self.sent = 0;
        } else if self.sent > self.unsent() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
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

    /// Hands over every complete message.
    fn deliver(&mut self, worker: &Worker, peer: HostId) -> Result<(), BadPeer> {
        let now = worker.clock.now();
        let mut host = worker.host.borrow_mut();
        while let Some((header, message)) = self.decoder.next(&mut self.bytes)? {
            let Message::Peer(message) = message else { return Err(BadPeer::Unexpected) };
            if header.source != peer {
                return Err(BadPeer::Source(header.source));
            }
            worker.counters.peer_messages_read.inc();
            host.handle_peer(now, peer, message);
        }
        if self.bytes.is_empty() && self.bytes.capacity() > LINK_BUFFER_KEPT_BYTES {
            self.bytes = BytesMut::new();
        }
        drop(host);
        worker.pump.request();
        Ok(())
    }
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
    let out = Outgoing { encoder, bytes: Vec::new(), sent: 0, queued: false };
    let link = Rc::new(Link {
        peer,
        socket: write,
        out: RefCell::new(out),
        end: Cell::new(None),
        waker: WakerCell::default(),
    });
    let mut incoming = Incoming { socket: read, decoder, bytes: input };
    worker.link_up(&link);
    // What came together with the handshake.
    let end = match incoming.deliver(worker, peer) {
        Ok(()) => std::future::poll_fn(|cx| link.poll_turn(worker, &mut incoming, cx)).await,
        Err(_) => LinkEnd::Malformed,
    };
    worker.link_down(&link, end);
    end
}
