//! Values that are received where their callers want them, in whatever pieces they come.

use std::collections::BTreeMap;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes};
use client_core::{ConnId, Done, Error, Event, Intake, Landed, Landing, Next, RequestId, Rooms};
use native::{Answer, Ask, Cells, Chunked, Code, FoundChunks, FromServer, Meta, Piece, Value};
use types::{Geometry, checksum};

use crate::chunks::{CELL, LEN, cell, chunked_at, has_read, reads_at, role_of, value as chunked_value};
use crate::world::World;

/// Reads from connections as a shell does.
#[derive(Default)]
struct Shell {
    rooms: Memory,
    intakes: BTreeMap<ConnId, Intake>,
}

/// Rooms of requests, which stay theirs whatever becomes of them: only the core's word keeps others' bytes out.
struct Memory {
    of: BTreeMap<RequestId, Vec<u8>>,
    /// What is being received, and where it goes.
    gap: Limit<Vec<u8>>,
    goes: Option<(RequestId, usize)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { of: BTreeMap::new(), gap: Vec::new().limit(0), goes: None }
    }
}

impl Memory {
    fn flush(&mut self) {
        let Some((id, at)) = self.goes.take() else { return };
        let bytes = std::mem::take(self.gap.get_mut());
        self.of.get_mut(&id).unwrap()[at..at + bytes.len()].copy_from_slice(&bytes);
    }
}

impl Rooms for Memory {
    fn place(&mut self, landing: &Landing, at: u64, len: usize) -> Option<&mut dyn BufMut> {
        (self.gap, self.goes) = (Vec::new().limit(len), Some((landing.id, at as usize)));
        Some(&mut self.gap)
    }

    fn view(&mut self, landing: &Landing) -> Option<Landed> {
        let bytes = &self.of[&landing.id][landing.at as usize..][..landing.len];
        Some(Landed::Bytes(Bytes::copy_from_slice(bytes)))
    }
}

impl Shell {
    /// A read with room for so many bytes.
    fn get(&mut self, world: &mut World, room: usize) -> RequestId {
        let id = world.get("k");
        self.expect(world, id, room);
        id
    }

    fn expect(&mut self, world: &mut World, id: RequestId, room: usize) {
        world.core.receiving().has_room(id, room as u64);
        self.lend(id, room);
    }

    fn lend(&mut self, id: RequestId, room: usize) {
        self.rooms.of.insert(id, vec![0; room]);
    }

    fn room(&self, id: RequestId) -> &[u8] {
        &self.rooms.of[&id]
    }

    /// Bytes come from a connection, so many at a time.
    fn receive(&mut self, world: &mut World, conn: ConnId, bytes: &[u8], step: usize) {
        let Self { rooms, intakes } = self;
        let intake = intakes.entry(conn).or_insert_with(|| Intake::of(conn));
        let (now, mut rest) = (world.now, bytes);
        while !rest.is_empty() {
            let most = step.min(rest.len());
            if intake.lands() {
                let came = match intake.next(&mut world.core, rooms) {
                    Next::Place(place) => {
                        let came = most.min(place.remaining_mut());
                        place.put_slice(&rest[..came]);
                        came
                    }
                    Next::Scrap(left) => most.min(left),
                };
                rooms.flush();
                intake.came(came);
                intake.hear_landed(now, &mut world.core, rooms);
                rest = &rest[came..];
            } else {
                intake.input().extend_from_slice(&rest[..most]);
                intake.hear(now, &mut world.core, rooms);
                rooms.flush();
                rest = &rest[most..];
            }
            world.settle();
        }
    }
}

fn bytes(len: usize) -> Bytes {
    (0..len).map(|at| (at * 13 % 251) as u8).collect::<Vec<u8>>().into()
}

fn frame(message: &FromServer) -> Vec<u8> {
    let mut out = Vec::new();
    message.put(&mut out);
    out
}

fn answer(wire: u64, version: u64, all: &Bytes, (start, len): (usize, usize), is_here: bool) -> Vec<u8> {
    let meta = Meta { version, flags: 0, ttl: None, value_len: all.len() as u64 };
    let bytes = is_here.then(|| all.slice(start..start + len));
    let value = Value { meta, start: start as u64, len: len as u64, bytes };
    frame(&FromServer::Answer(wire, Box::new(Answer::Value(value))))
}

