//! Values in chunks that this client reads and writes at their holders, and codes itself.
//!
//! A request begins like any other, at its key's primary; what that says about chunks begins a *transfer* here. A transfer asks holders
//! for *parts* of the value, and says what is to be done as [`Command`]s, which the core carries out. Whatever is not clear (a chunk that
//! is nowhere, a view that has changed, a holder that is silent) ends the transfer: the request then goes through a node, which knows
//! what to do about all of that.
//!
//! | part | what it knows |
//! | --- | --- |
//! | `read` | one value that is read: which rows are asked for, and of whom |
//! | `batch` | some of its rows: where their cells stand, and what is done about those that do not come |
//! | `write` | one value that is written: its rows and stripes, as its bytes come, and who has acknowledged them |
//! | `stripe` | cells and their parities |
//! | `part` | one request to one holder |
//! | `means` | how a transfer is to be carried out |
//! | `policy` | which requests begin so |
//! | `choice`, `pace` | how long that takes, and what a node would take |

mod batch;
mod choice;
mod means;
mod pace;
mod part;
mod policy;
mod read;
mod stripe;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use codec::Code;
use native::{
    Answer, Ask, BegunChunks, Cells, FoundChunks, HEADER_BYTES, Meta, Range, UnpinAsk, Value, Written,
};
use types::op::{Key, StoreMode};
use types::{Hedging, NodeId, Profile, Time};

use crate::connection::Connection;
use crate::event::{ConnId, Landing, RequestId};
use crate::operation::{Body, Op};
use crate::request::{Place, Upload, Way};

pub use choice::Estimate;
pub(crate) use choice::{By, Trip};
pub use means::LostBy;
pub(crate) use means::Means;
pub use policy::Coding;

use pace::{PICOS, Pace};
use part::{Part, What};
use policy::Policy;
use read::Read;
use write::{Source, Write};

/// Numbers of parts have this bit, so that whoever keeps them beside those of requests tells them apart.
const PART: u64 = 1 << 63;
/// Codes that are kept; a cluster has one for each pool.
const MAX_CODES: usize = 16;

impl RequestId {
    /// Whether it is a part of a transfer.
    pub(crate) fn is_part(self) -> bool {
        self.0 & PART != 0
    }
}

/// What a client has done by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Values whose chunks were read here.
    pub reads: u64,
    /// Values whose chunks were coded and put here.
    pub writes: u64,
    /// Values that were to be, and then went through a node.
    pub gave_way: u64,
    /// Rows that were made of others.
    pub decoded_rows: u64,
    /// Cells that nodes were asked to have made.
    pub graph_cells: u64,
    /// Cells that were asked for because others were slow.
    pub hedged_cells: u64,
    /// Bytes of values that were coded here.
    pub coded_bytes: u64,
    /// Bytes of values that were received where their callers wanted them, and not copied there.
    pub landed_bytes: u64,
    /// How often the way was changed by which values go that may go either way.
    pub turns: u64,
}

/// What a client knows of its own means, and of the ways between which it chooses where it may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimates {
    /// Bytes a second: the most that were sent of late while a long value was on its way.
    pub sends: Option<u64>,
    /// Bytes a second that it codes, and puts into frames.
    pub codes: Option<u64>,
    /// Values that are written, by lengths.
    pub writes: Vec<Estimate>,
    /// Values that are read, by lengths.
    pub reads: Vec<Estimate>,
}

/// What has to be done for a transfer.
#[derive(Debug)]
pub(crate) enum Command {
    /// A part is to be sent to this node, or where its key is.
    Send(RequestId, Option<NodeId>),
    /// Nobody waits for what this connection has under this number any more.
    Drop(Place),
    /// The value was found.
    Found(RequestId, Meta, (u64, u64)),
    /// The next bytes of it.
    Bring(RequestId, Bytes),
    /// All have come.
    Whole(RequestId),
    /// All chunks are there, and can be committed.
    Commit(RequestId),
    /// More bytes of its value can be coded.
    Room(RequestId),
    /// It is to go through a node.
    GiveWay(RequestId),
    /// Its id is gone, and it was to be committed.
    Gone(RequestId),
}

