//! Routing, credits, windows.

use bytes::Bytes;
use client_core::{Body, Config, Done, Error, Event, Op, Operation};
use native::{Answer, Ask, Capabilities, Code, Content, FromServer, Range, Window};
use types::NodeId;

use crate::world::{CREDITS, World, address, piece, value};

#[test]
fn the_map_comes_first_and_requests_go_to_the_primary() {
    let mut world = World::new();
    let id = world.get("k");
    world.settle();
    assert_eq!(world.open.values().copied().collect::<Vec<_>>(), [address(0)]);
    assert!(world.asked().is_empty(), "nobody is welcome yet");
    world.map.pools.values_mut().for_each(|pool| pool.primaries.fill(Some(NodeId(1))));
    world.welcome(0);
    world.welcome(1);
    let (conn, wire, ask) = world.one();
    assert_eq!((conn, matches!(ask, Ask::Get(_))), (world.conn(1), true));
    world.answer(conn, wire, value(3, 5, (0, 5), Some(b"hello")));
    assert_eq!(world.done(id), Ok(Done::Value));
    assert_eq!(world.data(id), b"hello");
    assert_eq!(world.core.unfinished(), 0);
}

#[test]
fn seeds_that_refuse_are_left_for_the_next_ones_wherever_the_good_one_is() {
    let bad = [5, 6, 7];
    for (good, asks) in (0..=bad.len()).flat_map(|good| [(good, false), (good, true)]) {
        let mut seeds: Vec<_> = bad.map(address).into();
        seeds.insert(good, address(0));
        let mut world = World::with(Config { seeds, sessions: false, ..Config::default() });
        if asks {
            world.get("k");
        } else {
            world.core.reach_out(world.now);
        }
        world.settle();
        for _ in 0..bad.len() {
            let open: Vec<_> = world.open.values().copied().collect();
            bad.iter().filter(|node| open.contains(&address(**node))).for_each(|node| world.lose(*node));
        }
        world.welcome(0);
        assert!(world.core.map().is_some(), "the good one has place {good}");
    }
}

#[test]
fn a_seed_that_answers_later_is_tried_again_also_by_who_has_asked_for_nothing() {
    let mut world = World::with(Config { seeds: vec![address(0)], ..Config::default() });
    world.core.reach_out(world.now);
    world.settle();
    world.lose(0);
    assert!(world.open.is_empty());
    let again = world.core.next_deadline(world.now).unwrap();
    world.wait(again.since(world.now));
    world.welcome(0);
    assert!(world.core.map().is_some());
}

#[test]
fn no_more_is_asked_than_there_are_credits_and_a_last_frame_gives_one_back() {
    let mut world = World::ready();
    let ids: Vec<_> = (0..10).map(|_| world.get("k")).collect();
    let asked = world.asked();
    assert_eq!(asked.len(), CREDITS as usize);
    // A value in pieces keeps its credit until its end.
    let (conn, wire, _) = asked[0];
    world.answer(conn, wire, value(1, 200_000, (0, 200_000), None));
    assert!(world.asked().is_empty());
    world.answer(conn, asked[1].1, Answer::Just(Code::Miss));
    assert_eq!(world.asked().len(), 1);
    // One that nobody waits for any more, too.
    world.core.cancel(ids[0]);
    assert_eq!(world.done(ids[0]), Err(Error::Cancelled));
    assert!(world.cancelled(wire) && world.asked().is_empty());
    world.say(conn, piece(wire, 1000));
    world.say(conn, FromServer::End(wire, Code::Cancelled));
    assert_eq!(world.asked().len(), 1);
    assert!(world.data(ids[0]).is_empty());
}

#[test]
fn answers_come_in_any_order() {
    let mut world = World::ready();
    let ids = [world.get("a"), world.get("b"), world.get("c")];
    let asked = world.asked();
    for (at, bytes) in [(2, b"c"), (0, b"a"), (1, b"b")] {
        world.answer(asked[at].0, asked[at].1, value(1, 1, (0, 1), Some(bytes)));
    }
    assert_eq!(ids.map(|id| world.data(id)), [b"a", b"b", b"c"].map(|bytes| bytes.to_vec()));
}

