//! What is counted while a workload runs.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::protocol::Operation;

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
    /// Reads that found nothing.
    pub misses: u64,
    /// Reads whose bytes were wrong.
    pub wrong: u64,
    /// Operations without an answer, or with a refusal, by its words.
    pub errors: BTreeMap<String, u64>,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new() -> Self {
        let empty = || Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3).expect("the bounds are in order");
        Self { gets: empty(), sets: empty(), misses: 0, wrong: 0, errors: BTreeMap::new() }
    }

    /// Counts an answered operation.
    pub fn answered(&mut self, operation: Operation, latency_ns: u64) {
        match operation {
            Operation::Get => self.gets.saturating_record(latency_ns),
            Operation::Set => self.sets.saturating_record(latency_ns),
        }
    }

    /// Counts a failed operation.
    pub fn failed(&mut self, kind: &str) {
        let known = self.errors.len() < MAX_ERROR_KINDS || self.errors.contains_key(kind);
        *self.errors.entry(if known { kind } else { "other" }.to_owned()).or_default() += 1;
    }

    /// Operations that were answered.
    pub fn operations(&self) -> u64 {
        self.gets.len() + self.sets.len()
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        self.gets.add(&other.gets).expect("all histograms have the same bounds");
        self.sets.add(&other.sets).expect("all histograms have the same bounds");
        self.misses += other.misses;
        self.wrong += other.wrong;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
    }

    /// All latencies.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.gets.clone();
        all.add(&self.sets).expect("all histograms have the same bounds");
        all
    }
}
