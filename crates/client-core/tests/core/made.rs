//! Parts of values of which the chunk is lost: who is asked for what, and what a node has made for who reads them.

use bytes::Bytes;
use client_core::{Coding, Config, ConnId, Done, LostBy, Op, RequestId};
use native::{
    Answer, Ask, Capabilities, Cells, Code, FetchAsk, FoundChunks, FromServer, GetAsk, Meta, Piece, Range,
    Value,
};
use types::checksum;

use crate::chunks::{CELL, LEN, cell, chunked_at, value};
use crate::world::{World, address};

/// A part of the second cell.
const PART: Range = Range { start: 60_000, len: 1_000 };

fn meta(version: u64) -> Meta {
    Meta { version, flags: 0, ttl: None, value_len: LEN as u64 }
}

fn config(decode: Coding, lost_by: LostBy) -> Config {
    Config { seeds: vec![address(0)], encode: decode, decode, lost_by, ..Config::default() }
}

/// A client of servers that know all there is.
fn client(lost_by: LostBy) -> World {
    World::with(config(Coding::Client, lost_by)).made_ready()
}

/// A read of a part that has been told where the chunks are, and whom it asks then for the cells of which role.
fn reads(world: &mut World, range: Range) -> (RequestId, Vec<(ConnId, u64, FetchAsk)>) {
    reads_at(world, range, [0, 1, 0])
}

/// The same with roles at these nodes.
fn reads_at(world: &mut World, range: Range, nodes: [u16; 3]) -> (RequestId, Vec<(ConnId, u64, FetchAsk)>) {
    let id = world.submit(Op::Get { range: Some(range), touch: None });
    let (conn, wire, ask) = world.one();
    assert!(matches!(ask, Ask::Get(get) if get.direct));
    let part = (range.start, range.len);
    let found = FoundChunks { meta: meta(5), part, pin: None, pin_ms: 30_000, chunks: chunked_at(nodes) };
    world.answer(conn, wire, Answer::Chunks(Box::new(found)));
    (id, fetches(world))
}

/// What is asked for, which has to be cells.
fn fetches(world: &mut World) -> Vec<(ConnId, u64, FetchAsk)> {
    let asked = world.asked().into_iter().map(|(conn, wire, request)| match request.ask {
        Ask::Fetch(fetch) => (conn, wire, *fetch),
        other => panic!("{other:?}"),
    });
    asked.collect()
}

fn roles(fetches: &[(ConnId, u64, FetchAsk)]) -> Vec<u8> {
    let mut roles: Vec<u8> = fetches.iter().map(|(_, _, fetch)| fetch.member.role.0).collect();
    roles.sort_unstable();
    roles
}

fn send(world: &mut World, (conn, wire, fetch): (ConnId, u64, FetchAsk)) {
    let cell = cell(usize::from(fetch.member.role.0));
    let cells = Cells { cell_len: CELL as u32, checksums: vec![checksum(&cell)] };
    world.answer(conn, wire, Answer::Cells(cells));
    world.say(conn, FromServer::Piece(Piece { id: wire, bytes: cell.into() }));
    world.say(conn, FromServer::End(wire, Code::Whole));
}

fn expected() -> Vec<u8> {
    value()[PART.start as usize..(PART.start + PART.len) as usize].to_vec()
}

/// A read of the part whose holder has not got it: what a node is asked for.
fn lacks(world: &mut World) -> (RequestId, ConnId, u64, GetAsk) {
    let (id, fetches) = reads(world, PART);
    assert_eq!(roles(&fetches), [1], "nobody else has anything of it");
    world.answer(fetches[0].0, fetches[0].1, Answer::Just(Code::Miss));
    let (conn, wire, ask) = world.one();
    let Ask::Get(get) = ask else { panic!("{ask:?}") };
    assert_eq!((get.range, get.direct, get.window), (Some(PART), false, 1_000));
    (id, conn, wire, get)
}

fn made(version: u64, bytes: Option<Vec<u8>>) -> Answer {
    let Range { start, len } = PART;
    Answer::Value(Value { meta: meta(version), start, len, bytes: bytes.map(Bytes::from) })
}

/// The others are asked for their cells, and the part is made of these.
fn goes_on_by_a_star(world: &mut World, id: RequestId) {
    let others = fetches(world);
    assert_eq!(roles(&others), [0, 2]);
    others.into_iter().for_each(|fetch| send(world, fetch));
    assert_eq!((world.data(id), world.done(id)), (expected(), Ok(Done::Value)));
    assert_eq!(world.core.stats().decoded_rows, 1);
}

#[test]
fn of_a_part_only_the_cells_are_fetched_in_which_it_lies() {
    for lost_by in [LostBy::Star, LostBy::Graph] {
        let mut world = client(lost_by);
        let (id, fetches) = reads(&mut world, PART);
        assert_eq!(roles(&fetches), [1]);
        fetches.into_iter().for_each(|fetch| send(&mut world, fetch));
        assert_eq!((world.data(id), world.done(id)), (expected(), Ok(Done::Value)));
    }
    let mut world = client(LostBy::Star);
    let (id, fetches) = reads(&mut world, Range { start: CELL as u64 - 1, len: 2 });
    assert_eq!(roles(&fetches), [0, 1]);
    fetches.into_iter().for_each(|fetch| send(&mut world, fetch));
    assert_eq!(world.data(id), value()[CELL - 1..=CELL]);
}