fn piece(wire: u64, bytes: Bytes) -> Vec<u8> {
    frame(&FromServer::Piece(Piece { id: wire, bytes }))
}

fn end(wire: u64) -> Vec<u8> {
    frame(&FromServer::End(wire, Code::Whole))
}

const STEPS: [usize; 6] = [1, 17, 512, 4_095, 20_000, 200_000];

#[test]
fn pieces_land_one_behind_the_other_however_they_are_cut() {
    for step in STEPS {
        let (mut world, mut shell, all) = (World::ready(), Shell::default(), bytes(90_000));
        let id = shell.get(&mut world, 100_000);
        let (conn, wire, _) = world.one();
        let first = [answer(wire, 3, &all, (0, 90_000), false), piece(wire, all.slice(..50_000))].concat();
        let rest =
            [piece(wire, all.slice(50_000..88_000)), piece(wire, all.slice(88_000..)), end(wire)].concat();
        assert!(world.core.receiving().awaits_values(conn));
        shell.receive(&mut world, conn, &[first, rest].concat(), step);
        assert_eq!((world.data(id) == all, world.done(id)), (true, Ok(Done::Value)), "steps of {step}");
        // The last piece is too short to be worth it, and so is what comes in one piece with its head.
        let landed = world.core.stats().landed_bytes;
        assert_eq!(landed, if step > 100_000 { 0 } else { 88_000 }, "steps of {step}");
        if landed > 0 {
            assert!(shell.room(id)[..88_000] == all[..88_000]);
        }
        assert!(!world.core.receiving().awaits_values(conn));
    }
}

#[test]
fn a_value_in_the_frame_of_its_answer_lands_unless_it_is_short_or_has_no_room() {
    for (len, room, lands) in [(60_000, 60_000, true), (60_000, 59_999, false), (1_000, 60_000, false)] {
        let (mut world, mut shell, all) = (World::ready(), Shell::default(), bytes(len));
        let id = shell.get(&mut world, room);
        let (conn, wire, _) = world.one();
        shell.receive(&mut world, conn, &answer(wire, 3, &all, (0, len), true), 300);
        assert_eq!((world.data(id) == all, world.done(id)), (true, Ok(Done::Value)));
        assert!(
            matches!(&world.events[..], [.., Event::Head(of, _, all), _, _] if (*of, *all) == (id, len as u64))
        );
        assert_eq!(world.core.stats().landed_bytes, if lands { len as u64 } else { 0 });
        assert_eq!(
            shell.room(id).iter().any(|byte| *byte != 0),
            lands,
            "a room that is too short stays as it is"
        );
    }
}

#[test]
fn pieces_of_several_values_land_each_in_its_room() {
    let (mut world, mut shell, all) = (World::ready(), Shell::default(), bytes(66_000));
    let ids = [0, 1, 2].map(|_| shell.get(&mut world, 66_000));
    let asked = world.asked();
    let conn = asked[0].0;
    let heads = asked.iter().flat_map(|(_, wire, _)| answer(*wire, 3, &all, (0, 66_000), false));
    let pieces = [0..30_000, 30_000..60_000, 60_000..66_000].into_iter().flat_map(|range| {
        let of = |(_, wire, _): &(ConnId, u64, native::Request)| piece(*wire, all.slice(range.clone()));
        asked.iter().rev().flat_map(of).collect::<Vec<u8>>()
    });
    let ends = asked.iter().flat_map(|(_, wire, _)| end(*wire));
    let stream: Vec<u8> = heads.chain(pieces).chain(ends).collect();
    shell.receive(&mut world, conn, &stream, 7_001);
    for id in ids {
        assert_eq!((world.data(id) == all, world.done(id)), (true, Ok(Done::Value)));
        // What comes as a whole with its head does not land.
        assert!(shell.room(id).iter().zip(&all).all(|(here, there)| here == there || *here == 0));
    }
    assert!(world.core.stats().landed_bytes >= 3 * 60_000);
}

