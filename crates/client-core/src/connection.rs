//! One connection: hello, credits, frames out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use bytes::Bytes;
use native::{Capabilities, FromClient, Hello, MAX_PIECE_BYTES, MapAssembly, Piece, ScanAsk, Welcome};
use types::Time;

use crate::event::RequestId;

/// Bytes that wait to be sent beyond which no further request, and no further piece, is put behind them.
const OUT_HIGH_BYTES: usize = 1 << 20;
/// Values up to this length are copied behind their heads; longer ones are sent from where they are.
const COPIED_BYTES: usize = 4096;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is none yet, or nobody has said welcome; since then.
    Opening(Time),
    /// Requests may be sent.
    Open(Welcome),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Connection {
    pub address: SocketAddr,
    pub stage: Stage,
    pub assembly: MapAssembly,
    /// Requests that have been sent here and have not had their last frame: those that the caller waits for, and those that it does not.
    pub in_flight: BTreeMap<u64, RequestId>,
    /// Those of them whose values have a place where they may be received.
    pub landing: BTreeSet<u64>,
    /// Requests that are to be sent here.
    pub waiting: VecDeque<RequestId>,
    /// Values that are being sent, in the order of their turns.
    pub uploading: VecDeque<RequestId>,
    /// Whether it has been said that there is something to be sent.
    pub announced: bool,
    out: VecDeque<Bytes>,
    tail: Vec<u8>,
    /// Bytes that wait in these.
    out_bytes: usize,
    /// Bytes that have been put into them, and taken out of them, in all.
    written: u64,
    handed: u64,
    next_id: u64,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, now: Time) -> Self {
        let mut connection = Self {
            address,
            stage: Stage::Opening(now),
            assembly: MapAssembly::default(),
            in_flight: BTreeMap::new(),
            landing: BTreeSet::new(),
            waiting: VecDeque::new(),
            uploading: VecDeque::new(),
            announced: false,
            out: VecDeque::new(),
            tail: Vec::new(),
            out_bytes: 0,
            written: 0,
            handed: 0,
            next_id: 1,
        };
        connection.say(&FromClient::Hello(Hello::default()));
        connection
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Whether one more request may be sent now.
    pub(crate) fn has_credit(&self) -> bool {
        match self.stage {
            Stage::Opening(_) => false,
            Stage::Open(welcome) => self.in_flight.len() < welcome.credits as usize && self.has_room(),
        }
    }

    /// Whether writes may have names here.
    pub(crate) fn takes_names(&self) -> bool {
        matches!(self.stage, Stage::Open(welcome) if welcome.capabilities.has(Capabilities::SESSIONS))
    }

    /// Whether chunks may be read and put here.
    pub(crate) fn takes_chunks(&self) -> bool {
        matches!(self.stage, Stage::Open(welcome) if welcome.capabilities.has(Capabilities::CHUNKS))
    }

    /// Whether it may be asked here where bytes lie from any on.
    pub(crate) fn takes_pages(&self) -> bool {
        matches!(self.stage, Stage::Open(welcome) if welcome.capabilities.has(Capabilities::PAGES))
    }

    /// Whether graphs may make here what is lost.
    pub(crate) fn takes_graphs(&self) -> bool {
        matches!(self.stage, Stage::Open(welcome) if welcome.capabilities.has(Capabilities::GRAPHS))
    }

    /// Whether it may be asked here which keys there are.
    pub(crate) fn takes_scans(&self) -> bool {
        matches!(self.stage, Stage::Open(welcome) if welcome.capabilities.has(Capabilities::SCANS))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.out_bytes < OUT_HIGH_BYTES
    }

    /// Whether there is something to be sent.
    pub(crate) fn has_output(&self) -> bool {
        self.out_bytes > 0
    }

    /// Puts a message behind what waits.
    pub(crate) fn say(&mut self, message: &FromClient) {
        self.append(|tail| message.put(tail));
    }

    /// Sends a request under the next number; this, and where its frame begins.
    pub(crate) fn ask(&mut self, whose: RequestId, request: &native::Request) -> (u64, u64) {
        let (id, start) = (self.next_id, self.written);
        self.next_id += 1;
        self.in_flight.insert(id, whose);
        self.append(|tail| request.put_head(id, tail));
        self.append_value(&request.value_bytes());
        (id, start)
    }

    /// The same for a page of a scan.
    pub(crate) fn scan(&mut self, whose: RequestId, ask: &ScanAsk) -> (u64, u64) {
        let (id, start) = (self.next_id, self.written);
        self.next_id += 1;
        self.in_flight.insert(id, whose);
        self.append(|tail| ask.put(id, tail));
        (id, start)
    }

    /// Sends a piece of a value; where its frame ends.
    pub(crate) fn send_piece(&mut self, id: u64, bytes: &Bytes) -> u64 {
        debug_assert!(bytes.len() <= MAX_PIECE_BYTES, "a piece of {} bytes", bytes.len());
        self.append(|tail| Piece::put_head(id, bytes.len(), tail));
        self.append_value(bytes);
        self.written
    }

    /// Whether what ends, or begins, at this place has left, or is about to.
    pub(crate) fn has_left(&self, place: u64) -> bool {
        self.handed > place
    }

    /// What is to be sent next, at most so many buffers; from now on it counts as sent. How many bytes those are.
    pub(crate) fn take_output(&mut self, most: usize, into: &mut Vec<Bytes>) -> u64 {
        self.announced = false;
        if !self.tail.is_empty() {
            self.out.push_back(std::mem::take(&mut self.tail).into());
        }
        let handed = self.handed;
        for _ in 0..most {
            let Some(bytes) = self.out.pop_front() else { break };
            self.out_bytes -= bytes.len();
            self.handed += bytes.len() as u64;
            into.push(bytes);
        }
        self.handed - handed
    }

    /// What waits to be sent and lies in this memory is copied.
    pub(crate) fn disown(&mut self, memory: &Range<usize>) {
        self.out.iter_mut().for_each(|bytes| disown(bytes, memory));
    }

    fn append(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let before = self.tail.len();
        put(&mut self.tail);
        let len = self.tail.len() - before;
        self.out_bytes += len;
        self.written += len as u64;
    }

    fn append_value(&mut self, bytes: &Bytes) {
        if bytes.len() <= COPIED_BYTES {
            return self.append(|tail| tail.extend_from_slice(bytes));
        }
        self.out.push_back(std::mem::take(&mut self.tail).into());
        self.out.push_back(bytes.clone());
        self.out_bytes += bytes.len();
        self.written += bytes.len() as u64;
    }
}

/// Copies bytes that lie in memory that is its owner's again.
pub fn disown(bytes: &mut Bytes, memory: &Range<usize>) {
    let start = bytes.as_ptr() as usize;
    if memory.start < start + bytes.len() && start < memory.end {
        *bytes = Bytes::copy_from_slice(bytes);
    }
}