impl Command {
    /// The request whose transfer wants it, while there is that.
    pub(crate) fn of_transfer(&self) -> Option<RequestId> {
        match self {
            Self::Found(id, ..)
            | Self::Bring(id, _)
            | Self::Whole(id)
            | Self::Commit(id)
            | Self::Room(id)
            | Self::GiveWay(id)
            | Self::Gone(id) => Some(*id),
            Self::Send(..) | Self::Drop(_) => None,
        }
    }
}

/// All transfers of a client. See the module.
#[derive(Debug)]
pub(crate) struct Direct {
    /// Which values are coded here.
    encode: Policy,
    decode: Policy,
    transfers: BTreeMap<RequestId, Transfer>,
    parts: BTreeMap<RequestId, Part>,
    /// When a transfer looks at who is late.
    alarms: BTreeSet<(Time, RequestId)>,
    commands: VecDeque<Command>,
    codes: Vec<(Profile, Arc<Code>)>,
    stats: Stats,
    hedging: Hedging,
    pace: Pace,
    last_part: u64,
}

#[derive(Debug)]
struct Transfer {
    key: Key,
    deadline: Time,
    kind: Kind,
    /// Its alarm.
    rings: Option<Time>,
}

#[derive(Debug)]
enum Kind {
    Read(Read),
    Write(Write),
    /// All of it was put, and is being committed: what it is, and its checksum.
    Committing(Written, u32),
}

impl Direct {
    pub(crate) fn new(encode: Coding, decode: Coding) -> Self {
        Self {
            encode: Policy::new(encode),
            decode: Policy::new(decode),
            transfers: BTreeMap::new(),
            parts: BTreeMap::new(),
            alarms: BTreeSet::new(),
            commands: VecDeque::new(),
            codes: Vec::new(),
            stats: Stats::default(),
            hedging: Hedging::default(),
            pace: Pace::default(),
            last_part: 0,
        }
    }

    /// Which way a request goes first; and its trip, where that is measured.
    pub(crate) fn way_of(&mut self, now: Time, chunks_above: usize, op: &Op) -> (Way, Option<Trip>) {
        let (tries, trip) = match op {
            Op::Get { touch: None, .. } => self.decode.begin(now, None, &self.pace),
            Op::Store { mode: StoreMode::Append | StoreMode::Prepend, .. } => (false, None),
            Op::Store { body, .. } if body.len() <= chunks_above as u64 => (false, None),
            Op::Store { body: Body::Here(bytes), .. } => {
                self.encode.begin(now, Some(bytes.len() as u64), &self.pace)
            }
            Op::Store { body: Body::Fed(len), .. } => self.encode.begin_fed(now, *len, &self.pace),
            _ => (false, None),
        };
        (if tries { Way::Chunks } else { Way::Node }, trip)
    }

    /// A request that is measured has come to its end, with a value of so many bytes; none = that says nothing.
    pub(crate) fn arrives(&mut self, now: Time, is_read: bool, trip: Trip, len: Option<u64>) {
        let policy = if is_read { &mut self.decode } else { &mut self.encode };
        policy.end(now, trip, len.unwrap_or(0), len.is_some());
        if len.is_some() && !is_read {
            self.pace.note_sending(now, trip.began, trip.sent);
        }
    }

    /// Bytes have been handed out to be sent.
    pub(crate) fn note_sent(&mut self, bytes: u64) {
        self.pace.note_sent(bytes);
    }

    /// So many bytes were coded in so many microseconds.
    pub(crate) fn note_coded(&mut self, bytes: u64, us: u64) {
        self.pace.note_coded(bytes, us);
    }

    /// What is known of the client's means and ways.
    pub(crate) fn estimates(&self) -> Estimates {
        let per_second = |picos: Option<u64>| (1_000_000 * PICOS).checked_div(picos?);
        let [sends, codes] = [self.pace.sending(), self.pace.coding()].map(per_second);
        Estimates { sends, codes, writes: self.encode.estimates(), reads: self.decode.estimates() }
    }

    /// A value of so many bytes is not to be put into chunks.
    pub(crate) fn is_not_direct(&mut self, now: Time, len: u64) {
        self.encode.is_not_direct(now, len);
    }

