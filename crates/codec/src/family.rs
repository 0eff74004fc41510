//! Families of Reed-Solomon matrices, ours and those of other libraries.
//!
//! All are over the field of [`gf`], which is also the one of ISA-L and of Jerasure with `w = 8`. Two codes of one
//! family have the same parity bytes, so chunks can be exchanged with the library that the family is named after.

use std::fmt;
use std::str::FromStr;

use crate::kernel::point;
use crate::{CodeError, gf};

/// A way to make the parity rows of a Reed-Solomon code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Ours: a Cauchy matrix scaled so that its first row is all ones.
    ///
    /// Take `y_i = i` for data role `i` and `x_j = 255 - j` for parity row `j`. While `k + m <= 256` these are `k + m`
    /// different field elements, so `1 / (x_j + y_i)` is a Cauchy matrix, all of whose square submatrices are
    /// non-singular. Multiplying column `i` by `x_0 + y_i` keeps them so: `c[j][i] = (x_0 + y_i) / (x_j + y_i)`.
    CauchyXor,
    /// The code of an additive Fourier transform (Lin, Chung, Han): the parities are the values at the first points of the sum
    /// of the polynomials through each group of data chunks. With `P = m` rounded up to a power of two, `W` the first `P`
    /// points, `x_j` point `j` and `y_i` point `P + i`: `c[j][i] = s(y_i) / (s' * (x_j + y_i))`, where `s(y)` is the product of
    /// all `y + w` for `w` in `W` and `s'` that of all non-zero `w`. So it is a Cauchy matrix with scaled columns, MDS, and
    /// for `m` from 2 to 16 it is computed with fewer products than it has coefficients. Needs `k + P <= 256`.
    Lch,
    /// ISA-L's `gf_gen_cauchy1_matrix`: `c[j][i] = 1 / ((k + j) ^ i)`. MDS by the same argument.
    IsalCauchy,
    /// ISA-L's `gf_gen_rs_matrix`: `c[j][i] = 2^(j * i)`. Not MDS in general: see [`CodeError::NotMds`].
    IsalVandermonde,
    /// Jerasure's `reed_sol_vandermonde_coding_matrix` with `w = 8`: the systematic form of an extended Vandermonde
    /// matrix, scaled so that its first row and first column are all ones.
    JerasureReedSolVan,
    /// Jerasure's `cauchy_original_coding_matrix` with `w = 8`: `c[j][i] = 1 / (j ^ (m + i))`. The bytes are those of
    /// `jerasure_matrix_encode`; Jerasure's bit-matrix coding spreads each element over eight packets instead, and
    /// such chunks are not read here.
    JerasureCauchy,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CauchyXor,
        Self::Lch,
        Self::IsalCauchy,
        Self::IsalVandermonde,
        Self::JerasureReedSolVan,
        Self::JerasureCauchy,
    ];

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CauchyXor => "cauchy-xor",
            Self::Lch => "lch",
            Self::IsalCauchy => "isal-cauchy",
            Self::IsalVandermonde => "isal-vandermonde",
            Self::JerasureReedSolVan => "jerasure-reed_sol_van",
            Self::JerasureCauchy => "jerasure-cauchy",
        }
    }

    /// The parity rows, one after the other. The caller has checked that `k >= 1` and `k + m <= 256`.
    pub(crate) fn rows(self, k: usize, m: usize) -> Result<Vec<u8>, CodeError> {
        if self == Self::IsalVandermonde {
            check_isal_vandermonde(k, m)?;
        }
        Ok(match self {
            Self::Lch => lch(k, m)?,
            Self::CauchyXor => matrix(k, m, |j, i| gf::mul(255 ^ i, gf::inverse((255 - j) ^ i))),
            Self::IsalCauchy => matrix(k, m, |j, i| gf::inverse(byte(k + usize::from(j)) ^ i)),
            Self::IsalVandermonde => matrix(k, m, |j, i| gf::power_of_two(usize::from(j) * usize::from(i))),
            Self::JerasureReedSolVan => reed_sol_van(k, m),
            Self::JerasureCauchy => matrix(k, m, |j, i| gf::inverse(j ^ byte(m + usize::from(i)))),
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no family has.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "no matrix family '{0}': there are cauchy-xor, lch, isal-cauchy, isal-vandermonde, jerasure-reed_sol_van and jerasure-cauchy"
)]
pub struct UnknownFamily(pub String);

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(name: &str) -> Result<Self, UnknownFamily> {
        Self::ALL
            .into_iter()
            .find(|family| family.name() == name)
            .ok_or_else(|| UnknownFamily(name.to_owned()))
    }
}

/// An `m` by `k` matrix, row by row.
fn matrix(k: usize, m: usize, coefficient: impl Fn(u8, u8) -> u8) -> Vec<u8> {
    (0..m).flat_map(|j| (0..k).map(move |i| (j, i))).map(|(j, i)| coefficient(byte(j), byte(i))).collect()
}

