//! What is done again, and what is not.

use bytes::Bytes;
use client_core::{Body, Done, Error, Op};
use native::{Answer, Ask, Closing, Code, FromServer, Range, Reason, RouteChanges, RouteNode, Window};
use types::op::Direction;
use types::{ClusterId, NodeId, PoolId};

use crate::world::{World, address, piece, value};

fn short() -> Body {
    Body::Here(Bytes::from_static(b"v"))
}

#[test]
fn a_read_is_asked_elsewhere_when_its_connection_is_lost() {
    let mut world = World::ready();
    let id = world.get("k");
    world.one();
    world.lose(0);
    let (conn, wire, _) = world.one();
    assert_eq!(conn, world.conn(1));
    world.answer(conn, wire, value(1, 1, (0, 1), Some(b"v")));
    assert_eq!(world.done(id), Ok(Done::Value));
}

#[test]
fn a_write_whose_frame_has_left_is_never_sent_again() {
    let mut world = World::ready();
    let up = Op::Arith { direction: Direction::Increment, delta: 1, initial: None };
    let ids = [world.set(short()), world.submit(up), world.submit(Op::Delete { compare: None })];
    assert_eq!(world.asked().len(), 3);
    world.lose(0);
    assert_eq!(ids.map(|id| world.done(id)), [Err(Error::Unknown), Err(Error::Unknown), Err(Error::Unknown)]);
    assert!(world.asked().is_empty());
}

#[test]
fn a_write_whose_frame_has_not_left_is() {
    let mut world = World::ready();
    let id = world.set(short());
    // The core has made a frame of it, which nobody has taken.
    let conn = world.conn(0);
    world.open.remove(&conn);
    world.core.lost(world.now, conn);
    let (other, wire, _) = world.one();
    assert_eq!(other, world.conn(1));
    world.answer(other, wire, Answer::Stored(1));
    assert!(world.done(id).is_ok());
}

#[test]
fn a_long_write_is_sent_again_unless_all_of_it_has_left() {
    for (window, again) in [(199_999, true), (200_000, false)] {
        let mut world = World::ready();
        let id = world.set(Body::Here(Bytes::from(vec![7; 200_000])));
        let (conn, wire, _) = world.one();
        world.say(conn, FromServer::Window(Window { id: wire, bytes: window }));
        assert_eq!(world.pieces().iter().map(|piece| piece.bytes.len()).sum::<usize>(), window as usize);
        world.lose(0);
        if !again {
            assert_eq!(world.done(id), Err(Error::Unknown));
            continue;
        }
        let (conn, wire, _) = world.one();
        world.say(conn, FromServer::Window(Window { id: wire, bytes: 200_000 }));
        assert_eq!(world.pieces().iter().map(|piece| piece.bytes.len()).sum::<usize>(), 200_000);
        world.answer(conn, wire, Answer::Stored(1));
        assert!(world.done(id).is_ok());
    }
}

#[test]
fn a_fed_value_that_has_begun_is_gone_and_nothing_was_done() {
    let mut world = World::ready();
    let id = world.set(Body::Fed(200_000));
    let (conn, wire, _) = world.one();
    world.say(conn, FromServer::Window(Window { id: wire, bytes: 200_000 }));
    world.core.feed(world.now, id, Bytes::from(vec![7; 100_000]));
    world.settle();
    world.lose(0);
    let error = world.done(id).unwrap_err();
    assert_eq!((error, error.is_harmless()), (Error::Interrupted(100_000), true));
    // Before it has begun it can go elsewhere.
    let mut world = World::ready();
    let id = world.set(Body::Fed(200_000));
    world.one();
    world.core.feed(world.now, id, Bytes::from(vec![7; 100_000]));
    world.lose(0);
    assert_eq!(world.asked().len(), 1);
    assert_eq!(world.ended(id), None);
}

#[test]
fn what_a_server_has_not_done_is_asked_again_after_a_pause() {
    for code in [Code::Busy, Code::Unavailable] {
        let mut world = World::ready();
        let id = world.set(short());
        for _ in 0..3 {
            let (conn, wire, _) = world.one();
            world.answer(conn, wire, Answer::Just(code));
            assert!(world.asked().is_empty(), "not at once");
            world.wait(400_000);
        }
        let (conn, wire, _) = world.one();
        world.answer(conn, wire, Answer::Stored(1));
        assert!(world.done(id).is_ok());
    }
}

#[test]
fn other_failures_are_the_callers() {
    for code in Code::ALL.iter().copied().filter(|code| *code as u8 >= 64 && !code.may_repeat()) {
        let mut world = World::ready();
        let id = world.set(short());
        let (conn, wire, _) = world.one();
        world.answer(conn, wire, Answer::Just(code));
        assert_eq!(world.done(id), Err(Error::Code(code)));
    }
}

