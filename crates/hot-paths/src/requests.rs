//! Requests on their way through the nodes: what the primary does before and after its parities, and what a parity does.

use crate::cluster::{Cluster, Places};
use crate::data::{self, Dialect};
use crate::path::{BATCH, Path, counted};

/// Of the cluster: each node has all roles.
const GROUPS: u32 = 5;
const NODE_MEMORY_BYTES: usize = 256 << 20;
/// Keys in use; the index and the slots of so many are warm.
const KEYS: usize = 1024;
/// How often every key is written before anything counts.
const WARM_UP_ROUNDS: usize = 3;
const SMALL: usize = 100;
const LARGE: usize = 1024;

macro_rules! path {
    ($name:literal, $about:literal, $run:expr) => {
        Path { name: $name, about: $about, run: $run }
    };
}

pub const PATHS: &[Path] = &[
    path!("get-100", "get of 100 B: parsed, read, printed", |n| gets(n, Asked::One(Dialect::Text), SMALL)),
    path!("get-1k", "get of 1 KiB", |n| gets(n, Asked::One(Dialect::Text), LARGE)),
    path!("get-miss", "get of a key that is not there", misses),
    path!("get-100-pipelined", "16 gets of 100 B in one read, each", |n| gets(n, Asked::Pipelined, SMALL)),
    path!("get-100-multi", "one get of 16 keys of 100 B, each", |n| gets(n, Asked::Together, SMALL)),
    path!("mg-100", "mg with v of 100 B", |n| gets(n, Asked::One(Dialect::Meta), SMALL)),
    path!("set-100-primary", "set of 100 B at the primary, up to the frames for two parities", |n| {
        sets(n, Part::Request, Dialect::Text, (SMALL, 1))
    }),
    path!("set-1k-primary", "the same of 1 KiB", |n| sets(n, Part::Request, Dialect::Text, (LARGE, 1))),
    path!("set-100-primary-16", "16 of 100 B in one frame, each", |n| {
        sets(n, Part::Request, Dialect::Text, (SMALL, BATCH))
    }),
    path!("ms-100-primary", "ms of 100 B at the primary", |n| sets(
        n,
        Part::Request,
        Dialect::Meta,
        (SMALL, 1)
    )),
    path!(
        "set-100-parity",
        "the frame at a parity: decoded, kept, the one before applied, acknowledged",
        |n| { sets(n, Part::Parity, Dialect::Text, (SMALL, 1)) }
    ),
    path!("set-1k-parity", "the same of 1 KiB", |n| sets(n, Part::Parity, Dialect::Text, (LARGE, 1))),
    path!("set-100-parity-16", "16 of 100 B in one frame, each", |n| {
        sets(n, Part::Parity, Dialect::Text, (SMALL, BATCH))
    }),
    path!("set-100-ack", "both acks at the primary: decoded, committed, answered", |n| {
        sets(n, Part::Acks, Dialect::Text, (SMALL, 1))
    }),
    path!("set-1k-ack", "the same of 1 KiB", |n| sets(n, Part::Acks, Dialect::Text, (LARGE, 1))),
    path!("set-100-ack-16", "16 of 100 B in one frame, each", |n| {
        sets(n, Part::Acks, Dialect::Text, (SMALL, BATCH))
    }),
];

/// How keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// One at a time.
    One(Dialect),
    /// Many commands at once.
    Pipelined,
    /// Many keys in a command.
    Together,
}

/// The part of a write that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// From the client's bytes to the frames.
    Request,
    /// At the first parity, from one frame to another.
    Parity,
    /// From the parities' frames to the reply.
    Acks,
    /// None.
    Nothing,
}

/// A cluster with warm keys.
struct Bench {
    cluster: Cluster,
    places: Places,
    keys: Vec<String>,
    frames: Vec<u8>,
    /// Of each parity.
    acks: Vec<Vec<u8>>,
    replies: Vec<u8>,
}

fn gets(times: usize, asked: Asked, value_len: usize) {
    let mut bench = Bench::new(value_len);
    let value = data::bytes(0, value_len);
    let (count, dialect) = match asked {
        Asked::One(dialect) => (1, dialect),
        Asked::Pipelined | Asked::Together => (BATCH, Dialect::Text),
    };
    for turn in 0..times / count {
        let keys = bench.keys_of(turn, count);
        let (command, expected) = match asked {
            Asked::Together => (data::multiget(&keys), data::multihit(&keys, &value)),
            _ => (data::gets(dialect, &keys), data::hits(dialect, &keys, &value)),
        };
        bench.read(&command, &expected);
    }
}

