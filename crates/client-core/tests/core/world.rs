//! A core, and the servers that it believes to talk to.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use client_core::{Action, Body, Coding, Config, ConnId, Core, Done, Error, Event, Op, Operation, RequestId};
use native::{
    Answer, Ask, Capabilities, Decoder, FromClient, FromServer, Meta, Piece, Request, RouteMap,
    RouteNamespace, RouteNode, RoutePool, Value, Welcome, Window,
};
use types::op::StoreMode;
use types::{ClusterId, NamespaceId, NodeId, PoolId, Time};

pub const CREDITS: u32 = 4;

pub fn address(node: u16) -> SocketAddr {
    ([10, 0, 0, 1], 1000 + node).into()
}

pub struct World {
    pub core: Core,
    pub now: Time,
    /// Connections that the core has: to whom.
    pub open: BTreeMap<ConnId, SocketAddr>,
    inputs: BTreeMap<ConnId, BytesMut>,
    pub heard: BTreeMap<ConnId, Vec<FromClient>>,
    pub events: Vec<Event>,
    pub map: RouteMap,
    capabilities: Capabilities,
}

impl World {
    /// Two nodes, the first of which serves everything.
    pub fn new() -> Self {
        let seeds = vec![address(0)];
        Self::with(Config { seeds, window: 100_000, sessions: false, ..through_nodes() })
    }

    /// The same, of a client that codes long values itself.
    pub fn coding() -> Self {
        let (seeds, both) = (vec![address(0)], Coding::Client);
        Self::with(Config { seeds, encode: both, decode: both, ..Config::default() }).made_ready()
    }

    /// The same, of a client that chooses who does.
    pub fn choosing() -> Self {
        Self::with(Config { seeds: vec![address(0)], ..Config::default() }).made_ready()
    }

    pub fn with(config: Config) -> Self {
        let node = |node| (NodeId(node), RouteNode { native: Some(address(node)), alive: true });
        let pool = RoutePool { slot_bits: 14, primaries: vec![Some(NodeId(0)); 8] };
        let namespace = RouteNamespace { name: "default".parse().unwrap(), pool: PoolId(0) };
        let map = RouteMap {
            cluster: ClusterId(1),
            version: 7,
            nodes: BTreeMap::from([node(0), node(1)]),
            pools: BTreeMap::from([(PoolId(0), pool)]),
            namespaces: BTreeMap::from([(NamespaceId(0), namespace)]),
        };
        Self {
            core: Core::new(config),
            now: Time(1_000_000),
            open: BTreeMap::new(),
            inputs: BTreeMap::new(),
            heard: BTreeMap::new(),
            events: Vec::new(),
            map,
            capabilities: Capabilities::ALL,
        }
    }

    /// The same, with both connections welcomed and the map told.
    pub fn ready() -> Self {
        Self::new().made_ready()
    }

    /// The same, of a client whose writes have names.
    pub fn with_sessions() -> Self {
        let seeds = vec![address(0)];
        Self::with(Config { seeds, window: 100_000, ..through_nodes() }).made_ready()
    }

    /// The same, at servers that can no more than this.
    pub fn knowing(capabilities: Capabilities) -> Self {
        let seeds = vec![address(0)];
        let world = Self::with(Config { seeds, window: 100_000, ..through_nodes() });
        Self { capabilities, ..world }.made_ready()
    }

