//! The points of additive Fourier transforms: sums of the elements of a basis.

use crate::gf;

/// A Cantor basis: `BASIS[0] = 1` and `BASIS[i + 1]^2 + BASIS[i + 1] = BASIS[i]`. Over it, the subspace polynomials that the
/// butterflies need are powers of `x^2 + x`.
pub(crate) const BASIS: [u8; 8] = cantor_basis();

const fn cantor_basis() -> [u8; 8] {
    let mut basis = [1; 8];
    let mut i = 1;
    while i < 8 {
        let mut x = 2;
        // Each equation has two solutions, one 1 more than the other; either will do, up to the last one.
        while gf::product(x, x) ^ x != basis[i - 1] {
            x += 1;
        }
        basis[i] = x;
        i += 1;
    }
    basis
}

/// The `index`th point: a sum of basis elements.
pub(crate) fn point(index: usize) -> u8 {
    (0..8).filter(|bit| index >> bit & 1 == 1).fold(0, |sum, bit| sum ^ BASIS[bit])
}
