//! Long values that a client reads and writes at their holders.

use bytes::Bytes;
use client_core::{Body, Done, Event};
use native::{
    Answer, Ask, BegunChunks, Cells, Chunked, Code, Content, FetchAsk, FoundChunks, FromServer, GroupHolders,
    Meta, Piece, RoleHolders,
};
use types::{
    ChunkId, Geometry, GroupId, MemberId, NamespaceId, NodeId, ObjectId, RoleIndex, Term, ViewVersion,
    checksum,
};

use crate::world::World;

/// A value of one row in cells of 50,048 bytes; the last 96 are not its.
pub const LEN: usize = 100_000;
pub const CELL: usize = 50_048;

pub fn value() -> Bytes {
    (0..LEN).map(|at| (at % 251) as u8).collect::<Vec<u8>>().into()
}

pub fn object() -> ObjectId {
    let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
    ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId(0) }
}

/// Two data roles at nodes 0 and 1, their sum at node 0.
pub fn chunked() -> Chunked {
    chunked_at([0, 1, 0])
}

pub fn chunked_at(nodes: [u16; 3]) -> Chunked {
    let role = |node| RoleHolders { whole: Some(NodeId(node)), filling: None };
    let roles = nodes.map(role).to_vec();
    Chunked {
        object: object(),
        geometry: Geometry { len: LEN as u64, chunk_len: 65_536, k: 2, layout: types::ObjectLayout::Spread },
        code: "rs(2+1)".parse().unwrap(),
        groups: vec![GroupId(0)],
        exceptions: Vec::new(),
        holders: vec![GroupHolders { group: GroupId(0), view: ViewVersion(3), roles }],
    }
}

pub fn cell(role: usize) -> Vec<u8> {
    let of = |role: usize| {
        let mut cell = value()[role * CELL..LEN.min((role + 1) * CELL)].to_vec();
        cell.resize(CELL, 0);
        cell
    };
    match role {
        // The first parity of this code is the sum.
        2 => of(0).iter().zip(of(1)).map(|(one, other)| one ^ other).collect(),
        role => of(role),
    }
}

/// A read that has been told where the chunks are, and what it asks then, by roles.
fn reads(world: &mut World) -> (client_core::RequestId, Vec<(client_core::ConnId, u64, FetchAsk)>) {
    reads_at(world, 0, [0, 1, 0])
}

/// The same with room for so many bytes, and roles at these nodes.
pub fn reads_at(
    world: &mut World,
    room: usize,
    nodes: [u16; 3],
) -> (client_core::RequestId, Vec<(client_core::ConnId, u64, FetchAsk)>) {
    let id = world.get("k");
    world.core.receiving().has_room(id, room as u64);
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Get(get) if get.direct));
    let meta = Meta { version: 5, flags: 0, ttl: None, value_len: LEN as u64 };
    let chunks = chunked_at(nodes);
    let found = FoundChunks { meta, part: (0, LEN as u64), pin: Some(9), pin_ms: 30_000, chunks };
    world.answer(conn, wire, Answer::Chunks(Box::new(found)));
    let fetches = world.asked().into_iter().map(|(conn, wire, request)| match request.ask {
        Ask::Fetch(fetch) => (conn, wire, *fetch),
        other => panic!("{other:?}"),
    });
    (id, fetches.collect())
}

/// A holder sends the cell of its role.
fn sends(
    world: &mut World,
    (conn, wire, fetch): (client_core::ConnId, u64, FetchAsk),
    cell: &[u8],
    sum: u32,
) {
    let object = fetch.chunk.object;
    assert_eq!((object, fetch.chunk.stripe, fetch.first, fetch.count), (self::object(), 0, 0, 1));
    world.answer(conn, wire, Answer::Cells(Cells { cell_len: CELL as u32, checksums: vec![sum] }));
    world.say(conn, FromServer::Piece(Piece { id: wire, bytes: Bytes::copy_from_slice(cell) }));
    world.say(conn, FromServer::End(wire, Code::Whole));
}

pub fn role_of(fetch: &(client_core::ConnId, u64, FetchAsk)) -> usize {
    usize::from(fetch.2.member.role.0)
}

