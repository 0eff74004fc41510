//! A worker that is driven by hand, for counting the instructions of its hot paths: one client connection, links to
//! peers, no sockets, no runtime, and whatever time it is told.
//!
//! What it does to a request is the worker's own code: `commands` executes, `cycle` asks the host, `replies` prints. What
//! it leaves out is what a system call has on its other side, and the bounds of a link (`link`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use bytes::BytesMut;
use proto::Now;
use tokio::sync::mpsc;
use types::{ClusterId, HostId, NodeId};
use wire::frame::{Decoder, Encoder, FrameError, Message};
use wire::message::{FromCoordinator, Registration, ToCoordinator};

use crate::NodeConfig;
use crate::clients::connection::Connection;
use crate::limits::{CLIENT_READ_BYTES, LINK_READ_BYTES};
use crate::node::shared::{Addresses, Errand, Shared};
use crate::node::worker_ends;
use crate::workers::buffers;
use crate::workers::crossings::{Batch, Crossings};
use crate::workers::cycle;
use crate::workers::run::Inbox;
use crate::workers::worker::Worker;

/// Messages to the coordinator that wait to be taken.
const TO_COORDINATOR: usize = 1024;

/// See the module.
pub struct Bare {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    links: RefCell<BTreeMap<NodeId, BareLink>>,
    to_coordinator: RefCell<mpsc::Receiver<ToCoordinator>>,
    /// The ends of queues into which nobody puts anything.
    _queues: (mpsc::Receiver<Errand>, mpsc::Receiver<FromCoordinator>, mpsc::Receiver<Batch>),
}

/// Both directions of a link, as bytes.
struct BareLink {
    peer: HostId,
    encoder: Encoder,
    out: Vec<u8>,
    decoder: Decoder,
    input: BytesMut,
}

impl Bare {
    /// The only worker of a node that is made of `config`.
    #[must_use]
    pub fn new(config: NodeConfig) -> Self {
        let mesh = Crossings::mesh(1).pop().expect("one worker has one end");
        let (face, inbox) = worker_ends(mesh);
        let Inbox { errands, coordinator, crossings: (crossings, batches) } = inbox;
        let (sender, to_coordinator) = mpsc::channel(TO_COORDINATOR);
        let shared = Shared::new(NodeConfig { workers: 1, ..config }, nowhere(), vec![face], sender);
        let worker = Rc::new(Worker::new(0, shared, crossings));
        let connection = worker.connect(|id| Rc::new(Connection::new(id, None, None, None, types::Time(0))));
        Self {
            worker,
            connection,
            links: RefCell::default(),
            to_coordinator: RefCell::new(to_coordinator),
            _queues: (errands, coordinator, batches),
        }
    }

    /// Which process it is.
    #[must_use]
    pub fn id(&self) -> HostId {
        self.worker.shared.host
    }

    /// What it tells the coordinator first.
    #[must_use]
    pub fn registration(&self) -> Registration {
        let (info, expect) = (self.worker.shared.info(), self.worker.shared.expectations());
        Registration { info, expect, holds: None, promised: types::Epoch(0), map: 0 }
    }

    /// The next message for the coordinator.
    pub fn to_coordinator(&self) -> Option<ToCoordinator> {
        self.to_coordinator.borrow_mut().try_recv().ok()
    }

    /// A message of the coordinator.
    pub fn handle_coordinator(&self, now: Now, message: FromCoordinator) {
        self.worker.host.borrow_mut().handle_coordinator(now, message);
    }

    /// A link to `peer`, of this cluster, is up.
    pub fn link_up(&self, now: Now, cluster: ClusterId, peer: HostId) {
        let link = BareLink {
            peer,
            encoder: Encoder::new(cluster, self.id()),
            out: Vec::new(),
            decoder: Decoder::new(cluster),
            input: BytesMut::new(),
        };
        self.links.borrow_mut().insert(peer.node, link);
        self.worker.host.borrow_mut().link_up(now, peer);
    }

    /// Bytes of the client have been read.
    pub fn client_reads(&self, now: Now, bytes: &[u8]) {
        let state = &mut *self.connection.state.borrow_mut();
        self.worker.pool.lend_input(&mut state.input);
        let wanted = state.parser.wanted(&state.input);
        buffers::make_room(&mut state.input, wanted, CLIENT_READ_BYTES);
        state.input.extend_from_slice(bytes);
        self.connection.execute(&self.worker, state, now);
        self.connection.send(&self.worker, state);
        self.worker.stopwatch.end_turn(now.time, || self.worker.clock.time());
        self.worker.pool.return_input(&mut state.input);
    }

    /// Takes the replies that could be sent, behind what `into` holds.
    pub fn take_replies(&self, into: &mut Vec<u8>) {
        let state = &mut *self.connection.state.borrow_mut();
        let end = state.replies.sendable(state.output.end());
        state.output.move_text(end, into);
        state.tidy_output(&self.worker);
    }

    /// Bytes of a peer have been read.
    ///
    /// # Errors
    /// They are no frames.
    pub fn peer_reads(&self, now: Now, from: NodeId, bytes: &[u8]) -> Result<(), FrameError> {
        let mut links = self.links.borrow_mut();
        let Some(link) = links.get_mut(&from) else { return Ok(()) };
        let wanted = link.decoder.wanted(&link.input);
        buffers::make_room(&mut link.input, wanted, LINK_READ_BYTES);
        link.input.extend_from_slice(bytes);
        let mut host = self.worker.host.borrow_mut();
        while let Some((_, message)) = link.decoder.next(&mut link.input)? {
            let Message::Peer(message) = message else { continue };
            self.worker.counters.peer_messages_read.inc();
            host.handle_peer(now, link.peer, message);
        }
        self.worker.pump.request();
        Ok(())
    }

    /// Time has passed: one cycle of the pump in any case.
    pub fn tick(&self, now: Now) {
        self.worker.pump.take();
        self.cycle(now, true);
    }

    /// One cycle of the pump, if something has changed. What it has for peers is encoded, what it has for the client is
    /// printed.
    pub fn pump(&self, now: Now) {
        if self.worker.pump.take() {
            self.cycle(now, false);
        }
    }

    fn cycle(&self, now: Now, due: bool) {
        let mut links = self.links.borrow_mut();
        cycle::ask(&self.worker, now, due, |to, message| {
            if let Some(link) = links.get_mut(&to) {
                // What does not fit into a frame is dropped, as by a link.
                let _ = link.encoder.encode(&message, &mut link.out);
            }
        });
        // As the worker's own cycle does, to set its timer.
        std::hint::black_box(self.worker.host.borrow().next_deadline());
        self.worker.crossings.flush();
        self.worker.deliver();
    }

    /// Takes the frames for peer `to`, in the place of those in `frames`.
    pub fn take_frames(&self, to: NodeId, frames: &mut Vec<u8>) {
        frames.clear();
        if let Some(link) = self.links.borrow_mut().get_mut(&to) {
            std::mem::swap(frames, &mut link.out);
        }
    }
}

/// It listens nowhere.
fn nowhere() -> Addresses {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Addresses { memcached: nowhere, peer: nowhere, http: nowhere, native: None }
}
