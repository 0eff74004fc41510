//! Scans: which keys a data role has, a page at a time (docs/native-protocol.md, "Scans").
//!
//! A cursor is a bound of the bits of keys' hashes by which an index orders them. That is a property of keys alone: it does not depend on
//! where an item lies, on how large a table is, or on who serves the role, so a scan goes on wherever the role does.

use bytes::Bytes;

use crate::{IndexHash, Key, MAX_KEY_BYTES, NamespaceId, Slot};

/// Most keys of one page: so many of the longest fit a frame of the native protocol.
pub const MAX_PAGE_KEYS: usize = 256;

/// From where on a data role is scanned: what is below has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScanBound(IndexHash);

impl ScanBound {
    /// Before all keys.
    pub const BEGIN: Self = Self(IndexHash(0));
    /// Behind all of them: no bound, but what is said where there is nothing more.
    pub const END: u64 = 1 << 40;

    /// By its number; none if there is no such bound.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number < Self::END).then_some(Self(IndexHash(number)))
    }

    /// The one behind all keys of these bits; none if there are none behind.
    #[must_use]
    pub fn behind(hash: IndexHash) -> Option<Self> {
        Self::new(hash.0 + 1)
    }

    /// The bits of the first keys that are not seen yet.
    #[must_use]
    pub fn hash(self) -> IndexHash {
        self.0
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.0
    }
}

/// The next keys of a data role are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Whose.
    pub namespace: NamespaceId,
    /// Any slot of the data role.
    pub slot: Slot,
    /// From where on.
    pub from: ScanBound,
    /// What they begin with, as their clients have them.
    pub prefix: Bytes,
    /// How many at most, from 1 to [`MAX_PAGE_KEYS`].
    pub keys: u16,
    /// No further key once they have so many bytes.
    pub bytes: u32,
}

impl Scan {
    /// Whether anybody may ask this.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.prefix.len() <= MAX_KEY_BYTES
            && (1..=MAX_PAGE_KEYS).contains(&usize::from(self.keys))
            && self.namespace <= NamespaceId::MAX
    }
}

/// Some keys of a data role: all that it has of the namespace, with the prefix, between the bound that was asked for and `next`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// As their clients have them.
    pub keys: Vec<Bytes>,
    /// From where on it goes on; none = that was all of this data role.
    pub next: Option<ScanBound>,
    /// So many items lie there that are damaged, so that nobody can say whose they are.
    pub damaged: u16,
}

impl ScanPage {
    /// Whether there can be such a page.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let is_key = |key: &Bytes| Key::of(NamespaceId::DEFAULT, key.clone()).is_ok();
        self.keys.len() <= MAX_PAGE_KEYS && self.keys.iter().all(is_key)
    }

    /// Bytes of its keys.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.keys.iter().map(Bytes::len).sum()
    }
}
