//! The native protocol over real sockets: what is asked is answered, in any order, and who breaks a bound is told why.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use native::{
    Answer, Ask, Capabilities, Code, Content, Decoder, FromClient, FromServer, GetAsk, Hello, Layout,
    MAX_PIECE_BYTES, MapAssembly, Piece, Range, Reason, Request, RouteMap, StoreAsk, Welcome, Window,
};
use server::ConnectionLimits;
use types::op::{Direction, Key, StoreMode};
use types::{ClientSession, NamespaceId, Once};

use crate::harness::{Cluster, PATIENCE, Plan, eventually, http_get};
use crate::operators::order;

/// Longer values lie in chunks, where a test says so.
const ABOVE: usize = 64 << 10;

/// A client that blocks.
pub struct Native {
    stream: TcpStream,
    input: BytesMut,
    next_id: u64,
    map: Option<RouteMap>,
    assembly: MapAssembly,
    /// Answers of requests that nobody has waited for yet.
    heard: BTreeMap<u64, Vec<FromServer>>,
}

impl Native {
    pub fn silent(cluster: &Cluster, node: usize) -> Self {
        let addr = cluster.nodes[node].addresses().native.expect("a native listener");
        let stream = TcpStream::connect(addr).expect("a listener");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        let (map, heard) = (None, BTreeMap::new());
        Self { stream, input: BytesMut::new(), next_id: 1, map, assembly: MapAssembly::default(), heard }
    }

    pub fn connect(cluster: &Cluster, node: usize) -> (Self, Welcome) {
        let mut client = Self::silent(cluster, node);
        client.say(&FromClient::Hello(Hello::default()));
        match client.hear() {
            Some(FromServer::Welcome(welcome)) => (client, welcome),
            other => panic!("no welcome but {other:?}"),
        }
    }

    pub fn say(&mut self, message: &FromClient) {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        self.stream.write_all(&bytes).expect("a live connection");
    }

    pub fn ask(&mut self, key: &str, ask: Ask) -> u64 {
        self.ask_once(key, ask, None)
    }

    /// A request that may have a name.
    fn ask_once(&mut self, key: &str, ask: Ask, once: Option<Once>) -> u64 {
        let key = Key::new(Bytes::copy_from_slice(key.as_bytes())).expect("a key");
        let id = self.next_id;
        self.next_id += 1;
        self.say(&FromClient::Request(id, Box::new(Request { key, deadline_ms: 0, once, ask })));
        id
    }

    /// The next message; none at the end.
    pub fn hear(&mut self) -> Option<FromServer> {
        loop {
            if let Some(frame) = Decoder::next(&mut self.input).expect("a frame") {
                let message = FromServer::take(frame).expect("a message");
                match message {
                    FromServer::Map(part, more) => {
                        let map = self.assembly.add(&part, more).expect("a map");
                        self.map = map.or(self.map.take());
                    }
                    FromServer::Changes(changes) => {
                        self.map.as_mut().expect("a map").apply(&changes).expect("changes that fit");
                    }
                    message => return Some(message),
                }
                continue;
            }
            let mut chunk = [0; 65536];
            let len = match self.stream.read(&mut chunk) {
                Ok(len) => len,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
                Err(error) => panic!("no answer: {error}"),
            };
            if len == 0 {
                return None;
            }
            self.input.extend_from_slice(&chunk[..len]);
        }
    }

    /// The next message about request `id`.
    pub fn hear_of(&mut self, id: u64) -> FromServer {
        loop {
            if let Some(heard) = self.heard.get_mut(&id).filter(|heard| !heard.is_empty()) {
                return heard.remove(0);
            }
            let message = self.hear().expect("an answer");
            let of = match &message {
                FromServer::Answer(id, _) | FromServer::End(id, _) | FromServer::Closing(id, _) => *id,
                FromServer::Piece(piece) => piece.id,
                FromServer::Window(window) => window.id,
                other => panic!("{other:?}"),
            };
            self.heard.entry(of).or_default().push(message);
        }
    }

    pub fn answer(&mut self, id: u64) -> Answer {
        match self.hear_of(id) {
            FromServer::Answer(_, answer) => *answer,
            other => panic!("no answer but {other:?}"),
        }
    }

    pub fn call(&mut self, key: &str, ask: Ask) -> Answer {
        let id = self.ask(key, ask);
        self.answer(id)
    }