    /// What is to be done next.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Command> {
        while let Some(command) = self.commands.pop_front() {
            // What a transfer has wanted that is over by now is not done: its request may be on its way to a node.
            let transfer = command.of_transfer().map(|id| self.transfers.get(&id));
            if transfer.is_some_and(|transfer| transfer.is_none()) {
                continue;
            }
            let is_read = transfer.flatten().is_some_and(|it| matches!(it.kind, Kind::Read(_)));
            let policy = if is_read { &mut self.decode } else { &mut self.encode };
            match &command {
                Command::Whole(_) | Command::Commit(_) => policy.goes_well(),
                Command::GiveWay(_) => {
                    self.stats.gave_way += 1;
                    policy.fails(now);
                }
                Command::Send(..)
                | Command::Drop(_)
                | Command::Found(..)
                | Command::Bring(..)
                | Command::Room(_)
                | Command::Gone(_) => {}
            }
            return Some(command);
        }
        None
    }

    /// What was done so far.
    pub(crate) fn stats(&self) -> Stats {
        let turns = self.encode.turns() + self.decode.turns();
        Stats { hedged_cells: self.hedging.cells(), turns, ..self.stats }
    }

    /// A value in chunks was found, and its request is to read them, whose caller has room for so many bytes.
    pub(crate) fn read(&mut self, means: Means, id: RequestId, key: Key, found: FoundChunks, room: u64) {
        let code = self.code(found.chunks.code);
        let kind = Kind::Read(Read::new(found, code, room));
        self.transfers.insert(id, Transfer { key, deadline: means.deadline, kind, rings: None });
        self.go_on(means, id);
    }

    /// There is an id for a value that its request is to put into chunks; none = it is [fed](Self::feed).
    pub(crate) fn write(
        &mut self,
        means: Means,
        id: RequestId,
        key: Key,
        value: Option<Bytes>,
        begun: BegunChunks,
    ) {
        let code = self.code(begun.chunks.code);
        if let Some(code) = &code {
            self.pace.note_code(code.k(), code.n());
        }
        let source = value.map_or_else(|| Source::Fed(VecDeque::new(), 0), Source::Here);
        let kind = Kind::Write(Write::new(begun, source, code));
        self.transfers.insert(id, Transfer { key, deadline: means.deadline, kind, rings: None });
        self.go_on(means, id);
    }

    /// Whether more bytes of a value that is fed can be coded now.
    pub(crate) fn wants(&self, id: RequestId) -> bool {
        matches!(self.transfers.get(&id), Some(Transfer { kind: Kind::Write(write), .. }) if write.wants())
    }

    /// The next bytes of it.
    pub(crate) fn feed(&mut self, means: Means, id: RequestId, bytes: Bytes) {
        if let Some(Transfer { kind: Kind::Write(write), .. }) = self.transfers.get_mut(&id) {
            write.feed(bytes);
            self.go_on(means, id);
        }
    }

    /// A request with a transfer whose chunks are all there: what is committed, and its checksum.
    pub(crate) fn written(&self, id: RequestId) -> Option<(Written, u32)> {
        match &self.transfers.get(&id)?.kind {
            Kind::Committing(written, checksum) => Some((written.clone(), *checksum)),
            Kind::Read(_) | Kind::Write(_) => None,
        }
    }

    /// Whether a request waits for parts: its own connection has nothing of it.
    pub(crate) fn is_under_way(&self, id: RequestId) -> bool {
        self.transfers.get(&id).is_some_and(|transfer| !matches!(transfer.kind, Kind::Committing(..)))
    }

    /// Whether a request has a transfer.
    pub(crate) fn has(&self, id: RequestId) -> bool {
        self.transfers.contains_key(&id)
    }

    /// The key that a part is about.
    pub(crate) fn key(&self, part: RequestId) -> Option<Key> {
        self.parts.get(&part).map(|part| part.request.key.clone())
    }

    fn code(&mut self, profile: Profile) -> Option<Arc<Code>> {
        if let Some((_, code)) = self.codes.iter().find(|(known, _)| *known == profile) {
            return Some(Arc::clone(code));
        }
        let code = Arc::new(Code::of(profile.scheme()).ok()?);
        if self.codes.len() >= MAX_CODES {
            self.codes.remove(0);
        }
        self.codes.push((profile, Arc::clone(&code)));
        Some(code)
    }

    /// The caller has taken bytes: so many are left at its hands.
    pub(crate) fn taken(&mut self, means: Means, id: RequestId, untaken: u64) {
        if let Some(Transfer { kind: Kind::Read(read), .. }) = self.transfers.get_mut(&id) {
            read.note_untaken(untaken);
            self.go_on(means, id);
        }
    }

    /// A request has ended, or goes on in another way: nothing comes of its transfer any more.
    pub(crate) fn end(&mut self, id: RequestId) {
        let Some(transfer) = self.transfers.remove(&id) else { return };
        if let Some(at) = transfer.rings {
            self.alarms.remove(&(at, id));
        }
        self.drop_parts(|part| part.parent == id && part.what.is_of_transfer());
        let farewell = match &transfer.kind {
            Kind::Read(read) => {
                read.pin().map(|(object, pin)| UnpinAsk { object, pin, done: true }).map(Ask::Unpin)
            }
            Kind::Write(write) => Some(Ask::Abandon(Box::new(write.written()))),
            Kind::Committing(..) => None,
        };
        if let Some(ask) = farewell {
            self.send(id, transfer.key, None, What::Farewell, ask, VecDeque::new());
        }
    }

    /// Nothing comes of any.
    pub(crate) fn end_all(&mut self) {
        self.transfers.clear();
        self.parts.clear();
        self.alarms.clear();
        self.commands.clear();
    }

    fn drop_parts(&mut self, are_meant: impl Fn(&Part) -> bool) {
        let Self { parts, commands, .. } = self;
        parts.retain(|_, part| {
            let goes = are_meant(part);
            if goes && let Some(place) = part.place.filter(|place| place.sent.is_some()) {
                commands.push_back(Command::Drop(place));
            }
            !goes
        });
    }

    fn send(
        &mut self,
        parent: RequestId,
        key: Key,
        to: Option<NodeId>,
        what: What,
        ask: Ask,
        cells: VecDeque<Bytes>,
    ) -> RequestId {
        self.last_part += 1;
        let id = RequestId(PART | self.last_part);
        self.parts.insert(id, Part::new(parent, key, what, ask, cells));
        self.commands.push_back(Command::Send(id, to));
        id
    }

    /// Asks for what is missing, gives out what has come, and ends what is done.
    fn go_on(&mut self, means: Means, id: RequestId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let means = Means { deadline: transfer.deadline, ..means };
        match &mut transfer.kind {
            Kind::Read(read) => {
                let step = read.go_on(means, &mut self.stats, &mut self.hedging);
                self.carry_out_read(means, id, step);
            }
            Kind::Write(write) => {
                let step = write.go_on(means);
                self.carry_out_write(means, id, step);
            }
            Kind::Committing(..) => {}
        }
    }

    fn carry_out_read(&mut self, means: Means, id: RequestId, step: read::Step) {
        let Some(Transfer { key, .. }) = self.transfers.get(&id) else { return };
        let key = key.clone();
        if let Some((meta, part)) = step.found {
            self.commands.push_back(Command::Found(id, meta, part));
        }
        self.commands.extend(step.bytes.into_iter().map(|bytes| Command::Bring(id, bytes)));
        if step.fails {
            return self.give_way(id);
        }
        if step.is_whole {
            self.stats.reads += 1;
            return self.commands.push_back(Command::Whole(id));
        }
        for wanted in step.wanted {
            let what = What::Fetch { batch: wanted.batch, role: wanted.role, cells: None };
            let ask = Ask::Fetch(Box::new(wanted.ask));
            self.send(id, key.clone(), Some(wanted.node), what, ask, VecDeque::new());
        }
        for making in step.making {
            let read::Making { batch, role, ask, deadline_ms } = making;
            let what = What::Made { batch, role, ask, come: None };
            let part = self.send(id, key.clone(), None, what, Ask::Get(ask), VecDeque::new());
            if let Some(part) = self.parts.get_mut(&part) {
                part.request.deadline_ms = deadline_ms;
            }
        }
        if let Some(progress) = step.unpin {
            self.send(id, key, None, What::Farewell, Ask::Unpin(progress), VecDeque::new());
        }
        self.arm(id, step.due.max(means.now));
    }

    fn carry_out_write(&mut self, means: Means, id: RequestId, step: write::Step) {
        let Some(Transfer { key, kind, .. }) = self.transfers.get_mut(&id) else { return };
        if step.fails {
            return self.give_way(id);
        }
        let key = key.clone();
        self.stats.coded_bytes += step.coded_bytes;
        let Kind::Write(write) = kind else { return };
        let written = write.written();
        if step.is_whole {
            self.stats.writes += 1;
            *kind = Kind::Committing(written, write.checksum());
            return self.commands.push_back(Command::Commit(id));
        }
        if step.renews {
            let ask = Ask::Renew(written.object);
            self.send(id, key.clone(), None, What::Renewal, ask, VecDeque::new());
        }
        for put in step.puts {
            let what = What::Put { stripe: put.ask.chunk.stripe };
            self.send(id, key.clone(), Some(put.node), what, Ask::Put(Box::new(put.ask)), put.cells);
        }
        if let Some(due) = step.due {
            self.arm(id, due.max(means.now));
        }
    }

    fn arm(&mut self, id: RequestId, at: Time) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        if let Some(before) = transfer.rings.replace(at) {
            self.alarms.remove(&(before, id));
        }
        self.alarms.insert((at, id));
    }

    fn give_way(&mut self, id: RequestId) {
        self.commands.push_back(Command::GiveWay(id));
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn due(&self) -> Option<Time> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Time has passed: who is late is not waited for.
    pub(crate) fn tick(&mut self, means: Means) {
        while let Some(entry @ (_, id)) = self.alarms.first().copied().filter(|(at, _)| *at <= means.now) {
            self.alarms.remove(&entry);
            let Some(transfer) = self.transfers.get_mut(&id) else { continue };
            transfer.rings = None;
            match &mut transfer.kind {
                Kind::Read(read) => {
                    read.reconsider(means, &mut self.hedging);
                    self.go_on(means, id);
                }
                // A holder that is silent, or slower than a node would have been, is not waited for.
                Kind::Write(write) if write.has_stalled(means.now) => self.give_way(id),
                Kind::Write(_) => self.go_on(means, id),
                Kind::Committing(..) => {}
            }
        }
    }
}

