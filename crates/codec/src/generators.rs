//! The parity rows of each family of Reed-Solomon matrices.

use crate::{CodeError, Family, gf, lch};

/// The parity rows of `family`, one after the other. The caller has checked that `k >= 1` and `k + m <= 256`.
pub(crate) fn rows(family: Family, k: usize, m: usize) -> Result<Vec<u8>, CodeError> {
    if family == Family::IsalVandermonde {
        check_isal_vandermonde(k, m)?;
    }
    Ok(match family {
        Family::Lch => lch::rows(k, m)?,
        Family::CauchyXor => matrix(k, m, |j, i| gf::mul(255 ^ i, gf::inverse((255 - j) ^ i))),
        Family::IsalCauchy => matrix(k, m, |j, i| gf::inverse(byte(k + usize::from(j)) ^ i)),
        Family::IsalVandermonde => matrix(k, m, |j, i| gf::power_of_two(usize::from(j) * usize::from(i))),
        Family::JerasureReedSolVan => reed_sol_van(k, m),
        Family::JerasureCauchy => matrix(k, m, |j, i| gf::inverse(j ^ byte(m + usize::from(i)))),
    })
}

/// An `m` by `k` matrix, row by row.
fn matrix(k: usize, m: usize, coefficient: impl Fn(u8, u8) -> u8) -> Vec<u8> {
    (0..m).flat_map(|j| (0..k).map(move |i| (j, i))).map(|(j, i)| coefficient(byte(j), byte(i))).collect()
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
}
