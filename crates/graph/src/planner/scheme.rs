//! The schemes, by their names.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A way to lay out a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Who wants the chunks fetches as many as the code has data roles, and combines them.
    Star,
    /// A star of as few helpers as the code allows.
    Lrc,
    /// A tree of `ceil(log2(k + 1))` rounds (partial-parallel repair, Mitra and others, 2016).
    Ppr,
    /// A chain through the helpers (repair pipelining, Li and others, 2017).
    Chain,
    /// Three layers: each helper combines one part (TriEC, Shi and Lu, 2019).
    Tri,
    /// The one that the model says is best.
    Auto,
}

impl Scheme {
    /// All that are laid out in one way, in the order in which they are preferred when they cost the same.
    pub const DECODING: &'static [Self] = &[Self::Star, Self::Lrc, Self::Chain, Self::Ppr, Self::Tri];
    /// The same without those that are others where all parities cover all data roles.
    pub(super) const DECODING_DENSE: &'static [Self] = &[Self::Star, Self::Chain, Self::Ppr, Self::Tri];
    /// Those that can encode.
    pub const ENCODING: &'static [Self] = &[Self::Star, Self::Tri, Self::Chain];
    /// All names.
    pub const ALL: [Self; 6] = [Self::Star, Self::Lrc, Self::Ppr, Self::Chain, Self::Tri, Self::Auto];

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Star => "star",
            Self::Lrc => "lrc",
            Self::Ppr => "ppr",
            Self::Chain => "chain",
            Self::Tri => "tri",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no scheme has.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("no scheme '{0}': there are star, lrc, ppr, chain, tri and auto")]
pub struct UnknownScheme(pub String);

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| UnknownScheme(name.to_owned()))
    }
}
