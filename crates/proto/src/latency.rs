//! How long things take: histograms of fixed buckets, filled by one thread.
//!
//! Times come from outside, as everywhere here: what begins and ends in one cycle of the driver takes no time.

use std::time::Duration;

use types::Time;
use types::op::OpKind;

/// Bounds of the buckets: powers of two of a microsecond from this one...
const FIRST_BOUND: u32 = 3;
/// ...to this one: 8 us to 16.8 s.
const LAST_BOUND: u32 = 24;
const BUCKETS: usize = (LAST_BOUND - FIRST_BOUND) as usize + 2;

/// How often something took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By bucket; the last one is what is longer than any bound.
    counts: [u64; BUCKETS],
    sum_us: u64,
}

impl Histogram {
    /// Something took so long, so many times.
    pub fn record(&mut self, took_us: u64, times: u64) {
        // A bound belongs to the bucket below it.
        let bits = u64::BITS - took_us.saturating_sub(1).leading_zeros();
        let bucket = bits.clamp(FIRST_BOUND, LAST_BOUND + 1) - FIRST_BOUND;
        self.counts[bucket as usize] += times;
        self.sum_us = self.sum_us.wrapping_add(took_us.wrapping_mul(times));
    }

    /// These and those.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they took together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// For every bound how many took no longer, ascending; what took longer than all bounds is in the count alone.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut sum = 0;
        self.counts.iter().zip(FIRST_BOUND..=LAST_BOUND).map(move |(count, bound)| {
            sum += count;
            (Duration::from_micros(1 << bound), sum)
        })
    }
}

/// A histogram for each kind of operation.
#[derive(Clone, Debug, Default)]
pub struct ByKind([Histogram; OpKind::ALL.len()]);

impl ByKind {
    /// An operation took from `since` to `now`.
    pub fn record(&mut self, kind: OpKind, since: Time, now: Time) {
        self.0[kind as usize].record(now.since(since), 1);
    }

    /// These and those.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, one)| sum.add(one));
    }

    /// All kinds.
    pub fn iter(&self) -> impl Iterator<Item = (OpKind, &Histogram)> {
        OpKind::ALL.into_iter().zip(&self.0)
    }
}

/// What operations wait for within a host.
#[derive(Clone, Debug, Default)]
pub struct HostLatencies {
    /// Another node: from the forward until its answer is here.
    pub network: ByKind,
    /// The parities: from the record until all of them have it, and those before it.
    pub parities: ByKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(took_us: u64) -> Option<Duration> {
        let mut histogram = Histogram::default();
        histogram.record(took_us, 1);
        histogram.cumulative().find(|(_, count)| *count == 1).map(|(bound, _)| bound)
    }

    #[test]
    fn a_bound_is_in_its_own_bucket_and_what_is_longer_in_the_next() {
        let us = |us| Some(Duration::from_micros(us));
        assert_eq!((bucket_of(0), bucket_of(8), bucket_of(9)), (us(8), us(8), us(16)));
        assert_eq!((bucket_of(1 << 24), bucket_of((1 << 24) + 1)), (us(1 << 24), None));
        assert_eq!(bucket_of(u64::MAX), None, "it is in the count alone");
    }

    #[test]
    fn counts_add_up() {
        let mut sum = Histogram::default();
        sum.record(10, 3);
        let mut other = Histogram::default();
        other.record(u64::from(u32::MAX), 1);
        sum.add(&other);
        assert_eq!((sum.count(), sum.sum()), (4, Duration::from_micros(30 + u64::from(u32::MAX))));
        assert_eq!(sum.cumulative().last().map(|(_, count)| count), Some(3));
    }

    #[test]
    fn every_kind_has_its_own_place() {
        let mut kinds = ByKind::default();
        OpKind::ALL.into_iter().for_each(|kind| kinds.record(kind, Time(5), Time(9)));
        assert!(kinds.iter().all(|(_, histogram)| histogram.count() == 1));
    }
}
