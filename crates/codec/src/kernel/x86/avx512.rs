//! 64 bytes at a time, with table look-ups or with GFNI; parts of vectors under a mask.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::MATRICES;
use crate::gf::{COEFFICIENTS, NIBBLES};
use crate::kernel::backend::backend;
use crate::kernel::vector::Vector;

/// A register; products by look-ups, or by `gf2p8affineqb` with `GFNI`.
#[derive(Clone, Copy)]
struct Bytes<const GFNI: bool>(__m512i);

/// The lanes of the first `len < 64` bytes.
#[inline(always)]
fn mask(len: usize) -> __mmask64 {
    (1 << len) - 1
}

macro_rules! vector {
    (gfni: $gfni:literal, $($product:item)+) => {
        // SAFETY: one unaligned load or store of 64 bytes each, or of the lanes in the mask.
        unsafe impl Vector for Bytes<$gfni> {
            const WIDTH: usize = 64;
            const STREAMS: bool = true;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller has AVX-512 F and BW; so below.
                unsafe { Self(_mm512_setzero_si512()) }
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: 64 bytes can be read.
                unsafe { Self(_mm512_loadu_si512(from.cast())) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: 64 bytes can be written.
                unsafe { _mm512_storeu_si512(to.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const u8, len: usize) -> Self {
                // SAFETY: lanes beyond `len` are not touched.
                unsafe { Self(_mm512_maskz_loadu_epi8(mask(len), from.cast())) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut u8, len: usize) {
                // SAFETY: lanes beyond `len` are not touched.
                unsafe { _mm512_mask_storeu_epi8(to.cast(), mask(len), self.0) }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: 64 bytes can be written at a multiple of 64.
                unsafe { _mm512_stream_si512(to.cast(), self.0) }
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
                unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
            }

            #[inline(always)]
            unsafe fn xor3(self, a: Self, b: Self) -> Self {
                // SAFETY: see `zero`. 0x96 is the truth table of the sum of three bits.
                unsafe { Self(_mm512_ternarylogic_epi64::<0x96>(self.0, a.0, b.0)) }
            }

            $($product)+
        }
    };
}

vector! {
    gfni: false,
    const FACTORS: &'static [u64; 256] = &COEFFICIENTS;

    /// Products of the low and of the high nibbles, each in all four lanes.
    type Factor = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn factor(c: u64) -> (__m512i, __m512i) {
        let (low, high) = NIBBLES[usize::from(c as u8)].split_at(16);
        // SAFETY: both halves are 16 bytes.
        unsafe {
            (
                _mm512_broadcast_i32x4(_mm_loadu_si128(low.as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_loadu_si128(high.as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    unsafe fn mul(self, (low, high): (__m512i, __m512i)) -> Self {
        // SAFETY: see `zero`.
        unsafe {
            let nibble = _mm512_set1_epi8(15);
            let low = _mm512_shuffle_epi8(low, _mm512_and_si512(self.0, nibble));
            let high = _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi64::<4>(self.0), nibble));
            Self(_mm512_xor_si512(low, high))
        }
    }
}

vector! {
    gfni: true,
    const FACTORS: &'static [u64; 256] = &MATRICES;

    type Factor = __m512i;

    #[inline(always)]
    unsafe fn factor(matrix: u64) -> __m512i {
        // SAFETY: see `zero`.
        unsafe { _mm512_set1_epi64(matrix.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn mul(self, matrix: __m512i) -> Self {
        // SAFETY: the caller has GFNI.
        unsafe { Self(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, matrix)) }
    }
}

backend! {
    /// For processors with AVX-512 F and BW.
    lookup, "avx512", Bytes<false>, unroll: [4, 2, 2, 2], transforms: [2, 2, 1, 1],
    detect: is_x86_feature_detected, features: "avx512f", "avx512bw"
}

backend! {
    /// For processors with AVX-512 F and BW, and GFNI.
    gfni, "avx512-gfni", Bytes<true>, unroll: [4, 4, 2, 2], transforms: [2, 2, 1, 1],
    detect: is_x86_feature_detected, features: "avx512f", "avx512bw", "gfni"
}