/// For so long a node is not told that a read is over, unless it is asked for something else.
const FAREWELL_US: u64 = 10_000;

/// What is asked when a read is over.
fn is_unpinned(world: &mut World) -> bool {
    world.wait(FAREWELL_US);
    world
        .asked()
        .iter()
        .any(|(_, _, request)| matches!(&request.ask, Ask::Unpin(unpin) if unpin.pin == 9 && unpin.done))
}

#[test]
fn cells_come_from_their_holders_in_any_order_and_go_out_in_theirs() {
    let mut world = World::coding();
    let (id, mut fetches) = reads(&mut world);
    fetches.sort_by_key(|fetch| std::cmp::Reverse(role_of(fetch)));
    assert_eq!(fetches.iter().map(role_of).collect::<Vec<_>>(), [1, 0]);
    for fetch in fetches {
        assert!(world.data(id).is_empty());
        let cell = cell(role_of(&fetch));
        sends(&mut world, fetch, &cell, checksum(&cell));
    }
    assert_eq!((world.data(id), world.done(id)), (value().to_vec(), Ok(Done::Value)));
    assert!(is_unpinned(&mut world));
    assert_eq!((world.core.stats().reads, world.core.stats().decoded_rows), (1, 0));
}

#[test]
fn that_a_read_is_over_is_said_with_the_next_request_to_the_node_or_soon() {
    let mut world = World::coding();
    for goes_along in [true, false] {
        let (id, fetches) = reads(&mut world);
        for fetch in fetches {
            let cell = cell(role_of(&fetch));
            sends(&mut world, fetch, &cell, checksum(&cell));
        }
        assert_eq!(world.done(id), Ok(Done::Value));
        world.wait(FAREWELL_US - 1);
        assert!(world.asked().is_empty(), "by itself it would cost the node as much as a request");
        let is_told = |asked: &[(client_core::ConnId, u64, native::Request)]| {
            asked.iter().any(|(_, _, request)| matches!(&request.ask, Ask::Unpin(unpin) if unpin.done))
        };
        if goes_along {
            world.get("k");
        } else {
            world.wait(1);
        }
        let asked = world.asked();
        assert!(is_told(&asked) && asked.len() == 1 + usize::from(goes_along), "{asked:?}");
        for (conn, wire, request) in asked {
            let answer = if matches!(request.ask, Ask::Unpin(_)) { Code::Noted } else { Code::Miss };
            world.answer(conn, wire, Answer::Just(answer));
        }
    }
}

#[test]
fn what_a_holder_lacks_or_sends_otherwise_is_made_of_the_others() {
    for is_wrong in [false, true] {
        let mut world = World::coding();
        let (id, fetches) = reads(&mut world);
        for fetch in fetches {
            let cell = cell(role_of(&fetch));
            match (role_of(&fetch), is_wrong) {
                (1, true) => sends(&mut world, fetch, &cell, checksum(&cell) + 1),
                (1, false) => world.answer(fetch.0, fetch.1, Answer::Just(Code::Miss)),
                _ => sends(&mut world, fetch, &cell, checksum(&cell)),
            }
        }
        let (conn, wire, ask) = world.one();
        let Ask::Fetch(fetch) = ask else { panic!("{ask:?}") };
        assert_eq!(fetch.member.role, RoleIndex(2));
        let sum = cell(2);
        sends(&mut world, (conn, wire, *fetch), &sum, checksum(&sum));
        assert_eq!((world.data(id), world.done(id)), (value().to_vec(), Ok(Done::Value)));
        assert_eq!(world.core.stats().decoded_rows, 1);
    }
}

/// So many values of two cells have been read.
pub fn has_read(world: &mut World, times: usize) {
    for _ in 0..times {
        let (id, fetches) = reads(world);
        for fetch in fetches {
            let cell = cell(role_of(&fetch));
            sends(world, fetch, &cell, checksum(&cell));
        }
        assert_eq!((world.data(id), world.done(id)), (value().to_vec(), Ok(Done::Value)));
        world.wait(FAREWELL_US);
        let (conn, wire, unpin) = world.one();
        assert!(matches!(unpin, Ask::Unpin(_)));
        world.answer(conn, wire, Answer::Just(Code::Noted));
    }
}