#[test]
fn what_is_cancelled_in_the_middle_of_a_frame_is_written_to_no_more_and_costs_nothing_else() {
    for is_in_answer in [false, true] {
        let (mut world, mut shell, all) = (World::ready(), Shell::default(), bytes(60_000));
        let id = shell.get(&mut world, 70_000);
        let (conn, wire, _) = world.one();
        let stream = if is_in_answer {
            answer(wire, 3, &all, (0, 60_000), true)
        } else {
            [answer(wire, 3, &all, (0, 60_000), false), piece(wire, all.clone())].concat()
        };
        shell.receive(&mut world, conn, &stream[..30_000], 500);
        world.core.cancel(id);
        assert_eq!(world.done(id), Err(Error::Cancelled));
        let before = shell.room(id).to_vec();
        assert!(before.iter().any(|byte| *byte != 0));
        shell.receive(&mut world, conn, &stream[30_000..], 500);
        assert_eq!((shell.room(id) == before, world.core.stats().landed_bytes), (true, 0));
        if !is_in_answer {
            shell.receive(&mut world, conn, &frame(&FromServer::End(wire, Code::Cancelled)), 500);
        }
        assert!(
            world.open.contains_key(&conn) && !world.core.receiving().awaits_values(conn),
            "its credit is free again"
        );
        let id = shell.get(&mut world, 60_000);
        let (conn, wire, _) = world.one();
        shell.receive(&mut world, conn, &answer(wire, 3, &all, (0, 60_000), true), 500);
        assert_eq!((world.done(id), shell.room(id) == all), (Ok(Done::Value), true));
    }
}

#[test]
fn a_value_goes_on_where_it_was_when_its_connection_is_lost_in_a_frame() {
    for version in [3, 4] {
        let (mut world, mut shell, all) = (World::ready(), Shell::default(), bytes(90_000));
        let id = shell.get(&mut world, 90_000);
        let (conn, wire, _) = world.one();
        let whole = [answer(wire, 3, &all, (0, 90_000), false), piece(wire, all.slice(..40_000))].concat();
        shell.receive(&mut world, conn, &whole, 1_000);
        shell.receive(&mut world, conn, &piece(wire, all.slice(40_000..80_000))[..20_000], 1_000);
        world.lose(0);
        world.wait(1_000_000);
        let (conn, wire, ask) = world.one();
        let Ask::Get(get) = ask else { panic!("{ask:?}") };
        assert_eq!(get.range.map(|range| (range.start, range.len)), Some((40_000, 50_000)));
        let before = shell.room(id).to_vec();
        shell.receive(&mut world, conn, &answer(wire, version, &all, (40_000, 50_000), true), 1_000);
        if version == 3 {
            assert_eq!((world.done(id), shell.room(id) == all), (Ok(Done::Value), true));
            assert!(world.data(id) == all);
        } else {
            assert_eq!((world.done(id), shell.room(id) == before), (Err(Error::Changed), true));
        }
    }
}

/// A holder sends a cell, of which it says that it has this checksum.
fn cells(wire: u64, cell: &[u8], checksum: u32) -> Vec<u8> {
    let announced = Answer::Cells(Cells { cell_len: cell.len() as u32, checksums: vec![checksum] });
    let announced = frame(&FromServer::Answer(wire, Box::new(announced)));
    [announced, piece(wire, Bytes::copy_from_slice(cell)), end(wire)].concat()
}

#[test]
fn cells_land_where_they_lie_in_the_value_but_for_those_that_are_padded() {
    let (mut world, mut shell) = (World::coding(), Shell::default());
    let (id, mut fetches) = reads_at(&mut world, LEN, [0, 1, 0]);
    shell.lend(id, LEN);
    fetches.sort_by_key(|fetch| std::cmp::Reverse(role_of(fetch)));
    for (conn, wire, fetch) in fetches {
        assert!(world.data(id).is_empty());
        let cell = cell(usize::from(fetch.member.role.0));
        shell.receive(&mut world, conn, &cells(wire, &cell, checksum(&cell)), 777);
    }
    assert_eq!((world.data(id) == chunked_value(), world.done(id)), (true, Ok(Done::Value)));
    assert!(shell.room(id)[..CELL] == chunked_value()[..CELL]);
    assert!(shell.room(id)[CELL..].iter().all(|byte| *byte == 0));
    assert_eq!((world.core.stats().reads, world.core.stats().landed_bytes), (1, CELL as u64));
}

