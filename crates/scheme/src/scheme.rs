//! Schemes: the names of codes, such as `rs(3+2)` or `lrc(12,2,2)`.

use std::fmt;
use std::str::FromStr;

use crate::Family;

/// Most roles of a code: as many as the field has elements.
pub const MAX_ROLES: usize = 256;

/// A named code: what a person writes, before anything is computed.
///
/// ```
/// use scheme::Scheme;
///
/// let scheme: Scheme = "lrc(12,2,2)".parse()?;
/// assert_eq!(scheme, Scheme::Lrc { k: 12, l: 2, r: 2 });
/// assert_eq!((scheme.k(), scheme.m()), (12, 4));
/// assert_eq!("EC_3P2".parse::<Scheme>()?.to_string(), "rs(3+2)");
/// assert_eq!("isal-cauchy(10+4)".parse::<Scheme>()?.to_string(), "isal-cauchy(10+4)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Reed-Solomon: `rs(k+m)`, or the name of another family in place of `rs`.
    Rs {
        /// The matrix.
        family: Family,
        /// Data roles.
        k: usize,
        /// Parity roles.
        m: usize,
    },
    /// A local reconstruction code: `lrc(k,l,r)`.
    Lrc {
        /// Data roles.
        k: usize,
        /// Local groups, each with one parity.
        l: usize,
        /// Global parities.
        r: usize,
    },
    /// `n` copies: `rep(n)`. One copy is written `none`.
    Rep {
        /// All copies.
        n: usize,
    },
    /// `k` data roles and a mirror of each: `mirror(k)`.
    Mirror {
        /// Data roles.
        k: usize,
    },
    /// `k` data roles and their XOR: `xor(k+1)`.
    Xor {
        /// Data roles.
        k: usize,
    },
}

/// Text that names no scheme.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "code '{0}' is not understood: write 'rs(3+2)', '3+2', 'EC_3P2' or 'k=3,m=2', 'lrc(12,2,2)', 'rep(3)', \
     'mirror(4)', 'xor(4+1)', 'none', or a matrix family as in 'isal-cauchy(10+4)'"
)]
pub struct UnknownScheme(pub String);

impl Scheme {
    /// Reed-Solomon with our matrix.
    #[must_use]
    pub fn rs(k: usize, m: usize) -> Self {
        Self::Rs { family: Family::CauchyXor, k, m }
    }

    /// Data roles.
    #[must_use]
    pub fn k(self) -> usize {
        match self {
            Self::Rs { k, .. } | Self::Lrc { k, .. } | Self::Mirror { k } | Self::Xor { k } => k,
            Self::Rep { .. } => 1,
        }
    }

    /// Parity roles.
    #[must_use]
    pub fn m(self) -> usize {
        match self {
            Self::Rs { m, .. } => m,
            Self::Lrc { l, r, .. } => l.saturating_add(r),
            Self::Rep { n } => n.saturating_sub(1),
            Self::Mirror { k } => k,
            Self::Xor { .. } => 1,
        }
    }

    /// Whether there is such a code: the field has elements enough, and the family has a matrix of this size that is MDS.
    #[must_use]
    pub fn exists(self) -> bool {
        let within = |k: usize, m: usize| k >= 1 && k.saturating_add(m) <= MAX_ROLES;
        within(self.k(), self.m())
            && match self {
                Self::Rs { family, k, m } => family.has(k, m),
                Self::Lrc { k, l, .. } => (1..=k).contains(&l),
                Self::Rep { n } => n >= 1,
                Self::Mirror { .. } | Self::Xor { .. } => true,
            }
    }

    /// How many losses are survived, whichever they are. (An LRC survives many larger ones.)
    #[must_use]
    pub fn tolerance(self) -> usize {
        match self {
            Self::Rs { m, .. } => m,
            Self::Lrc { r, .. } => r.saturating_add(1),
            Self::Rep { n } => n.saturating_sub(1),
            Self::Mirror { .. } | Self::Xor { .. } => 1,
        }
    }