/// See [`Family::Lch`].
fn lch(k: usize, m: usize) -> Result<Vec<u8>, CodeError> {
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

/// An index below 256 as a field element.
fn byte(index: usize) -> u8 {
    u8::try_from(index).expect("a code has at most 256 roles")
}

/// Row `i` of Jerasure's extended Vandermonde matrix: `(1, 0, ...)`, then the powers of `i`, at last `(..., 0, 1)`.
/// The powers of all points but one, and the point at infinity: any `k` rows are independent.
fn extended_vandermonde(k: usize, n: usize, i: usize) -> Vec<u8> {
    if i + 1 == n {
        return (0..k).map(|column| u8::from(column + 1 == k)).collect();
    }
    let powers = std::iter::successors(Some(1), |power| Some(gf::mul(*power, byte(i))));
    powers.take(k).collect()
}

/// The systematic form, then columns scaled for a first row of ones, then rows for a first column of ones.
fn reed_sol_van(k: usize, m: usize) -> Vec<u8> {
    let n = k + m;
    if m == 0 {
        return Vec::new();
    }
    let generator: Vec<Vec<u8>> = (0..n).map(|i| extended_vandermonde(k, n, i)).collect();
    let borrowed: Vec<&[u8]> = generator.iter().map(Vec::as_slice).collect();
    let code = crate::Code::systematic(k, &borrowed).expect("any k rows are independent");
    let column_scale = |i: usize| gf::inverse(code.coefficient(0, i));
    let scaled = |j: usize, i: usize| gf::mul(code.coefficient(j, i), column_scale(i));
    let rows = (0..m).flat_map(|j| (0..k).map(move |i| (j, i)));
    rows.map(|(j, i)| gf::mul(scaled(j, i), gf::inverse(scaled(j, 0)))).collect()
}

/// A smallest code of `isal-vandermonde` that is not MDS, with a singular submatrix: parity rows and data roles.
struct Singular {
    k: usize,
    m: usize,
    rows: &'static [usize],
    columns: &'static [usize],
}

/// Every code of this family that is not MDS contains one of these, by ISA-L's documented bounds (`erasure_code.h`),
/// which are exact: the tests search all submatrices of the largest codes without one.
const ISAL_SINGULAR: [Singular; 4] = [
    Singular { k: 4, m: 22, rows: &[0, 10, 21], columns: &[0, 1, 3] },
    Singular { k: 5, m: 6, rows: &[0, 2, 5], columns: &[0, 3, 4] },
    Singular { k: 6, m: 5, rows: &[0, 1, 4], columns: &[0, 3, 5] },
    Singular { k: 22, m: 4, rows: &[0, 1, 3], columns: &[0, 10, 21] },
];

fn check_isal_vandermonde(k: usize, m: usize) -> Result<(), CodeError> {
    match ISAL_SINGULAR.iter().find(|singular| k >= singular.k && m >= singular.m) {
        None => Ok(()),
        Some(Singular { rows, columns, .. }) => {
            Err(CodeError::NotMds { family: Family::IsalVandermonde, k, m, rows, columns })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use crate::minors::{dependent_minor, is_regular};

    #[test]
    fn small_codes_of_every_family_are_mds() {
        for family in Family::ALL {
            for (k, m) in [(1, 1), (1, 5), (2, 2), (3, 2), (6, 3), (10, 4), (12, 4), (5, 5)] {
                let code = Code::of_family(family, k, m).unwrap();
                assert_eq!(dependent_minor(&code), None, "{family}({k}+{m})");
            }
        }
    }

    #[test]
    fn isal_vandermonde_is_refused_exactly_where_it_is_not_mds() {
        for (k, m) in [(4, 21), (5, 5), (21, 4), (3, 30), (30, 3)] {
            let code = Code::of_family(Family::IsalVandermonde, k, m).unwrap();
            assert_eq!(dependent_minor(&code), None, "{k}+{m}");
        }
        for Singular { k, m, rows, columns } in ISAL_SINGULAR {
            let refused = Code::of_family(Family::IsalVandermonde, k, m).unwrap_err();
            assert_eq!(refused, CodeError::NotMds { family: Family::IsalVandermonde, k, m, rows, columns });
            let rows_of = matrix(k, m, |j, i| gf::power_of_two(usize::from(j) * usize::from(i)));
            assert!(!is_regular(&Code::from_rows(k, rows_of), rows, columns), "{k}+{m}");
        }
        assert!(Code::of_family(Family::IsalVandermonde, 253, 3).is_ok());
        assert!(Code::of_family(Family::IsalVandermonde, 3, 253).is_ok());
    }

    #[test]
    fn families_reach_the_widest_code() {
        for family in
            [Family::CauchyXor, Family::IsalCauchy, Family::JerasureReedSolVan, Family::JerasureCauchy]
        {
            for (k, m) in [(1, 255), (255, 1), (128, 128), (200, 56), (256, 0)] {
                assert_eq!(Code::of_family(family, k, m).unwrap().n(), 256, "{family}");
            }
        }
    }

    #[test]
    fn lch_reaches_as_far_as_the_points_do() {
        for (k, m) in [(255, 0), (255, 1), (254, 2), (252, 3), (240, 9), (128, 128), (192, 64)] {
            assert_eq!(Code::of_family(Family::Lch, k, m).unwrap().n(), k + m);
        }
        for (k, m, points) in [(253, 3, 4), (241, 9, 16), (100, 129, 256)] {
            let refused = Code::of_family(Family::Lch, k, m).unwrap_err();
            assert_eq!(refused, CodeError::Points { k, m, points });
        }
    }

    #[test]
    fn the_only_parity_of_lch_is_the_xor() {
        assert!(Code::of_family(Family::Lch, 20, 1).unwrap().row(0).iter().all(|c| *c == 1));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        assert!("isal".parse::<Family>().unwrap_err().to_string().contains("isal-cauchy"));
    }
}
