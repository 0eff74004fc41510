//! Gestalt's native protocol (docs/native-protocol.md): frames of the crate `native`, as any client has to write them, and nothing more.
//!
//! A connection here is what a client with one node would be: it has credits, windows, and names for its writes, and hears answers in any
//! order. What the clients do beyond that - looking for another node, asking again - is left out: here a request that fails is counted. The map
//! comes over HTTP, as for memcached's protocol, so both are routed alike.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use client::FailureCode;
use native::{
    Answer as Heard, Ask, Capabilities, Code, Content, Frame, FromClient, FromServer, GetAsk, HEADER_BYTES,
    Header, Hello, Kind, MAX_DEADLINE_MS, MAX_PIECE_BYTES, Malformed, Piece, Request, StoreAsk, Window,
};
use types::op::{Key, StoreMode};
use types::{MemberId, NamespaceId};

use crate::names::{Given, Name, Names};
use crate::protocol::{Answer, Broken, Material, Naming, Pending, Step};
use crate::socket::Socket;
use crate::values::{Checking, Values};

/// Bytes of a value that may be on their way before they have been taken: what the client `gestalt` has.
const READ_WINDOW: u32 = 1 << 20;

/// See the module.
pub(crate) struct Frames {
    naming: Naming,
    checking: Checking,
    /// Requests that the server lets be unanswered; none before it has said so.
    credits: usize,
    next_id: u64,
    asked: BTreeMap<u64, Asked>,
    /// How many of them ask for sessions.
    sessions_asked: usize,
    names: Names,
    nameless: u64,
    scratch: Vec<u8>,
}

/// What a number stands for.
enum Asked {
    Session(MemberId),
    Read(Pending, Reading),
    Write(Pending, Writing),
}

/// A value that comes.
#[derive(Default)]
struct Reading {
    len: u64,
    version: u64,
    come: u64,
    /// Bytes that have come and that the server does not know of.
    owed: u32,
    /// All that has come, if it is checked.
    bytes: Vec<u8>,
}

/// A value that goes.
struct Writing {
    name: Option<Name>,
    version: u64,
    /// What has not been sent; empty if it was in the frame of the request.
    left: Range<usize>,
}

