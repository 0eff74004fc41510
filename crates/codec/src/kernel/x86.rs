//! The x86 back ends. Each is a vector and how to multiply it.
//!
//! Without GFNI a product is two look-ups in 16-entry tables, one byte shuffle each (Plank, Greenan, Miller: Screaming
//! Fast Galois Field Arithmetic Using Intel SIMD Instructions, FAST 2013). With GFNI it is one affine transformation:
//! `gf2p8affineqb` multiplies each byte, seen as a vector of bits, by an 8 by 8 bit matrix. Multiplication by a
//! constant is linear over GF(2), so it is such a matrix for any polynomial (`gf2p8mulb` itself is tied to 0x11b).

pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod ssse3;

use crate::gf;

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