    pub fn code(&mut self, key: &str, ask: Ask) -> Code {
        self.call(key, ask).code()
    }

    /// The code of what a value, in pieces if it takes that, is stored with.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Code {
        let id = self.ask(key, set(value));
        let mut left = if value.len() > MAX_PIECE_BYTES { value } else { &[] };
        loop {
            match self.hear_of(id) {
                FromServer::Window(Window { bytes, .. }) => {
                    let (now, later) = left.split_at(left.len().min(bytes as usize));
                    left = later;
                    for piece in now.chunks(MAX_PIECE_BYTES) {
                        self.say(&FromClient::Piece(Piece { id, bytes: Bytes::copy_from_slice(piece) }));
                    }
                }
                FromServer::Answer(_, answer) => return answer.code(),
                other => panic!("{other:?}"),
            }
        }
    }

    /// A value, or a part of it, with as little window as can be.
    pub fn read(&mut self, key: &str, range: Option<Range>) -> (Code, Vec<u8>) {
        let id = self.ask(key, Ask::Get(GetAsk { range, window: 1, ..GetAsk::default() }));
        let value = match self.answer(id) {
            Answer::Value(value) => value,
            other => return (other.code(), Vec::new()),
        };
        let Some(bytes) = value.bytes else { return self.pieces(id, value.len) };
        (Code::Value, bytes.to_vec())
    }

    pub fn pieces(&mut self, id: u64, len: u64) -> (Code, Vec<u8>) {
        let mut all = Vec::new();
        loop {
            match self.hear_of(id) {
                FromServer::Piece(piece) => {
                    all.extend_from_slice(&piece.bytes);
                    self.say(&FromClient::Window(Window { id, bytes: 100_000 }));
                }
                FromServer::End(_, code) => {
                    assert!(code != Code::Whole || all.len() as u64 == len);
                    return (code, all);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The server must close, for this reason.
    #[track_caller]
    pub fn expect_closing(&mut self, reason: Reason) {
        loop {
            match self.hear() {
                Some(FromServer::Closing(_, closing)) => break assert_eq!(closing.reason, reason),
                Some(_) => {}
                None => panic!("closed without a word"),
            }
        }
        assert_eq!(self.hear(), None);
    }
}

fn set(value: &[u8]) -> Ask {
    store(StoreMode::Set, value, None)
}

fn store(mode: StoreMode, value: &[u8], compare: Option<u64>) -> Ask {
    let content = if value.len() > MAX_PIECE_BYTES {
        Content::Pieces(value.len() as u64)
    } else {
        Content::Here(Bytes::copy_from_slice(value))
    };
    Ask::Store(StoreAsk { mode, flags: 7, ttl: 0, compare, content })
}

pub fn get() -> Ask {
    Ask::Get(GetAsk { window: 1 << 20, ..GetAsk::default() })
}

pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| byte()).collect()
}

/// Cuts long values of the default namespace into chunks, at every node.
pub fn stripe(cluster: &Cluster) {
    let change = format!(r#"{{"striped":{{"above":{ABOVE}}},"chunk_bytes":262144}}"#);
    let body =
        format!(r#"{{"command":{{"catalog":{{"set_policy":{{"name":"default","change":{change}}}}}}}}}"#);
    let (code, answer) = order(cluster.nodes[0].addresses().http, &body);
    assert_eq!(code, 200, "{answer}");
    for node in 0..cluster.nodes.len() {
        let (mut client, _) = Native::connect(cluster, node);
        let value = noise(1, 1 << 20);
        eventually("striped", || {
            assert_eq!(client.put("probe", &value), Code::Stored);
            match client.call("probe", Ask::Stat) {
                Answer::About(about)
                    if matches!(about.layout, Layout::Chunks { chunk_len: 262_144, k: 3, .. }) =>
                {
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            }
        });
    }
}

#[test]
fn every_request_of_every_node_is_answered_with_a_code() {
    let cluster = Cluster::start();
    for node in 0..5 {
        let (mut client, welcome) = Native::connect(&cluster, node);
        assert_eq!((welcome.version, welcome.credits, welcome.node.0), (1, 1024, node as u16));
        for number in 0..10 {
            let key = format!("key-{node}-{number}");
            assert_eq!(client.code(&key, get()), Code::Miss);
            assert_eq!(client.code(&key, store(StoreMode::Replace, b"x", None)), Code::NotStored);
            let Answer::Stored(version) = client.call(&key, store(StoreMode::Add, b"12", None)) else {
                panic!()
            };
            let Answer::Value(value) = client.call(&key, get()) else { panic!("no value") };
            assert_eq!((value.bytes.as_deref(), value.meta.version), (Some(&b"12"[..]), version));
            assert_eq!((value.meta.flags, value.meta.ttl, value.meta.value_len), (7, None, 2));
            let up = Ask::Arith { direction: Direction::Increment, delta: 5, initial: None };
            assert!(matches!(client.call(&key, up), Answer::Number(17, _)));
            assert_eq!(client.code(&key, store(StoreMode::Set, b"x", Some(version))), Code::Exists);
            assert_eq!(client.code(&key, store(StoreMode::Append, b"3", None)), Code::Stored);
            assert_eq!(client.code(&key, store(StoreMode::Prepend, b"0", None)), Code::Stored);
            assert_eq!(client.read(&key, None), (Code::Value, b"0173".to_vec()));
            assert_eq!(client.read(&key, Some(Range { start: 1, len: 2 })), (Code::Value, b"17".to_vec()));
            assert_eq!(client.read(&key, Some(Range { start: 9, len: 2 })), (Code::Value, vec![]));
            assert_eq!(client.code(&key, Ask::Touch { ttl: 500 }), Code::Touched);
            let Answer::About(about) = client.call(&key, Ask::Stat) else { panic!("nothing is known") };
            assert_eq!((about.layout, about.meta.value_len, about.fetched), (Layout::Packed, 4, true));
            assert!(about.meta.ttl.is_some_and(|ttl| (490..=500).contains(&ttl)));
            let Answer::Places(places) = client.call(&key, Ask::Locate { from: 0 }) else {
                panic!("nowhere")
            };
            let (meta, spans) = places.found.expect("it is there");
            assert_eq!((meta.value_len, spans.len(), &spans[0].nodes[..]), (4, 1, &[places.primary][..]));
            assert_eq!(client.code(&key, Ask::Delete { compare: Some(1) }), Code::Exists);
            assert_eq!(client.code(&key, Ask::Delete { compare: None }), Code::Deleted);
            assert_eq!(client.code(&key, Ask::Delete { compare: None }), Code::NotFound);
            let from = Ask::Arith { direction: Direction::Decrement, delta: 5, initial: Some((40, 0)) };
            assert!(matches!(client.call(&key, from.clone()), Answer::Number(40, _)));
            assert!(matches!(client.call(&key, from), Answer::Number(35, _)));
        }
    }
}

#[test]
fn the_map_says_who_serves_a_key_and_what_changes_follows() {
    let mut cluster = Cluster::start();
    let (mut client, _) = Native::connect(&cluster, 0);
    client.code("k", get());
    let map = client.map.clone().expect("the map comes by itself");
    assert_eq!((map.nodes.len(), map.namespace_named("default")), (5, Some(NamespaceId(0))));
    for number in 0..50 {
        let key = format!("key-{number}");
        let Answer::Places(places) = client.call(&key, Ask::Locate { from: 0 }) else { panic!("nowhere") };
        assert_eq!(places.primary, map.primary_of(NamespaceId(0), key.as_bytes()), "{key}");
    }
    cluster.nodes.remove(4).stop();
    eventually("told", || {
        client.code("k", get());
        let map = client.map.as_ref().expect("a map");
        let gone = !map.nodes[&types::NodeId(4)].alive;
        let served = (0..50).all(|number| {
            map.primary_of(NamespaceId(0), format!("key-{number}").as_bytes()).is_some_and(|node| node.0 != 4)
        });
        if gone && served { Ok(()) } else { Err(format!("version {}", map.version)) }
    });
    let told = client.map.clone().expect("a map");
    client.say(&FromClient::MapWanted(0));
    client.code("k", get());
    assert_eq!(client.map, Some(told), "changes have made of it what a whole one is");
}

fn long_values(plan: &Plan) {
    let cluster = Cluster::of(plan, |config| config.memory_bytes = 256 << 20);
    for is_striped in [false, true] {
        if is_striped {
            stripe(&cluster);
        }
        let (mut client, _) = Native::connect(&cluster, 1);
        let longest = if is_striped { 20 << 20 } else { 1_000_000 };
        for (at, len) in [1, ABOVE, ABOVE + 1, 3 * ABOVE, 1_000_000, longest].into_iter().enumerate() {
            for key in (0..3).map(|number| format!("key-{len}-{number}")) {
                let value = noise(at as u64, len);
                assert_eq!(client.put(&key, &value), Code::Stored);
                let (code, bytes) = client.read(&key, None);
                assert!(bytes == value && [Code::Value, Code::Whole].contains(&code), "{key} {code:?}");
                let range = Range { start: len as u64 / 3, len: 70_000 };
                let (start, end) = range.within(len as u64);
                let (_, bytes) = client.read(&key, Some(range));
                assert!(bytes == value[start as usize..end as usize], "a part of {key}");
            }
        }
    }
    let (mut client, _) = Native::connect(&cluster, 2);
    let len = 3 << 20;
    client.put("long", &noise(3, len));
    let Answer::Places(places) = client.call("long", Ask::Locate { from: 0 }) else { panic!("nowhere") };
    let (_, spans) = places.found.expect("it is there");
    assert_eq!(spans.iter().map(|span| span.len).sum::<u64>(), len as u64);
    assert!(spans.iter().all(|span| span.nodes.len() == 3 && span.cell_len > 0));
}

#[test]
fn values_of_every_length_come_back_whole_and_in_part() {
    long_values(&Plan::default());
}

#[test]
fn values_of_groups_of_another_worker_do_too() {
    long_values(&Plan { workers: 2, groups: 10, ..Plan::default() });
}

#[test]
fn a_value_that_nobody_takes_keeps_no_other_request_waiting() {
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    stripe(&cluster);
    let (mut client, _) = Native::connect(&cluster, 0);
    let value = noise(5, 8 << 20);
    client.put("long", &value);
    // Both ways: nothing is granted for the one, and nothing is sent of the others.
    let blocked = client.ask("long", Ask::Get(GetAsk::default()));
    let begun: Vec<u64> = (0..20).map(|at| client.ask(&format!("up-{at}"), set(&value))).collect();
    for number in 0..100 {
        assert_eq!(client.put(&format!("short-{number}"), b"x"), Code::Stored);
    }
    for id in begun {
        client.say(&FromClient::Cancel(id));
        while !matches!(client.hear_of(id), FromServer::Answer(_, answer) if answer.code() == Code::Cancelled)
        {
        }
    }
    let Answer::Value(head) = client.answer(blocked) else { panic!("no value") };
    assert_eq!((head.bytes, head.len), (None, 8 << 20));
    client.say(&FromClient::Window(Window { id: blocked, bytes: u32::MAX }));
    let (code, bytes) = client.pieces(blocked, 8 << 20);
    assert!(code == Code::Whole && bytes == value);
    let cancelled = client.ask("long", Ask::Get(GetAsk { window: 1, ..GetAsk::default() }));
    client.answer(cancelled);
    client.hear_of(cancelled);
    client.say(&FromClient::Cancel(cancelled));
    assert_eq!(client.hear_of(cancelled), FromServer::End(cancelled, Code::Cancelled));
    assert_eq!(client.code("up-3", get()), Code::Miss);
}

#[test]
fn values_that_are_cancelled_before_they_are_found_keep_no_other_waiting() {
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    stripe(&cluster);
    Native::connect(&cluster, 0).0.put("long", &noise(5, 8 << 20));
    for node in 0..cluster.nodes.len() {
        let (mut client, _) = Native::connect(&cluster, node);
        let asked = client.next_id..client.next_id + 20;
        client.next_id = asked.end;
        let mut bytes = Vec::new();
        for id in asked.clone() {
            let key = Key::new(Bytes::from_static(b"long")).expect("a key");
            FromClient::Request(id, Box::new(Request { key, deadline_ms: 0, once: None, ask: get() }))
                .put(&mut bytes);
            FromClient::Cancel(id).put(&mut bytes);
        }
        client.stream.write_all(&bytes).expect("a live connection");
        for id in asked {
            let is_over = |heard: FromServer| match heard {
                FromServer::Answer(_, answer) => answer.code() == Code::Cancelled,
                FromServer::End(_, code) => code == Code::Cancelled,
                _ => false,
            };
            while !is_over(client.hear_of(id)) {}
        }
        let range = Some(native::Range { start: 1, len: 1 });
        let read = client.call("long", Ask::Get(GetAsk { range, window: 1 << 20, ..GetAsk::default() }));
        assert!(matches!(read, Answer::Value(value) if value.len == 1), "at node {node}");
    }
}

#[test]
fn many_values_in_chunks_that_are_found_at_once_stop_nobody() {
    // A node that has answered little yet expects the longest answer there is: these are more than a client may have outstanding.
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    stripe(&cluster);
    Native::connect(&cluster, 0).0.put("long", &noise(5, 8 << 20));
    for node in 0..cluster.nodes.len() {
        let (mut client, _) = Native::connect(&cluster, node);
        let asked = client.next_id..client.next_id + 40;
        client.next_id = asked.end;
        let mut bytes = Vec::new();
        for id in asked.clone() {
            let (key, ask) = (
                Key::new(Bytes::from_static(b"long")).expect("a key"),
                GetAsk { direct: true, window: 1, ..GetAsk::default() },
            );
            FromClient::Request(
                id,
                Box::new(Request { key, deadline_ms: 0, once: None, ask: Ask::Get(ask) }),
            )
            .put(&mut bytes);
        }
        client.stream.write_all(&bytes).expect("a live connection");
        for id in asked {
            assert!(matches!(client.answer(id), Answer::Chunks(_)), "at node {node}");
        }
        assert_eq!(client.code("another", get()), Code::Miss, "at node {node}");
    }
}

#[test]
fn short_values_in_chunks_that_are_gathered_at_once_are_all_sent() {
    // More than are gathered at once: each that has come makes room for another one, also where all have come in the same moment.
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    stripe(&cluster);
    let body = r#"{"command":{"catalog":{"set_policy":{"name":"default","change":{"striped":{"above":0},"chunk_bytes":262144}}}}}"#;
    assert_eq!(order(cluster.nodes[0].addresses().http, body).0, 200);
    let keys: Vec<String> = (0..300).map(|number| format!("k{number}")).collect();
    let (mut writer, value) = (Native::connect(&cluster, 0).0, noise(5, 100));
    keys.iter().for_each(|key| assert_eq!(writer.put(key, &value), Code::Stored));
    for node in 0..cluster.nodes.len() {
        let (mut client, _) = Native::connect(&cluster, node);
        for _ in 0..10 {
            let asked = client.next_id..client.next_id + 300;
            client.next_id = asked.end;
            let mut bytes = Vec::new();
            for (id, key) in asked.clone().zip(&keys) {
                let key = Key::new(Bytes::copy_from_slice(key.as_bytes())).expect("a key");
                FromClient::Request(id, Box::new(Request { key, deadline_ms: 0, once: None, ask: get() }))
                    .put(&mut bytes);
            }
            client.stream.write_all(&bytes).expect("a live connection");
            for id in asked {
                let Answer::Value(part) = client.answer(id) else { panic!("no value at node {node}") };
                let bytes = part.bytes.map_or_else(|| client.pieces(id, part.len).1, |bytes| bytes.to_vec());
                assert_eq!(bytes, value, "at node {node}");
            }
        }
    }
}

#[test]
fn who_ends_its_side_is_answered_what_it_has_asked() {
    let cluster = Cluster::start();
    let (mut client, _) = Native::connect(&cluster, 3);
    let ids: Vec<u64> = (0..50).map(|at| client.ask(&format!("k{at}"), set(b"v"))).collect();
    client.ask("half", set(&[7; 100_000]));
    client.stream.shutdown(Shutdown::Write).unwrap();
    for id in ids {
        assert_eq!(client.answer(id).code(), Code::Stored);
    }
    while let Some(message) = client.hear() {
        assert!(matches!(message, FromServer::Window(_)), "{message:?}");
    }
    let (mut client, _) = Native::connect(&cluster, 3);
    assert_eq!(client.code("half", get()), Code::Miss);
}

#[test]
fn without_a_hello_or_a_common_version_there_is_no_connection() {
    let cluster = Cluster::start();
    let mut client = Native::silent(&cluster, 0);
    client.stream.write_all(b"get k\r\nget k\r\nget k\r\n").unwrap();
    client.expect_closing(Reason::Malformed);
    let mut client = Native::silent(&cluster, 0);
    client.ask("k", get());
    client.expect_closing(Reason::NoHello);
    let mut client = Native::silent(&cluster, 0);
    let capabilities = Capabilities::default();
    client.say(&FromClient::Hello(Hello { oldest: 2, newest: 9, capabilities }));
    client.expect_closing(Reason::Version);
    let mut client = Native::silent(&cluster, 0);
    client.say(&FromClient::Hello(Hello { oldest: 1, newest: 9, capabilities }));
    let Some(FromServer::Welcome(welcome)) = client.hear() else { panic!("no welcome") };
    assert_eq!((welcome.version, welcome.capabilities), (1, capabilities));
    assert_eq!(client.code("k", get()), Code::Miss);
    assert_eq!(client.map, None, "who does not say that it wants maps gets none");
}

#[test]
fn who_breaks_a_rule_is_told_which_and_others_go_on() {
    let cluster = Cluster::start();
    let (mut other, _) = Native::connect(&cluster, 0);
    let connect = || Native::connect(&cluster, 0).0;
    let mut client = connect();
    client.ask("k", get());
    client.next_id = 1;
    client.ask("k", get());
    client.expect_closing(Reason::BadId);
    let mut client = connect();
    client.say(&FromClient::Window(Window { id: 1, bytes: 7 }));
    client.expect_closing(Reason::BadId);
    let mut client = connect();
    let id = client.ask("k", set(&[7; 100_000]));
    client.say(&FromClient::Piece(Piece { id, bytes: Bytes::from(vec![7; 60_000]) }));
    client.say(&FromClient::Piece(Piece { id, bytes: Bytes::from(vec![7; 60_000]) }));
    client.expect_closing(Reason::TooManyBytes);
    let mut client = connect();
    client.stream.write_all(&[255; 16]).unwrap();
    client.expect_closing(Reason::Malformed);
    let mut client = connect();
    client.say(&FromClient::Hello(Hello::default()));
    client.expect_closing(Reason::Malformed);
    assert_eq!(other.code("k", get()), Code::Miss);
}

#[test]
fn who_guesses_a_session_is_refused_and_touches_nothing_of_it() {
    let cluster = Cluster::start();
    let [mut owner, mut stranger] = [0, 1].map(|node| Native::connect(&cluster, node).0);
    let begin = |client: &mut Native| match client.call("n", Ask::Session) {
        Answer::Session(session) => session,
        other => panic!("no session but {other:?}"),
    };
    let (session, own) = (begin(&mut owner), begin(&mut stranger));
    assert!(session.0.abs_diff(own.0) > 1 << 20, "one tells nothing of the other");
    let up = |client: &mut Native, session, sequence, again| {
        let ask = Ask::Arith { direction: Direction::Increment, delta: 1, initial: Some((1, 0)) };
        let id = client.ask_once("n", ask, Some(Once { session, sequence, behind: 0, again }));
        client.answer(id)
    };
    let first = up(&mut owner, session, 1, false);
    assert!(matches!(first, Answer::Number(1, _)), "{first:?}");
    // What was a session's number once, what is near, what lies between, and numbers of bits in turn.
    let near = [1, 2, session.0 ^ 1, session.0 + 1, session.0.swap_bytes(), own.0 + 1, u64::MAX];
    let bits = (0..64).map(|bit| session.0 ^ 1 << bit);
    for guess in near.into_iter().chain(bits).map(ClientSession).filter(|guess| *guess != own) {
        // Whoever could would have its results forgotten by this, and the count done.
        assert_eq!(up(&mut stranger, guess, 500, false), Answer::Just(Code::NoSession));
        assert_eq!(up(&mut stranger, guess, 500, true), Answer::Just(Code::Expired));
    }
    assert_eq!(up(&mut owner, session, 1, true), first, "it is kept");
    assert!(matches!(up(&mut owner, session, 2, false), Answer::Number(2, _)), "nothing was counted");
}

#[test]
fn more_requests_than_credits_are_too_many() {
    let limits = ConnectionLimits { outstanding_requests: 4, ..Default::default() };
    let cluster = Cluster::of(&Plan::default(), |config| config.limits = limits);
    let (mut client, welcome) = Native::connect(&cluster, 0);
    assert_eq!(welcome.credits, 4);
    let value = noise(1, 100_000);
    client.put("k", &value);
    for _ in 0..4 {
        client.ask("k", Ask::Get(GetAsk::default()));
    }
    client.ask("k", get());
    client.expect_closing(Reason::TooManyRequests);
}

#[test]
fn who_does_not_read_or_grants_nothing_or_sends_half_is_closed_in_time() {
    let limits = ConnectionLimits {
        unread: Duration::from_millis(300),
        half_sent: Duration::from_millis(300),
        idle: Some(Duration::from_secs(2)),
        ..Default::default()
    };
    let cluster = Cluster::of(&Plan::default(), |config| config.limits = limits);
    let connect = || Native::connect(&cluster, 0).0;
    let mut stingy = connect();
    stingy.put("k", &noise(1, 200_000));
    stingy.ask("k", Ask::Get(GetAsk::default()));
    stingy.expect_closing(Reason::SlowReader);
    let mut half = connect();
    half.stream.write_all(&[0, 1]).unwrap();
    half.expect_closing(Reason::HalfSent);
    let mut half = connect();
    half.ask("other", set(&[7; 100_000]));
    half.expect_closing(Reason::HalfSent);
    let mut greedy = connect();
    greedy.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut flood = Vec::new();
    for id in 1..=1000 {
        let key = Key::new(Bytes::from_static(b"k")).unwrap();
        let ask = Ask::Get(GetAsk { window: u32::MAX, ..GetAsk::default() });
        Request { key, deadline_ms: 0, once: None, ask }.put(id, &mut flood);
    }
    let _ = greedy.stream.write_all(&flood);
    eventually("closed", || {
        let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
        let closed = page.contains("gestalt_connections_overdue_total{deadline=\"unread\"} 2");
        if closed { Ok(()) } else { Err(page) }
    });
    let mut idle = connect();
    idle.expect_closing(Reason::Idle);
    let used = cluster.status(0).memory;
    assert!(used.used_bytes < used.limit_bytes);
}

#[test]
fn a_request_whose_deadline_has_passed_is_not_begun() {
    let limits = ConnectionLimits { outstanding_bytes: 1, ..Default::default() };
    // Nobody has a map: what is asked first waits until its own deadline, and what comes behind it is not begun before.
    let plan = Plan { timing: proto::Timing::from_lease(200_000), ..Plan::default() };
    let cluster = crate::harness::coordinator(&plan);
    let mut config = server::NodeConfig::local(types::NodeId(0), cluster.address());
    config.limits = limits;
    config.timing = plan.timing;
    let node = server::Node::start(config).expect("a free port");
    let addr = node.addresses().native.expect("a native listener");
    let mut client = Native {
        stream: TcpStream::connect(addr).unwrap(),
        input: BytesMut::new(),
        next_id: 1,
        map: None,
        assembly: MapAssembly::default(),
        heard: BTreeMap::new(),
    };
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    FromClient::Hello(Hello::default()).put(&mut bytes);
    for (id, deadline_ms) in [(1, 0), (2, 1)] {
        let key = Key::new(Bytes::from_static(b"k")).unwrap();
        Request { key, deadline_ms, once: None, ask: set(b"v") }.put(id, &mut bytes);
    }
    client.stream.write_all(&bytes).unwrap();
    assert!(matches!(client.hear(), Some(FromServer::Welcome(_))));
    assert_eq!(client.answer(1).code(), Code::Unavailable);
    assert_eq!(client.answer(2).code(), Code::Late);
}

#[test]
fn no_frames_of_any_kind_end_a_node() {
    let cluster = Cluster::start();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let asks = [
        get(),
        set(b"value"),
        set(&[7; 100_000]),
        store(StoreMode::Append, b"x", Some(1)),
        Ask::Delete { compare: None },
        Ask::Stat,
        Ask::Locate { from: 0 },
        Ask::Locate { from: 1 << 20 },
        Ask::Touch { ttl: 1 },
    ];
    for _ in 0..300 {
        let (mut client, _) = Native::connect(&cluster, random(5));
        let mut bytes = Vec::new();
        for id in 1..20 {
            let key = Key::new(Bytes::from(format!("k{}", random(4)))).expect("a key");
            Request { key, deadline_ms: 0, once: None, ask: asks[random(asks.len())].clone() }
                .put(id, &mut bytes);
            let about = 1 + random(20) as u64;
            match random(4) {
                0 => FromClient::Window(Window { id: about, bytes: random(1 << 20) as u32 }).put(&mut bytes),
                1 => FromClient::Piece(Piece { id: about, bytes: vec![1; 1 + random(60_000)].into() })
                    .put(&mut bytes),
                2 => FromClient::Cancel(about).put(&mut bytes),
                _ => {}
            }
        }
        // Some are as they should be, up to a byte that is not.
        for _ in 0..random(3) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        // The node may have closed by then.
        let _ = client.stream.write_all(&bytes);
    }
    for node in 0..5 {
        let (mut client, _) = Native::connect(&cluster, node);
        assert_eq!(client.put("after", b"all"), Code::Stored);
    }
}
