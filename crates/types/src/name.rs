//! What operators call pools and namespaces.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of a pool or of a namespace: 1 to 64 of the characters `a-z 0-9 . _ -`, a letter or a digit first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Text that is no name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "'{0}' is no name: write 1 to 64 of the characters a-z, 0-9, '.', '_' and '-', a letter or a digit first"
)]
pub struct BadName(String);

impl Name {
    /// Most bytes.
    pub const MAX_BYTES: usize = 64;

    /// The name of what every cluster has from its birth on.
    #[must_use]
    pub fn default_name() -> Self {
        Self("default".to_owned())
    }

    /// Its characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let may_follow = |byte: u8| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-');
        let bytes = text.as_bytes();
        let is_name = bytes.len() <= Self::MAX_BYTES
            && bytes.first().copied().is_some_and(is_plain)
            && bytes.iter().copied().all(may_follow);
        if is_name { Ok(Self(text)) } else { Err(BadName(text.chars().take(Self::MAX_BYTES + 1).collect())) }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::try_from(text.to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
