//! One request: what it asks, how far it is, and what may be done when it fails.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use native::{
    Ask, BeginAsk, CommitAsk, Content, GetAsk, MAX_DEADLINE_MS, MAX_PIECE_BYTES, Meta, Range, ScanAsk,
    StoreAsk, Written,
};
use types::op::Key;
use types::{NamespaceId, Once, Scan, Slot, Time};

use crate::direct::Trip;
use crate::error::Error;
use crate::event::ConnId;
use crate::operation::{Body, Op, ScanOp};
use crate::rules::Rules;
use crate::sessions::WriteName;

/// Fed bytes that wait to be sent below which more are asked for.
const FED_LOW_BYTES: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Request {
    pub key: Bytes,
    pub op: Op,
    pub deadline: Time,
    /// How often it has been tried again.
    pub attempts: u32,
    /// Where it has been sent to, or waits to be sent.
    pub place: Option<Place>,
    pub upload: Option<Upload>,
    pub reading: Option<Reading>,
    pub room: Room,
    /// The name under which it is done once, if it has one.
    pub name: Option<WriteName>,
    /// Which way its value goes, if that is in chunks.
    pub way: Way,
    /// Whether its chunks are all there.
    pub committing: bool,
    /// Since when it is on its way, if its way was chosen.
    pub trip: Option<Trip>,
}

/// For how many bytes its caller has room, in which they may be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    None,
    /// Whatever comes, in any order.
    Any(u64),
    /// Pieces of a value that comes in order.
    Pieces(u64),
}

impl Room {
    pub(crate) fn of_any(self) -> u64 {
        if let Self::Any(bytes) = self { bytes } else { 0 }
    }

    pub(crate) fn of_pieces(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Any(bytes) | Self::Pieces(bytes) => bytes,
        }
    }
}

/// Which way a value in chunks goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through a node.
    Node,
    /// From, or to, the holders of its chunks.
    Chunks,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub conn: ConnId,
    /// Its number there, and where its frame begins, once it has been sent.
    pub sent: Option<(u64, u64)>,
}

/// A value that is being sent in pieces.
#[derive(Debug)]
pub(crate) struct Upload {
    /// What has not been put into frames.
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Bytes that have not been fed, and that have not been put into frames.
    unfed: u64,
    left: u64,
    len: u64,
    /// How many bytes the server takes now.
    pub window: u64,
    /// Where its last frame ends, once all have been made.
    pub end: Option<u64>,
}

/// A value that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub version: u64,
    /// Its bytes that are wanted: from where to where.
    pub range: (u64, u64),
    /// How many of them have come.
    pub come: u64,
    /// Bytes that the caller has not taken, and that it has taken without the server's knowing.
    untaken: u64,
    owed: u64,
}

/// What became of a request whose connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has changed nothing, and can be sent again.
    Again,
    /// It has changed nothing, and its value is gone.
    Nothing,
    /// Nobody knows.
    Unknown,
}

impl Request {
    pub(crate) fn new(key: Bytes, op: Op, deadline: Time) -> Self {
        let upload = match &op {
            Op::Store { body, .. } => Upload::of(body),
            _ => None,
        };
        Self {
            key,
            op,
            deadline,
            attempts: 0,
            place: None,
            upload,
            reading: None,
            room: Room::None,
            name: None,
            way: Way::Node,
            committing: false,
            trip: None,
        }
    }

    /// Length of the value that it is to store.
    pub(crate) fn value_len(&self) -> u64 {
        match &self.op {
            Op::Store { body, .. } => body.len(),
            _ => 0,
        }
    }

    /// Why it has failed whose value is gone before its end.
    pub(crate) fn interrupted(&self) -> Error {
        let fed = self.upload.as_ref().map_or(0, |upload| upload.len - upload.unfed);
        if self.may_be_done() { Error::Unknown } else { Error::Interrupted(fed) }
    }

    /// What it has to send, and where.
    pub(crate) fn uploading(&mut self) -> Option<(Place, &mut Upload)> {
        Some((self.place?, self.upload.as_mut()?))
    }

