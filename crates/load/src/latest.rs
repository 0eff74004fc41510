//! Keys that are added, of which the newest are the most popular ones: YCSB's distribution "latest".
//!
//! Each thread adds keys of its own and reads those, and what was there before; only what is known to be stored is read. Which of them is next
//! is drawn by its age, by Zipf's law over all that there are now.

use std::collections::{BTreeMap, VecDeque};

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

use crate::keys::KeyFormat;
use crate::targets::Targets;

/// Keys that may wait for a connection to their owner. Beyond it they are written by way of another, or left out where there is no other.
const MAX_WAITING: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct Latest {
    /// Keys that were there before: those below.
    keys: u32,
    theta: f64,
    ranks: Zipf<f64>,
    /// The next one to be added, and how far it is to the one behind it: other threads add those in between.
    next: u32,
    step: u32,
    /// By owner, keys that are to be added by a connection to it.
    waiting: BTreeMap<usize, VecDeque<u32>>,
    /// Keys that were added, in the order in which that was heard.
    added: Vec<u32>,
}

impl Latest {
    /// Behind `keys` keys, as number `index` of `threads` threads.
    ///
    /// # Errors
    /// One line if the exponent is not a positive number.
    pub fn new(keys: u32, theta: f64, (index, threads): (u32, u32)) -> Result<Self, String> {
        let next = keys.saturating_add(index);
        let (waiting, added) = (BTreeMap::new(), Vec::new());
        Ok(Self { keys, theta, ranks: ranks(keys, theta)?, next, step: threads, waiting, added })
    }

    /// The key that a connection to `target` adds next; none if there are no more numbers.
    pub(crate) fn add(
        &mut self,
        targets: &mut Targets,
        format: &mut KeyFormat,
        target: usize,
    ) -> Option<u32> {
        if let Some(key) = self.waiting.get_mut(&target).and_then(VecDeque::pop_front) {
            return Some(key);
        }
        loop {
            let key = self.next;
            self.next = key.checked_add(self.step)?;
            targets.cover(key.checked_add(1)?, format);
            let owner = targets.owner_of(key).unwrap_or(target);
            let waiting = self.waiting.entry(owner).or_default();
            match waiting.len() {
                _ if owner == target => return Some(key),
                MAX_WAITING if targets.is_sharded() => {}
                MAX_WAITING => return Some(key),
                _ => waiting.push_back(key),
            }
        }
    }

    /// It is stored.
    pub(crate) fn added(&mut self, key: u32) {
        self.added.push(key);
        let count = u32::try_from(self.added.len()).unwrap_or(u32::MAX).saturating_add(self.keys);
        if let Ok(ranks) = ranks(count, self.theta) {
            self.ranks = ranks;
        }
    }

    /// One that is there.
    pub(crate) fn draw(&self, rng: &mut SmallRng) -> u32 {
        let age = self.ranks.sample(rng) as usize - 1;
        match self.added.len().checked_sub(age + 1) {
            Some(at) => self.added[at],
            // Those that were there before were loaded in their order.
            None => self.keys - 1 - u32::try_from(age - self.added.len()).unwrap_or(0).min(self.keys - 1),
        }
    }
}

fn ranks(count: u32, theta: f64) -> Result<Zipf<f64>, String> {
    Zipf::new(f64::from(count), theta)
        .map_err(|_| format!("--zipf {theta} is no exponent: give a positive number, for example 0.99"))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rand::SeedableRng;

    use super::*;
    use crate::targets::{Listener, Source};

    #[test]
    fn what_was_stored_last_is_read_most_and_nothing_is_read_that_was_not() {
        let mut latest = Latest::new(100, 0.99, (1, 3)).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        assert!((0..1000).all(|_| latest.draw(&mut rng) < 100));
        [101, 104, 110].into_iter().for_each(|key| latest.added(key));
        let mut counts = BTreeMap::new();
        (0..10_000).for_each(|_| *counts.entry(latest.draw(&mut rng)).or_insert(0) += 1);
        assert!(counts.keys().all(|key| *key < 100 || [101, 104, 110].contains(key)));
        assert!(counts[&110] > counts[&104] && counts[&104] > counts[&99], "{counts:?}");
    }

    #[test]
    fn each_connection_adds_keys_of_its_own_server_and_none_is_left_out() {
        let addresses = (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let mut format = KeyFormat::new(24);
        let source = Source::Sharded(addresses);
        let mut targets = Targets::resolve(&source, Listener::Memcached, &mut format, 10).unwrap();
        let mut latest = Latest::new(10, 0.99, (0, 1)).unwrap();
        let mut all = Vec::new();
        for target in (0..3).cycle().take(300) {
            let key = latest.add(&mut targets, &mut format, target).unwrap();
            assert!(targets.owns(target, key));
            all.push(key);
        }
        all.extend(latest.waiting.values().flatten());
        all.sort_unstable();
        assert!(all.iter().copied().eq(10..10 + all.len() as u32));
    }

    #[test]
    fn an_exponent_is_positive() {
        assert!(Latest::new(10, -1.0, (0, 1)).is_err());
    }
}