/// Parts, as connections have them.
impl Direct {
    /// A part waits for its turn at a connection.
    pub(crate) fn wait_at(&mut self, id: RequestId, conn: ConnId) {
        if let Some(part) = self.parts.get_mut(&id) {
            part.place = Some(Place { conn, sent: None });
        }
    }

    /// Whether nobody waits for what it says, so that it may go with what goes to its node next.
    pub(crate) fn can_wait(&self, id: RequestId) -> bool {
        let ask = self.parts.get(&id).map(|part| &part.request.ask);
        matches!(ask, Some(Ask::Unpin(UnpinAsk { done: true, .. })))
    }

    /// Its turn has come.
    pub(crate) fn launch(&mut self, id: RequestId, conn: ConnId, connection: &mut Connection) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        if let Ask::Get(get) = &mut part.request.ask {
            // Who knows no graphs finds its own way to have it, and sends no more either.
            get.by_graph &= connection.takes_graphs();
        }
        let sent = connection.ask(id, &part.request);
        part.place = Some(Place { conn, sent: Some(sent) });
        let kind = self.transfers.get(&part.parent).map(|transfer| &transfer.kind);
        if matches!((kind, &part.what), (Some(Kind::Read(read)), What::Fetch { .. }) if read.lands()) {
            connection.landing.insert(sent.0);
        }
        if part.upload.is_some() {
            connection.uploading.push_back(id);
        }
    }

    /// Where the next cell of a part goes, in a frame of so many bytes.
    pub(crate) fn landing(&self, id: RequestId, len: u32) -> Option<Landing> {
        let part = self.parts.get(&id)?;
        let What::Fetch { batch, role, cells: Some((cells, come)) } = &part.what else { return None };
        let Kind::Read(read) = &self.transfers.get(&part.parent)?.kind else { return None };
        let (at, all) = read.place_of(*batch, *role, *come).filter(|_| len == cells.cell_len)?;
        Some(Landing { id: part.parent, all, at, len: len as usize, head: HEADER_BYTES, in_order: false })
    }

    /// Bytes have been received where they were wanted.
    pub(crate) fn note_landed(&mut self, bytes: u64) {
        self.stats.landed_bytes += bytes;
    }

    pub(crate) fn place(&self, id: RequestId) -> Option<Place> {
        self.parts.get(&id)?.place
    }

    /// What a part has to send, and where.
    pub(crate) fn upload(&mut self, id: RequestId) -> Option<(Place, &mut Upload)> {
        let Part { place, upload, .. } = self.parts.get_mut(&id)?;
        Some(((*place)?, upload.as_mut()?))
    }

    /// A node has what it was to have made, or begins to send it; whether that is of the value that is read.
    fn hear_made(&mut self, means: Means, id: RequestId, value: &Value) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        let What::Made { ask, come, .. } = &mut part.what else { return self.is_over(means, id) };
        let is_same = match self.transfers.get(&part.parent) {
            Some(Transfer { kind: Kind::Read(read), .. }) => means.rules.reads_made(read.is_of(&value.meta)),
            _ => false,
        };
        let is_asked = ask.range == Some(Range { start: value.start, len: value.len });
        match &value.bytes {
            Some(bytes) if is_same && is_asked => {
                *come = Some(bytes.clone());
                self.made_is_whole(means, id);
            }
            None if is_same && is_asked => *come = Some(Bytes::new()),
            Some(_) => self.is_over(means, id),
            // Its pieces are not wanted.
            None => self.fails(means, id),
        }
    }

    /// All of it has come.
    fn made_is_whole(&mut self, means: Means, id: RequestId) {
        let Some(part) = self.parts.remove(&id) else { return };
        let What::Made { batch, role, come: Some(bytes), .. } = part.what else { return };
        if let Some(Transfer { kind: Kind::Read(read), .. }) = self.transfers.get_mut(&part.parent) {
            read.take_made(batch, role, bytes);
        }
        self.go_on(means, part.parent);
    }

    /// A holder has answered.
    pub(crate) fn hear_answer(&mut self, means: Means, id: RequestId, answer: &Answer) {
        if let Answer::Value(value) = answer {
            return self.hear_made(means, id, value);
        }
        match (self.parts.get_mut(&id).map(|part| &mut part.what), answer) {
            (Some(What::Fetch { cells, .. }), Answer::Cells(here)) => *cells = Some((here.clone(), 0)),
            (Some(What::Put { stripe }), Answer::Just(native::Code::Placed)) => {
                let stripe = *stripe;
                let Some(part) = self.parts.remove(&id) else { return };
                if let Some(Transfer { kind: Kind::Write(write), .. }) = self.transfers.get_mut(&part.parent)
                {
                    write.placed(stripe);
                }
                self.go_on(means, part.parent);
                if self.wants(part.parent) {
                    self.commands.push_back(Command::Room(part.parent));
                }
            }
            (Some(What::Renewal), Answer::Just(native::Code::Noted)) => drop(self.parts.remove(&id)),
            // Nobody can commit it any more.
            (Some(What::Renewal), Answer::Just(native::Code::NotOpen)) => {
                let Some(part) = self.parts.remove(&id) else { return };
                if !means.rules.heeds_that_an_id_is_gone() {
                    return;
                }
                if self.is_under_way(part.parent) {
                    self.give_way(part.parent);
                } else {
                    self.commands.push_back(Command::Gone(part.parent));
                }
            }
            _ => self.is_over(means, id),
        }
    }

    /// Nothing comes of a part any more, and its holder has said so.
    fn is_over(&mut self, means: Means, id: RequestId) {
        if let Some(part) = self.parts.get_mut(&id) {
            part.place = None;
        }
        self.fails(means, id);
    }

    /// A piece has come, or one whose bytes nobody wanted any more; whether it can be one.
    pub(crate) fn hear_piece(&mut self, means: Means, id: RequestId, bytes: Option<Bytes>) -> bool {
        let Some(part) = self.parts.get_mut(&id) else { return true };
        if let What::Made { ask, come: Some(come), .. } = &mut part.what {
            return add_piece(come, bytes, ask.range.map_or(0, |range| range.len));
        }
        let What::Fetch { batch, role, cells: Some((cells, come)) } = &mut part.what else { return false };
        let Some(checksum) = cells.checksums.get(*come as usize).copied() else { return false };
        if bytes.as_ref().is_some_and(|bytes| bytes.len() != cells.cell_len as usize) {
            return false;
        }
        let (row, batch, role) = (*come, *batch, *role);
        *come += 1;
        let Some(bytes) = bytes else { return true };
        if means.rules.checks_cells() && types::checksum(&bytes) != checksum {
            self.fails(means, id);
            return true;
        }
        let parent = part.parent;
        if let Some(Transfer { kind: Kind::Read(read), .. }) = self.transfers.get_mut(&parent) {
            read.take(means.rules.batch(batch, read.front()), role, row, bytes);
        }
        true
    }

    /// All pieces have come, or no more do.
    pub(crate) fn hear_end(&mut self, means: Means, id: RequestId, code: native::Code) {
        let Some(part) = self.parts.get(&id) else { return };
        let parent = part.parent;
        let is_whole = |cells: &Option<(Cells, u32)>| {
            cells.as_ref().is_some_and(|(cells, come)| *come as usize == cells.checksums.len())
        };
        match &part.what {
            What::Fetch { batch, role, cells } if code == native::Code::Whole && is_whole(cells) => {
                let (batch, role) = (*batch, *role);
                self.parts.remove(&id);
                if let Some(Transfer { kind: Kind::Read(read), .. }) = self.transfers.get_mut(&parent) {
                    read.has_come(batch, role);
                }
                self.go_on(means, parent);
            }
            What::Made { ask, come: Some(come), .. }
                if code == native::Code::Whole
                    && ask.range.is_some_and(|range| range.len == come.len() as u64) =>
            {
                self.made_is_whole(means, id);
            }
            _ => self.is_over(means, id),
        }
    }

    /// Nothing comes of a part.
    pub(crate) fn fails(&mut self, means: Means, id: RequestId) {
        let Some(part) = self.parts.remove(&id) else { return };
        if let Some(place) = part.place.filter(|place| place.sent.is_some()) {
            // What may still come of it is nothing to anybody.
            self.commands.push_back(Command::Drop(place));
        }
        let Some(transfer) = self.transfers.get_mut(&part.parent) else { return };
        match (&mut transfer.kind, &part.what) {
            (Kind::Read(read), What::Fetch { batch, role, .. }) => {
                read.fail(*batch, *role);
                self.go_on(means, part.parent);
            }
            (Kind::Read(read), What::Made { batch, role, .. }) => {
                read.is_not_made(*batch, *role);
                self.go_on(means, part.parent);
            }
            (Kind::Write(_), What::Put { .. }) => self.give_way(part.parent),
            (Kind::Write(write), What::Renewal) => {
                write.renews_soon(means.now);
                self.go_on(means, part.parent);
            }
            _ => {}
        }
    }

    /// A connection has ended, with all parts that it had.
    pub(crate) fn lose(&mut self, means: Means, conn: ConnId) {
        let of = |part: &Part| part.place.is_some_and(|place| place.conn == conn);
        let lost: Vec<RequestId> =
            self.parts.iter().filter(|(_, part)| of(part)).map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|id| self.is_over(means, id));
    }
}

/// Adds a piece to what has come of `len` bytes; whether there can be one.
fn add_piece(come: &mut Bytes, bytes: Option<Bytes>, len: u64) -> bool {
    let Some(bytes) = bytes else { return true };
    if (come.len() + bytes.len()) as u64 > len {
        return false;
    }
    if come.is_empty() {
        *come = bytes;
    } else {
        let mut all = BytesMut::from(&come[..]);
        all.extend_from_slice(&bytes);
        *come = all.freeze();
    }
    true
}
