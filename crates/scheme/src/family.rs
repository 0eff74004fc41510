//! Families of Reed-Solomon matrices, ours and those of other libraries.
//!
//! All are over the field of ISA-L and of Jerasure with `w = 8`: GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1. Two codes of one
//! family have the same parity bytes, so chunks can be exchanged with the library that the family is named after.

use std::fmt;
use std::str::FromStr;

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
    /// ISA-L's `gf_gen_rs_matrix`: `c[j][i] = 2^(j * i)`. Not MDS in general: the codec refuses those that are not.
    IsalVandermonde,
    /// Jerasure's `reed_sol_vandermonde_coding_matrix` with `w = 8`: the systematic form of an extended Vandermonde
    /// matrix, scaled so that its first row and first column are all ones.
    JerasureReedSolVan,
    /// Jerasure's `cauchy_original_coding_matrix` with `w = 8`: `c[j][i] = 1 / (j ^ (m + i))`. The bytes are those of
    /// `jerasure_matrix_encode`; Jerasure's bit-matrix coding spreads each element over eight packets instead, and
    /// such chunks are not read here.
    JerasureCauchy,
}

/// The smallest codes of `isal-vandermonde` that are not MDS, `(k, m)`, by ISA-L's documented bounds (`erasure_code.h`): every larger
/// one contains one of them.
const ISAL_SINGULAR: [(usize, usize); 4] = [(4, 22), (5, 6), (6, 5), (22, 4)];

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

    /// Whether it has an MDS matrix for `k` data and `m` parity roles; `k >= 1` and `k + m <= 256`.
    pub(crate) fn has(self, k: usize, m: usize) -> bool {
        match self {
            Self::Lch => k + m.next_power_of_two() <= crate::MAX_ROLES,
            Self::IsalVandermonde => !ISAL_SINGULAR.iter().any(|singular| k >= singular.0 && m >= singular.1),
            Self::CauchyXor | Self::IsalCauchy | Self::JerasureReedSolVan | Self::JerasureCauchy => true,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        assert!("isal".parse::<Family>().unwrap_err().to_string().contains("isal-cauchy"));
    }
}
