//! Sets whose keys are spread over all groups, from the clients' bytes to their replies: all that five nodes do for them. With
//! many groups hardly two messages in a row are of one, and what a member has is far away when it is needed.

use crate::cluster::Cluster;
use crate::data::{self, Dialect};
use crate::path::{Path, counted};

/// Keys in use: as many whatever the number of groups, and each stream has had more records than its queues have places.
/// With assertions, which look at every member after every event, a few will do.
const KEYS: usize = if cfg!(debug_assertions) { 512 } else { 16 * 1024 };
/// Requests that are on their way side by side.
const TURN: usize = 32;
const VALUE: usize = 100;
/// Each of a node's members reserves as much address space, and valgrind has not more than 128 GiB of that.
const NODE_MEMORY_BYTES: usize = 64 << 20;
/// How often every key is written before anything counts.
const WARM_UP_ROUNDS: usize = 2;

pub const PATHS: &[Path] = &[
    Path { name: "set-100-of-5", about: "set of 100 B at all five nodes, in 5 groups", run: |n| sets(n, 5) },
    Path { name: "set-100-of-200", about: "the same in 200 groups", run: |n| sets(n, 200) },
];

/// A cluster, and keys with the node of each.
struct Spread {
    cluster: Cluster,
    keys: Vec<(usize, String)>,
    replies: Vec<u8>,
}

fn sets(times: usize, groups: u32) {
    let mut spread = Spread::new(groups);
    let mut left = times;
    for turn in 0..times.div_ceil(TURN) {
        let count = left.min(TURN);
        let commands = spread.commands(turn, count);
        counted(|| spread.write(&commands));
        spread.check(count);
        left -= count;
    }
}

impl Spread {
    fn new(groups: u32) -> Self {
        let cluster = Cluster::form(groups, NODE_MEMORY_BYTES);
        let keys = (0..).map(data::key).take(KEYS);
        let keys = keys.map(|key| (usize::from(cluster.server_of(&key).0), key)).collect();
        let mut spread = Self { cluster, keys, replies: Vec::new() };
        for turn in 0..WARM_UP_ROUNDS * KEYS / TURN {
            let commands = spread.commands(turn, TURN);
            spread.write(&commands);
            // The first ones wait for memory, too.
            spread.cluster.come_to_rest();
            spread.check(TURN);
        }
        spread
    }

    /// What the nodes' clients send in a turn: as many keys as follow on those of the turn before.
    fn commands(&self, turn: usize, count: usize) -> Vec<Vec<u8>> {
        // Another value each time: to write the same bytes again would be another path.
        let value = data::bytes(turn as u64 + 1, VALUE);
        let mut commands = vec![Vec::new(); self.cluster.nodes.len()];
        for (node, key) in self.keys.iter().cycle().skip(turn * TURN % KEYS).take(count) {
            commands[*node].extend(data::sets(Dialect::Text, &[key], &value));
        }
        commands
    }

    /// All of it, until the nodes are silent.
    fn write(&mut self, commands: &[Vec<u8>]) {
        for (node, command) in self.cluster.nodes.iter().zip(commands) {
            if !command.is_empty() {
                node.client_reads(self.cluster.now, command);
            }
        }
        self.cluster.settle();
    }

    /// All clients have been answered, and nothing else was said to them.
    fn check(&mut self, count: usize) {
        self.replies.clear();
        self.cluster.nodes.iter().for_each(|node| node.take_replies(&mut self.replies));
        assert!(self.replies == data::stored(Dialect::Text, count), "not all are stored");
    }
}
