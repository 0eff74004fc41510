//! Values that say which key and version they belong to, so that one wrong byte is seen.
//!
//! A value is its key's number, a version, and a window of one random block that both of them choose. Writing one and
//! checking one are a copy and a comparison, cheap enough not to show in the figures.

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Where windows may start.
const WINDOW_STARTS: u64 = 32 * 1024;
const HEADER_BYTES: usize = 16;

/// Makes and checks values of one length.
#[derive(Clone, Debug)]
pub struct Values {
    len: usize,
    block: Vec<u8>,
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
    /// Values of `len` bytes.
    pub fn new(len: usize) -> Self {
        let mut block = vec![0; len + WINDOW_STARTS as usize];
        SmallRng::seed_from_u64(0x6765_7374_616c_7421).fill_bytes(&mut block);
        Self { len, block }
    }

    /// Length of every value.
    pub fn value_bytes(&self) -> usize {
        self.len
    }

    /// Appends the value of `key` at `version`. Values too short for a header depend on the key alone.
    pub fn write(&self, out: &mut Vec<u8>, key: u32, version: u64) {
        if self.len < HEADER_BYTES {
            out.extend_from_slice(self.window(key, 0, self.len));
            return;
        }
        out.extend_from_slice(&u64::from(key).to_le_bytes());
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(self.window(key, version, self.len - HEADER_BYTES));
    }

    /// Whether `value` is one that `write` makes for `key`.
    pub fn check(&self, value: &[u8], key: u32) -> Verdict {
        let right = if value.len() != self.len {
            false
        } else if self.len < HEADER_BYTES {
            value == self.window(key, 0, self.len)
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
            let values = Values::new(len);
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
    fn another_keys_value_is_wrong() {
        let values = Values::new(1024);
        let mut value = Vec::new();
        values.write(&mut value, 77, 3);
        assert_eq!(values.check(&value, 78), Verdict::Wrong);
    }
}