#[test]
fn a_long_value_is_sent_as_far_as_its_window_goes() {
    let mut world = World::ready();
    let id = world.set(Body::Here(Bytes::from(vec![7; 200_000])));
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Store(store) if store.content == Content::Pieces(200_000)));
    assert!(world.pieces().is_empty());
    world.say(conn, FromServer::Window(Window { id: wire, bytes: 70_000 }));
    let lens = |world: &mut World| world.pieces().iter().map(|piece| piece.bytes.len()).collect::<Vec<_>>();
    assert_eq!(lens(&mut world), [65_536, 4464]);
    world.say(conn, FromServer::Window(Window { id: wire, bytes: 130_000 }));
    assert_eq!(lens(&mut world), [65_536, 64_464]);
    world.answer(conn, wire, Answer::Stored(9));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(9))));
}

#[test]
fn long_values_take_turns() {
    let mut world = World::ready();
    for _ in 0..2 {
        world.set(Body::Here(Bytes::from(vec![7; 200_000])));
    }
    let asked = world.asked();
    let window = |at: usize| FromServer::Window(Window { id: asked[at].1, bytes: 200_000 });
    // Both before anything leaves.
    let (first, second) = (window(0), window(1));
    let mut bytes = Vec::new();
    first.put(&mut bytes);
    second.put(&mut bytes);
    world.core.received(world.now, asked[0].0, &mut bytes::BytesMut::from(&bytes[..]));
    let of: Vec<u64> = world.pieces().iter().map(|piece| piece.id).collect();
    assert_eq!(of.len(), 8);
    assert!(of.contains(&asked[0].1) && of.contains(&asked[1].1));
}

#[test]
fn a_fed_value_is_asked_for_bit_by_bit() {
    let mut world = World::ready();
    let id = world.set(Body::Fed(300_000));
    let (conn, wire, _) = world.one();
    assert!(world.events.contains(&Event::Wants(id)));
    world.say(conn, FromServer::Window(Window { id: wire, bytes: 300_000 }));
    assert!(world.pieces().is_empty());
    for _ in 0..3 {
        world.core.feed(world.now, id, Bytes::from(vec![7; 100_000]));
    }
    assert_eq!(world.pieces().iter().map(|piece| piece.bytes.len()).sum::<usize>(), 300_000);
    world.answer(conn, wire, Answer::Stored(9));
    assert!(world.done(id).is_ok());
    // One that is short leaves when it is whole.
    let id = world.set(Body::Fed(10));
    world.core.feed(world.now, id, Bytes::from_static(b"01234"));
    assert!(world.asked().is_empty());
    world.core.feed(world.now, id, Bytes::from_static(b"56789"));
    let (_, _, ask) = world.one();
    assert!(
        matches!(ask, Ask::Store(store) if store.content == Content::Here(Bytes::from_static(b"0123456789")))
    );
    // And one that is longer than it says is refused.
    let id = world.set(Body::Fed(10));
    world.core.feed(world.now, id, Bytes::from_static(b"0123456789x"));
    assert_eq!(world.done(id), Err(Error::TooLarge));
}

#[test]
fn more_is_granted_as_the_caller_takes_what_has_come() {
    let mut world = World::ready();
    let id = world.get("k");
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Get(get) if get.window == 100_000));
    world.answer(conn, wire, value(1, 300_000, (0, 300_000), None));
    world.say(conn, piece(wire, 60_000));
    world.say(conn, piece(wire, 40_000));
    assert!(world.windows().is_empty(), "nothing was taken");
    world.core.taken(id, 30_000);
    assert!(world.windows().is_empty(), "not for so little");
    world.core.taken(id, 60_000);
    assert_eq!(world.windows(), [Window { id: wire, bytes: 90_000 }]);
    world.core.taken(id, u64::MAX);
    assert!(world.windows().is_empty(), "no more than had come");
}

