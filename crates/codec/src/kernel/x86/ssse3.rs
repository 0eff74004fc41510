//! 16 bytes at a time, on any x86 processor since 2006.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::gf::{COEFFICIENTS, NIBBLES};
use crate::kernel::backend::backend;
use crate::kernel::vector::Vector;

/// A register.
#[derive(Clone, Copy)]
struct Bytes(__m128i);

// SAFETY: one unaligned load or store of 16 bytes each.
unsafe impl Vector for Bytes {
    const WIDTH: usize = 16;
    const FACTORS: &'static [u64; 256] = &COEFFICIENTS;

    /// Products of the low and of the high nibbles.
    type Factor = (__m128i, __m128i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has SSSE3; so below.
        unsafe { Self(_mm_setzero_si128()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes can be read.
        unsafe { Self(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes can be written.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm_xor_si128(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn factor(c: u64) -> (__m128i, __m128i) {
        let (low, high) = NIBBLES[usize::from(c as u8)].split_at(16);
        // SAFETY: both halves are 16 bytes.
        unsafe { (_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(high.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn mul(self, (low, high): (__m128i, __m128i)) -> Self {
        // SAFETY: see `zero`.
        unsafe {
            let nibble = _mm_set1_epi8(15);
            let low = _mm_shuffle_epi8(low, _mm_and_si128(self.0, nibble));
            let high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(self.0), nibble));
            Self(_mm_xor_si128(low, high))
        }
    }
}

backend! {
    /// For processors with SSSE3.
    lookup, "ssse3", Bytes, unroll: [2, 1, 1, 1], transforms: [1, 1, 1, 1], detect: is_x86_feature_detected, features: "ssse3"
}