fn misses(times: usize) {
    let mut bench = Bench::new(SMALL);
    let absent: Vec<String> = bench.cluster.keys(2 * KEYS).split_off(KEYS);
    for turn in 0..times {
        bench.read(&data::gets(Dialect::Text, &[&absent[turn % KEYS]]), b"END\r\n");
    }
}

fn sets(times: usize, part: Part, dialect: Dialect, (value_len, count): (usize, usize)) {
    let mut bench = Bench::new(value_len);
    for turn in 0..times / count {
        // Another value each time: to write the same bytes again would be another path.
        let value = data::bytes(turn as u64 + 1, value_len);
        let command = data::sets(dialect, &bench.keys_of(turn, count), &value);
        bench.write(part, &command, &data::stored(dialect, count));
    }
}

impl Bench {
    fn new(value_len: usize) -> Self {
        let cluster = Cluster::form(GROUPS, NODE_MEMORY_BYTES);
        let (places, keys) = (cluster.places(), cluster.keys(KEYS));
        let acks = vec![Vec::new(); places.parities.len()];
        let (frames, replies) = (Vec::new(), Vec::new());
        let mut bench = Self { cluster, places, keys, frames, acks, replies };
        bench.warm_up(value_len);
        bench
    }

    /// Writes every key, one at a time after the first round, whose requests also wait for memory.
    fn warm_up(&mut self, value_len: usize) {
        let value = data::bytes(0, value_len);
        for key in self.keys.clone() {
            self.primary().client_reads(self.cluster.now, &data::sets(Dialect::Text, &[&key], &value));
            self.cluster.come_to_rest();
            self.check(b"STORED\r\n");
        }
        for turn in 0..WARM_UP_ROUNDS * KEYS {
            let command = data::sets(Dialect::Text, &self.keys_of(turn, 1), &value);
            self.write(Part::Nothing, &command, b"STORED\r\n");
        }
    }

    fn primary(&self) -> &server::Bare {
        self.cluster.node(self.places.primary)
    }

    /// The keys of a turn: all have had their turn before one comes again.
    fn keys_of(&self, turn: usize, count: usize) -> Vec<&str> {
        (turn * count..(turn + 1) * count).map(|n| self.keys[n % KEYS].as_str()).collect()
    }

    /// A command that the primary answers at once.
    fn read(&mut self, command: &[u8], expected: &[u8]) {
        let now = self.cluster.now;
        counted(|| {
            self.primary().client_reads(now, command);
            self.primary().pump(now);
        });
        self.check(expected);
    }

    /// A command that has to pass through the parities.
    fn write(&mut self, part: Part, command: &[u8], expected: &[u8]) {
        let now = self.cluster.now;
        stage(part == Part::Request, || {
            self.primary().client_reads(now, command);
            self.primary().pump(now);
        });
        self.pass_parities(part == Part::Parity);
        stage(part == Part::Acks, || {
            for (id, ack) in self.places.parities.iter().zip(&self.acks) {
                self.primary().peer_reads(now, *id, ack).expect("a parity sends frames");
            }
            self.primary().pump(now);
        });
        self.check(expected);
    }

    /// The primary's frames go to the parities, and `acks` are what they answer. What the first of them does may count.
    fn pass_parities(&mut self, counts: bool) {
        let Self { cluster, places, frames, acks, .. } = self;
        for (at, (id, ack)) in places.parities.iter().zip(acks).enumerate() {
            cluster.node(places.primary).take_frames(*id, frames);
            assert!(!frames.is_empty(), "the record goes to every parity at once");
            let parity = cluster.node(*id);
            stage(counts && at == 0, || {
                parity.peer_reads(cluster.now, places.primary, frames).expect("a primary sends frames");
                parity.pump(cluster.now);
            });
            parity.take_frames(places.primary, ack);
            assert!(!ack.is_empty(), "it is acknowledged at once");
        }
    }

    /// The client has been answered with this, and nothing else.
    fn check(&mut self, expected: &[u8]) {
        let mut replies = std::mem::take(&mut self.replies);
        replies.clear();
        self.primary().take_replies(&mut replies);
        assert!(replies == expected, "answered with {:?}", String::from_utf8_lossy(&replies));
        self.replies = replies;
    }
}

fn stage<T>(counts: bool, work: impl FnOnce() -> T) -> T {
    if counts { counted(work) } else { work() }
}