    /// Whether it has to wait for the caller: a value that is fed and short has to be whole.
    pub(crate) fn is_incomplete(&self) -> bool {
        let Op::Store { body: Body::Fed(len), .. } = &self.op else { return false };
        *len <= MAX_PIECE_BYTES as u64
    }

    /// What it asks if it is a page of a scan, of the data role whose first slot is `slot`.
    pub(crate) fn scan(&self, namespace: NamespaceId, now: Time, slot: Option<Slot>) -> Option<ScanAsk> {
        let Op::Scan(ScanOp { from, prefix, keys, bytes, .. }) = &self.op else { return None };
        let (from, keys, bytes, prefix, slot) = (*from, *keys, *bytes, prefix.clone(), slot?);
        let scan = Scan { namespace, slot, from, prefix, keys, bytes };
        Some(ScanAsk { deadline_ms: self.left_ms(now), scan })
    }

    fn left_ms(&self, now: Time) -> u32 {
        (self.deadline.since(now) / 1000).clamp(1, MAX_DEADLINE_MS.into()) as u32
    }

    /// What is asked of the server now, of a key that is one.
    pub(crate) fn message(
        &self,
        namespace: NamespaceId,
        now: Time,
        (window, by_graph): (u32, bool),
        once: Option<Once>,
        written: Option<(Written, u32)>,
    ) -> Option<native::Request> {
        let key = Key::of(namespace, self.key.clone()).ok()?;
        let left_ms = self.left_ms(now);
        let ask = match &self.op {
            Op::Get { range, touch } => {
                let (range, window) = match self.reading {
                    // What has come is not asked for again, and what the caller still holds counts.
                    Some(reading) => (Some(reading.rest()), reading.window(window)),
                    None => (*range, window),
                };
                let direct = self.way == Way::Chunks && self.reading.is_none();
                Ask::Get(GetAsk { range, touch: *touch, window, direct, by_graph })
            }
            Op::Store { mode, body, compare, .. } if self.way == Way::Chunks && !self.committing => {
                Ask::Begin(BeginAsk { mode: *mode, compare: *compare, len: body.len() })
            }
            Op::Store { mode, flags, ttl, compare, .. } if self.way == Way::Chunks => {
                let (written, checksum) = written?;
                let (mode, flags, ttl, compare) = (*mode, *flags, *ttl, *compare);
                Ask::Commit(Box::new(CommitAsk { written, checksum, mode, flags, ttl, compare }))
            }
            Op::Store { mode, body, flags, ttl, compare } => {
                let content = match body {
                    Body::Here(bytes) if bytes.len() <= MAX_PIECE_BYTES => Content::Here(bytes.clone()),
                    body => Content::Pieces(body.len()),
                };
                Ask::Store(StoreAsk { mode: *mode, flags: *flags, ttl: *ttl, compare: *compare, content })
            }
            Op::Delete { compare } => Ask::Delete { compare: *compare },
            Op::Arith { direction, delta, initial } => {
                Ask::Arith { direction: *direction, delta: *delta, initial: *initial }
            }
            Op::Touch { ttl } => Ask::Touch { ttl: *ttl },
            Op::Stat => Ask::Stat,
            Op::Locate { from } => Ask::Locate { from: *from },
            Op::Session => Ask::Session,
            Op::Scan(_) => return None,
        };
        Some(native::Request { key, deadline_ms: left_ms, once, ask })
    }

    /// What may be done when its connection was lost, of which `has_left` says what had left.
    pub(crate) fn fate(&self, rules: Rules, has_left: impl Fn(u64) -> bool) -> Fate {
        let had_left = self.place.and_then(|place| place.sent).is_some_and(|(_, start)| has_left(start));
        if !had_left || self.op.only_reads() {
            return self.restartable();
        }
        // It is done once, however often it comes.
        if rules.asks_again_what_may_be_done(self.name.is_some()) && self.can_be_asked_again() {
            return Fate::Again;
        }
        if self.way == Way::Chunks {
            return if self.committing { Fate::Unknown } else { self.restartable() };
        }
        match &self.upload {
            // The server does not store what it does not have all of.
            Some(upload) if upload.end.is_none_or(|end| !has_left(end - 1)) => self.restartable(),
            Some(_) | None => Fate::Unknown,
        }
    }

