//! One message of every kind, with the name that it has in docs/native-protocol.md.

use bytes::Bytes;
use native::{
    About, Answer, Ask, BeginAsk, BegunChunks, Capabilities, Cells, Chunked, Closing, Code, CommitAsk,
    Content, FetchAsk, FoundChunks, FromClient, FromServer, GetAsk, GroupHolders, Hello, Layout, Meta, Piece,
    Places, PutAsk, Range, Reason, Request, RoleHolders, RouteChanges, RouteNode, ScanAsk, Span, StoreAsk,
    UnpinAsk, Value, Welcome, Window, Written,
};
use types::op::{Direction, Key, StoreMode};
use types::{
    ChunkId, ClientSession, ClusterId, Exception, Geometry, GroupId, MemberId, NamespaceId, NodeId, ObjectId,
    Once, PoolId, RoleIndex, Scan, ScanBound, ScanPage, Slot, Term, ViewVersion,
};

fn request(id: u64, namespace: u32, key: &'static str, ask: Ask) -> FromClient {
    let key = Key::of(NamespaceId(namespace), Bytes::from_static(key.as_bytes())).unwrap();
    FromClient::Request(id, Box::new(Request { key, deadline_ms: 500, once: None, ask }))
}

/// The same under a name, once more.
fn once(mut request: FromClient) -> FromClient {
    if let FromClient::Request(_, request) = &mut request {
        let session = ClientSession(4711);
        request.once = Some(Once { session, sequence: 9, behind: 2, again: true });
    }
    request
}

fn store(content: Content, compare: Option<u64>) -> Ask {
    Ask::Store(StoreAsk { mode: StoreMode::Set, flags: 7, ttl: 60, compare, content })
}

/// What clients say.
pub fn of_clients() -> Vec<(&'static str, FromClient)> {
    let range = Some(Range { start: 4096, len: 512 });
    let up = |initial| Ask::Arith { direction: Direction::Increment, delta: 5, initial };
    vec![
        ("hello", FromClient::Hello(Hello { oldest: 1, newest: 1, capabilities: Capabilities(1) })),
        ("map-wanted", FromClient::MapWanted(41)),
        ("get", request(1, 0, "user:17", Ask::Get(GetAsk { window: 262_144, ..GetAsk::default() }))),
        ("get-range", request(2, 3, "film", Ask::Get(GetAsk { range, window: 65_536, ..GetAsk::default() }))),
        ("get-touch", request(3, 0, "k", Ask::Get(GetAsk { touch: Some(60), ..GetAsk::default() }))),
        ("store", request(4, 0, "k", store(Content::Here(Bytes::from_static(b"hello")), None))),
        ("store-compare", request(5, 0, "k", store(Content::Here(Bytes::new()), Some(258)))),
        ("store-long", request(6, 0, "k", store(Content::Pieces(1 << 20), None))),
        ("delete", request(7, 0, "k", Ask::Delete { compare: None })),
        ("incr", request(8, 0, "n", up(None))),
        ("incr-initial", request(9, 0, "n", up(Some((40, 60))))),
        ("touch", request(10, 0, "k", Ask::Touch { ttl: 60 })),
        ("stat", request(11, 0, "k", Ask::Stat)),
        ("locate", request(12, 0, "k", Ask::Locate { from: 0 })),
        ("locate-on", request(24, 0, "k", Ask::Locate { from: 100_663_296 })),
        ("session", request(13, 0, "n", Ask::Session)),
        ("incr-once", once(request(14, 0, "n", up(None)))),
        (
            "get-direct",
            request(15, 0, "film", Ask::Get(GetAsk { window: 65_536, direct: true, ..GetAsk::default() })),
        ),
        (
            "get-made",
            request(
                25,
                0,
                "film",
                Ask::Get(GetAsk { range, window: 65_536, by_graph: true, ..GetAsk::default() }),
            ),
        ),
        ("fetch", request(16, 0, "film", Ask::Fetch(Box::new(fetch())))),
        ("unpin", request(17, 0, "film", Ask::Unpin(UnpinAsk { object: object(), pin: 5, done: true }))),
        ("begin", once(request(18, 0, "film", Ask::Begin(begin())))),
        ("put", request(19, 0, "film", Ask::Put(Box::new(put())))),
        ("commit", once(request(20, 0, "film", Ask::Commit(Box::new(commit()))))),
        ("abandon", request(21, 0, "film", Ask::Abandon(Box::new(written())))),
        ("renew", request(23, 0, "film", Ask::Renew(object()))),
        ("scan", FromClient::Scan(22, Box::new(scan()))),
        ("piece", FromClient::Piece(Piece { id: 6, bytes: Bytes::from_static(b"abc") })),
        ("window", FromClient::Window(Window { id: 1, bytes: 65_536 })),
        ("cancel", FromClient::Cancel(6)),
    ]
}

