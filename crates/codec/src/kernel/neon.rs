//! The NEON back end, on 64-bit ARM: 16 bytes at a time, a product is two look-ups in 16-entry tables (see `x86`).
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::backend::backend;
use super::vector::Vector;
use crate::gf::{COEFFICIENTS, NIBBLES};

/// A register.
#[derive(Clone, Copy)]
struct Bytes(uint8x16_t);

// SAFETY: one unaligned load or store of 16 bytes each.
unsafe impl Vector for Bytes {
    const WIDTH: usize = 16;
    const FACTORS: &'static [u64; 256] = &COEFFICIENTS;

    /// Products of the low and of the high nibbles.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has NEON; so below.
        unsafe { Self(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes can be read.
        unsafe { Self(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes can be written.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(veorq_u8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn factor(c: u64) -> (uint8x16_t, uint8x16_t) {
        let (low, high) = NIBBLES[usize::from(c as u8)].split_at(16);
        // SAFETY: both halves are 16 bytes.
        unsafe { (vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn mul(self, (low, high): (uint8x16_t, uint8x16_t)) -> Self {
        // SAFETY: see `zero`.
        unsafe {
            let low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(15)));
            let high = vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0));
            Self(veorq_u8(low, high))
        }
    }
}

backend! {
    /// For processors with NEON.
    lookup, "neon", Bytes, unroll: [4, 2, 2, 2], transforms: [2, 1, 1, 1], detect: is_aarch64_feature_detected, features: "neon"
}
