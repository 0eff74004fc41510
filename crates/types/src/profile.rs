//! Profiles: named protections such as `rs(3+2)`.

use std::fmt;
use std::str::FromStr;

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
        let plain: String =
            text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
        match Spelling::read(&plain) {
            Some(Spelling::Rs(k, m)) => Self::rs(k, m),
            Some(Spelling::Rep(n)) => Self::rep(n),
            Some(Spelling::Other) => Err(ProfileError::Unavailable(text.to_owned())),
            None => Err(ProfileError::Syntax(text.to_owned())),
        }
    }
}

/// What a text asks for, within bounds or not.
enum Spelling {
    Rs(u32, u32),
    Rep(u32),
    /// A code that the codec may have, and groups have not.
    Other,
}

impl Spelling {
    /// Of a text in lower case without blanks.
    fn read(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::Rep(1));
        }
        if let Some((name, rest)) = text.split_once('(') {
            let arguments = rest.strip_suffix(')')?;
            return match name {
                "rs" => pair(arguments, ['+', ',']),
                "rep" => Some(Self::Rep(number(arguments)?)),
                _ => Some(Self::Other),
            };
        }
        if let Some(rest) = text.strip_prefix("ec_") {
            return pair(rest, ['p', 'p']);
        }
        if let Some(rest) = text.strip_prefix("k=") {
            let (k, m) = rest.split_once(",m=")?;
            return Some(Self::Rs(number(k)?, number(m)?));
        }
        pair(text, ['+', '+'])
    }
}

/// `k` and `m` with one of two separators between them.
fn pair(text: &str, separators: [char; 2]) -> Option<Spelling> {
    let (k, m) = text.split_once(separators)?;
    Some(Spelling::Rs(number(k)?, number(m)?))
}

/// A decimal number of at most nine digits, without a sign.
fn number(text: &str) -> Option<u32> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
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
    fn bad_profiles_are_refused_with_the_reason() {
        assert_eq!("rs(0+2)".parse::<Profile>(), Err(ProfileError::Bounds { k: 0, m: 2 }));
        assert_eq!("99+2".parse::<Profile>(), Err(ProfileError::Bounds { k: 99, m: 2 }));
        assert_eq!("rep(10)".parse::<Profile>(), Err(ProfileError::Copies(10)));
        assert_eq!("rep(0)".parse::<Profile>(), Err(ProfileError::Copies(0)));
        for text in ["lrc(12,2,2)", "xor(4+1)", "isal-cauchy(10+4)"] {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::Unavailable(_))), "{text}");
        }
        for text in ["", "rs", "rs(3)", "rs(3+-1)", "3+2+1", "k=3", "ec_3", "rs(99999999999+1)"] {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::Syntax(_))), "{text}");
        }
    }
}