fn scan() -> ScanAsk {
    let prefix = Bytes::from_static(b"user:");
    let from = ScanBound::new(0x03_0000_0001).unwrap();
    let scan = Scan { namespace: NamespaceId(0), slot: Slot(10_923), from, prefix, keys: 100, bytes: 4096 };
    ScanAsk { deadline_ms: 500, scan }
}

fn page(next: Option<ScanBound>, damaged: u16) -> Answer {
    let keys = ["user:17", "user:4"].map(|key| Bytes::from_static(key.as_bytes())).to_vec();
    Answer::Keys(Box::new(ScanPage { keys, next, damaged }))
}

fn object() -> ObjectId {
    let owner = MemberId { group: GroupId(7), role: RoleIndex(2) };
    ObjectId { owner, term: Term(3), number: 21, salt: 0xfeed, namespace: NamespaceId(0) }
}

fn geometry() -> Geometry {
    Geometry { len: 300_000, chunk_len: 262_144, k: 2, layout: types::ObjectLayout::Spread }
}

fn chunk() -> ChunkId {
    ChunkId { object: object(), stripe: 0 }
}

/// The holder of the second data role.
fn member() -> MemberId {
    MemberId { group: GroupId(4), role: RoleIndex(1) }
}

fn fetch() -> FetchAsk {
    FetchAsk { member: member(), chunk: chunk(), first: 1, count: 2, window: 100_096 }
}

fn begin() -> BeginAsk {
    BeginAsk { mode: StoreMode::Set, compare: None, len: 300_000 }
}

fn put() -> PutAsk {
    let (checksums, trailer) = (vec![1, 2, 3], vec![4, 5, 6]);
    PutAsk {
        member: member(),
        view: ViewVersion(9),
        chunk: chunk(),
        geometry: geometry(),
        checksums,
        trailer,
    }
}

fn written() -> Written {
    Written { object: object(), geometry: geometry(), groups: vec![GroupId(4)] }
}

fn commit() -> CommitAsk {
    let (checksum, mode, flags, ttl, compare) = (0xabcd, StoreMode::Set, 7, 60, None);
    CommitAsk { written: written(), checksum, mode, flags, ttl, compare }
}

fn chunked(exceptions: Vec<Exception>) -> Chunked {
    let node = |node| Some(NodeId(node));
    let roles = vec![
        RoleHolders { whole: node(0), filling: None },
        RoleHolders { whole: node(1), filling: node(4) },
        RoleHolders { whole: None, filling: node(3) },
    ];
    let holders = vec![GroupHolders { group: GroupId(4), view: ViewVersion(9), roles }];
    let (groups, code) = (vec![GroupId(4)], "rs(2+1)".parse().unwrap());
    Chunked { object: object(), geometry: geometry(), code, groups, exceptions, holders }
}