#[test]
fn others_are_asked_when_a_holder_takes_longer_than_usual() {
    let mut world = World::coding();
    // By then one cell in twenty makes one that may be asked for in vain.
    has_read(&mut world, 10);
    let (id, fetches) = reads(&mut world);
    for fetch in fetches.into_iter().filter(|fetch| role_of(fetch) == 0) {
        sends(&mut world, fetch, &cell(0), checksum(&cell(0)));
    }
    world.wait(1_000);
    assert!(world.asked().is_empty(), "nobody is slow so soon");
    world.wait(1_000);
    let (conn, wire, ask) = world.one();
    let Ask::Fetch(fetch) = ask else { panic!("{ask:?}") };
    assert_eq!((fetch.member.role, world.core.stats().hedged_cells), (RoleIndex(2), 1));
    sends(&mut world, (conn, wire, *fetch), &cell(2), checksum(&cell(2)));
    assert_eq!((world.data(id), world.done(id)), (value().to_vec(), Ok(Done::Value)));
}

#[test]
fn who_is_slow_is_not_waited_for_and_who_cannot_read_asks_a_node() {
    let mut world = World::coding();
    let (id, fetches) = reads(&mut world);
    for fetch in fetches.into_iter().filter(|fetch| role_of(fetch) == 0) {
        world.answer(fetch.0, fetch.1, Answer::Just(Code::Miss));
    }
    let (conn, wire, _) = world.one();
    world.answer(conn, wire, Answer::Just(Code::Miss));
    let asked = world.asked();
    let get = asked.iter().find_map(|(_, _, request)| match &request.ask {
        Ask::Get(get) => Some(*get),
        _ => None,
    });
    assert!(get.is_some_and(|get| !get.direct && get.range.is_none()), "{asked:?}");
    assert!(world.ended(id).is_none());
    assert_eq!(world.core.stats().gave_way, 1);
    assert!(!world.events.iter().any(|event| matches!(event, Event::Head(..))), "nobody has seen any of it");
}

/// A write that may put its chunks: what it puts, by roles.
fn writes(world: &mut World) -> (client_core::RequestId, Vec<(client_core::ConnId, u64, native::Request)>) {
    writes_for(world, 30_000)
}

/// The same of one whose id is open for so many milliseconds.
fn writes_for(
    world: &mut World,
    open_ms: u32,
) -> (client_core::RequestId, Vec<(client_core::ConnId, u64, native::Request)>) {
    let id = world.set(Body::Here(value()));
    let (conn, wire, ask) = world.one();
    let session = Answer::Session(types::ClientSession(4));
    assert!(matches!(ask, Ask::Session));
    world.answer(conn, wire, session);
    world.wait(0);
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Begin(begin) if begin.len == LEN as u64));
    world.answer(conn, wire, Answer::Begun(Box::new(BegunChunks { open_ms, chunks: chunked() })));
    (id, world.asked())
}

#[test]
fn a_value_is_committed_when_all_holders_have_its_chunks() {
    let mut world = World::coding();
    let (id, puts) = writes(&mut world);
    let cells = world.pieces();
    assert_eq!((puts.len(), cells.len()), (3, 3));
    for (conn, wire, request) in puts {
        let Ask::Put(put) = request.ask else { panic!("{:?}", request.ask) };
        let role = usize::from(put.member.role.0);
        assert_eq!(put.chunk, ChunkId { object: object(), stripe: 0 });
        assert_eq!(
            (put.view, put.checksums, put.trailer.len()),
            (ViewVersion(3), vec![checksum(&cell(role))], 3)
        );
        let here = cells.iter().filter(|piece| piece.id == wire).any(|piece| piece.bytes == cell(role));
        assert!(here, "role {role}");
        assert!(world.asked().is_empty(), "not before all have it");
        world.answer(conn, wire, Answer::Just(Code::Placed));
    }
    let (conn, wire, ask) = world.one();
    let Ask::Commit(commit) = ask else { panic!("{ask:?}") };
    assert_eq!((commit.checksum, commit.written.object), (checksum(&value()), object()));
    world.answer(conn, wire, Answer::Stored(6));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(6))));
    assert_eq!(world.core.stats().writes, 1);
}

