//! Keys by number, and which of them comes next.

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

/// Turns a key's number into its bytes: `k`, zeros, the number in decimal.
#[derive(Clone, Debug)]
pub struct KeyFormat {
    bytes: Vec<u8>,
}

impl KeyFormat {
    /// Keys of `len` bytes, at least 11 so that any number fits.
    pub fn new(len: u16) -> Self {
        let mut bytes = vec![b'0'; usize::from(len.max(11))];
        bytes[0] = b'k';
        Self { bytes }
    }

    /// The bytes of key `number`.
    pub fn write(&mut self, number: u32) -> &[u8] {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        let split = self.bytes.len() - digits.len();
        self.bytes[1..split].fill(b'0');
        self.bytes[split..].copy_from_slice(digits);
        &self.bytes
    }
}

/// How popular keys are.
#[derive(Clone, Copy, Debug)]
pub enum Popularity {
    /// All alike.
    Uniform {
        /// How many keys there are.
        keys: u32,
    },
    /// By Zipf's law, the popular ones scattered over the numbers.
    Zipf {
        /// How many keys there are.
        keys: u32,
        /// Draws a rank.
        ranks: Zipf<f64>,
    },
}

impl Popularity {
    /// Zipf's law if there is an exponent.
    ///
    /// # Errors
    /// One line if the exponent is not a positive number.
    pub fn new(keys: u32, theta: Option<f64>) -> Result<Self, String> {
        let Some(theta) = theta else { return Ok(Self::Uniform { keys }) };
        let ranks = Zipf::new(f64::from(keys), theta).map_err(|_| {
            format!("--zipf {theta} is no exponent: give a positive number, for example 0.99")
        })?;
        Ok(Self::Zipf { keys, ranks })
    }

    /// A key's number.
    pub fn draw(&self, rng: &mut SmallRng) -> u32 {
        match self {
            Self::Uniform { keys } => rng.random_range(0..*keys),
            Self::Zipf { keys, ranks } => scatter(ranks.sample(rng) as u32 - 1, *keys),
        }
    }
}

/// A bijection of `0..keys`: multiplication by a prime larger than any `keys`.
fn scatter(rank: u32, keys: u32) -> u32 {
    const PRIME: u64 = 2_654_435_761;
    (u64::from(rank) * PRIME % u64::from(keys)) as u32
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn keys_have_the_length_asked_for_and_differ() {
        let mut format = KeyFormat::new(24);
        assert_eq!(format.write(199_999), b"k00000000000000000199999");
        assert_eq!(format.write(7), b"k00000000000000000000007");
    }

    #[test]
    fn scattering_ranks_loses_no_key() {
        for keys in [1, 2, 10, 1000, 4097] {
            let mut seen: Vec<u32> = (0..keys).map(|rank| scatter(rank, keys)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..keys).collect::<Vec<_>>());
        }
    }

    #[test]
    fn zipf_has_a_most_popular_key_and_stays_in_range() {
        let popularity = Popularity::new(1000, Some(0.99)).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0; 1000];
        (0..100_000).for_each(|_| counts[popularity.draw(&mut rng) as usize] += 1);
        assert!(counts[0] > 10_000 && counts[0] == *counts.iter().max().unwrap());
        assert!(Popularity::new(10, Some(-1.0)).is_err());
    }
}