impl Frames {
    pub(crate) fn new(naming: Naming, checking: Checking) -> Self {
        Self {
            naming,
            checking,
            credits: 0,
            next_id: 1,
            asked: BTreeMap::new(),
            sessions_asked: 0,
            names: Names::default(),
            nameless: 0,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn greet(&self, out: &mut Vec<u8>) {
        FromClient::Hello(Hello { capabilities: Capabilities::SESSIONS, ..Hello::default() }).put(out);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.asked.len() - self.sessions_asked
    }

    pub(crate) fn has_credit(&self) -> bool {
        self.asked.len() < self.credits
    }

    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.asked.values().find_map(|asked| asked.pending().map(|pending| pending.sent_ns))
    }

    pub(crate) fn nameless(&self) -> u64 {
        self.nameless
    }

    pub(crate) fn abandon(&mut self) -> Vec<Pending> {
        (self.credits, self.sessions_asked, self.next_id) = (0, 0, 1);
        self.names.clear();
        std::mem::take(&mut self.asked).into_values().filter_map(|asked| asked.pending().copied()).collect()
    }

    /// Asks for what `pending` says, of `key`.
    pub(crate) fn ask(&mut self, out: &mut Vec<u8>, key: &[u8], pending: Pending, of: &Material<'_>) {
        match pending.step {
            Step::Get | Step::Look => {
                let ask = Ask::Get(GetAsk { window: READ_WINDOW, ..GetAsk::default() });
                self.send(out, key, None, ask, of, Asked::Read(pending, Reading::default()));
            }
            Step::Set => self.store(out, key, pending, None, of),
            Step::Replace(version) => self.store(out, key, pending, version, of),
        }
    }

    fn store(
        &mut self,
        out: &mut Vec<u8>,
        key: &[u8],
        pending: Pending,
        compare: Option<u64>,
        of: &Material<'_>,
    ) {
        let name = self.name(out, key, pending.key, of);
        let len = of.values.len_of(pending.key);
        let (content, left) = if len <= MAX_PIECE_BYTES {
            self.scratch.clear();
            of.values.write(&mut self.scratch, pending.key, of.version);
            (Content::Here(Bytes::copy_from_slice(&self.scratch)), 0..0)
        } else {
            (Content::Pieces(len as u64), 0..len)
        };
        let ask = Ask::Store(StoreAsk { mode: StoreMode::Set, flags: 0, ttl: 0, compare, content });
        let writing = Writing { name, version: of.version, left };
        self.send(out, key, name, ask, of, Asked::Write(pending, writing));
    }

    /// The name of a write; where there is no session one may be asked for beside it.
    fn name(&mut self, out: &mut Vec<u8>, key: &[u8], number: u32, of: &Material<'_>) -> Option<Name> {
        let role = of.targets.role_of(number).filter(|_| self.naming == Naming::Named)?;
        // The write itself takes one, too.
        let may_ask = self.asked.len() + 2 <= self.credits;
        match self.names.name(role, may_ask) {
            Given::Named(name) => return Some(name),
            Given::Asks => {
                self.sessions_asked += 1;
                self.send(out, key, None, Ask::Session, of, Asked::Session(role));
            }
            Given::Nameless => {}
        }
        self.nameless += 1;
        None
    }

    fn send(
        &mut self,
        out: &mut Vec<u8>,
        key: &[u8],
        name: Option<Name>,
        ask: Ask,
        of: &Material<'_>,
        asked: Asked,
    ) {
        let key = Key::of(NamespaceId::DEFAULT, Bytes::copy_from_slice(key));
        let key = key.expect("keys of the load have 11 to 250 bytes");
        let deadline_ms = of.timeout_ms.clamp(1, MAX_DEADLINE_MS);
        Request { key, deadline_ms, once: name.map(|name| name.once), ask }.put(self.next_id, out);
        self.asked.insert(self.next_id, asked);
        self.next_id += 1;
    }

    /// Hears all whole frames that have come.
    pub(crate) fn receive(
        &mut self,
        socket: &mut Socket,
        values: &Values,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        loop {
            let (input, out) = socket.both();
            let Some(header) = Header::take(input)? else { return Ok(()) };
            let end = HEADER_BYTES + header.len as usize;
            let Some(body) = input.get(HEADER_BYTES..end) else { return Ok(()) };
            if header.kind == Kind::Piece {
                self.hear_piece(header.id, body, out)?;
            } else {
                let body = Bytes::copy_from_slice(body);
                self.hear(FromServer::take(Frame { header, body })?, values, out, heard)?;
            }
            socket.take(end);
        }
    }

    fn hear(
        &mut self,
        message: FromServer,
        values: &Values,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        match message {
            FromServer::Welcome(welcome) => self.credits = welcome.credits as usize,
            FromServer::Closing(_, closing) => return Err(Broken::Closed(closing.reason)),
            FromServer::Answer(id, answer) => self.hear_answer(id, *answer, heard)?,
            FromServer::End(id, code) => self.hear_end(id, code, heard)?,
            FromServer::Window(window) => self.send_pieces(window, values, out),
            // No map was asked for, and pieces are heard elsewhere.
            FromServer::Map(..) | FromServer::Changes(_) | FromServer::Piece(_) => {
                return Err(Broken::Malformed);
            }
        }
        Ok(())
    }

    fn hear_answer(
        &mut self,
        id: u64,
        answer: Heard,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        if answer.goes_on() {
            let Heard::Value(value) = answer else { return Err(Broken::Malformed) };
            let Some(Asked::Read(_, reading)) = self.asked.get_mut(&id) else {
                return Err(Broken::Malformed);
            };
            (reading.len, reading.version) = (value.len, value.meta.version);
            return Ok(());
        }
        match (self.asked.remove(&id), answer) {
            (Some(Asked::Session(role)), answer) => {
                self.sessions_asked -= 1;
                if let Heard::Session(session) = answer {
                    self.names.begun(role, session);
                }
            }
            (Some(Asked::Read(pending, _)), Heard::Value(value)) => {
                let (bytes, version) = (value.bytes.unwrap_or_default(), Some(value.meta.version));
                heard(&pending, Answer::Hit { len: value.len, bytes: Some(&bytes), version });
            }
            (Some(Asked::Read(pending, _)), Heard::Just(Code::Miss)) => heard(&pending, Answer::Miss),
            (Some(Asked::Write(pending, writing)), answer) => {
                let answer = self.end_write(&writing, answer.code());
                heard(&pending, answer);
            }
            (Some(Asked::Read(pending, _)), answer) => heard(&pending, refused(answer.code())),
            (None, _) => return Err(Broken::Malformed),
        }
        Ok(())
    }

    fn end_write(&mut self, writing: &Writing, code: Code) -> Answer<'static> {
        if let Some(name) = &writing.name {
            self.names.end(name);
            if matches!(code, Code::NoSession | Code::Expired) {
                self.names.forget(name);
            }
        }
        match code {
            Code::Stored => Answer::Stored,
            Code::Exists => Answer::Exists,
            // A value that was to be replaced, and is gone.
            Code::NotFound => Answer::Miss,
            code => refused(code),
        }
    }