    /// From a name in lower case and the text between its parentheses.
    fn from_call(name: &str, arguments: &str) -> Option<Self> {
        match name {
            "rs" => {
                let (k, m) = pair(arguments, ['+', ','])?;
                Some(Self::rs(k, m))
            }
            "lrc" => {
                let (k, rest) = arguments.split_once(',')?;
                let (l, r) = pair(rest, [',', ','])?;
                Some(Self::Lrc { k: number(k)?, l, r })
            }
            "rep" => Some(Self::Rep { n: number(arguments)? }),
            "mirror" => Some(Self::Mirror { k: number(arguments)? }),
            "xor" => {
                let (k, one) = pair(arguments, ['+', '+'])?;
                (one == 1).then_some(Self::Xor { k })
            }
            family => {
                let (k, m) = pair(arguments, ['+', ','])?;
                Some(Self::Rs { family: family.parse().ok()?, k, m })
            }
        }
    }

    /// From a text in lower case without blanks.
    fn read(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::Rep { n: 1 });
        }
        if let Some((name, rest)) = text.split_once('(') {
            return Self::from_call(name, rest.strip_suffix(')')?);
        }
        let (k, m) = if let Some(rest) = text.strip_prefix("ec_") {
            pair(rest, ['p', 'p'])?
        } else if let Some(rest) = text.strip_prefix("k=") {
            let (k, m) = rest.split_once(",m=")?;
            (number(k)?, number(m)?)
        } else {
            pair(text, ['+', '+'])?
        };
        Some(Self::rs(k, m))
    }
}

/// Two numbers with one of two separators between them.
fn pair(text: &str, separators: [char; 2]) -> Option<(usize, usize)> {
    let (first, second) = text.split_once(separators)?;
    Some((number(first)?, number(second)?))
}

/// A decimal number of at most nine digits, without a sign.
fn number(text: &str) -> Option<usize> {
    let plain = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rs { family: Family::CauchyXor, k, m } => write!(f, "rs({k}+{m})"),
            Self::Rs { family, k, m } => write!(f, "{family}({k}+{m})"),
            Self::Lrc { k, l, r } => write!(f, "lrc({k},{l},{r})"),
            Self::Rep { n: 1 } => f.write_str("none"),
            Self::Rep { n } => write!(f, "rep({n})"),
            Self::Mirror { k } => write!(f, "mirror({k})"),
            Self::Xor { k } => write!(f, "xor({k}+1)"),
        }
    }
}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        Self::read(&compact.to_lowercase()).ok_or_else(|| UnknownScheme(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_read_as_they_are_written() {
        let families = Family::ALL.map(|family| Scheme::Rs { family, k: 4, m: 2 });
        let others = [
            Scheme::Lrc { k: 12, l: 2, r: 2 },
            Scheme::Rep { n: 1 },
            Scheme::Rep { n: 3 },
            Scheme::Mirror { k: 4 },
            Scheme::Xor { k: 5 },
        ];
        for scheme in families.into_iter().chain(others) {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
        }
    }

    #[test]
    fn all_spellings_of_reed_solomon_name_the_same_code() {
        for text in ["rs(3+2)", "rs(3,2)", "3+2", "EC_3P2", "k=3,m=2", "RS( 3 + 2 )", "cauchy-xor(3+2)"] {
            assert_eq!(text.parse(), Ok(Scheme::rs(3, 2)), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_with_the_spellings() {
        let bad =
            ["", "rs", "rs()", "rs(3)", "rs(3+-1)", "3+2+1", "k=3", "ec_3", "rs(99999999999+1)", "xor(3+2)"];
        let worse = [
            "lrc(1,2)",
            "lrc(1,2,3,4)",
            "rep()",
            "rep(3",
            "isal(3+2)",
            "none()",
            "(3+2)",
            "rs((3+2))",
            "½+1",
        ];
        for text in bad.iter().chain(&worse) {
            let refused = text.parse::<Scheme>().unwrap_err();
            assert!(refused.to_string().contains("lrc(12,2,2)"), "{text}");
        }
    }
}