#[test]
fn no_cell_lands_in_a_room_that_is_too_short() {
    let (mut world, mut shell) = (World::coding(), Shell::default());
    let (id, fetches) = reads_at(&mut world, LEN - 1, [0, 1, 0]);
    shell.lend(id, LEN - 1);
    for (conn, wire, fetch) in fetches {
        let cell = cell(usize::from(fetch.member.role.0));
        shell.receive(&mut world, conn, &cells(wire, &cell, checksum(&cell)), 777);
    }
    assert_eq!((world.core.stats().landed_bytes, world.done(id)), (0, Ok(Done::Value)));
    assert!(shell.room(id).iter().all(|byte| *byte == 0));
}

#[test]
fn a_cell_that_landed_and_is_not_what_its_holder_has_is_made_of_the_others() {
    let (mut world, mut shell) = (World::coding(), Shell::default());
    let (id, fetches) = reads_at(&mut world, LEN, [0, 1, 0]);
    shell.lend(id, LEN);
    for (conn, wire, fetch) in fetches {
        let role = usize::from(fetch.member.role.0);
        let (mut sent, sum) = (cell(role), checksum(&cell(role)));
        sent[9] ^= u8::from(role == 0);
        shell.receive(&mut world, conn, &cells(wire, &sent, sum), 777);
    }
    let (conn, wire, _) = world.one();
    shell.receive(&mut world, conn, &cells(wire, &cell(2), checksum(&cell(2))), 777);
    assert_eq!((world.data(id) == chunked_value(), world.done(id)), (true, Ok(Done::Value)));
    assert_eq!(world.core.stats().decoded_rows, 1);
}

/// A holder is slow in the middle of its cell; meanwhile that is made of others, and given out, and what still comes of it is thrown away.
#[test]
fn a_cell_whose_row_has_been_given_out_is_received_nowhere() {
    for is_lost_in_between in [false, true] {
        let (mut world, mut shell) = (World::coding(), Shell::default());
        let (id, fetches) = reads_at(&mut world, 2 * LEN, [1, 0, 0]);
        shell.lend(id, 2 * LEN);
        let [slow, quick] = [0, 1].map(|role| *fetches.iter().find(|fetch| role_of(fetch) == role).unwrap());
        let of_slow = cells(slow.1, &cell(0), checksum(&cell(0)));
        let cut = of_slow.len() - end(slow.1).len() - CELL / 2;
        shell.receive(&mut world, slow.0, &of_slow[..cut], 777);
        shell.receive(&mut world, quick.0, &cells(quick.1, &cell(1), checksum(&cell(1))), 777);
        assert!(shell.room(id)[..CELL / 2].iter().any(|byte| *byte != 0));
        world.wait(30_000);
        world.wait(260_000);
        let (conn, wire, ask) = world.one();
        assert!(matches!(ask, Ask::Fetch(fetch) if fetch.member.role.0 == 2), "the others are asked");
        shell.receive(&mut world, conn, &cells(wire, &cell(2), checksum(&cell(2))), 777);
        assert_eq!((world.data(id) == chunked_value(), world.done(id)), (true, Ok(Done::Value)));
        let before = shell.room(id).to_vec();
        if is_lost_in_between {
            world.lose(1);
        } else {
            shell.receive(&mut world, slow.0, &of_slow[cut..], 777);
            assert!(world.open.contains_key(&slow.0));
        }
        assert!(shell.room(id) == before);
        assert_eq!((world.core.stats().decoded_rows, world.core.stats().landed_bytes), (1, 0));
    }
}