#[test]
fn a_star_has_as_many_others_come_as_make_a_lost_cell() {
    let mut world = client(LostBy::Star);
    let (id, fetches) = reads(&mut world, PART);
    world.answer(fetches[0].0, fetches[0].1, Answer::Just(Code::Miss));
    goes_on_by_a_star(&mut world, id);
    assert_eq!(world.core.stats().graph_cells, 0);
}

#[test]
fn of_what_a_graph_makes_nothing_comes_but_the_part() {
    for in_pieces in [false, true] {
        let mut world = client(LostBy::Graph);
        let (id, conn, wire, get) = lacks(&mut world);
        assert!(get.by_graph);
        world.answer(conn, wire, made(5, (!in_pieces).then(expected)));
        if in_pieces {
            for bytes in expected().chunks(600) {
                let bytes = Bytes::copy_from_slice(bytes);
                world.say(conn, FromServer::Piece(Piece { id: wire, bytes }));
            }
            world.say(conn, FromServer::End(wire, Code::Whole));
        }
        assert_eq!((world.data(id), world.done(id)), (expected(), Ok(Done::Value)));
        let stats = world.core.stats();
        assert_eq!((stats.graph_cells, stats.decoded_rows, stats.reads), (1, 0, 1));
    }
}

#[test]
fn what_is_not_made_is_made_of_others_here() {
    // Of another value; too little of it; none.
    for answer in [made(6, Some(expected())), Answer::Just(Code::Unavailable), Answer::Just(Code::Miss)] {
        let mut world = client(LostBy::Graph);
        let (id, conn, wire, _) = lacks(&mut world);
        world.answer(conn, wire, answer);
        goes_on_by_a_star(&mut world, id);
    }
    let mut world = client(LostBy::Graph);
    let (id, conn, wire, _) = lacks(&mut world);
    world.answer(conn, wire, made(5, None));
    world.say(conn, FromServer::End(wire, Code::Busy));
    goes_on_by_a_star(&mut world, id);
}

#[test]
fn what_begins_to_come_of_another_value_is_not_wanted() {
    let mut world = client(LostBy::Graph);
    let (id, conn, wire, _) = lacks(&mut world);
    world.answer(conn, wire, made(6, None));
    assert!(world.cancelled(wire));
    world.say(conn, FromServer::Piece(Piece { id: wire, bytes: vec![7; 1_000].into() }));
    world.say(conn, FromServer::End(wire, Code::Cancelled));
    goes_on_by_a_star(&mut world, id);
}

#[test]
fn who_has_it_made_is_not_waited_for_for_ever() {
    let mut world = client(LostBy::Graph);
    let (id, _, wire, _) = lacks(&mut world);
    world.wait(25_000);
    assert!(world.asked().is_empty(), "a graph may take longer than a cell");
    world.wait(225_000);
    goes_on_by_a_star(&mut world, id);
    assert!(world.cancelled(wire), "when its read is over");
}

#[test]
fn a_node_that_is_lost_with_it_costs_a_star() {
    let mut world = client(LostBy::Graph);
    let (id, fetches) = reads_at(&mut world, PART, [1, 1, 1]);
    world.answer(fetches[0].0, fetches[0].1, Answer::Just(Code::Miss));
    let (conn, ..) = world.one();
    assert_eq!((conn, fetches[0].0), (world.conn(0), world.conn(1)));
    world.lose(0);
    goes_on_by_a_star(&mut world, id);
}

#[test]
fn all_of_a_row_takes_one_cell_in_the_place_of_a_lost_one_and_no_graph() {
    let mut world = client(LostBy::Graph);
    let (id, fetches) = reads(&mut world, Range { start: 0, len: LEN as u64 });
    assert_eq!(roles(&fetches), [0, 1]);
    for fetch in fetches {
        match fetch.2.member.role.0 {
            1 => world.answer(fetch.0, fetch.1, Answer::Just(Code::Miss)),
            _ => send(&mut world, fetch),
        }
    }
    let others = self::fetches(&mut world);
    assert_eq!(roles(&others), [2]);
    others.into_iter().for_each(|fetch| send(&mut world, fetch));
    assert_eq!((world.data(id), world.done(id)), (value().to_vec(), Ok(Done::Value)));
    assert_eq!(world.core.stats().graph_cells, 0);
}

#[test]
fn who_knows_no_graphs_is_asked_for_the_part_all_the_same() {
    let without = Capabilities(Capabilities::ALL.0 & !Capabilities::GRAPHS.0);
    let mut world = World::with(config(Coding::Client, LostBy::Graph)).of_servers_with(without).made_ready();
    let (id, conn, wire, get) = lacks(&mut world);
    assert!(!get.by_graph);
    world.answer(conn, wire, made(5, Some(expected())));
    assert_eq!((world.data(id), world.done(id)), (expected(), Ok(Done::Value)));
}

#[test]
fn who_leaves_it_to_nodes_tells_them_how() {
    for (lost_by, by_graph) in [(LostBy::Star, false), (LostBy::Graph, true)] {
        let mut world = World::with(config(Coding::Server, lost_by)).made_ready();
        world.submit(Op::Get { range: Some(PART), touch: None });
        let (_, _, ask) = world.one();
        assert!(matches!(ask, Ask::Get(get) if get.by_graph == by_graph && !get.direct), "{ask:?}");
    }
}
