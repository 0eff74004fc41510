//! Random numbers from a seed: one 64-bit state, the same on every machine and in every version. The simulator and chaos draw
//! from them what goes wrong, other tests what they write.

/// SplitMix64 (Steele, Lea, Flood 2014). Good enough to draw schedules, and a seed is a whole state.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finalizer of SplitMix64: a bijection that scatters its bits.
#[must_use]
#[inline]
pub fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

// Inlined into other crates: called, they cost the simulator a twentieth of its time.
impl Rng {
    /// The stream of numbers that belongs to `seed` and `purpose`. Each purpose has its own stream, so that one more
    /// draw for a check does not change the schedule.
    #[must_use]
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self { state: scatter(seed ^ scatter(purpose.wrapping_add(GOLDEN))) }
    }

    /// Any number.
    #[allow(clippy::should_implement_trait)] // an endless source is no iterator
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        scatter(self.state)
    }

    /// A number in `0..limit`; 0 if `limit` is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// An index in `0..count`.
    #[inline]
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True once in `count` cases.
    #[inline]
    pub fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of `items`.
    ///
    /// # Panics
    /// If there are none.
    #[inline]
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// An index drawn with the given weights; 0 if all are 0.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        let mut at = self.below(total);
        for (index, weight) in weights.iter().enumerate() {
            match at.checked_sub(u64::from(*weight)) {
                Some(rest) => at = rest,
                None => return index,
            }
        }
        0
    }

    /// A number around `mean` with a long tail: mostly below, at most 8 times.
    pub fn tailed(&mut self, mean: u64) -> u64 {
        let doublings = self.next().trailing_ones().min(3);
        self.below(mean + 1) << doublings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |purpose| Rng::new(7, purpose).next();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn weights_of_zero_are_never_drawn() {
        let mut rng = Rng::new(1, 1);
        assert!((0..1000).all(|_| rng.weighted(&[0, 3, 0, 1]) % 2 == 1));
    }
}