/// A value of two rows with two data roles and two parities: its cells by roles, then rows.
fn two_rows(value: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let code = codec::Code::rs(2, 2).unwrap();
    let mut roles = vec![vec![vec![0; CELL]; 2]; 4];
    for (at, bytes) in value.chunks(CELL).enumerate() {
        roles[at % 2][at / 2][..bytes.len()].copy_from_slice(bytes);
    }
    for row in 0..2 {
        let (data, parities) = roles.split_at_mut(2);
        let data: Vec<&[u8]> = data.iter().map(|role| &role[row][..]).collect();
        let mut parities: Vec<&mut [u8]> = parities.iter_mut().map(|role| &mut role[row][..]).collect();
        code.encode(&data, &mut parities).unwrap();
    }
    roles
}

/// The cells of one row have been made of others while one of them was coming: that is thrown away, and the next one of its role lands.
#[test]
fn the_rest_of_a_cell_whose_row_has_been_given_out_is_thrown_away_and_the_next_one_lands() {
    let (mut world, mut shell, all) = (World::coding(), Shell::default(), bytes(200_000));
    // By then as many cells as two rows take may be asked for in vain.
    has_read(&mut world, 40);
    let roles = two_rows(&all);
    let geometry = Geometry { len: 200_000, chunk_len: 131_072, ..chunked_at([0; 3]).geometry };
    let mut chunks = Chunked { geometry, code: "rs(2+2)".parse().unwrap(), ..chunked_at([1, 0, 0]) };
    let third = chunks.holders[0].roles[1];
    chunks.holders[0].roles.push(third);
    let id = shell.get(&mut world, 200_000);
    let (conn, wire, _) = world.one();
    let meta = Meta { version: 5, flags: 0, ttl: None, value_len: 200_000 };
    let found = FoundChunks { meta, part: (0, 200_000), pin: None, pin_ms: 30_000, chunks };
    world.answer(conn, wire, Answer::Chunks(Box::new(found)));
    let asked = |world: &mut World| {
        let of = |(conn, wire, request): (ConnId, u64, native::Request)| match request.ask {
            Ask::Fetch(fetch) => (usize::from(fetch.member.role.0), (conn, wire)),
            other => panic!("{other:?}"),
        };
        world.asked().into_iter().map(of).collect::<BTreeMap<usize, (ConnId, u64)>>()
    };
    // What a holder says: of its cells, then each of them.
    let says = |wire: u64, role: usize| {
        let sums = roles[role].iter().map(|cell| checksum(cell)).collect();
        let announced = Answer::Cells(Cells { cell_len: CELL as u32, checksums: sums });
        let [first, second] = [0, 1].map(|row| piece(wire, Bytes::copy_from_slice(&roles[role][row])));
        (
            [frame(&FromServer::Answer(wire, Box::new(announced))), first].concat(),
            [second, end(wire)].concat(),
        )
    };
    let data = asked(&mut world);
    let (slow, slow_wire) = data[&0];
    let (first, second) = says(slow_wire, 0);
    shell.receive(&mut world, slow, &first[..first.len() / 2], 777);
    world.answer(data[&1].0, data[&1].1, Answer::Just(Code::Miss));
    let parities = asked(&mut world);
    assert_eq!(parities.len(), 1, "no more than it takes beside what comes");
    let (conn, wire) = parities[&2];
    let (one, other) = says(wire, 2);
    shell.receive(&mut world, conn, &[one, other].concat(), 777);
    // Until the slow one counts as slow. The last one does not have both.
    world.wait(2_000);
    let (conn, wire) = asked(&mut world)[&3];
    shell.receive(&mut world, conn, &says(wire, 3).0, 777);
    world.say(conn, FromServer::End(wire, Code::Busy));
    assert_eq!((world.data(id) == all[..2 * CELL], world.ended(id)), (true, None), "one row of two");
    let before = shell.room(id).to_vec();
    assert!(before[..CELL / 3].iter().any(|byte| *byte != 0));
    shell.receive(&mut world, slow, &first[first.len() / 2..], 777);
    assert!(shell.room(id) == before);
    shell.receive(&mut world, slow, &second, 777);
    assert_eq!((world.data(id) == all, world.done(id)), (true, Ok(Done::Value)));
    assert!(shell.room(id)[2 * CELL..3 * CELL] == all[2 * CELL..3 * CELL]);
    assert_eq!((world.core.stats().decoded_rows, world.core.stats().landed_bytes), (2, CELL as u64));
}