#[test]
fn a_read_whose_key_has_nothing_any_more_has_no_end() {
    let mut world = World::ready();
    let id = world.get("k");
    let (conn, wire, _) = world.one();
    world.answer(conn, wire, value(5, 150_000, (0, 150_000), None));
    world.say(conn, piece(wire, 60_000));
    world.lose(0);
    let (conn, wire, _) = world.one();
    world.answer(conn, wire, Answer::Just(Code::NotFound));
    assert_eq!(world.done(id), Err(Error::Changed));
}

#[test]
fn a_read_goes_on_where_it_was_if_the_value_is_the_same() {
    for (version, same) in [(5, true), (6, false)] {
        let mut world = World::ready();
        let id = world.get("k");
        let (conn, wire, _) = world.one();
        world.answer(conn, wire, value(5, 150_000, (0, 150_000), None));
        world.say(conn, piece(wire, 60_000));
        world.lose(0);
        let (conn, wire, ask) = world.one();
        let Ask::Get(get) = ask else { panic!("no read") };
        // What the caller has not taken counts.
        assert_eq!((get.range, get.window), (Some(Range { start: 60_000, len: 90_000 }), 40_000));
        world.answer(conn, wire, value(version, 150_000, (60_000, 90_000), None));
        if !same {
            assert_eq!(world.done(id), Err(Error::Changed));
            assert!(world.cancelled(wire));
            continue;
        }
        world.say(conn, piece(wire, 60_000));
        world.say(conn, piece(wire, 30_000));
        world.say(conn, FromServer::End(wire, Code::Whole));
        assert_eq!((world.done(id), world.data(id).len()), (Ok(Done::Value), 150_000));
    }
}

#[test]
fn a_deadline_is_kept_and_says_what_is_known() {
    let mut world = World::ready();
    let sent = world.set(short());
    world.one();
    world.wait(9_999_999);
    assert_eq!(world.ended(sent), None);
    world.wait(1);
    assert_eq!(world.done(sent), Err(Error::TimedOut));
    let mut world = World::new();
    let unsent = world.set(short());
    world.wait(10_000_000);
    let error = world.done(unsent).unwrap_err();
    assert_eq!((error, error.is_harmless()), (Error::Unreachable, true));
    assert_eq!(world.core.unfinished(), 0);
}

#[test]
fn what_is_asked_of_a_node_that_the_map_calls_dead_goes_elsewhere() {
    let mut world = World::ready();
    let (read, write) = (world.get("k"), world.set(short()));
    assert_eq!(world.asked().len(), 2);
    let changes = RouteChanges {
        cluster: ClusterId(1),
        since: 7,
        version: 8,
        nodes: vec![(NodeId(0), RouteNode { native: Some(address(0)), alive: false })],
        gone: vec![],
        primaries: (0..8).map(|at| (PoolId(0), at, Some(NodeId(1)))).collect(),
    };
    let other = world.conn(1);
    world.say(other, FromServer::Changes(Box::new(changes)));
    assert_eq!(world.done(write), Err(Error::Unknown));
    let (conn, wire, _) = world.one();
    assert_eq!(conn, other);
    world.answer(conn, wire, value(1, 1, (0, 1), Some(b"v")));
    assert_eq!(world.done(read), Ok(Done::Value));
    assert!(!world.open.values().any(|at| *at == address(0)));
}

#[test]
fn a_node_that_ends_or_never_welcomes_is_left() {
    let mut world = World::ready();
    let id = world.get("k");
    let (conn, _, _) = world.one();
    world.say(conn, FromServer::Closing(0, Closing::with(Reason::Ends)));
    let (other, wire, _) = world.one();
    assert_eq!(other, world.conn(1));
    world.answer(other, wire, Answer::Just(Code::Miss));
    assert!(world.done(id).is_ok());
    let mut world = World::new();
    world.get("k");
    world.settle();
    let first = world.conn(0);
    world.wait(1_000_000);
    assert!(!world.open.contains_key(&first), "it has said nothing for too long");
    world.wait(10_000);
    assert_eq!(world.open.len(), 1, "and is tried again after a pause");
}

#[test]
fn changes_that_do_not_fit_are_a_reason_to_ask_for_the_map() {
    let mut world = World::ready();
    let conn = world.conn(1);
    let changes = RouteChanges {
        cluster: ClusterId(1),
        since: 9,
        version: 10,
        nodes: vec![],
        gone: vec![],
        primaries: vec![],
    };
    world.say(conn, FromServer::Changes(Box::new(changes)));
    assert!(world.heard[&conn].contains(&native::FromClient::MapWanted(0)));
}

#[test]
fn who_closes_is_told_of_everything() {
    let mut world = World::ready();
    let ids = [world.get("k"), world.set(short())];
    world.settle();
    world.core.close();
    assert_eq!(ids.map(|id| world.done(id)), [Err(Error::Closed), Err(Error::Closed)]);
    assert!(world.open.is_empty() && world.core.unfinished() == 0);
}
