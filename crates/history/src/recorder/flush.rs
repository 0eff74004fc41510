//! `flush_all` while clients go on: an operation of every key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::linearizability::{Op, Outcome};

use super::Recorded;
use super::client::Client;

/// Pause after an attempt that was in vain.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Whoever flushes what the clients of a recorder use.
pub struct Flusher {
    client: Client,
    flushes: Flushes,
}

impl Flusher {
    pub(super) fn new(client: Client, flushes: Flushes) -> Self {
        Self { client, flushes }
    }

    /// Asks one node after the other until one has done it; false if none has within `limit`.
    pub fn flush(mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Some((invoked_ns, answered_ns)) = self.client.flush() {
                self.flushes.lock().push(Flush { client: self.client.id(), invoked_ns, answered_ns });
                if answered_ns.is_some() {
                    return true;
                }
            }
            thread::sleep(TRY_AGAIN);
        }
        false
    }
}

/// Those of a recorder.
#[derive(Clone, Default)]
pub(super) struct Flushes(Arc<Mutex<Vec<Flush>>>);

#[derive(Clone, Copy)]
struct Flush {
    client: u64,
    invoked_ns: u64,
    /// None if it may have been done at some keys, or may yet be.
    answered_ns: Option<u64>,
}

impl Flushes {
    fn lock(&self) -> MutexGuard<'_, Vec<Flush>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each of them for each key of `operations`: keys that were first asked for after it are not concerned.
    pub(super) fn of_each_key(&self, operations: &[Recorded]) -> Vec<Recorded> {
        let mut begun: BTreeMap<&str, u64> = BTreeMap::new();
        for operation in operations {
            let first = begun.entry(&operation.key).or_insert(u64::MAX);
            *first = operation.invoked_ns.min(*first);
        }
        let flushes = self.lock();
        let concerned = |(key, begun): (&str, u64)| {
            let is_later = move |flush: &&Flush| flush.answered_ns.is_none_or(|answered| answered >= begun);
            let key = key.to_owned();
            let of_key = move |flush: &Flush| Recorded {
                client: flush.client,
                key: key.clone(),
                op: Op::Flush,
                invoked_ns: flush.invoked_ns,
                answer: flush.answered_ns.map(|at| (at, Outcome::Flushed)),
            };
            flushes.iter().filter(is_later).map(of_key).collect::<Vec<_>>()
        };
        begun.into_iter().flat_map(concerned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_an_operation_of_every_key_that_was_there() {
        let flushes = Flushes::default();
        let flush = |invoked_ns, answered_ns| Flush { client: 9, invoked_ns, answered_ns };
        flushes.lock().extend([flush(10, Some(20)), flush(15, None)]);
        let operation = |key: &str, invoked_ns| Recorded {
            client: 1,
            key: key.to_owned(),
            op: Op::Get,
            invoked_ns,
            answer: None,
        };
        let operations = [operation("new", 30), operation("old", 25), operation("old", 5)];
        let told = |of: &Recorded| (of.key.clone(), of.invoked_ns, of.answer.as_ref().map(|(at, _)| *at));
        let all: Vec<_> = flushes.of_each_key(&operations).iter().map(told).collect();
        let expected = [("new", 15, None), ("old", 10, Some(20)), ("old", 15, None)];
        assert_eq!(all, expected.map(|(key, invoked, answered)| (key.to_owned(), invoked, answered)));
    }
}
