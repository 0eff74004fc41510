//! Made-up requests, by published parameters: which key is asked for, and how long its value is.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// Bytes of a key.
pub const KEY_BYTES: usize = 20;

/// One request: a read, and after a miss a write.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of the key.
    pub key: u64,
    /// Bytes of its value; the same each time.
    pub value_bytes: usize,
}

/// A kind of requests.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// For tables.
    pub name: &'static str,
    /// Exponent of popularity by rank.
    skew: f64,
    /// Of a hundred requests, those for keys that are asked for once.
    once_percent: u32,
    sizes: Sizes,
}

/// How long values are.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Generalised Pareto with scale 214.476 and shape 0.348238: memcached's "ETC" at Facebook (Atikoglu et al., "Workload analysis
    /// of a large-scale key-value store", SIGMETRICS 2012, section 5).
    Etc,
    /// These sizes, with so many of a thousand keys each.
    Mixed(&'static [(usize, u32)]),
}

/// From small to large, the large ones with most of the bytes.
const MIXED: Sizes = Sizes::Mixed(&[(100, 600), (1_000, 300), (12_000, 80), (100_000, 16), (600_000, 4)]);

/// Zipf's exponents are in the range of Yang et al., "A large scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI
/// 2020, section 4.4, and one in four requests for a key that does not come again is what Yang et al., "FIFO queues are all you need for cache
/// eviction", SOSP 2023, section 3.1, found in the middle of their traces.
pub const TRACES: [Trace; 4] = [
    Trace { name: "ETC sizes, zipf 1.0", skew: 1.0, once_percent: 0, sizes: Sizes::Etc },
    Trace {
        name: "ETC sizes, zipf 1.0, 26 % asked for once",
        skew: 1.0,
        once_percent: 26,
        sizes: Sizes::Etc,
    },
    Trace { name: "100 B to 600 kB, zipf 1.0", skew: 1.0, once_percent: 0, sizes: MIXED },
    Trace {
        name: "100 B to 600 kB, zipf 1.0, 26 % asked for once",
        skew: 1.0,
        once_percent: 26,
        sizes: MIXED,
    },
];

impl Trace {
    /// `count` requests for keys whose values have `footprint_bytes` together, but for those that are asked for once.
    pub fn requests(&self, footprint_bytes: u64, count: usize) -> Vec<Request> {
        let keys = (footprint_bytes as f64 / self.mean_bytes()).max(1.0);
        // One seed, so that every cache is asked the same.
        let mut rng = SmallRng::seed_from_u64(7);
        let ranks = Zipf::new(keys, self.skew).expect("there is a key, and the exponent is positive");
        // Beyond all ranks.
        let mut fresh = 1u64 << 40;
        let mut request = || {
            let once = rng.random_range(0..100) < self.once_percent;
            fresh += u64::from(once);
            let key = if once { fresh } else { ranks.sample(&mut rng) as u64 };
            Request { key, value_bytes: self.sizes.of(key) }
        };
        (0..count).map(|_| request()).collect()
    }

    fn mean_bytes(&self) -> f64 {
        const SAMPLE: u64 = 100_000;
        (0..SAMPLE).map(|key| (KEY_BYTES + self.sizes.of(key)) as f64).sum::<f64>() / SAMPLE as f64
    }
}

impl Sizes {
    /// By a hash of the key, so that popularity and size have nothing to do with each other.
    fn of(self, key: u64) -> usize {
        let draw = SmallRng::seed_from_u64(key ^ 0x9e37_79b9_7f4a_7c15).random::<f64>();
        match self {
            Self::Etc => {
                // The inverse of the distribution function.
                (214.476 / 0.348_238 * ((1.0 - draw).powf(-0.348_238) - 1.0)).clamp(1.0, 500_000.0) as usize
            }
            Self::Mixed(sizes) => {
                let mut left = (draw * 1000.0) as u32;
                let found = sizes.iter().find(|(_, share)| {
                    let here = left < *share;
                    left = left.saturating_sub(*share);
                    here
                });
                found.or(sizes.last()).map_or(1, |(bytes, _)| *bytes)
            }
        }
    }
}
