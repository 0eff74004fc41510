//! Keys: 1 to 250 bytes, checked once where they come in and never again.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use thiserror::Error;

/// Longest key.
pub const MAX_KEY_BYTES: usize = 250;

/// Longest key that an item's header in a store can name: it has a byte for the length.
pub const MAX_ITEM_KEY_BYTES: usize = 255;

const _: () = assert!(MAX_KEY_BYTES <= MAX_ITEM_KEY_BYTES);

/// A key: 1 to [`MAX_KEY_BYTES`] bytes. There is no way to one but [`Key::new`], so whoever
/// has one need not ask.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

/// Bytes that are no key: none at all, or more than [`MAX_KEY_BYTES`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a key has 1 to {MAX_KEY_BYTES} bytes, and not {0}")]
pub struct BadKey(pub usize);

impl Key {
    /// The key with these bytes.
    ///
    /// # Errors
    /// If there are none, or too many.
    pub fn new(bytes: Bytes) -> Result<Self, BadKey> {
        if (1..=MAX_KEY_BYTES).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(BadKey(bytes.len())) }
    }

    /// Its bytes, as a cheap handle.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<Bytes> for Key {
    type Error = BadKey;

    fn try_from(bytes: Bytes) -> Result<Self, BadKey> {
        Self::new(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_to_250_bytes() {
        for len in [1, 2, MAX_KEY_BYTES] {
            assert_eq!(Key::new(vec![b'k'; len].into()).unwrap().len(), len);
        }
        for len in [0, MAX_KEY_BYTES + 1, 300, 1 << 20] {
            assert_eq!(Key::new(vec![b'k'; len].into()), Err(BadKey(len)));
        }
    }
}
