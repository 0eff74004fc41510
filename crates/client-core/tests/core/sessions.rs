//! Writes that have names: they are sent again under them until their end is known.

use bytes::Bytes;
use client_core::{Body, Config, Done, Error, Op};
use native::{Answer, Ask, Capabilities, Code, FromServer, Window};
use types::op::Direction;
use types::{ClientSession, Once};

use crate::world::{World, address};

const SESSION: ClientSession = ClientSession(40);

fn up() -> Op {
    Op::Arith { direction: Direction::Increment, delta: 1, initial: None }
}

/// A client that has a session where its only key is.
fn with_session() -> World {
    let mut world = World::with_sessions();
    let id = world.submit(up());
    let (conn, wire, ask) = world.one();
    assert_eq!(ask, Ask::Session, "the first write of a data role asks for one");
    world.answer(conn, wire, Answer::Session(SESSION));
    world.wait(0);
    let (conn, wire, once) = one_named(&mut world);
    assert_eq!(once, Once { session: SESSION, sequence: 1, behind: 0, again: false });
    world.answer(conn, wire, Answer::Number(1, 1));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Number(1, 1))));
    world
}

fn one_named(world: &mut World) -> (client_core::ConnId, u64, Once) {
    let mut asked = world.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let (conn, wire, request) = asked.pop().unwrap();
    (conn, wire, request.once.expect("it has a name"))
}

#[test]
fn a_write_that_has_waited_for_a_map_and_for_a_session_is_sent_once() {
    let mut world = World::with(Config { seeds: vec![address(0)], ..Config::default() });
    let id = world.submit(up());
    world.settle();
    world.welcome(0);
    let (conn, wire, ask) = world.one();
    assert_eq!(ask, Ask::Session);
    // The session is there, and so is the second node: both are a reason to look at what waits.
    world.answer(conn, wire, Answer::Session(SESSION));
    world.welcome(1);
    world.wait(0);
    let (conn, wire, once) = one_named(&mut world);
    assert_eq!((conn, once.sequence, once.again), (world.conn(0), 1, false));
    world.answer(conn, wire, Answer::Number(1, 1));
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Number(1, 1))));
}

#[test]
fn a_write_is_sent_again_under_its_name_when_its_connection_is_lost() {
    let mut world = with_session();
    let id = world.submit(up());
    let (_, _, first) = one_named(&mut world);
    world.lose(0);
    let (conn, wire, second) = one_named(&mut world);
    assert_eq!(conn, world.conn(1));
    assert_eq!(second, Once { again: true, ..first });
    world.answer(conn, wire, Answer::Number(2, 2));
    assert!(world.done(id).is_ok());
}

#[test]
fn what_a_server_does_not_know_is_asked_again_until_the_deadline() {
    let mut world = with_session();
    let id = world.submit(up());
    let (conn, wire, first) = one_named(&mut world);
    world.answer(conn, wire, Answer::Just(Code::Unknown));
    world.wait(400_000);
    let (conn, wire, second) = one_named(&mut world);
    assert_eq!(second, Once { again: true, ..first });
    // That nothing was done now says nothing of the first time.
    world.answer(conn, wire, Answer::Just(Code::Busy));
    world.wait(20_000_000);
    let error = world.done(id).unwrap_err();
    assert_eq!((error, error.is_harmless()), (Error::TimedOut, false));
}

#[test]
fn a_session_that_is_over_is_begun_anew_by_a_first_try_and_by_no_other() {
    let mut world = with_session();
    let id = world.submit(up());
    let (conn, wire, _) = one_named(&mut world);
    world.answer(conn, wire, Answer::Just(Code::NoSession));
    let (conn, wire, ask) = world.one();
    assert_eq!(ask, Ask::Session);
    world.answer(conn, wire, Answer::Session(ClientSession(50)));
    world.wait(0);
    let (conn, wire, once) = one_named(&mut world);
    assert_eq!((once.session, once.again), (ClientSession(50), false));
    world.answer(conn, wire, Answer::Just(Code::Unknown));
    world.wait(400_000);
    let (conn, wire, once) = one_named(&mut world);
    assert!(once.again);
    world.answer(conn, wire, Answer::Just(Code::Expired));
    let error = world.done(id).unwrap_err();
    assert_eq!((error, error.is_harmless()), (Error::Code(Code::Expired), false));
}

#[test]
fn where_there_are_no_sessions_writes_have_no_names() {
    let mut world = World::with_sessions();
    let id = world.submit(up());
    let (conn, wire, _) = world.one();
    world.answer(conn, wire, Answer::Just(Code::OutOfMemory));
    world.wait(0);
    let (_, _, request) = world.asked().pop().unwrap();
    assert_eq!(request.once, None);
    world.lose(0);
    assert_eq!(world.done(id), Err(Error::Unknown));
}

#[test]
fn a_server_that_knows_no_names_is_asked_for_none() {
    let mut world = World::knowing(Capabilities::MAP);
    let ids = [world.submit(up()), world.submit(up())];
    world.wait(0);
    let asked = world.asked();
    assert!(asked.iter().all(|(_, _, request)| request.once.is_none() && request.ask != Ask::Session));
    for (conn, wire, _) in asked {
        world.answer(conn, wire, Answer::Number(1, 1));
    }
    assert!(ids.into_iter().all(|id| world.done(id).is_ok()));
}

#[test]
fn what_is_waited_for_travels_with_every_write() {
    let mut world = with_session();
    let ids = [world.submit(up()), world.submit(up())];
    let asked = world.asked();
    let names: Vec<Once> = asked.iter().filter_map(|(_, _, request)| request.once).collect();
    assert_eq!(names.iter().map(|once| (once.sequence, once.behind)).collect::<Vec<_>>(), [(2, 0), (3, 1)]);
    world.answer(asked[0].0, asked[0].1, Answer::Number(2, 2));
    assert!(world.done(ids[0]).is_ok());
    world.submit(up());
    assert_eq!(one_named(&mut world).2.floor(), 3);
}

#[test]
fn a_long_value_that_has_left_is_sent_again_and_one_that_is_fed_is_not() {
    for fed in [false, true] {
        let mut world = with_session();
        let bytes = Bytes::from(vec![7; 100_000]);
        let id = world.set(if fed { Body::Fed(100_000) } else { Body::Here(bytes.clone()) });
        let (conn, wire, _) = one_named(&mut world);
        world.say(conn, FromServer::Window(Window { id: wire, bytes: 100_000 }));
        if fed {
            world.core.feed(world.now, id, bytes);
        }
        assert_eq!(world.pieces().iter().map(|piece| piece.bytes.len()).sum::<usize>(), 100_000);
        world.lose(0);
        if fed {
            assert_eq!(world.done(id), Err(Error::Unknown), "its bytes are gone");
        } else {
            assert!(one_named(&mut world).2.again);
        }
    }
}