fn places() -> Places {
    let span = |start, nodes: [u16; 3]| Span {
        start,
        len: 196_608,
        cell_len: 65_536,
        nodes: nodes.map(|node| Some(NodeId(node)).filter(|node| node.0 != 9)).to_vec(),
    };
    Places {
        slot: Slot(1234),
        group: GroupId(7),
        role: RoleIndex(2),
        primary: Some(NodeId(3)),
        found: Some((meta(393_216), vec![span(0, [0, 1, 2]), span(196_608, [4, 9, 1])])),
    }
}

fn meta(value_len: u64) -> Meta {
    Meta { version: 258, flags: 7, ttl: Some(60), value_len }
}

/// What servers say.
pub fn of_servers() -> Vec<(&'static str, FromServer)> {
    let answer = |id, answer| FromServer::Answer(id, Box::new(answer));
    let value = |bytes: Option<Bytes>| {
        let len = bytes.as_ref().map_or(1 << 20, |bytes| bytes.len() as u64);
        Answer::Value(Value { meta: meta(len), start: 0, len, bytes })
    };
    let node = RouteNode { native: Some(([127, 0, 0, 1], 11_311).into()), alive: true };
    let changes = RouteChanges {
        cluster: ClusterId(0x7e57),
        since: 41,
        version: 42,
        nodes: vec![(NodeId(5), node), (NodeId(3), RouteNode { native: None, alive: false })],
        gone: vec![NodeId(2)],
        primaries: vec![(PoolId(0), 9, Some(NodeId(5))), (PoolId(0), 10, None)],
    };
    let welcome = Welcome {
        version: 1,
        capabilities: Capabilities(1),
        credits: 1024,
        longest_value: 1 << 30,
        node: NodeId(3),
        cluster: ClusterId(0x7e57),
    };
    let about = About {
        meta: meta(1 << 20),
        idle: 9,
        fetched: true,
        layout: Layout::Chunks { chunk_len: 262_144, k: 3, rule: types::ObjectLayout::Wide },
    };
    let exceptions = vec![Exception { first: 0, count: 1, group: GroupId(4) }];
    let found = FoundChunks {
        meta: meta(300_000),
        part: (0, 300_000),
        pin: Some(5),
        pin_ms: 30_000,
        chunks: chunked(exceptions),
    };
    let begun = BegunChunks { open_ms: 30_000, chunks: chunked(Vec::new()) };
    vec![
        ("welcome", FromServer::Welcome(welcome)),
        ("closing", FromServer::Closing(0, Closing::with(Reason::Version))),
        ("map-changes", FromServer::Changes(Box::new(changes))),
        ("value", answer(1, value(Some(Bytes::from_static(b"hello"))))),
        ("value-long", answer(2, value(None))),
        ("miss", answer(3, Answer::Just(Code::Miss))),
        ("stored", answer(4, Answer::Stored(259))),
        ("number", answer(8, Answer::Number(17, 260))),
        ("about", answer(11, Answer::About(about))),
        ("session-begun", answer(13, Answer::Session(ClientSession(4711)))),
        ("places", answer(12, Answer::Places(places()))),
        ("chunks", answer(15, Answer::Chunks(Box::new(found)))),
        ("cells", answer(16, Answer::Cells(Cells { cell_len: 50_048, checksums: vec![2, 3] }))),
        ("begun", answer(18, Answer::Begun(Box::new(begun)))),
        ("placed", answer(19, Answer::Just(Code::Placed))),
        ("keys", answer(22, page(ScanBound::new(0x03_4f00_2d10), 0))),
        ("last-keys", answer(23, page(None, 3))),
        ("expired", answer(13, Answer::Just(Code::Expired))),
        ("unknown", answer(13, Answer::Just(Code::Unknown))),
        ("piece-of-read", FromServer::Piece(Piece { id: 2, bytes: Bytes::from_static(b"abc") })),
        ("grant", FromServer::Window(Window { id: 6, bytes: 262_144 })),
        ("end", FromServer::End(2, Code::Whole)),
    ]
}