    fn restartable(&self) -> Fate {
        let is_gone = matches!(&self.op, Op::Store { body: Body::Fed(_), .. })
            && self.upload.as_ref().is_none_or(Upload::has_begun);
        if is_gone { Fate::Nothing } else { Fate::Again }
    }

    /// Whether it can be sent again when a server says that it has done nothing.
    pub(crate) fn can_restart(&self) -> bool {
        self.restartable() == Fate::Again
    }

    /// The same, or that its value, which is gone, lies in chunks that wait to be committed.
    pub(crate) fn can_be_asked_again(&self) -> bool {
        self.committing || self.can_restart()
    }

    /// Whether it may have been done although nobody has said so.
    pub(crate) fn may_be_done(&self) -> bool {
        self.name.is_some_and(|name| name.once.again)
    }

    /// Whether it can go only where names are known: what may have been done, or asks for a session.
    pub(crate) fn needs_names(&self) -> bool {
        self.may_be_done() || matches!(self.op, Op::Session)
    }

    /// Whether it can go only where it may be asked from any byte on where a value lies.
    pub(crate) fn needs_pages(&self) -> bool {
        matches!(self.op, Op::Locate { from: 1.. })
    }

    /// What it asks now is asked again.
    pub(crate) fn ask_again(&mut self, rules: Rules) {
        if let Some(name) = &mut self.name {
            // To ask where chunks would go does nothing.
            let is_harmless = self.way == Way::Chunks && !self.committing;
            let was_sent = !is_harmless && self.place.is_some_and(|place| place.sent.is_some());
            name.once.again |= rules.says_that_it_comes_again(was_sent);
        }
        self.place = None;
        self.attempts += 1;
    }

    /// It is sent again from its beginning.
    pub(crate) fn restart(&mut self, rules: Rules) {
        self.ask_again(rules);
        self.committing = false;
        match (&self.op, &mut self.upload) {
            (Op::Store { body: body @ Body::Here(_), .. }, upload) => *upload = Upload::of(body),
            // Nothing of it has been sent, or it would not be sent again.
            (_, Some(upload)) => upload.window = 0,
            (_, None) => {}
        }
        if let Some(reading) = &mut self.reading {
            reading.owed = 0;
        }
    }

    /// The caller gives bytes of its value; how many of them wait now. None if that is more than it has.
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Option<usize> {
        let Op::Store { body, .. } = &mut self.op else { return None };
        let upload = self.upload.as_mut()?;
        upload.unfed = upload.unfed.checked_sub(bytes.len() as u64)?;
        upload.queued += bytes.len();
        upload.queue.push_back(bytes);
        let queued = upload.queued;
        if upload.unfed == 0 && body.len() <= MAX_PIECE_BYTES as u64 {
            let mut whole = BytesMut::with_capacity(queued);
            upload.queue.drain(..).for_each(|bytes| whole.extend_from_slice(&bytes));
            *body = Body::Here(whole.freeze());
            self.upload = None;
        }
        Some(queued)
    }

    /// Whether bytes of a value may have been given to the caller: then there is a value or a failure, and no other answer.
    pub(crate) fn has_begun_to_read(&self, rules: Rules) -> bool {
        self.reading.is_some() && !rules.reads_on(false)
    }

    /// A value was found; whether that goes with what has come of it before.
    pub(crate) fn found(&mut self, rules: Rules, meta: &Meta, start: u64, len: u64) -> Found {
        let found = self.finds(rules, meta, start, len);
        if found == Found::First {
            let range = (start, start + len);
            let (come, untaken, owed) = (0, 0, 0);
            self.reading = Some(Reading { version: meta.version, range, come, untaken, owed });
        }
        found
    }