    /// At servers that can no more than this.
    pub fn of_servers_with(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// With both connections welcomed and the map told.
    pub fn made_ready(self) -> Self {
        let mut world = self;
        let id = world.get("first");
        world.settle();
        world.welcome(0);
        world.welcome(1);
        let (conn, wire, _) = world.asked().pop().expect("the first request");
        world.say(conn, FromServer::Answer(wire, Box::new(Answer::Just(native::Code::Miss))));
        assert_eq!(world.done(id), Ok(Done::Answer(Answer::Just(native::Code::Miss))));
        world
    }

    pub fn submit(&mut self, op: Op) -> RequestId {
        let operation = Operation { key: Bytes::from_static(b"k"), op, timeout_us: None };
        self.core.submit(self.now, operation).unwrap()
    }

    pub fn get(&mut self, key: &'static str) -> RequestId {
        let op = Op::Get { range: None, touch: None };
        let operation = Operation { key: Bytes::from_static(key.as_bytes()), op, timeout_us: None };
        self.core.submit(self.now, operation).unwrap()
    }

    pub fn set(&mut self, body: Body) -> RequestId {
        self.submit(Op::Store { mode: StoreMode::Set, body, flags: 0, ttl: 0, compare: None })
    }

    /// Does what the core wants done.
    pub fn settle(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Connect(conn, address) => {
                    self.open.insert(conn, address);
                    self.core.connected(conn);
                }
                Action::Close(conn) => drop(self.open.remove(&conn)),
                Action::Send(conn) => {
                    let mut out = Vec::new();
                    self.core.poll_output(self.now, conn, usize::MAX, &mut out);
                    let input = self.inputs.entry(conn).or_default();
                    out.iter().for_each(|bytes| input.extend_from_slice(bytes));
                    while let Some(frame) = Decoder::next(input).unwrap() {
                        self.heard.entry(conn).or_default().push(FromClient::take(frame).unwrap());
                    }
                }
            }
        }
        while let Some(event) = self.core.poll_event() {
            self.events.push(event);
        }
    }

    pub fn conn(&self, node: u16) -> ConnId {
        *self.open.iter().find(|(_, at)| **at == address(node)).expect("a connection").0
    }

    pub fn say(&mut self, conn: ConnId, message: FromServer) {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        let mut bytes = BytesMut::from(&bytes[..]);
        self.core.received(self.now, conn, &mut bytes);
        self.settle();
    }

    pub fn answer(&mut self, conn: ConnId, wire: u64, answer: Answer) {
        self.say(conn, FromServer::Answer(wire, Box::new(answer)));
    }

    pub fn welcome(&mut self, node: u16) {
        let conn = self.conn(node);
        let welcome = Welcome {
            version: 1,
            capabilities: self.capabilities,
            credits: CREDITS,
            longest_value: 1 << 30,
            node: NodeId(node),
            cluster: ClusterId(1),
        };
        self.say(conn, FromServer::Welcome(welcome));
        let mut bytes = Vec::new();
        self.map.put(&mut bytes);
        self.core.received(self.now, conn, &mut BytesMut::from(&bytes[..]));
        self.settle();
    }

    /// A node is gone without a word.
    pub fn lose(&mut self, node: u16) {
        let conn = self.conn(node);
        self.open.remove(&conn);
        self.core.lost(self.now, conn);
        self.settle();
    }

    pub fn wait(&mut self, us: u64) {
        self.now = self.now + us;
        self.core.tick(self.now);
        self.settle();
    }

    /// Requests that have come since the last time, with their connections.
    pub fn asked(&mut self) -> Vec<(ConnId, u64, Request)> {
        self.settle();
        let mut asked = Vec::new();
        for (conn, heard) in &mut self.heard {
            heard.retain(|message| match message {
                FromClient::Request(wire, request) => {
                    asked.push((*conn, *wire, Request::clone(request)));
                    false
                }
                _ => true,
            });
        }
        asked
    }

    /// The only one.
    pub fn one(&mut self) -> (ConnId, u64, Ask) {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        let (conn, wire, request) = asked.pop().unwrap();
        (conn, wire, request.ask)
    }

    /// Pieces that have come since the last time.
    pub fn pieces(&mut self) -> Vec<Piece> {
        self.settle();
        let mut pieces = Vec::new();
        for heard in self.heard.values_mut() {
            heard.retain(|message| match message {
                FromClient::Piece(piece) => {
                    pieces.push(piece.clone());
                    false
                }
                _ => true,
            });
        }
        pieces
    }

    /// Windows that have been granted since the last time.
    pub fn windows(&mut self) -> Vec<Window> {
        self.settle();
        let of = |message: &FromClient| match message {
            FromClient::Window(window) => Some(*window),
            _ => None,
        };
        let windows = self.heard.values().flatten().filter_map(of).collect();
        self.heard.values_mut().for_each(|heard| heard.retain(|message| of(message).is_none()));
        windows
    }

    pub fn cancelled(&self, wire: u64) -> bool {
        self.heard.values().flatten().any(|message| *message == FromClient::Cancel(wire))
    }

    /// What has come of a request, which must have ended.
    pub fn done(&mut self, id: RequestId) -> Result<Done, Error> {
        self.ended(id).expect("it has ended")
    }

    pub fn ended(&mut self, id: RequestId) -> Option<Result<Done, Error>> {
        self.settle();
        self.events.iter().find_map(|event| match event {
            Event::Done(of, result) if *of == id => Some(result.clone()),
            _ => None,
        })
    }

    pub fn data(&self, id: RequestId) -> Vec<u8> {
        let of = |event: &Event| match event {
            Event::Data(of, bytes) if *of == id => bytes.to_vec(),
            _ => vec![],
        };
        self.events.iter().flat_map(of).collect()
    }
}

/// Of a client that codes nothing.
fn through_nodes() -> Config {
    Config { encode: Coding::Server, decode: Coding::Server, ..Config::default() }
}

pub fn value(version: u64, value_len: u64, (start, len): (u64, u64), bytes: Option<&'static [u8]>) -> Answer {
    let meta = Meta { version, flags: 0, ttl: None, value_len };
    Answer::Value(Value { meta, start, len, bytes: bytes.map(Bytes::from_static) })
}

pub fn piece(id: u64, len: usize) -> FromServer {
    FromServer::Piece(Piece { id, bytes: Bytes::from(vec![7; len]) })
}
