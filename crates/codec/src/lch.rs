//! The parity rows of [`Family::Lch`](crate::Family::Lch): values at the first points of the polynomials through the data.

use crate::points::point;
use crate::{CodeError, gf};

/// The rows, one after the other. `k >= 1` and `k + m <= 256`.
///
/// # Errors
/// `Points` where the field has not enough of them.
pub(crate) fn rows(k: usize, m: usize) -> Result<Vec<u8>, CodeError> {
    let points = m.next_power_of_two();
    if k + points > crate::MAX_ROLES {
        return Err(CodeError::Points { k, m, points });
    }
    let product = |factors: &mut dyn Iterator<Item = u8>| factors.fold(1, gf::mul);
    let nonzero = product(&mut (1..points).map(point));
    let scale = |y: u8| gf::mul(product(&mut (0..points).map(|w| y ^ point(w))), gf::inverse(nonzero));
    let columns: Vec<(u8, u8)> = (points..points + k).map(point).map(|y| (y, scale(y))).collect();
    let row = |j: usize| columns.iter().map(move |(y, scale)| gf::mul(*scale, gf::inverse(point(j) ^ y)));
    Ok((0..m).flat_map(row).collect())
}
