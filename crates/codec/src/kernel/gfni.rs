//! The AVX-512 + GFNI back end: a product by a constant is one affine transformation of 64 bytes, tails are masked.
//!
//! `gf2p8affineqb` multiplies each byte, seen as a vector of bits, by an 8 by 8 bit matrix. Multiplication by a
//! constant is linear over GF(2), so it is such a matrix for any polynomial (`gf2p8mulb` itself is tied to 0x11b).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Backend;
use super::tile::{MAX_OUTPUTS, MAX_SOURCES, Tile};
use crate::gf;

const WIDTH: usize = 64;

/// `MATRICES[c]` multiplies by `c`. Bit `i` of a result is the parity of (byte `7 - i` of the matrix AND the input),
/// so bit `j` of that byte is bit `i` of `c * 2^j`.
static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut j = 0;
        while j < 8 {
            let column = gf::product(c as u8, 1 << j);
            let mut i = 0;
            while i < 8 {
                matrices[c] |= ((column >> i & 1) as u64) << ((7 - i) * 8 + j);
                i += 1;
            }
            j += 1;
        }
        c += 1;
    }
    matrices
};

/// Can be reached only where the processor has AVX-512 F and BW, and GFNI.
pub(super) struct Gfni(());

impl Gfni {
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        static GFNI: Gfni = Gfni(());
        let usable = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("gfni");
        usable.then_some(&GFNI)
    }
}

impl Backend for Gfni {
    fn name(&self) -> &'static str {
        "gfni"
    }

    fn xor(&self, dst: &mut [u8], src: &[u8]) {
        // SAFETY: `self` was reached, so the processor has the instructions.
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

/// The lanes of the first `len` bytes of a vector; all of them from 64 on.
fn mask(len: usize) -> __mmask64 {
    if len >= WIDTH { !0 } else { (1 << len) - 1 }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8]) -> __m512i {
    // SAFETY: the mask keeps the load within the bytes borrowed; lanes outside are not touched.
    unsafe { _mm512_maskz_loadu_epi8(mask(bytes.len()), bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(bytes: &mut [u8], value: __m512i) {
    // SAFETY: the mask keeps the store within the bytes borrowed.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask(bytes.len()), value) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn xor(dst: &mut [u8], src: &[u8]) {
    let (dst, dst_tail) = dst.as_chunks_mut::<WIDTH>();
    let (src, src_tail) = src.as_chunks::<WIDTH>();
    for (d, s) in dst.iter_mut().zip(src) {
        let sum = _mm512_xor_si512(load(d), load(s));
        store(d, sum);
    }
    let sum = _mm512_xor_si512(load(dst_tail), load(src_tail));
    store(dst_tail, sum);
}

/// `dst = c * src`, or `dst ^= c * src` with `ADD`.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn scale<const ADD: bool>(dst: &mut [u8], c: u8, src: &[u8]) {
    let matrix = broadcast(c);
    let (dst, dst_tail) = dst.as_chunks_mut::<WIDTH>();
    let (src, src_tail) = src.as_chunks::<WIDTH>();
    for (d, s) in dst.iter_mut().zip(src) {
        let product = _mm512_gf2p8affine_epi64_epi8::<0>(load(s), matrix);
        let result = if ADD { _mm512_xor_si512(load(d), product) } else { product };
        store(d, result);
    }
    let product = _mm512_gf2p8affine_epi64_epi8::<0>(load(src_tail), matrix);
    let result = if ADD { _mm512_xor_si512(load(dst_tail), product) } else { product };
    store(dst_tail, result);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(c: u8) -> __m512i {
    _mm512_set1_epi64(MATRICES[usize::from(c)].cast_signed())
}

/// A tile of `M` outputs: two vectors at a time, then one, then the tail under a mask.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn combine<const M: usize>(mut tile: Tile<'_, '_>) {
    let mut matrices = [[0; M]; MAX_SOURCES];
    for (s, matrices) in matrices[..tile.sources().len()].iter_mut().enumerate() {
        *matrices = std::array::from_fn(|o| MATRICES[usize::from(tile.coefficient(o, s))]);
    }
    let outputs: [*mut u8; M] = std::array::from_fn(|o| tile.output_pointer(o));
    let (mut at, end) = (tile.start(), tile.end());
    // SAFETY: the sources and outputs of a tile are valid up to `end`, which no column passes.
    unsafe {
        while end - at >= 2 * WIDTH {
            column::<M, 2>(&tile, &matrices, outputs, at, !0);
            at += 2 * WIDTH;
        }
        while end > at {
            column::<M, 1>(&tile, &matrices, outputs, at, mask(end - at));
            at += WIDTH.min(end - at);
        }
    }
}

/// `V` vectors of every output, from position `at` on; `lanes` are the bytes of each vector that exist.
///
/// # Safety
/// `outputs` are those of the tile, and the bytes in `lanes` of each vector lie before its end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn column<const M: usize, const V: usize>(
    tile: &Tile<'_, '_>,
    matrices: &[[u64; M]; MAX_SOURCES],
    outputs: [*mut u8; M],
    at: usize,
    lanes: __mmask64,
) {
    let mut sums = [[_mm512_setzero_si512(); V]; M];
    if tile.adds() {
        for (sums, output) in sums.iter_mut().zip(outputs) {
            for (v, sum) in sums.iter_mut().enumerate() {
                // SAFETY: lanes that do not exist are masked off, the others lie within the output.
                *sum = unsafe { _mm512_maskz_loadu_epi8(lanes, output.add(at + v * WIDTH).cast()) };
            }
        }
    }
    for (source, matrices) in tile.sources().iter().zip(matrices) {
        // SAFETY: as above; a source of a tile is as long as its outputs.
        let load = |v| unsafe { _mm512_maskz_loadu_epi8(lanes, source.as_ptr().add(at + v * WIDTH).cast()) };
        let values: [__m512i; V] = std::array::from_fn(load);
        for (sums, matrix) in sums.iter_mut().zip(matrices) {
            let matrix = _mm512_set1_epi64(matrix.cast_signed());
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8::<0>(value, matrix));
            }
        }
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for (v, sum) in sums.iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_epi8(output.add(at + v * WIDTH).cast(), lanes, *sum) };
        }
    }
}
