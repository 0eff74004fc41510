//! 32 bytes at a time, with table look-ups or with GFNI.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::MATRICES;
use crate::gf::{COEFFICIENTS, NIBBLES};
use crate::kernel::backend::backend;
use crate::kernel::vector::Vector;

/// A register; products by look-ups, or by `gf2p8affineqb` with `GFNI`.
#[derive(Clone, Copy)]
struct Bytes<const GFNI: bool>(__m256i);

macro_rules! vector {
    (gfni: $gfni:literal, $($product:item)+) => {
        // SAFETY: one unaligned load or store of 32 bytes each.
        unsafe impl Vector for Bytes<$gfni> {
            const WIDTH: usize = 32;
            const STREAMS: bool = true;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller has AVX2; so below.
                unsafe { Self(_mm256_setzero_si256()) }
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: 32 bytes can be read.
                unsafe { Self(_mm256_loadu_si256(from.cast())) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: 32 bytes can be written.
                unsafe { _mm256_storeu_si256(to.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: 32 bytes can be written at a multiple of 32.
                unsafe { _mm256_stream_si256(to.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn fence() {
                // SAFETY: see `zero`.
                unsafe { _mm_sfence() }
            }

            #[inline(always)]
            unsafe fn prefetch(at: *const u8) {
                // SAFETY: see `zero`; no address is wrong.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }

            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                // SAFETY: see `zero`.
                unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
            }

            $($product)+
        }
    };
}

vector! {
    gfni: false,
    const FACTORS: &'static [u64; 256] = &COEFFICIENTS;

    /// Products of the low and of the high nibbles, each in both lanes.
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn factor(c: u64) -> (__m256i, __m256i) {
        let (low, high) = NIBBLES[usize::from(c as u8)].split_at(16);
        // SAFETY: both halves are 16 bytes.
        unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(high.as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    unsafe fn mul(self, (low, high): (__m256i, __m256i)) -> Self {
        // SAFETY: see `zero`.
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, nibble));
            let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), nibble));
            Self(_mm256_xor_si256(low, high))
        }
    }
}

vector! {
    gfni: true,
    const FACTORS: &'static [u64; 256] = &MATRICES;

    type Factor = __m256i;

    #[inline(always)]
    unsafe fn factor(matrix: u64) -> __m256i {
        // SAFETY: see `zero`.
        unsafe { _mm256_set1_epi64x(matrix.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn mul(self, matrix: __m256i) -> Self {
        // SAFETY: the caller has GFNI.
        unsafe { Self(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, matrix)) }
    }
}

backend! {
    /// For processors with AVX2.
    lookup, "avx2", Bytes<false>, unroll: [2, 1, 1, 1], transforms: [1, 1, 1, 1],
    detect: is_x86_feature_detected, features: "avx2"
}

backend! {
    /// For processors with AVX2 and GFNI.
    gfni, "avx2-gfni", Bytes<true>, unroll: [4, 2, 2, 2], transforms: [2, 1, 1, 1],
    detect: is_x86_feature_detected, features: "avx2", "gfni"
}
