//! Profiles: named protections such as `rs(3+2)`.

use std::fmt;
use std::str::FromStr;

use codec::{Code, CodeError, Family, Scheme};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A protection scheme: `k` data roles, `m` parity roles. Storage costs `(k+m)/k`, any `m` losses are survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    rows: Rows,
    k: u8,
    m: u8,
}

/// What the parity roles hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rows {
    /// Sums of the data roles.
    ReedSolomon,
    /// The one data role's bytes as they are.
    Copies,
}

/// Why a profile was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    /// Not one of the accepted spellings.
    #[error("profile '{0}' is not understood: write 'rs(3+2)', '3+2', 'EC_3P2', 'k=3,m=2' or 'rep(3)'")]
    Syntax(String),
    /// A scheme that this version does not have.
    #[error("profile '{0}' is not available: this version codes with rs(k+m), rep(n) and none")]
    Unavailable(String),
    /// Out of bounds.
    #[error("profile rep({0}) is out of bounds: copies are 1..={max}", max = Profile::MAX_M + 1)]
    Copies(u32),
    /// Out of bounds.
    #[error("profile rs({k}+{m}) is out of bounds: k is 1..={max_k}, m is 0..={max_m}", max_k = Profile::MAX_K, max_m = Profile::MAX_M)]
    Bounds {
        /// Data roles asked for.
        k: u32,
        /// Parity roles asked for.
        m: u32,
    },
}

impl Profile {
    /// Most data roles of a group.
    pub const MAX_K: u8 = 32;
    /// Most parity roles of a group.
    pub const MAX_M: u8 = 8;

    /// Reed-Solomon with `k` data and `m` parity roles.
    ///
    /// # Errors
    /// `Bounds` unless `1 <= k <= 32` and `m <= 8`.
    pub fn rs(k: u32, m: u32) -> Result<Self, ProfileError> {
        if k == 0 || k > u32::from(Self::MAX_K) || m > u32::from(Self::MAX_M) {
            return Err(ProfileError::Bounds { k, m });
        }
        Ok(Self { rows: Rows::ReedSolomon, k: k as u8, m: m as u8 })
    }

    /// `n` copies: one data role, and `n - 1` parity roles whose row is `[1]`. One copy is `none`.
    ///
    /// # Errors
    /// `Copies` unless `1 <= n <= 9`.
    pub fn rep(n: u32) -> Result<Self, ProfileError> {
        match n {
            1 => Self::rs(1, 0),
            n if (2..=u32::from(Self::MAX_M) + 1).contains(&n) => {
                Ok(Self { rows: Rows::Copies, k: 1, m: n as u8 - 1 })
            }
            n => Err(ProfileError::Copies(n)),
        }
    }

    /// Whether parities hold copies instead of sums.
    #[must_use]
    pub fn is_copies(self) -> bool {
        self.rows == Rows::Copies
    }

    /// The code of its groups.
    ///
    /// # Errors
    /// None for any profile that there is; the codec's word for it.
    pub fn code(self) -> Result<Code, CodeError> {
        match self.rows {
            Rows::ReedSolomon => Code::rs(self.k(), self.m()),
            Rows::Copies => Code::rep(self.n()),
        }
    }

    /// Data roles.
    #[must_use]
    pub fn k(self) -> usize {
        usize::from(self.k)
    }

    /// Parity roles: how many losses are survived.
    #[must_use]
    pub fn m(self) -> usize {
        usize::from(self.m)
    }

    /// All roles.
    #[must_use]
    pub fn n(self) -> usize {
        self.k() + self.m()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows, self.k, self.m) {
            (Rows::Copies, _, m) => write!(f, "rep({})", m + 1),
            (Rows::ReedSolomon, 1, 0) => f.write_str("none"),
            (Rows::ReedSolomon, k, m) => write!(f, "rs({k}+{m})"),
        }
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        match text.parse::<Scheme>() {
            Ok(Scheme::Rs { family: Family::CauchyXor, k, m }) => Self::rs(bounded(k), bounded(m)),
            Ok(Scheme::Rep { n }) => Self::rep(bounded(n)),
            Ok(_) => Err(ProfileError::Unavailable(text.to_owned())),
            Err(_) => Err(ProfileError::Syntax(text.to_owned())),
        }
    }
}

/// For [`Profile::rs`], which refuses all large numbers.
fn bounded(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Serialize for Profile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_name_the_same_profile() {
        let expected = Profile::rs(3, 2).unwrap();
        for text in ["rs(3+2)", "3+2", "EC_3P2", "k=3,m=2", "RS( 3 + 2 )"] {
            assert_eq!(text.parse::<Profile>().unwrap(), expected, "{text}");
        }
        assert_eq!(expected.to_string(), "rs(3+2)");
        for text in ["none", "rep(3)", "rs(1+2)"] {
            assert_eq!(text.parse::<Profile>().unwrap().to_string(), text);
        }
        assert_eq!("rep(1)".parse::<Profile>().unwrap(), Profile::rs(1, 0).unwrap());
    }

    #[test]
    fn copies_are_copies() {
        let code = Profile::rep(3).unwrap().code().unwrap();
        assert_eq!((code.k(), code.m()), (1, 2));
        assert!((0..2).all(|parity| code.coefficient(parity, 0) == 1));
    }

    #[test]
    fn bad_profiles_are_refused_with_the_reason() {
        assert_eq!("rs(0+2)".parse::<Profile>(), Err(ProfileError::Bounds { k: 0, m: 2 }));
        assert_eq!("99+2".parse::<Profile>(), Err(ProfileError::Bounds { k: 99, m: 2 }));
        assert_eq!("rep(10)".parse::<Profile>(), Err(ProfileError::Copies(10)));
        assert_eq!("rep(0)".parse::<Profile>(), Err(ProfileError::Copies(0)));
        assert!(matches!("lrc(12,2,2)".parse::<Profile>(), Err(ProfileError::Unavailable(_))));
        for text in ["", "rs", "rs(3)", "rs(3+-1)", "3+2+1", "k=3", "ec_3", "rs(99999999999+1)"] {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::Syntax(_))), "{text}");
        }
    }
}