    /// The same of one that is about to be found.
    pub(crate) fn finds(&self, rules: Rules, meta: &Meta, start: u64, len: u64) -> Found {
        let Some(reading) = &self.reading else { return Found::First };
        let is_same = rules.reads_on(reading.version == meta.version);
        if is_same && reading.rest() == (Range { start, len }) { Found::Same } else { Found::Other }
    }
}

/// How a value that was found goes with what was found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was.
    First,
    /// It is the rest of that.
    Same,
    /// It is another value.
    Other,
}

impl Upload {
    fn of(body: &Body) -> Option<Self> {
        let len = body.len();
        let (queue, unfed) = match body {
            Body::Here(bytes) if bytes.len() <= MAX_PIECE_BYTES => return None,
            Body::Here(bytes) => (VecDeque::from([bytes.clone()]), 0),
            Body::Fed(len) => (VecDeque::new(), *len),
        };
        let queued = queue.iter().map(Bytes::len).sum();
        Some(Self { queue, queued, unfed, left: len, len, window: 0, end: None })
    }

    /// Cells, a piece each, which may go at once.
    pub(crate) fn of_cells(queue: VecDeque<Bytes>) -> Self {
        let queued: usize = queue.iter().map(Bytes::len).sum();
        let len = queued as u64;
        Self { queue, queued, unfed: 0, left: len, len, window: u64::MAX, end: None }
    }

    /// The next bytes that have been fed, which go another way than in frames of this request.
    pub(crate) fn take_fed(&mut self) -> Option<Bytes> {
        let bytes = self.queue.pop_front()?;
        self.queued -= bytes.len();
        self.left -= bytes.len() as u64;
        Some(bytes)
    }

    /// Whether bytes of it have been put into frames, or gone elsewhere.
    fn has_begun(&self) -> bool {
        self.left < self.len
    }

    /// Whether a piece can be sent now.
    pub(crate) fn is_ready(&self) -> bool {
        self.window > 0 && !self.queue.is_empty()
    }

    /// Whether the caller has to give more soon.
    pub(crate) fn wants_more(&self) -> bool {
        self.unfed > 0 && self.queued < FED_LOW_BYTES
    }

    /// The next piece, and whether it is the last one.
    pub(crate) fn next_piece(&mut self) -> Option<(Bytes, bool)> {
        let most = usize::try_from(self.window).unwrap_or(usize::MAX).min(MAX_PIECE_BYTES);
        let front = self.queue.front_mut().filter(|_| most > 0)?;
        let piece = front.split_to(most.min(front.len()));
        if front.is_empty() {
            self.queue.pop_front();
        }
        self.queued -= piece.len();
        self.window -= piece.len() as u64;
        self.left -= piece.len() as u64;
        Some((piece, self.left == 0))
    }
}

impl Reading {
    /// What has not come.
    pub(crate) fn rest(&self) -> Range {
        let start = self.range.0 + self.come;
        Range { start, len: self.range.1 - start }
    }

    /// How many bytes are wanted.
    pub(crate) fn len(self) -> u64 {
        self.range.1 - self.range.0
    }

    /// Bytes that the caller has not taken.
    pub(crate) fn untaken(&self) -> u64 {
        self.untaken
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.come == self.range.1 - self.range.0
    }

    /// Bytes have come; whether they are no more than were wanted.
    pub(crate) fn add(&mut self, len: u64) -> bool {
        if len > self.rest().len {
            return false;
        }
        self.come += len;
        self.untaken += len;
        true
    }

    /// The caller has taken bytes; how many the server may send for them now, of a window that is so large in all.
    pub(crate) fn taken(&mut self, len: u64, window: u32) -> Option<u32> {
        let len = len.min(self.untaken);
        self.untaken -= len;
        self.owed += len;
        // Not for every few bytes: a grant is a frame.
        let grant = u32::try_from(self.owed).ok().filter(|owed| *owed >= (window / 2).max(1))?;
        self.owed = 0;
        Some(grant).filter(|_| !self.is_whole())
    }

    /// What may be on its way of a window that is so large in all.
    fn window(&self, all: u32) -> u32 {
        u32::try_from(u64::from(all).saturating_sub(self.untaken)).unwrap_or(0)
    }
}
