//! CRC-32C (Castagnoli), quick for what is short.
//!
//! Nearly all that is summed up here is a frame's header, an acknowledgement or a small item. For those the crate's
//! preparations for long inputs cost several times what the sum itself does.
#![cfg_attr(target_arch = "x86_64", allow(unsafe_code))]

/// From this length on the crate sums up three streams side by side, which is faster.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 768;

/// The CRC-32C of `bytes`.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < LONG_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instructions.
        return unsafe { short(bytes) };
    }
    crc32c::crc32c(bytes)
}

/// One stream of eight bytes at a time; the last ones by fours and ones.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn short(bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks();
    let sum =
        words.iter().fold(u64::from(u32::MAX), |sum, &word| _mm_crc32_u64(sum, u64::from_le_bytes(word)));
    // The upper half of what the instruction gives is zero.
    let sum = sum as u32;
    let (halves, rest) = rest.as_chunks();
    let sum = halves.iter().fold(sum, |sum, &half| _mm_crc32_u32(sum, u32::from_le_bytes(half)));
    !rest.iter().fold(sum, |sum, &byte| _mm_crc32_u8(sum, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crates_at_every_length_and_alignment() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * i % 251) as u8).collect();
        for start in 0..9 {
            for end in start..bytes.len() {
                let part = &bytes[start..end];
                assert_eq!(checksum(part), crc32c::crc32c(part), "{start}..{end}");
            }
        }
    }

    #[test]
    fn it_is_the_one_of_rfc_3720() {
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
    }
}