#[test]
fn bounds_of_a_caller_are_told_at_once() {
    let mut world = World::with(Config { max_requests: 2, sessions: false, ..Config::default() });
    let operation = |key: Bytes, body| {
        let mode = types::op::StoreMode::Set;
        Operation { key, op: Op::Store { mode, body, flags: 0, ttl: 0, compare: None }, timeout_us: None }
    };
    let now = world.now;
    let mut submit = |key, body| world.core.submit(now, operation(key, body)).map(drop);
    let key = Bytes::from_static(b"k");
    assert_eq!(submit(Bytes::new(), Body::Fed(1)), Err(Error::BadKey));
    assert_eq!(submit(Bytes::from(vec![7; 251]), Body::Fed(1)), Err(Error::BadKey));
    assert_eq!(submit(key.clone(), Body::Fed(u64::MAX)), Err(Error::TooLarge));
    assert_eq!(submit(key.clone(), Body::Fed(1)), Ok(()));
    assert_eq!(submit(key.clone(), Body::Fed(1)), Ok(()));
    assert_eq!(submit(key, Body::Fed(1)), Err(Error::Full));
}

#[test]
fn a_range_is_asked_for_as_it_is() {
    let mut world = World::ready();
    let range = Some(Range { start: 10, len: 5 });
    let id = world.submit(Op::Get { range, touch: None });
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Get(get) if get.range == range));
    world.answer(conn, wire, value(1, 12, (10, 2), Some(b"ab")));
    assert_eq!((world.done(id), world.data(id)), (Ok(Done::Value), b"ab".to_vec()));
}

#[test]
fn a_server_that_breaks_the_protocol_is_left() {
    let mut world = World::ready();
    let id = world.get("k");
    let (conn, wire, _) = world.one();
    world.answer(conn, wire, value(1, 100_000, (0, 100_000), None));
    world.say(conn, piece(wire, 60_000));
    world.say(conn, piece(wire, 60_000));
    assert!(!world.open.contains_key(&conn));
    assert_eq!(world.data(id).len(), 60_000);
    let (other, _, ask) = world.one();
    let rest = Range { start: 60_000, len: 40_000 };
    assert!(other != conn && matches!(ask, Ask::Get(get) if get.range == Some(rest)));
}

#[test]
fn memory_of_a_value_that_has_not_been_sent_is_free_once_its_request_has_ended() {
    let mut world = World::ready();
    let value = Bytes::from(vec![7; 40_000]);
    let memory = value.as_ptr() as usize..value.as_ptr() as usize + value.len();
    let id = world.set(Body::Here(value.clone()));
    world.core.cancel(id);
    assert!(!value.is_unique(), "it waits to be sent");
    world.core.disown(&memory);
    assert!(value.is_unique());
    world.settle();
    let is_set = |ask: &Ask| matches!(ask, Ask::Store(store) if matches!(&store.content, Content::Here(bytes) if *bytes == value));
    assert!(world.asked().iter().any(|(_, _, request)| is_set(&request.ask)), "the frame is sent as it was");
    world.core.close();
    let op = Op::Get { range: None, touch: None };
    let operation = Operation { key: Bytes::from_static(b"k"), op, timeout_us: None };
    assert_eq!(world.core.submit(world.now, operation), Err(Error::Closed));
}

#[test]
fn a_server_that_knows_no_pages_is_asked_for_the_first_one_alone() {
    for (pages, from) in [(true, 0), (true, 7), (false, 0), (false, 7)] {
        let known = if pages { Capabilities::ALL } else { Capabilities::MAP };
        let mut world = World::knowing(known);
        let id = world.submit(Op::Locate { from });
        if pages || from == 0 {
            assert_eq!(world.one().2, Ask::Locate { from });
        } else {
            let error = world.done(id).unwrap_err();
            assert_eq!((error, error.is_harmless(), world.asked().len()), (Error::TooOld, true, 0));
        }
    }
}
