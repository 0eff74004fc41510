//! What each connection asks next.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::keys::{KeyFormat, Popularity};
use crate::latest::Latest;
use crate::protocol::Operation;
use crate::targets::Targets;

/// Draws that may miss a connection's own keys before any key will do.
const MAX_DRAWS: u32 = 10_000;

/// Of a thousand operations; the others are reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Writes.
    pub writes: u32,
    /// Reads with writes that come of them.
    pub modifies: u32,
}

/// What one thread has of all connections, which are dealt to threads and to servers in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which thread.
    pub index: usize,
    /// How many there are.
    pub threads: usize,
    /// Connections of all threads.
    pub connections: usize,
}

impl Share {
    /// Whether this thread loads a key: where only its server knows it, one of those that have a connection there.
    fn has(self, number: u32, targets: &Targets) -> bool {
        let (number, servers) = (number as usize, targets.addresses.len());
        let Some(owner) = targets.owner_of(number as u32).filter(|_| targets.is_sharded()) else {
            return number % self.threads == self.index;
        };
        let there = self.connections.saturating_sub(owner).div_ceil(servers);
        let connection = number.checked_rem(there).map(|at| owner + at * servers);
        connection.is_some_and(|connection| connection % self.threads == self.index)
    }
}

/// Chooses operations and keys for one thread's connections.
pub struct Source {
    rng: SmallRng,
    mix: Mix,
    order: Order,
    /// Operations that may still be started.
    left: u64,
}

enum Order {
    Random(Popularity),
    /// Writes add keys, and the newest are the most popular ones.
    Latest(Latest),
    /// By target, the keys that are not yet loaded, and keys to be loaded again after a failure.
    Each {
        queues: Vec<Vec<u32>>,
        retries_left: u64,
    },
}

impl Source {
    /// Random operations, at most `limit` of them.
    #[must_use]
    pub fn random(mix: Mix, popularity: Popularity, limit: u64, seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), mix, order: Order::Random(popularity), left: limit }
    }

    /// The same, of which writes add keys.
    #[must_use]
    pub fn latest(mix: Mix, latest: Latest, limit: u64, seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), mix, order: Order::Latest(latest), left: limit }
    }

    /// Each key below `keys` once, of those that fall to this thread, by a connection to its owner.
    pub fn each(keys: u32, share: Share, targets: &Targets) -> Self {
        let mut queues = vec![Vec::new(); targets.addresses.len()];
        let mut count = 0;
        for number in (0..keys).filter(|number| share.has(*number, targets)) {
            let owner = targets.owner_of(number).unwrap_or(count % queues.len());
            queues[owner].push(number);
            count += 1;
        }
        // They are taken from the end: now in their order.
        queues.iter_mut().for_each(|queue| queue.reverse());
        let left = count as u64;
        // A load through failures tries again, but one that never succeeds has to end.
        let order = Order::Each { queues, retries_left: left / 5 + 1000 };
        let mix = Mix { writes: 1000, modifies: 0 };
        Self { rng: SmallRng::seed_from_u64(0), mix, order, left }
    }

    /// The next operation of a connection to `target`; none if there is nothing left to do.
    pub fn next(
        &mut self,
        targets: &mut Targets,
        format: &mut KeyFormat,
        target: usize,
    ) -> Option<(Operation, u32)> {
        let left = self.left.checked_sub(1)?;
        let operation = self.mix.draw(&mut self.rng);
        let rng = &mut self.rng;
        let key = match &mut self.order {
            Order::Each { queues, .. } => take_from(queues, targets, target)?,
            Order::Random(popularity) => draw_owned(|| popularity.draw(rng), targets, target),
            Order::Latest(latest) if operation == Operation::Set => latest.add(targets, format, target)?,
            Order::Latest(latest) => draw_owned(|| latest.draw(rng), targets, target),
        };
        self.left = left;
        Some((operation, key))
    }

    /// A write of `key` is done.
    pub fn stored(&mut self, key: u32) {
        if let Order::Latest(latest) = &mut self.order {
            latest.added(key);
        }
    }

    /// An operation on `key` failed for want of a connection; a load tries it again, within reason.
    pub fn give_back(&mut self, target: usize, key: u32) {
        if let Order::Each { queues, retries_left } = &mut self.order
            && *retries_left > 0
        {
            *retries_left -= 1;
            self.left += 1;
            let queue = target % queues.len();
            queues[queue].push(key);
        }
    }

    /// Whether nothing is left to be started.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Starts nothing more.
    pub fn stop(&mut self) {
        self.left = 0;
    }
}

impl Mix {
    fn draw(self, rng: &mut SmallRng) -> Operation {
        // Where all are alike none is drawn.
        let drawn = if self.writes == 1000 || self == (Self { writes: 0, modifies: 0 }) {
            999
        } else {
            rng.random_range(0..1000)
        };
        match drawn {
            drawn if drawn < self.writes || self.writes == 1000 => Operation::Set,
            drawn if drawn < self.writes + self.modifies => Operation::Modify,
            _ => Operation::Get,
        }
    }
}

fn draw_owned(mut draw: impl FnMut() -> u32, targets: &Targets, target: usize) -> u32 {
    let mut key = draw();
    // Drawn again rather than mapped to a key of the target: so each key is as popular as it would be with one server.
    for _ in 0..MAX_DRAWS {
        if targets.owns(target, key) {
            break;
        }
        key = draw();
    }
    key
}

/// From the target's own keys, or from whoever has some left where any node answers for any key.
fn take_from(queues: &mut [Vec<u32>], targets: &Targets, target: usize) -> Option<u32> {
    let count = queues.len();
    let asked = if targets.is_sharded() { 1 } else { count };
    (0..asked).find_map(|step| queues[(target + step) % count].pop())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::targets::{self, Listener};

    #[test]
    fn each_key_is_loaded_once_by_a_connection_to_its_server() {
        let addresses = (1..=5).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let mut format = KeyFormat::new(24);
        let source = targets::Source::Sharded(addresses);
        let mut targets = Targets::resolve(&source, Listener::Memcached, &mut format, 1000).unwrap();
        for (threads, connections) in [(1, 5), (2, 10), (5, 10), (3, 7)] {
            let mut all = Vec::new();
            for index in 0..threads {
                let mut source = Source::each(1000, Share { index, threads, connections }, &targets);
                for connection in (index..connections).step_by(threads) {
                    while let Some((_, key)) = source.next(&mut targets, &mut format, connection % 5) {
                        assert!(targets.owns(connection % 5, key));
                        all.push(key);
                    }
                }
                assert!(source.is_exhausted(), "{threads} threads, {connections} connections");
            }
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..1000), "{threads} threads, {connections} connections");
        }
    }

    #[test]
    fn a_mix_has_its_shares() {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[match (Mix { writes: 100, modifies: 400 }).draw(&mut rng) {
                Operation::Set => 0,
                Operation::Modify => 1,
                Operation::Get => 2,
            }] += 1;
        }
        let near = |count: i32, expected: i32| (count - expected).abs() < 300;
        assert!(near(counts[0], 1000) && near(counts[1], 4000) && near(counts[2], 5000), "{counts:?}");
        assert_eq!((Mix { writes: 1000, modifies: 0 }).draw(&mut rng), Operation::Set);
        assert_eq!((Mix { writes: 0, modifies: 0 }).draw(&mut rng), Operation::Get);
    }
}
