//! Keys: 1 to 250 bytes of a client's in one namespace, checked once where they come in and never again.
//!
//! Inside a cluster a key names its namespace itself, so that whatever hashes, compares, stores or forwards it keeps keys of
//! different namespaces apart without a thought: before the client's bytes stand a zero byte and the namespace's number. A key of
//! the default namespace is the client's bytes alone, unless these begin with a zero byte.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use smallvec::SmallVec;
use thiserror::Error;

use crate::NamespaceId;

/// Longest key of a client.
pub const MAX_KEY_BYTES: usize = 250;

/// Longest key that an item's header in a store can name: it has a byte for the length.
pub const MAX_ITEM_KEY_BYTES: usize = 255;

/// What every key begins with that names its namespace.
const MARK: u8 = 0;
/// Most bytes of a namespace's number, seven bits in each.
const MAX_NUMBER_BYTES: usize = 4;
const CONTINUES: u8 = 0x80;

const _: () = assert!(1 + MAX_NUMBER_BYTES + MAX_KEY_BYTES <= MAX_ITEM_KEY_BYTES);
const _: () = assert!(NamespaceId::MAX.0 < 1 << (7 * MAX_NUMBER_BYTES));

/// A key with its namespace. There is no way to one but those below, so whoever has one need not ask.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

/// Bytes that are no key: none at all, or more than [`MAX_KEY_BYTES`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a key has 1 to {MAX_KEY_BYTES} bytes, and not {0}")]
pub struct BadKey(pub usize);

/// Room for the bytes of a key that are not simply a client's.
pub type KeyBuffer = SmallVec<[u8; 64]>;

/// The bytes of the key that a client of `namespace` calls `client`, as [`Key`] has them: as they are where that will do, else put
/// together in `buffer`.
#[must_use]
#[inline]
pub fn qualify<'a>(namespace: NamespaceId, client: &'a [u8], buffer: &'a mut KeyBuffer) -> &'a [u8] {
    if is_plain(namespace, client) {
        return client;
    }
    buffer.clear();
    buffer.push(MARK);
    let mut number = namespace.0;
    while number >= u32::from(CONTINUES) {
        buffer.push(number as u8 | CONTINUES);
        number >>= 7;
    }
    buffer.push(number as u8);
    buffer.extend_from_slice(client);
    buffer
}

/// The namespace and the client's bytes of a key. Of what is no key: the default one, and all of it.
#[must_use]
#[inline]
pub fn split_key(bytes: &[u8]) -> (NamespaceId, &[u8]) {
    if bytes.first() != Some(&MARK) {
        return (NamespaceId::DEFAULT, bytes);
    }
    split_marked(bytes).unwrap_or((NamespaceId::DEFAULT, bytes))
}

fn split_marked(bytes: &[u8]) -> Option<(NamespaceId, &[u8])> {
    let numbered = bytes.get(1..)?;
    let last = numbered.iter().take(MAX_NUMBER_BYTES).position(|byte| byte & CONTINUES == 0)?;
    let (number, client) = numbered.split_at_checked(last + 1)?;
    let digits = number.iter().rev();
    let number = digits.fold(0u32, |sum, byte| sum << 7 | u32::from(byte & !CONTINUES));
    Some((NamespaceId(number), client))
}

/// Whether the key is the client's bytes and nothing else.
#[inline]
fn is_plain(namespace: NamespaceId, client: &[u8]) -> bool {
    namespace == NamespaceId::DEFAULT && client.first() != Some(&MARK)
}

impl Key {
    /// The key with these bytes in the default namespace.
    ///
    /// # Errors
    /// If there are none, or too many.
    pub fn new(client: Bytes) -> Result<Self, BadKey> {
        Self::of(NamespaceId::DEFAULT, client)
    }

    /// The key that clients of `namespace` call `client`.
    ///
    /// # Errors
    /// If there are no bytes, or too many.
    #[inline]
    pub fn of(namespace: NamespaceId, client: Bytes) -> Result<Self, BadKey> {
        if !(1..=MAX_KEY_BYTES).contains(&client.len()) {
            return Err(BadKey(client.len()));
        }
        if is_plain(namespace, &client) { Ok(Self(client)) } else { Ok(Self::qualified(namespace, &client)) }
    }

    fn qualified(namespace: NamespaceId, client: &[u8]) -> Self {
        let mut buffer = KeyBuffer::new();
        Self(Bytes::copy_from_slice(qualify(namespace, client, &mut buffer)))
    }

    /// The key whose bytes somebody else has put together.
    ///
    /// # Errors
    /// If no client's bytes in any namespace make these.
    pub fn received(bytes: Bytes) -> Result<Self, BadKey> {
        let (namespace, client) = split_key(&bytes);
        let mut buffer = KeyBuffer::new();
        let is_key = (1..=MAX_KEY_BYTES).contains(&client.len())
            && namespace <= NamespaceId::MAX
            && qualify(namespace, client, &mut buffer) == &bytes[..];
        if is_key { Ok(Self(bytes)) } else { Err(BadKey(bytes.len())) }
    }

    /// The key that clients of `namespace` call the same.
    #[must_use]
    #[inline]
    pub fn moved_to(self, namespace: NamespaceId) -> Self {
        if namespace == NamespaceId::DEFAULT && self.0.first() != Some(&MARK) {
            return self;
        }
        Self::qualified(namespace, self.client())
    }

    /// Whose it is.
    #[must_use]
    #[inline]
    pub fn namespace(&self) -> NamespaceId {
        split_key(&self.0).0
    }

    /// What its clients call it.
    #[must_use]
    #[inline]
    pub fn client(&self) -> &[u8] {
        split_key(&self.0).1
    }

    /// The same, as a cheap handle.
    #[must_use]
    pub fn client_bytes(&self) -> Bytes {
        self.0.slice(self.0.len() - self.client().len()..)
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

    #[test]
    fn keys_of_different_namespaces_are_never_the_same() {
        let mut seen = std::collections::BTreeSet::new();
        let clients: [&[u8]; 6] = [b"k", b"\0", b"\0k", b"\0\x01k", b"\x01k", b"\0\x80\x01k"];
        for namespace in [0, 1, 127, 128, 0x3fff, 0x4000, NamespaceId::MAX.0].map(NamespaceId) {
            for client in clients {
                let key = Key::of(namespace, Bytes::copy_from_slice(client)).unwrap();
                assert_eq!((key.namespace(), key.client()), (namespace, client));
                assert_eq!(Key::received(key.bytes().clone()), Ok(key.clone()));
                assert!(seen.insert(key));
            }
        }
        let plain = Key::new(Bytes::from_static(b"k")).unwrap();
        assert_eq!(&plain[..], b"k", "the default namespace costs nothing");
        let longest = Key::of(NamespaceId::MAX, vec![b'k'; MAX_KEY_BYTES].into()).unwrap();
        assert!(longest.len() <= MAX_ITEM_KEY_BYTES);
    }

    #[test]
    fn what_no_client_can_have_asked_for_is_no_key() {
        // No client's bytes, a number that does not end, one that is longer than it need be or too large, and a mark for nothing.
        let bad: [&[u8]; 7] = [
            b"",
            b"\0",
            b"\0\x01",
            b"\0\xff\xff\xff\xff\x01k",
            b"\0\x81\0k",
            b"\0\xff\xff\xff\x7fk",
            b"\0\0k",
        ];
        for bytes in bad {
            assert!(Key::received(Bytes::copy_from_slice(bytes)).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
