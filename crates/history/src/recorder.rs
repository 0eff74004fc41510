//! Clients that hammer a real cluster and write down what they asked and saw.
//!
//! Each client is a thread. Most have one plain socket to any node, as stock memcached clients that know nothing of the
//! cluster; where a workload says so every other one asks by the native protocol, through one client that they share. What was certainly not done is left out of the history; what may have been done stays in it unanswered.
#![allow(clippy::disallowed_methods)] // Real processes take real time.

mod client;
mod flush;
mod long;
mod manner;
mod mix;
mod native;
mod pattern;
mod scans;
mod socket;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::linearizability::{History, Op, Outcome};

use self::client::Client;
pub use self::flush::Flusher;
use self::flush::Flushes;
pub use self::mix::{Mix, Workload};
use self::native::Native;
pub use self::scans::{Lasting, Scanned, Scans};

/// Running clients.
pub struct Recorder {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Recording>>,
    workload: Workload,
    nodes: Vec<SocketAddr>,
    epoch: Instant,
    flushes: Flushes,
}

/// What one client saw.
#[derive(Default)]
struct Recording {
    operations: Vec<Recorded>,
    longest_wait: Duration,
    refusals: Refusals,
}

/// Requests that were refused without effect, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// No primary could be reached, or it was busy.
    pub unavailable: u64,
    /// No memory.
    pub no_memory: u64,
    /// The key's data is lost.
    pub lost: u64,
}

struct Recorded {
    client: u64,
    key: String,
    op: Op,
    invoked_ns: u64,
    answer: Option<(u64, Outcome)>,
}

/// What all clients saw.
pub struct Seen {
    /// To be checked.
    pub history: History,
    /// Operations with an answer.
    pub answered: usize,
    /// Operations that may or may not have been done.
    pub unknown: usize,
    /// Requests that were refused without effect.
    pub refusals: Refusals,
    /// The longest that any client waited between two answers.
    pub longest_wait: Duration,
    /// Keys that were read at the end.
    pub keys: usize,
}

impl Recorder {
    /// Starts clients that talk to `nodes`.
    #[must_use]
    pub fn start(workload: &Workload, nodes: &[SocketAddr]) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        // One clock for all: times of different clients are compared.
        let epoch = Instant::now();
        let native = (!workload.native.is_empty()).then(|| Native::new(&workload.native, workload.timeout));
        let start = |id: u64| {
            let native = native.clone().filter(|_| id % 2 == 1);
            let client = Client::new(id, workload, nodes, epoch).asking_by(native);
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || client.run(&stop, &answered))
        };
        let clients = (0..workload.clients).map(start).collect();
        let (workload, nodes) = (workload.clone(), nodes.to_vec());
        Self { stop, answered, clients, workload, nodes, epoch, flushes: Flushes::default() }
    }

    /// Who flushes what the clients use, while they go on.
    #[must_use]
    pub fn flusher(&self) -> Flusher {
        // A client of its own, with a number that no other has.
        let id = self.workload.clients + 1;
        Flusher::new(Client::new(id, &self.workload, &self.nodes, self.epoch), self.flushes.clone())
    }

    /// Answers so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until `count` more answers have come.
    ///
    /// # Errors
    /// One line if they have not within `limit`.
    pub fn wait_for(&self, count: u64, limit: Duration) -> Result<(), String> {
        let (goal, deadline) = (self.answered() + count, Instant::now() + limit);
        while self.answered() < goal {
            if Instant::now() > deadline {
                let missing = goal - self.answered();
                return Err(format!("{missing} of {count} answers are missing after {limit:?}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Stops the clients and puts together what they saw.
    ///
    /// # Panics
    /// If a client has.
    #[must_use]
    pub fn finish(self) -> Seen {
        let flushes = self.flushes.clone();
        Seen::of(self.stop(), &flushes)
    }

    /// Stops the clients, reads every key that they used once more, and puts all of it together.
    ///
    /// # Errors
    /// One line if a key is not answered within `limit`.
    ///
    /// # Panics
    /// If a client has.
    pub fn finish_and_read_all(self, limit: Duration) -> Result<Seen, String> {
        // A client of its own, with a number that no other has.
        let mut reader = Client::new(self.workload.clients, &self.workload, &self.nodes, self.epoch);
        let flushes = self.flushes.clone();
        let mut recordings = self.stop();
        let all = recordings.iter().flat_map(|recording| &recording.operations);
        let keys: BTreeSet<String> = all.map(|operation| operation.key.clone()).collect();
        for key in &keys {
            reader.read_until_answered(key, limit)?;
        }
        recordings.push(reader.into_recording());
        Ok(Seen { keys: keys.len(), ..Seen::of(recordings, &flushes) })
    }

    fn stop(self) -> Vec<Recording> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|client| client.join().expect("no client panics")).collect()
    }
}

impl Seen {
    fn of(recordings: Vec<Recording>, flushes: &Flushes) -> Self {
        let longest_wait =
            recordings.iter().map(|recording| recording.longest_wait).max().unwrap_or_default();
        let mut refusals = Refusals::default();
        for recording in &recordings {
            refusals.unavailable += recording.refusals.unavailable;
            refusals.no_memory += recording.refusals.no_memory;
            refusals.lost += recording.refusals.lost;
        }
        let mut operations: Vec<Recorded> =
            recordings.into_iter().flat_map(|recording| recording.operations).collect();
        let answered = operations.iter().filter(|operation| operation.answer.is_some()).count();
        let unknown = operations.len() - answered;
        operations.extend(flushes.of_each_key(&operations));
        Self { history: merge(operations), answered, unknown, refusals, longest_wait, keys: 0 }
    }
}

/// One history in the order of time; at equal times invocations come first, which makes operations concurrent.
fn merge(operations: Vec<Recorded>) -> History {
    enum Event {
        Invoke(usize),
        Answer(usize, Outcome),
    }
    let mut events = Vec::new();
    let mut asked = Vec::new();
    for (index, operation) in operations.into_iter().enumerate() {
        events.push((operation.invoked_ns, 0, Event::Invoke(index)));
        if let Some((at, outcome)) = operation.answer {
            events.push((at, 1, Event::Answer(index, outcome)));
        }
        // Taken out when its turn comes, so that values are not copied: histories are large.
        asked.push(Some((operation.client, operation.key, operation.op)));
    }
    events.sort_by_key(|(at, rank, _)| (*at, *rank));
    let mut history = History::default();
    let mut ids = vec![None; asked.len()];
    for (at, _, event) in events {
        match event {
            Event::Invoke(index) => {
                let (client, key, op) = asked[index].take().expect("each operation is invoked once");
                ids[index] = Some(history.invoke(at, client, key.as_str(), op));
            }
            Event::Answer(index, outcome) => {
                history.answer(at, ids[index].expect("an answer comes after its question"), outcome);
            }
        }
    }
    history
}
