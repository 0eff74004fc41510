//! CRC-32C (Castagnoli), quick for what is short.
//!
//! Nearly all that is summed up here is a frame's header, an acknowledgement or a small item. For those the crates'
//! preparations for long inputs cost several times what the sum itself does. Nearly all bytes are those of pages and cells.
#![cfg_attr(target_arch = "x86_64", allow(unsafe_code))]

use std::iter;

use crc_fast::{CrcAlgorithm, Digest};

/// From this length on three streams side by side are faster.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 768;
/// From this length on they are folded by multiplications, as wide as the processor has them.
const FOLDED_BYTES: usize = 4096;

/// The CRC-32C of `bytes`.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    checksum_append(0, bytes)
}

/// The CRC-32C of what `sum` is of, followed by `bytes`.
#[inline]
#[must_use]
pub fn checksum_append(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < LONG_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instructions.
        return unsafe { short(sum, bytes) };
    }
    if bytes.len() < FOLDED_BYTES { crc32c::crc32c_append(sum, bytes) } else { folded(sum, bytes) }
}

#[inline(never)]
fn folded(sum: u32, bytes: &[u8]) -> u32 {
    // The crate calls it by where it was first used, iSCSI. A state is the complement of a sum.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!sum));
    digest.update(bytes);
    digest.finalize() as u32
}

/// The CRC-32C of what `sum` is of, followed by `len_bytes` of which it is `next`. They are not looked at.
///
/// As zlib does it: `sum` times x to the power of the bits that follow. The crate's own way takes 20 µs, longer than to
/// look at 32 KiB.
#[inline]
#[must_use]
pub fn checksum_combine(sum: u32, next: u32, len_bytes: usize) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("pclmulqdq") && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instructions.
        return unsafe { followed(sum, len_bytes) } ^ next;
    }
    squares(len_bytes).fold(sum, |sum, at| multiply(SQUARES[at], sum)) ^ next
}

/// Which of [`SQUARES`] make x to the power of that many bytes, of eight bits each: bit `i` stands for that of 2^(i + 3).
fn squares(len_bytes: usize) -> impl Iterator<Item = usize> {
    let mut rest = len_bytes;
    iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
        rest &= rest - 1;
        Some((bit + 3) % SQUARES.len())
    })
}

/// `sum` times x to the power of that many bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq,sse4.2")]
fn followed(sum: u32, len_bytes: usize) -> u32 {
    let mut sum = sum;
    for at in squares(len_bytes) {
        sum = folded_product(LOWERED_SQUARES[at], sum);
    }
    sum
}

/// Castagnoli's polynomial, as all of these with the highest power in the lowest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const ONE: u32 = 1 << 31;
/// x to the power of 2, 4, 8, ... from x itself on. It begins anew then: the polynomial has the factor x + 1, and the other
/// one's powers have the period 2^31 - 1.
const SQUARES: [u32; 31] = all_squares();

const fn all_squares() -> [u32; 31] {
    let mut squares = [ONE >> 1; 31];
    let mut at = 1;
    while at < squares.len() {
        squares[at] = multiply(squares[at - 1], squares[at - 1]);
        at += 1;
    }
    squares
}

/// The same, each divided by as many powers of x as [`folded_product`] adds.
#[cfg(target_arch = "x86_64")]
const LOWERED_SQUARES: [u32; 31] = lowered_squares();

#[cfg(target_arch = "x86_64")]
const fn lowered_squares() -> [u32; 31] {
    // x to the power of the period is one.
    let exponent = (1_u32 << 31) - 1 - FOLDED_POWERS;
    let mut lowered = SQUARES;
    let mut at = 0;
    while at < lowered.len() {
        let mut bit = 0;
        while bit < SQUARES.len() {
            if exponent >> bit & 1 == 1 {
                lowered[at] = multiply(SQUARES[bit], lowered[at]);
            }
            bit += 1;
        }
        at += 1;
    }
    lowered
}

/// Of the 63 bits of a product the highest power is in bit 0 of 64, which makes one more of it; the sum of eight bytes is they times x
/// to the power of 32.
#[cfg(target_arch = "x86_64")]
const FOLDED_POWERS: u32 = 33;

/// The product of both and of x to the power of [`FOLDED_POWERS`], modulo the polynomial.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.2")]
fn folded_product(a: u32, b: u32) -> u32 {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64};

    let [a, b] = [a, b].map(|factor| _mm_cvtsi64_si128(i64::from(factor)));
    _mm_crc32_u64(0, _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(a, b)).cast_unsigned()) as u32
}

/// Of two polynomials, modulo the third.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, ONE);
    while a & (bit | (bit - 1)) != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (POLYNOMIAL * (b & 1));
        bit >>= 1;
        if bit == 0 {
            break;
        }
    }
    product
}

/// One stream of eight bytes at a time; the last ones by fours and ones.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn short(sum: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks();
    let sum = words.iter().fold(u64::from(!sum), |sum, &word| _mm_crc32_u64(sum, u64::from_le_bytes(word)));
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
    fn it_is_another_crates_at_every_length_and_alignment() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * i % 251) as u8).collect();
        for start in 0..9 {
            for end in start..bytes.len() {
                let part = &bytes[start..end];
                assert_eq!(checksum(part), crc32c::crc32c(part), "{start}..{end}");
                let appended = crc32c::crc32c_append(0x1234_5678, part);
                assert_eq!(checksum_append(0x1234_5678, part), appended, "{start}..{end}");
            }
        }
    }

    #[test]
    fn the_sum_of_the_whole_is_made_of_the_sums_of_its_parts() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| (i * i % 251) as u8).collect();
        for cut in [0, 1, 767, 5000, 9999, 10_000] {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(checksum_append(checksum(before), after), checksum(&bytes));
            assert_eq!(checksum_combine(checksum(before), checksum(after), after.len()), checksum(&bytes));
        }
        for len in [1, 4096, 32_768, 1_048_515, 4 << 20, 1 << 27, (1 << 30) + 5] {
            let (before, after) = (0x1234_5678, 0x9abc_def0);
            let combined = checksum_combine(before, after, len);
            assert_eq!(combined, crc32c::crc32c_combine(before, after, len), "{len}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_product_by_instructions_is_one_by_bits() {
        if !std::arch::is_x86_feature_detected!("pclmulqdq") {
            return;
        }
        for (square, lowered) in SQUARES.into_iter().zip(LOWERED_SQUARES) {
            for sum in [0, 1, ONE, POLYNOMIAL, 0x1234_5678, u32::MAX] {
                // SAFETY: the processor has the instructions.
                assert_eq!(
                    unsafe { folded_product(lowered, sum) },
                    multiply(square, sum),
                    "{square:x} {sum:x}"
                );
            }
        }
    }

    #[test]
    fn it_is_another_crates_where_it_is_folded() {
        let bytes: Vec<u8> = (0..9000_u32).map(|i| (i * i % 251) as u8).collect();
        for (start, end) in
            (4090..4200).map(|end| (end % 9, end)).chain((8900..9000).map(|end| (end % 5, end)))
        {
            let part = &bytes[start..end];
            assert_eq!(checksum(part), crc32c::crc32c(part), "{start}..{end}");
            assert_eq!(checksum_append(9, part), crc32c::crc32c_append(9, part), "{start}..{end}");
        }
    }

    #[test]
    fn it_is_the_one_of_rfc_3720() {
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
    }
}
