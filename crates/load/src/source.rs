//! What each connection asks next.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::keys::Popularity;
use crate::protocol::Operation;
use crate::targets::Targets;

/// Draws that may miss a connection's own keys before any key will do.
const MAX_DRAWS: u32 = 10_000;

/// Chooses operations and keys for one thread's connections.
pub struct Source {
    rng: SmallRng,
    writes_per_mille: u32,
    order: Order,
    /// Operations that may still be started.
    left: u64,
}

enum Order {
    Random(Popularity),
    /// By target, the keys that are not yet loaded, and keys to be loaded again after a failure.
    Each {
        queues: Vec<Vec<u32>>,
        retries_left: u64,
    },
}

impl Source {
    /// Random operations, at most `limit` of them; so many of a thousand are writes.
    #[must_use]
    pub fn random(writes_per_mille: u32, popularity: Popularity, limit: u64, seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            writes_per_mille,
            order: Order::Random(popularity),
            left: limit,
        }
    }

    /// Each key of `numbers` once, each by a connection to its owner.
    pub fn each(numbers: impl Iterator<Item = u32>, targets: &Targets) -> Self {
        let mut queues = vec![Vec::new(); targets.addresses.len()];
        let mut count = 0;
        for number in numbers {
            let owner =
                targets.owners.get(number as usize).map_or(count % queues.len(), |&owner| usize::from(owner));
            queues[owner].push(number);
            count += 1;
        }
        // They are taken from the end: now in their order.
        queues.iter_mut().for_each(|queue| queue.reverse());
        let left = count as u64;
        // A load through failures tries again, but one that never succeeds has to end.
        let order = Order::Each { queues, retries_left: left / 5 + 1000 };
        Self { rng: SmallRng::seed_from_u64(0), writes_per_mille: 1000, order, left }
    }

    /// The next operation of a connection to `target`; none if there is nothing left to do.
    pub fn next(&mut self, targets: &Targets, target: usize) -> Option<(Operation, u32)> {
        self.left = self.left.checked_sub(1)?;
        let key = match &mut self.order {
            Order::Random(popularity) => draw_owned(popularity, &mut self.rng, targets, target),
            Order::Each { queues, .. } => take_from(queues, target)?,
        };
        let write = self.writes_per_mille == 1000
            || (self.writes_per_mille > 0 && self.rng.random_range(0..1000) < self.writes_per_mille);
        Some((if write { Operation::Set } else { Operation::Get }, key))
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

fn draw_owned(popularity: &Popularity, rng: &mut SmallRng, targets: &Targets, target: usize) -> u32 {
    let mut key = popularity.draw(rng);
    // Drawn again rather than mapped to a key of the target: so each key is as popular as it would be with one server.
    for _ in 0..MAX_DRAWS {
        if targets.owns(target, key) {
            break;
        }
        key = popularity.draw(rng);
    }
    key
}

/// From the target's own keys, or from whoever has some left: any node answers for any key.
fn take_from(queues: &mut [Vec<u32>], target: usize) -> Option<u32> {
    let count = queues.len();
    (0..count).find_map(|step| queues[(target + step) % count].pop())
}