    fn hear_end(
        &mut self,
        id: u64,
        code: Code,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        let Some(Asked::Read(pending, reading)) = self.asked.remove(&id) else {
            return Err(Broken::Malformed);
        };
        match code {
            Code::Whole if reading.come != reading.len => return Err(Broken::Malformed),
            Code::Whole => {
                let bytes = (self.checking == Checking::On).then_some(&reading.bytes[..]);
                heard(&pending, Answer::Hit { len: reading.len, bytes, version: Some(reading.version) });
            }
            code => heard(&pending, refused(code)),
        }
        Ok(())
    }

    /// Bytes of a value that is read; the server hears of them, so that it sends more.
    fn hear_piece(&mut self, id: u64, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let checking = self.checking;
        let Some(Asked::Read(_, reading)) = self.asked.get_mut(&id) else { return Err(Broken::Malformed) };
        reading.come += piece.len() as u64;
        if reading.come > reading.len {
            return Err(Broken::Malformed);
        }
        if checking == Checking::On {
            reading.bytes.extend_from_slice(piece);
        }
        // A piece has less than a window.
        reading.owed += piece.len() as u32;
        if reading.owed >= READ_WINDOW / 2 && reading.come < reading.len {
            Window { id, bytes: std::mem::take(&mut reading.owed) }.put(out);
        }
        Ok(())
    }

    /// The server takes so many bytes more of a value that is written.
    fn send_pieces(&mut self, window: Window, values: &Values, out: &mut Vec<u8>) {
        // A write that was refused has ended, and its window may have been on its way.
        let Some(Asked::Write(pending, writing)) = self.asked.get_mut(&window.id) else { return };
        let granted = writing.left.start.saturating_add(window.bytes as usize).min(writing.left.end);
        while writing.left.start < granted {
            let end = granted.min(writing.left.start + MAX_PIECE_BYTES);
            let part = writing.left.start..end;
            Piece::put_head(window.id, part.len(), out);
            values.write_part(out, pending.key, writing.version, part);
            writing.left.start = end;
        }
    }
}

impl Asked {
    fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Session(_) => None,
            Self::Read(pending, _) | Self::Write(pending, _) => Some(pending),
        }
    }
}

