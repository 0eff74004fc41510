//! Values that say which key and version they belong to, so that one wrong byte is seen. How long one is depends on its key alone.
//!
//! A value is its key's number, a version, and a window of one random block that both of them choose. Writing one and
//! checking one are a copy and a comparison, cheap enough not to show in the figures.

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Where windows may start.
const WINDOW_STARTS: u64 = 32 * 1024;
const HEADER_BYTES: usize = 16;
/// All keys, when they are shared out to lengths.
const SHARES: u64 = 1 << 32;
/// So that a key's length and its window have nothing to do with each other.
const LENGTH_SALT: u64 = 0x6c65_6e67_7468_7300;

/// How long values are: those of one key always as long.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// Each length, and the share of the keys up to which it is theirs, of 2^32; ascending.
    steps: Vec<(u64, usize)>,
}

impl Lengths {
    /// All of `len` bytes.
    pub fn all(len: usize) -> Self {
        Self::mixed(&[(len, 1.0)])
    }

    /// Of several lengths in bytes, each with the share of the keys that have it.
    ///
    /// # Panics
    /// If there is none.
    pub fn mixed(shares: &[(usize, f64)]) -> Self {
        assert!(!shares.is_empty(), "values have a length");
        let whole: f64 = shares.iter().map(|(_, share)| share).sum();
        let mut sum = 0.0;
        let mut step = |&(len, share): &(usize, f64)| {
            sum += share / whole;
            ((sum * SHARES as f64).round() as u64, len)
        };
        let mut steps: Vec<(u64, usize)> = shares.iter().map(&mut step).collect();
        // Whatever the sum was rounded to.
        if let Some((upto, _)) = steps.last_mut() {
            *upto = SHARES;
        }
        Self { steps }
    }

    /// Bytes of the value of `key`.
    pub fn of(&self, key: u32) -> usize {
        let [(_, len)] = self.steps[..] else {
            let at = mix(u64::from(key) ^ LENGTH_SALT) % SHARES;
            return self.steps.iter().find(|(upto, _)| at < *upto).map_or(0, |(_, len)| *len);
        };
        len
    }

    fn longest(&self) -> usize {
        self.steps.iter().map(|(_, len)| *len).max().unwrap_or(0)
    }
}

/// Makes and checks values.
#[derive(Clone, Debug)]
pub struct Values {
    lengths: Lengths,
    block: Vec<u8>,
}

/// Whether values are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checking {
    /// Every byte.
    On,
    /// Only that there is a value.
    Off,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These are the bytes that some `write` for this key wrote.
    Right,
    /// They are not.
    Wrong,
}

impl Values {
    /// Values of these lengths. Takes as much memory as the longest.
    pub fn new(lengths: Lengths) -> Self {
        let mut block = vec![0; lengths.longest() + WINDOW_STARTS as usize];
        SmallRng::seed_from_u64(0x6765_7374_616c_7421).fill_bytes(&mut block);
        Self { lengths, block }
    }

    /// Bytes of the value of `key`.
    pub fn len_of(&self, key: u32) -> usize {
        self.lengths.of(key)
    }

    /// Appends the value of `key` at `version`. Values too short for a header depend on the key alone.
    pub fn write(&self, out: &mut Vec<u8>, key: u32, version: u64) {
        self.write_part(out, key, version, 0..self.len_of(key));
    }

    /// Appends bytes `part` of that value, which must be bytes of it.
    pub fn write_part(&self, out: &mut Vec<u8>, key: u32, version: u64, part: Range<usize>) {
        let len = self.len_of(key);
        if len < HEADER_BYTES {
            return out.extend_from_slice(&self.window(key, 0, len)[part]);
        }
        let header = header(key, version);
        let split = part.end.min(HEADER_BYTES);
        out.extend_from_slice(&header[part.start.min(split)..split]);
        let body = part.start.max(HEADER_BYTES) - HEADER_BYTES..part.end.max(HEADER_BYTES) - HEADER_BYTES;
        out.extend_from_slice(&self.window(key, version, len - HEADER_BYTES)[body]);
    }

    /// Whether `value` is one that `write` makes for `key`.
    pub fn check(&self, value: &[u8], key: u32) -> Verdict {
        let len = self.len_of(key);
        let right = if value.len() != len {
            false
        } else if len < HEADER_BYTES {
            value == self.window(key, 0, len)
        } else {
            let (header, body) = value.split_at(HEADER_BYTES);
            let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
            word(0) == u64::from(key) && body == self.window(key, word(8), body.len())
        };
        if right { Verdict::Right } else { Verdict::Wrong }
    }

    fn window(&self, key: u32, version: u64, len: usize) -> &[u8] {
        let start = (mix(u64::from(key) ^ mix(version)) % WINDOW_STARTS) as usize;
        &self.block[start..start + len]
    }
}

fn header(key: u32, version: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&u64::from(key).to_le_bytes());
    header[8..].copy_from_slice(&version.to_le_bytes());
    header
}

/// The finalizer of splitmix64: every input bit changes every output bit with probability one half.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_right_and_any_flipped_byte_is_wrong() {
        for len in [1, 15, 16, 17, 1024] {
            let values = Values::new(Lengths::all(len));
            let mut value = Vec::new();
            values.write(&mut value, 77, 3);
            assert_eq!(value.len(), len);
            assert_eq!(values.check(&value, 77), Verdict::Right);
            // Bytes of the version select another window, which differs somewhere if there are enough bytes.
            for at in (0..len).filter(|at| !(16..=100).contains(&len) || !(8..16).contains(at)) {
                value[at] ^= 1;
                assert_eq!(values.check(&value, 77), Verdict::Wrong, "byte {at} of {len}");
                value[at] ^= 1;
            }
            assert_eq!(values.check(&value[..len - 1], 77), Verdict::Wrong);
        }
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        for len in [3, 16, 40] {
            let values = Values::new(Lengths::all(len));
            let mut whole = Vec::new();
            values.write(&mut whole, 77, 3);
            for (from, to) in (0..=len).flat_map(|from| (from..=len).map(move |to| (from, to))) {
                let mut part = Vec::new();
                values.write_part(&mut part, 77, 3, from..to);
                assert_eq!(part, whole[from..to], "{from}..{to} of {len}");
            }
        }
    }

    #[test]
    fn another_keys_value_is_wrong() {
        let values = Values::new(Lengths::all(1024));
        let mut value = Vec::new();
        values.write(&mut value, 77, 3);
        assert_eq!(values.check(&value, 78), Verdict::Wrong);
    }

    #[test]
    fn of_mixed_lengths_each_has_its_share_of_the_keys_and_each_key_keeps_its_own() {
        let lengths = Lengths::mixed(&[(100, 0.9), (2000, 0.09), (30_000, 0.01)]);
        let of = |len: usize| (0..100_000).filter(|key| lengths.of(*key) == len).count();
        let near = |count: usize, expected: usize| count.abs_diff(expected) < expected / 10;
        assert!(near(of(100), 90_000) && near(of(2000), 9000) && near(of(30_000), 1000));
        let values = Values::new(lengths);
        for key in 0..200 {
            let mut value = Vec::new();
            values.write(&mut value, key, 1);
            assert_eq!((value.len(), values.check(&value, key)), (values.len_of(key), Verdict::Right));
        }
    }
}
