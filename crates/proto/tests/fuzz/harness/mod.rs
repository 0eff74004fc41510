//! Bytes against the state machines: frames of peers against hosts, messages of nodes against a coordinator, values of a store
//! against its successor. Nothing here may panic, whatever the bytes.
//!
//! Three entry points, [`peers`], [`coordinator`] and [`records`], are the targets of `fuzz/` (cargo-fuzz), which has this
//! folder by its path, and replay the corpus under `tests/corpus` in plain `cargo test`. [`mutated`] needs no corpus: from a seed it runs a small cluster and changes
//! messages that are under way, so that what arrives fits the state that it meets, but for a few bytes.

mod mutate;
mod script;
mod seal;
mod world;

use proto::{Coordinator, CoordinatorConfig, Rules, Timing};
use types::{ClusterId, Profile};
use wire::record::{HEAD_KEY, Record, node_key, view_key};

use mutate::Dice;
pub use world::Toll;
use world::World;

/// Frames of peers, as a script of what happens (see `script`).
pub fn peers(bytes: &[u8]) -> Toll {
    let mut world = World::new();
    script::play(&mut world, script::Aim::Hosts, bytes);
    world.end()
}

/// Messages of nodes to the coordinator, as a script of what happens.
pub fn coordinator(bytes: &[u8]) -> Toll {
    let mut world = World::new();
    script::play(&mut world, script::Aim::Coordinator, bytes);
    world.end()
}

/// A coordinator that goes on from these values of a store: the first is the head's, the others are those of groups 0, 1, ... Each
/// is preceded by its length in two bytes; its magic number, version and checksum are put right.
pub fn records(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut records = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let (value, after) = after.split_at(usize::from(u16::from_le_bytes(*len)).min(after.len()));
        let number = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let view = number.checked_sub(1).map_or(HEAD_KEY.to_owned(), |group| view_key(types::GroupId(group)));
        let node = node_key(types::NodeId(number as u16));
        let value = seal::record(value);
        let record = Record::decode(&view, &value).or_else(|_| Record::decode(&node, &value));
        let Ok(record) = record else { return false };
        records.push(record);
        rest = after;
    }
    go_on_from(records)
}

/// A small cluster from `seed`, some of whose messages are changed on their way, and the records of its coordinator.
pub fn mutated(seed: u64) -> Toll {
    let mut dice = Dice::new(seed);
    let mut world = World::new();
    mutate::run(&mut world, &mut dice);
    let records: Vec<Record> =
        world.records().filter_map(|record| mutate::record(&record, &mut dice)).collect();
    let toll = world.end();
    go_on_from(records);
    toll
}

/// Whether a coordinator could; if so, it has ticked for some leases.
fn go_on_from(records: Vec<Record>) -> bool {
    let config = CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(2, 1).expect("2+1 is a profile"),
        nodes: 4,
        shards: 1,
        groups: 4,
        timing: Timing::default(),
        rules: Rules::all(),
        records: proto::RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    };
    let mut now = world::FIRST;
    let Ok(mut successor) = Coordinator::resume(config, records, now) else { return false };
    for _ in 0..100 {
        now.time = now.time + 50_000;
        successor.tick(now);
        while successor.poll_action().is_some() {}
    }
    true
}