/// In the words that memcached's protocol has for the same, so that reports can be laid beside each other.
fn refused(code: Code) -> Answer<'static> {
    let known = |failure: FailureCode| failure.as_str().as_bytes();
    Answer::Refused(match code {
        Code::TooLarge => known(FailureCode::TooLarge),
        Code::OutOfMemory => known(FailureCode::OutOfMemory),
        Code::Busy | Code::NotOpen => known(FailureCode::Busy),
        Code::Unavailable => known(FailureCode::Unavailable),
        Code::Lost => known(FailureCode::Lost),
        Code::Unknown | Code::Expired => known(FailureCode::Unknown),
        Code::Corrupt => known(FailureCode::Corrupt),
        Code::NoNamespace => known(FailureCode::NoNamespace),
        Code::Late => b"late: the deadline had passed before it was begun",
        Code::NoSession => b"no session",
        _ => b"an answer to another request",
    })
}

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use mio::{Events, Poll, Token};
    use native::{Decoder, Meta, Value, Welcome};
    use types::{ClientSession, ClusterId, NodeId};

    use super::*;
    use crate::targets::Targets;
    use crate::values::{Lengths, Verdict};

    /// A connection, and the server at its other end, which a test plays.
    struct Stage {
        frames: Frames,
        socket: Socket,
        poll: Poll,
        server: TcpStream,
        come: bytes::BytesMut,
        values: Values,
        targets: Targets,
        version: u64,
    }

    impl Stage {
        fn new(len: usize) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let poll = Poll::new().unwrap();
            let address = listener.local_addr().unwrap();
            let mut socket = Socket::connect(address, poll.registry(), Token(0)).unwrap();
            let frames = Frames::new(Naming::Named, Checking::On);
            frames.greet(&mut socket.out);
            let (server, _) = listener.accept().unwrap();
            let values = Values::new(Lengths::all(len));
            let targets = Targets::of_one_role(address, 10);
            let come = bytes::BytesMut::new();
            let mut stage = Self { frames, socket, poll, server, come, values, targets, version: 0 };
            assert!(matches!(stage.said(), FromClient::Hello(_)));
            stage
        }

        fn welcome(&mut self, credits: u32) {
            let welcome = Welcome {
                version: 1,
                capabilities: Capabilities::SESSIONS,
                credits,
                longest_value: 1 << 30,
                node: NodeId(0),
                cluster: ClusterId(1),
            };
            assert_eq!(self.hears(&FromServer::Welcome(welcome)).unwrap(), []);
        }

        fn ask(&mut self, step: Step, key: u32) {
            self.version += 1;
            let of = Material {
                values: &self.values,
                targets: &self.targets,
                version: self.version,
                timeout_ms: 1000,
            };
            let pending = Pending { step, key, begun_ns: 0, sent_ns: u64::from(key) };
            self.frames.ask(&mut self.socket.out, b"k0000000000", pending, &of);
        }

        /// The next thing that the client says.
        fn said(&mut self) -> FromClient {
            loop {
                if let Some(frame) = Decoder::next(&mut self.come).unwrap() {
                    return FromClient::take(frame).unwrap();
                }
                self.socket.flush().unwrap();
                let mut piece = [0; 4096];
                let got = self.server.read(&mut piece).unwrap();
                self.come.extend_from_slice(&piece[..got]);
            }
        }

        fn request(&mut self) -> (u64, Request) {
            match self.said() {
                FromClient::Request(id, request) => (id, *request),
                other => panic!("{other:?}"),
            }
        }

        /// What the client hears of it: key, and whether it is a hit, with how many bytes.
        fn hears(&mut self, message: &FromServer) -> Result<Vec<(u32, Option<u64>)>, Broken> {
            let mut bytes = Vec::new();
            message.put(&mut bytes);
            self.server.write_all(&bytes).unwrap();
            let mut events = Events::with_capacity(8);
            let mut all = Vec::new();
            while bytes.len() > self.socket.input().len() {
                // The kernel tells of bytes once; some of them may have been left.
                self.poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
                self.socket.fill()?;
            }
            let values = &self.values;
            self.frames.receive(&mut self.socket, values, &mut |pending, answer| {
                all.push(match answer {
                    Answer::Hit { len, bytes, .. } => {
                        let value = bytes.expect("it is checked");
                        assert_eq!(values.check(value, pending.key), Verdict::Right);
                        (pending.key, Some(len))
                    }
                    _ => (pending.key, None),
                });
            })?;
            Ok(all)
        }

        fn value(&self, key: u32) -> Bytes {
            let mut bytes = Vec::new();
            self.values.write(&mut bytes, key, 7);
            bytes.into()
        }
    }

    fn found(len: u64, bytes: Option<Bytes>) -> Heard {
        let meta = Meta { value_len: len, ..Meta::default() };
        Heard::Value(Value { meta, start: 0, len, bytes })
    }

    fn answer(id: u64, answer: Heard) -> FromServer {
        FromServer::Answer(id, Box::new(answer))
    }

    #[test]
    fn answers_come_in_any_order_and_credits_bound_what_is_asked() {
        let mut stage = Stage::new(40);
        assert!(!stage.frames.has_credit(), "nobody has said welcome");
        stage.welcome(2);
        stage.ask(Step::Get, 1);
        stage.ask(Step::Get, 2);
        assert!(!stage.frames.has_credit() && stage.frames.waiting() == 2);
        assert_eq!(stage.frames.oldest_ns(), Some(1));
        let (first, second) = (stage.request(), stage.request());
        assert_eq!((first.0, first.1.deadline_ms), (1, 1000));
        let value = stage.value(2);
        assert_eq!(stage.hears(&answer(second.0, found(40, Some(value)))).unwrap(), [(2, Some(40))]);
        assert_eq!(stage.hears(&answer(first.0, Heard::Just(Code::Miss))).unwrap(), [(1, None)]);
        assert!(stage.frames.has_credit() && stage.frames.waiting() == 0);
    }

    #[test]
    fn writes_have_names_once_there_is_a_session() {
        let mut stage = Stage::new(40);
        stage.welcome(8);
        stage.ask(Step::Set, 1);
        let (session, write) = (stage.request(), stage.request());
        assert!(matches!(session.1.ask, Ask::Session) && write.1.once.is_none());
        assert_eq!((stage.frames.waiting(), stage.frames.nameless()), (1, 1), "a session is not counted");
        stage.hears(&answer(session.0, Heard::Session(ClientSession(9)))).unwrap();
        assert_eq!(stage.hears(&answer(write.0, Heard::Stored(5))).unwrap(), [(1, None)]);
        stage.ask(Step::Set, 2);
        let once = stage.request().1.once.expect("a name");
        assert_eq!((once.session, once.sequence, once.behind), (ClientSession(9), 1, 0));
        assert_eq!(stage.frames.abandon().len(), 1);
        assert!(!stage.frames.has_credit(), "the next connection says how many");
    }

    #[test]
    fn a_value_is_replaced_by_its_version() {
        let mut stage = Stage::new(40);
        stage.welcome(8);
        stage.ask(Step::Replace(Some(77)), 1);
        let (_, (id, write)) = (stage.request(), stage.request());
        assert!(matches!(write.ask, Ask::Store(StoreAsk { compare: Some(77), .. })), "{write:?}");
        assert_eq!(stage.hears(&answer(id, Heard::Just(Code::Exists))).unwrap(), [(1, None)]);
    }

    #[test]
    fn a_long_value_goes_as_far_as_its_window() {
        let len = 150_000;
        let mut stage = Stage::new(len);
        stage.welcome(8);
        stage.ask(Step::Set, 1);
        let (_, (id, write)) = (stage.request(), stage.request());
        let Ask::Store(StoreAsk { content: Content::Pieces(said), .. }) = write.ask else {
            panic!("{write:?}")
        };
        assert_eq!(said, len as u64);
        let mut whole = Vec::new();
        for bytes in [70_000, 100_000] {
            stage.hears(&FromServer::Window(Window { id, bytes })).unwrap();
            let upto = (whole.len() + bytes as usize).min(len);
            while whole.len() < upto {
                let FromClient::Piece(piece) = stage.said() else { panic!("no piece") };
                whole.extend_from_slice(&piece.bytes);
            }
        }
        assert_eq!(stage.values.check(&whole, 1), Verdict::Right);
        assert_eq!(stage.hears(&answer(id, Heard::Stored(5))).unwrap(), [(1, None)]);
    }

    #[test]
    fn a_long_value_comes_in_pieces_and_is_granted_more() {
        let len = 1_500_000;
        let mut stage = Stage::new(len);
        stage.welcome(8);
        stage.ask(Step::Get, 1);
        let (id, _) = stage.request();
        stage.hears(&answer(id, found(len as u64, None))).unwrap();
        let value = stage.value(1);
        for start in (0..len).step_by(60_000) {
            let bytes = value.slice(start..(start + 60_000).min(len));
            assert_eq!(stage.hears(&FromServer::Piece(Piece { id, bytes })).unwrap(), []);
        }
        let FromClient::Window(window) = stage.said() else { panic!("no window") };
        assert!(window.bytes >= READ_WINDOW / 2, "{window:?}");
        assert_eq!(stage.hears(&FromServer::End(id, Code::Whole)).unwrap(), [(1, Some(len as u64))]);
    }

    #[test]
    fn what_no_server_may_say_ends_the_connection() {
        let mut stage = Stage::new(40);
        stage.welcome(8);
        assert!(matches!(stage.hears(&answer(5, Heard::Stored(1))), Err(Broken::Malformed)));
        let mut stage = Stage::new(40);
        stage.welcome(8);
        stage.ask(Step::Get, 1);
        let (id, _) = stage.request();
        stage.hears(&answer(id, found(40_000, None))).unwrap();
        let short = stage.hears(&FromServer::End(id, Code::Whole));
        assert!(matches!(short, Err(Broken::Malformed)), "not all of it has come");
        let mut stage = Stage::new(40);
        let closing = native::Closing::with(native::Reason::TooManyConnections);
        let broken = stage.hears(&FromServer::Closing(0, closing)).unwrap_err();
        assert_eq!(broken.words(), "closed by the server: TooManyConnections");
    }
}
