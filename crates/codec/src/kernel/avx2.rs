//! The AVX2 back end: a product is two look-ups in 16-entry tables, one byte shuffle each, 32 bytes at a time
//! (Plank, Greenan, Miller: Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions, FAST 2013).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Backend;
use super::tile::{MAX_OUTPUTS, MAX_SOURCES, Tile};
use crate::gf::{self, NIBBLES};

const WIDTH: usize = 32;

/// Can be reached only where the processor has AVX2.
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        static AVX2: Avx2 = Avx2(());
        std::is_x86_feature_detected!("avx2").then_some(&AVX2)
    }
}

impl Backend for Avx2 {
    fn name(&self) -> &'static str {
        "avx2"
    }

    fn xor(&self, dst: &mut [u8], src: &[u8]) {
        // SAFETY: `self` was reached, so the processor has AVX2.
        unsafe { xor(dst, src) }
    }

    fn mul(&self, dst: &mut [u8], c: u8, src: &[u8]) {
        // SAFETY: as in `xor`.
        unsafe { scale::<false>(dst, c, src) }
    }

    fn mul_add(&self, dst: &mut [u8], c: u8, src: &[u8]) {
        // SAFETY: as in `xor`.
        unsafe { scale::<true>(dst, c, src) }
    }

    fn combine(&self, tile: Tile<'_, '_>) {
        const { assert!(MAX_OUTPUTS == 4) };
        // SAFETY: as in `xor`.
        unsafe {
            match tile.output_count() {
                1 => combine::<1>(tile),
                2 => combine::<2>(tile),
                3 => combine::<3>(tile),
                _ => combine::<4>(tile),
            }
        }
    }
}

/// The two halves of a table of [`NIBBLES`], each in both lanes.
#[derive(Clone, Copy)]
struct Table {
    low: __m256i,
    high: __m256i,
}

impl Table {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(table: &[u8; 32]) -> Self {
        let both = load(table);
        Self {
            low: _mm256_permute2x128_si256::<0x00>(both, both),
            high: _mm256_permute2x128_si256::<0x11>(both, both),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mul(self, value: __m256i) -> __m256i {
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(self.low, _mm256_and_si256(value, nibble));
        let high = _mm256_shuffle_epi8(self.high, _mm256_and_si256(_mm256_srli_epi64::<4>(value), nibble));
        _mm256_xor_si256(low, high)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; WIDTH]) -> __m256i {
    // SAFETY: an unaligned load of the 32 bytes borrowed.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; WIDTH], value: __m256i) {
    // SAFETY: an unaligned store to the 32 bytes borrowed.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx2")]
fn xor(dst: &mut [u8], src: &[u8]) {
    let (dst, dst_tail) = dst.as_chunks_mut();
    let (src, src_tail) = src.as_chunks();
    for (d, s) in dst.iter_mut().zip(src) {
        let sum = _mm256_xor_si256(load(d), load(s));
        store(d, sum);
    }
    dst_tail.iter_mut().zip(src_tail).for_each(|(d, s)| *d ^= s);
}

/// `dst = c * src`, or `dst ^= c * src` with `ADD`.
#[target_feature(enable = "avx2")]
fn scale<const ADD: bool>(dst: &mut [u8], c: u8, src: &[u8]) {
    let table = Table::load(&NIBBLES[usize::from(c)]);
    let (dst, dst_tail) = dst.as_chunks_mut();
    let (src, src_tail) = src.as_chunks();
    for (d, s) in dst.iter_mut().zip(src) {
        let product = table.mul(load(s));
        let result = if ADD { _mm256_xor_si256(load(d), product) } else { product };
        store(d, result);
    }
    for (d, s) in dst_tail.iter_mut().zip(src_tail) {
        *d = gf::mul(c, *s) ^ if ADD { *d } else { 0 };
    }
}

/// A tile of `M` outputs: whole vectors here, the tail byte by byte.
#[target_feature(enable = "avx2")]
fn combine<const M: usize>(mut tile: Tile<'_, '_>) {
    let mut tables = [[&NIBBLES[0]; M]; MAX_SOURCES];
    for (s, tables) in tables[..tile.sources().len()].iter_mut().enumerate() {
        *tables = std::array::from_fn(|o| &NIBBLES[usize::from(tile.coefficient(o, s))]);
    }
    let outputs: [*mut u8; M] = std::array::from_fn(|o| tile.output_pointer(o));
    let (mut at, end) = (tile.start(), tile.end());
    while end - at >= WIDTH {
        // SAFETY: the pointers of a tile are valid up to `end`, and `at + WIDTH <= end`; AVX2 has no alignment needs
        // in unaligned loads and stores.
        let mut sums = outputs.map(|output| {
            if tile.adds() {
                unsafe { _mm256_loadu_si256(output.add(at).cast()) }
            } else {
                _mm256_setzero_si256()
            }
        });
        for (source, tables) in tile.sources().iter().zip(&tables) {
            // SAFETY: a source of a tile is at least `end` long.
            let value = unsafe { _mm256_loadu_si256(source.as_ptr().add(at).cast()) };
            for (sum, table) in sums.iter_mut().zip(tables) {
                *sum = _mm256_xor_si256(*sum, Table::load(table).mul(value));
            }
        }
        for (output, sum) in outputs.iter().zip(sums) {
            // SAFETY: as for the loads above.
            unsafe { _mm256_storeu_si256(output.add(at).cast(), sum) };
        }
        at += WIDTH;
    }
    combine_tail(tile, at);
}

/// The bytes from `at` on, fewer than a vector.
fn combine_tail(mut tile: Tile<'_, '_>, at: usize) {
    let skip = at - tile.start();
    for o in 0..tile.output_count() {
        let row: [u8; MAX_SOURCES] =
            std::array::from_fn(|s| if s < tile.sources().len() { tile.coefficient(o, s) } else { 0 });
        let adds = tile.adds();
        let (output, sources) = tile.split(o);
        let tail = &mut output[skip..];
        if !adds {
            tail.fill(0);
        }
        for (c, source) in row.into_iter().zip(sources) {
            tail.iter_mut().zip(&source[skip..]).for_each(|(d, s)| *d ^= gf::mul(c, *s));
        }
    }
}
