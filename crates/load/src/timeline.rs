//! What happened when: operations, failures and latencies of each stretch of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Most stretches of a run.
pub const MAX_SLICES: usize = 20_000;
/// Longest latency that is told apart, in nanoseconds.
const MAX_LATENCY_NS: u64 = 120_000_000_000;

/// Counts by stretch of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    interval: Duration,
    slices: BTreeMap<usize, Slice>,
}

#[derive(Clone, Debug)]
struct Slice {
    /// In nanoseconds, to two digits.
    latencies: Histogram<u64>,
    failed: u64,
}

/// One stretch, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Its end, in seconds from the start of the run.
    pub until_s: f64,
    /// Answered operations a second.
    pub operations_per_second: f64,
    /// Operations without an answer, or with a refusal.
    pub failed: u64,
    /// Half are faster; in microseconds.
    pub p50_us: f64,
    /// 99 % are faster; in microseconds.
    pub p99_us: f64,
    /// The slowest, in microseconds.
    pub max_us: f64,
}

impl Timeline {
    /// Stretches of `interval` each.
    pub fn new(interval: Duration) -> Self {
        Self { interval, slices: BTreeMap::new() }
    }

    /// Counts an operation that was answered at `at_ns`.
    pub fn answered(&mut self, at_ns: u64, latency_ns: u64) {
        self.slice(at_ns).latencies.saturating_record(latency_ns);
    }

    /// Counts an operation that failed at `at_ns`.
    pub fn failed(&mut self, at_ns: u64) {
        self.slice(at_ns).failed += 1;
    }

    fn slice(&mut self, at_ns: u64) -> &mut Slice {
        let index = u128::from(at_ns) / self.interval.as_nanos().max(1);
        let index = usize::try_from(index).map_or(MAX_SLICES, |index| index.min(MAX_SLICES));
        self.slices.entry(index).or_insert_with(Slice::new)
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        for (&index, slice) in &other.slices {
            let own = self.slices.entry(index).or_insert_with(Slice::new);
            own.latencies.add(&slice.latencies).expect("all histograms have the same bounds");
            own.failed += slice.failed;
        }
    }

    /// All stretches until the last one in which anything happened. Those in which nothing did have zeros.
    pub fn stretches(&self) -> Vec<Stretch> {
        let end = self.slices.last_key_value().map_or(0, |(&index, _)| index + 1);
        let empty = Slice::new();
        (0..end).map(|index| self.stretch(index, self.slices.get(&index).unwrap_or(&empty))).collect()
    }

    fn stretch(&self, index: usize, slice: &Slice) -> Stretch {
        let seconds = self.interval.as_secs_f64();
        let us = |quantile| slice.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        Stretch {
            until_s: (index + 1) as f64 * seconds,
            operations_per_second: slice.latencies.len() as f64 / seconds,
            failed: slice.failed,
            p50_us: us(0.5),
            p99_us: us(0.99),
            max_us: slice.latencies.max() as f64 / 1000.0,
        }
    }
}

impl Slice {
    fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, MAX_LATENCY_NS, 2).expect("the bounds are in order");
        Self { latencies, failed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn stretches_of_all_threads_are_added_and_silence_has_zeros() {
        let mut one = Timeline::new(Duration::from_millis(100));
        one.answered(MS, 50_000);
        one.answered(99 * MS, 150_000);
        let mut other = Timeline::new(Duration::from_millis(100));
        other.failed(350 * MS);
        one.add(&other);
        let stretches = one.stretches();
        let rates: Vec<f64> = stretches.iter().map(|stretch| stretch.operations_per_second).collect();
        assert_eq!(rates, [20.0, 0.0, 0.0, 0.0]);
        assert_eq!(stretches[3].failed, 1);
        assert!((150.0..152.0).contains(&stretches[0].max_us), "{}", stretches[0].max_us);
    }

    #[test]
    fn their_number_has_a_bound() {
        let mut timeline = Timeline::new(Duration::from_nanos(1));
        timeline.answered(u64::MAX, 1);
        assert_eq!(timeline.stretches().len(), MAX_SLICES + 1);
    }
}
