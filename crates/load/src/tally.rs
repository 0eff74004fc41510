//! What is counted while a workload runs.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::protocol::Operation;
use crate::timeline::Timeline;

/// Kinds of error that are told apart; everything else is one.
const MAX_ERROR_KINDS: usize = 32;
/// Longest latency that is told apart, in nanoseconds.
const MAX_LATENCY_NS: u64 = 120_000_000_000;

/// Counts and latencies of one thread, or of all of them.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Latencies of reads, in nanoseconds.
    pub gets: Histogram<u64>,
    /// Latencies of writes, in nanoseconds.
    pub sets: Histogram<u64>,
    /// Latencies of reads with the writes that came of them, in nanoseconds.
    pub modifies: Histogram<u64>,
    /// How often another had written between the two, and both were done again.
    pub conflicts: u64,
    /// Bytes of the values that were read or written.
    pub bytes: u64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Reads whose bytes were wrong.
    pub wrong: u64,
    /// Writes that should have had names and had none.
    pub nameless: u64,
    /// Operations without an answer, or with a refusal, by its words.
    pub errors: BTreeMap<String, u64>,
    /// When all that was, if anybody wants to know.
    pub timeline: Option<Timeline>,
}

impl Tally {
    /// Nothing counted yet; also by stretches of `interval`.
    pub fn new(interval: Option<Duration>) -> Self {
        let empty = || Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3).expect("the bounds are in order");
        Self {
            gets: empty(),
            sets: empty(),
            modifies: empty(),
            conflicts: 0,
            bytes: 0,
            misses: 0,
            wrong: 0,
            nameless: 0,
            errors: BTreeMap::new(),
            timeline: interval.map(Timeline::new),
        }
    }

    /// Counts an operation that was answered at `at_ns` after the start.
    pub fn answered(&mut self, operation: Operation, at_ns: u64, latency_ns: u64) {
        if let Some(timeline) = &mut self.timeline {
            timeline.answered(at_ns, latency_ns);
        }
        match operation {
            Operation::Get => self.gets.saturating_record(latency_ns),
            Operation::Set => self.sets.saturating_record(latency_ns),
            Operation::Modify => self.modifies.saturating_record(latency_ns),
        }
    }

    /// Counts an operation that failed at `at_ns` after the start.
    pub fn failed(&mut self, at_ns: u64, kind: &str) {
        if let Some(timeline) = &mut self.timeline {
            timeline.failed(at_ns);
        }
        let known = self.errors.len() < MAX_ERROR_KINDS || self.errors.contains_key(kind);
        *self.errors.entry(if known { kind } else { "other" }.to_owned()).or_default() += 1;
    }

    /// Operations that were answered.
    pub fn operations(&self) -> u64 {
        self.gets.len() + self.sets.len() + self.modifies.len()
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        self.gets.add(&other.gets).expect("all histograms have the same bounds");
        self.sets.add(&other.sets).expect("all histograms have the same bounds");
        self.modifies.add(&other.modifies).expect("all histograms have the same bounds");
        self.conflicts += other.conflicts;
        self.bytes += other.bytes;
        self.misses += other.misses;
        self.wrong += other.wrong;
        self.nameless += other.nameless;
        if let (Some(own), Some(other)) = (&mut self.timeline, &other.timeline) {
            own.add(other);
        }
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
    }

    /// All latencies.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.gets.clone();
        all.add(&self.sets).expect("all histograms have the same bounds");
        all.add(&self.modifies).expect("all histograms have the same bounds");
        all
    }
}