#[test]
fn a_value_of_which_a_chunk_is_refused_goes_through_a_node_under_its_name() {
    let mut world = World::coding();
    let (id, puts) = writes(&mut world);
    let (conn, wire, _) = puts[1].clone();
    world.answer(conn, wire, Answer::Just(Code::Moved));
    let asked = world.asked();
    let is_given_up = |ask: &Ask| matches!(ask, Ask::Abandon(written) if written.object == object());
    assert!(asked.iter().any(|(_, _, request)| is_given_up(&request.ask)), "{asked:?}");
    let store = asked.iter().find(|(_, _, request)| matches!(request.ask, Ask::Store(_)));
    let (conn, wire, request) = store.expect("a node is asked").clone();
    assert!(matches!(request.ask, Ask::Store(store) if store.content == Content::Pieces(LEN as u64)));
    assert!(request.once.is_some_and(|once| !once.again), "nothing was done under its name");
    world.answer(conn, wire, Answer::Stored(7));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(7))));
}

#[test]
fn to_ask_where_chunks_would_go_is_no_first_try() {
    let mut world = World::coding();
    let id = world.set(Body::Here(value()));
    let (conn, wire, ask) = world.one();
    assert_eq!(ask, Ask::Session);
    world.answer(conn, wire, Answer::Session(types::ClientSession(40)));
    world.wait(0);
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Begin(_)), "{ask:?}");
    world.answer(conn, wire, Answer::Just(Code::NotDirect));
    let (conn, wire, request) = world.asked().pop().expect("a node is asked");
    assert!(matches!(request.ask, Ask::Store(_)) && request.once.is_some_and(|once| !once.again));
    world.answer(conn, wire, Answer::Just(Code::OutOfMemory));
    assert_eq!(world.done(id), Err(client_core::Error::Code(Code::OutOfMemory)));
}

#[test]
fn a_commit_that_may_have_been_done_is_asked_again_under_its_name() {
    let mut world = World::coding();
    let (id, puts) = writes(&mut world);
    for (conn, wire, _) in puts {
        world.answer(conn, wire, Answer::Just(Code::Placed));
    }
    let (_, _, ask) = world.one();
    assert!(matches!(ask, Ask::Commit(_)));
    world.lose(0);
    world.welcome(1);
    let (conn, wire, request) = world.asked().pop().expect("it is asked again");
    assert!(matches!(request.ask, Ask::Store(_)) && request.once.is_some_and(|once| once.again));
    world.answer(conn, wire, Answer::Stored(8));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(8))));
}

#[test]
fn a_value_that_two_holders_do_not_take_goes_through_a_node_once() {
    let mut world = World::coding();
    let (id, puts) = writes(&mut world);
    let of_first = puts.iter().filter(|(conn, ..)| *conn == world.conn(0)).count();
    assert_eq!((puts.len(), of_first), (3, 2));
    world.lose(0);
    let asked = world.asked();
    let stores = asked.iter().filter(|(_, _, request)| matches!(request.ask, Ask::Store(_)));
    assert_eq!(stores.count(), 1, "{asked:?}");
    assert_eq!((world.ended(id), world.core.stats().gave_way), (None, 1));
}

#[test]
fn a_commit_that_waits_for_its_turn_is_not_sent_when_its_id_is_gone() {
    let mut world = World::coding();
    let (id, puts) = writes_for(&mut world, 300);
    world.wait(110_000);
    let (conn, renewal, ask) = world.one();
    assert!(matches!(ask, Ask::Renew(_)) && conn == world.conn(0));
    // As many as there are credits for beside the renewal.
    for key in ["a", "b", "c"] {
        world.get(key);
    }
    for (conn, wire, _) in puts {
        world.answer(conn, wire, Answer::Just(Code::Placed));
    }
    let is_get = |request: &native::Request| matches!(request.ask, Ask::Get(_));
    assert!(world.asked().iter().all(|(_, _, request)| is_get(request)), "the commit waits");
    world.answer(conn, renewal, Answer::Just(Code::NotOpen));
    assert!(world.asked().is_empty());
    world.wait(1_000_000);
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Store(_)), "{ask:?}");
    world.answer(conn, wire, Answer::Stored(9));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(9))));
}
