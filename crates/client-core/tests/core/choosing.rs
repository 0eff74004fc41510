//! A client that may choose who codes what it writes: by how long that takes.

use bytes::Bytes;
use client_core::{Body, Done, Error};
use native::{Answer, Ask, BegunChunks, Code};
use types::ClientSession;

use crate::chunks::chunked;
use crate::world::World;

/// A value of the length that `chunked` says.
const LEN: usize = 100_000;

/// Stores a value at servers with which that takes so long by either way, in microseconds; whether the client has coded it.
fn stores(world: &mut World, client_us: u64, node_us: u64) -> bool {
    let id = world.set(Body::Here(Bytes::from_static(&[7; LEN])));
    let (mut codes, mut puts) = (false, 0);
    while world.ended(id).is_none() {
        for (conn, wire, request) in world.asked() {
            match request.ask {
                Ask::Session => world.answer(conn, wire, Answer::Session(ClientSession(4))),
                Ask::Begin(_) => {
                    codes = true;
                    let begun = BegunChunks { open_ms: 30_000, chunks: chunked() };
                    world.answer(conn, wire, Answer::Begun(Box::new(begun)));
                }
                Ask::Put(_) => {
                    puts += 1;
                    if puts == 3 {
                        world.wait(client_us);
                    }
                    world.answer(conn, wire, Answer::Just(Code::Placed));
                }
                Ask::Store(_) => {
                    world.wait(node_us);
                    world.answer(conn, wire, Answer::Stored(6));
                }
                Ask::Commit(_) => world.answer(conn, wire, Answer::Stored(6)),
                other => panic!("{other:?}"),
            }
        }
        world.wait(0);
    }
    assert_eq!(world.done(id), Ok(Done::Answer(Answer::Stored(6))));
    codes
}

fn coded(world: &mut World, values: usize, client_us: u64, node_us: u64) -> usize {
    (0..values).filter(|_| stores(world, client_us, node_us)).count()
}

#[test]
fn what_takes_a_client_much_longer_is_left_to_nodes_and_comes_back_when_it_does_not() {
    let mut world = World::choosing();
    assert_eq!(coded(&mut world, 20, 10_000, 20_000), 20, "it begins with its own way");
    let before = world.core.stats();
    assert_eq!((before.coded_bytes, before.turns), (20 * LEN as u64, 0));
    coded(&mut world, 200, 150_000, 60_000);
    let [estimate] = world.core.estimates().writes[..] else { panic!("one length") };
    assert_eq!((estimate.is_clients, world.core.stats().turns), (false, 1));
    assert_eq!((estimate.by_client_us, estimate.by_node_us), (Some(1_500_000), Some(600_000)));
    assert!(coded(&mut world, 200, 150_000, 60_000) <= 20);
    coded(&mut world, 4_000, 40_000, 60_000);
    assert_eq!((world.core.stats().turns, coded(&mut world, 100, 40_000, 60_000)), (2, 100));
}

/// Whether a value that is fed begins at the holders of its chunks.
fn feeds_to_holders(world: &mut World) -> bool {
    let id = world.set(Body::Fed(LEN as u64));
    let (conn, wire, ask) = world.one();
    let code = Code::OutOfMemory;
    world.answer(conn, wire, Answer::Just(code));
    assert_eq!(world.done(id), Err(Error::Code(code)));
    matches!(ask, Ask::Begin(_))
}

#[test]
fn what_is_fed_goes_the_way_of_values_of_its_length_and_measures_none() {
    let mut world = World::choosing();
    coded(&mut world, 20, 10_000, 20_000);
    assert!(feeds_to_holders(&mut world));
    let before = world.core.estimates();
    for _ in 0..20 {
        world.wait(1_000_000);
        assert!(feeds_to_holders(&mut world), "it is no trial");
    }
    assert_eq!(world.core.estimates().writes, before.writes);
    coded(&mut world, 200, 150_000, 60_000);
    assert_eq!((world.core.stats().turns, feeds_to_holders(&mut world)), (1, false));
}

#[test]
fn the_rates_of_uplink_and_coding_are_measured() {
    let mut world = World::choosing();
    coded(&mut world, 5, 10_000, 10_000);
    world.core.coding_took(1_000_000, 250);
    let estimates = world.core.estimates();
    assert_eq!(estimates.codes, Some(4_000_000_000));
    let sends = estimates.sends.expect("values were sent");
    // Two cells and their sum, with their frames, in ten milliseconds.
    assert!((15_000_000..16_000_000).contains(&sends), "{sends} bytes a second");
}
