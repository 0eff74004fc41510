//! Profiles: the codes that groups may be protected with, such as `rs(3+2)`.

use std::fmt;
use std::str::FromStr;

use scheme::Scheme;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The code of a group: `k` data roles, `m` parity roles. Storage costs `(k+m)/k`.
///
/// Whoever has one has a code: names of none are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Profile(Scheme);

/// Why a profile was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    /// Not one of the accepted spellings.
    #[error(
        "profile '{0}' is not understood: write 'rs(3+2)', '3+2', 'EC_3P2', 'k=3,m=2', 'lrc(12,2,2)', 'rep(3)', 'mirror(4)', \
         'xor(4+1)', 'none', or a matrix family as in 'isal-cauchy(10+4)'"
    )]
    Syntax(String),
    /// Out of bounds.
    #[error(
        "profile {0} is out of bounds: data roles are 1..={max_k}, parity roles 0..={max_m}",
        max_k = Profile::MAX_K,
        max_m = Profile::MAX_M
    )]
    Bounds(Scheme),
    /// No code of this name and size.
    #[error(
        "there is no code {0}: an LRC has 1..=k local groups, and a family needs an MDS matrix of this size"
    )]
    None(Scheme),
}

impl Profile {
    /// Most data roles of a group.
    pub const MAX_K: u8 = 32;
    /// Most parity roles of a group.
    pub const MAX_M: u8 = 32;
    /// Most bytes of a profile's name.
    pub const MAX_NAME_BYTES: usize = 40;

    /// The profile of this name.
    ///
    /// # Errors
    /// `Bounds` unless `1 <= k <= 32` and `m <= 32`, `None` if no code has this name.
    pub fn new(scheme: Scheme) -> Result<Self, ProfileError> {
        let copies_of_none = scheme == Scheme::Rep { n: 0 };
        let (k, m) = (scheme.k(), scheme.m());
        if copies_of_none || k == 0 || k > usize::from(Self::MAX_K) || m > usize::from(Self::MAX_M) {
            return Err(ProfileError::Bounds(scheme));
        }
        if !scheme.exists() {
            return Err(ProfileError::None(scheme));
        }
        // One data role and no parity is one thing, however it is spelled: profiles are compared by their schemes.
        let is_none = (k, m) == (1, 0);
        Ok(Self(if is_none { Scheme::Rep { n: 1 } } else { scheme }))
    }

    /// Reed-Solomon with `k` data and `m` parity roles.
    ///
    /// # Errors
    /// As [`Profile::new`].
    pub fn rs(k: u32, m: u32) -> Result<Self, ProfileError> {
        Self::new(Scheme::rs(k as usize, m as usize))
    }

    /// `n` copies: one data role, and `n - 1` parity roles whose row is `[1]`. One copy is `none`.
    ///
    /// # Errors
    /// As [`Profile::new`].
    pub fn rep(n: u32) -> Result<Self, ProfileError> {
        Self::new(Scheme::Rep { n: n as usize })
    }

    /// Its name, from which the codec makes the code.
    #[must_use]
    pub fn scheme(self) -> Scheme {
        self.0
    }

    /// Data roles.
    #[must_use]
    pub fn k(self) -> usize {
        self.0.k()
    }

    /// Parity roles.
    #[must_use]
    pub fn m(self) -> usize {
        self.0.m()
    }

    /// All roles.
    #[must_use]
    pub fn n(self) -> usize {
        self.k() + self.m()
    }

    /// What of `bytes` data may take so that all of it, with its parities, takes no more.
    #[must_use]
    pub fn data_part_of(self, bytes: u64) -> u64 {
        let part = u128::from(bytes) * self.k() as u128 / self.n() as u128;
        u64::try_from(part).unwrap_or(bytes)
    }

    /// How many losses are survived, whichever they are. Fewer than parity roles where those do not cover all data roles, as in an
    /// LRC; that survives many larger losses, too.
    #[must_use]
    pub fn tolerance(self) -> usize {
        self.0.tolerance()
    }

    /// Whether any `m` losses are survived, and no `m + 1`: then to count is to know.
    #[must_use]
    pub fn is_mds(self) -> bool {
        self.tolerance() == self.m()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let scheme = text.parse().map_err(|_| ProfileError::Syntax(text.to_owned()))?;
        Self::new(scheme)
    }
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
    use scheme::Family;

    use super::*;

    #[test]
    fn all_spellings_name_the_same_profile() {
        let expected = Profile::rs(3, 2).unwrap();
        for text in ["rs(3+2)", "3+2", "EC_3P2", "k=3,m=2", "RS( 3 + 2 )"] {
            assert_eq!(text.parse::<Profile>().unwrap(), expected, "{text}");
        }
        assert_eq!(expected.to_string(), "rs(3+2)");
        for text in ["none", "rep(3)", "rs(1+2)", "lrc(12,2,2)", "mirror(4)", "xor(4+1)", "isal-cauchy(10+4)"]
        {
            assert_eq!(text.parse::<Profile>().unwrap().to_string(), text);
        }
        assert_eq!("rep(1)".parse::<Profile>().unwrap(), Profile::rs(1, 0).unwrap());
    }

    #[test]
    fn bad_profiles_are_refused_with_the_reason() {
        for text in
            ["rs(0+2)", "99+2", "rep(34)", "rep(0)", "mirror(33)", "lrc(12,20,20)", "xor(33+1)", "rs(3+33)"]
        {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::Bounds(_))), "{text}");
        }
        for text in ["lrc(4,5,1)", "lrc(4,0,1)", "isal-vandermonde(6+5)"] {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::None(_))), "{text}");
        }
        for text in [
            "",
            "rs",
            "rs(3)",
            "rs(3+-1)",
            "3+2+1",
            "k=3",
            "ec_3",
            "rs(99999999999+1)",
            "clay(4,2)",
            "xor(4+2)",
        ] {
            assert!(matches!(text.parse::<Profile>(), Err(ProfileError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn to_count_is_to_know_for_codes_that_survive_any_loss_of_as_many_as_their_parities() {
        for (text, is_mds) in
            [("rs(3+2)", true), ("rep(3)", true), ("xor(4+1)", true), ("none", true), ("mirror(1)", true)]
                .into_iter()
                .chain([("lrc(12,2,2)", false), ("mirror(4)", false), ("lrc(4,1,2)", true)])
        {
            assert_eq!(text.parse::<Profile>().unwrap().is_mds(), is_mds, "{text}");
        }
    }

    #[test]
    fn the_longest_name_has_its_bound() {
        let longest = Family::ALL.map(|family| Scheme::Rs { family, k: 32, m: 32 }.to_string().len());
        assert!(longest.into_iter().all(|len| len <= Profile::MAX_NAME_BYTES));
    }
}
