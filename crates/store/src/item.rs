//! The bytes of an item in its slot: header, key, value (docs/format.md, "Item").
//!
//! Everything that is known about an item lies in its slot, so it is protected by the code like the value itself;
//! nothing but hash bits and the address is kept elsewhere. An item is immutable: every change is a new item in a new
//! slot.

use types::{Cohort, checksum, split_key};

/// Length of the fixed part before the key.
pub const ITEM_HEADER_BYTES: usize = 26;

const CRC_BYTES: usize = 4;

/// Marks of an item, beyond its expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemState {
    /// Marked stale (meta protocol, `I`).
    pub stale: bool,
    /// A client has been told to recompute the value (meta protocol, `W`).
    pub win_sent: bool,
    /// The value is a descriptor: its bytes lie in chunks (docs/objects.md).
    pub object: bool,
    /// Of its namespace's cohort ([`Cohort`]), below 16.
    pub generation: u8,
}

impl ItemState {
    const STALE: u8 = 1;
    const WIN_SENT: u8 = 2;
    const OBJECT: u8 = 4;
    /// Above these bits is the generation; the one between is for what is to come.
    const GENERATION_SHIFT: u32 = 4;

    fn to_byte(self) -> u8 {
        let mark = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        mark(self.stale, Self::STALE)
            | mark(self.win_sent, Self::WIN_SENT)
            | mark(self.object, Self::OBJECT)
            | (self.generation << Self::GENERATION_SHIFT)
    }

    fn from_byte(byte: u8) -> Self {
        Self {
            stale: byte & Self::STALE != 0,
            win_sent: byte & Self::WIN_SENT != 0,
            object: byte & Self::OBJECT != 0,
            generation: byte >> Self::GENERATION_SHIFT,
        }
    }
}

/// Why bytes are no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// Fewer bytes than a header.
    #[error("shorter than an item header")]
    NoHeader,
    /// The lengths in the header pass the end of the bytes.
    #[error("an item of {len_bytes} bytes does not fit into {available}")]
    Truncated {
        /// Length by the header.
        len_bytes: usize,
        /// Bytes that there are.
        available: usize,
    },
}

/// An item, as parsed from the bytes of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Opaque client flags.
    pub client_flags: u32,
    /// Unix seconds from which on it is not readable; 0 = never expires.
    pub expiry: u32,
    /// The cas unique.
    pub version: u64,
    /// Marked stale.
    pub stale: bool,
    /// A client has been told to recompute it.
    pub win_sent: bool,
    /// The value is a descriptor.
    pub object: bool,
    /// How many flushes of its namespace were before it, counted to sixteen.
    pub generation: u8,
    /// The whole item.
    bytes: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads the item at the front of `bytes`, which may be longer. Checks bounds only.
    ///
    /// # Errors
    /// If the bytes are too few for the header, or for the lengths in it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ItemError> {
        Self::of(&Header::parse(bytes)?, bytes)
    }

    /// The item whose header has been read from the front of `bytes` already.
    pub(crate) fn of(header: &Header, bytes: &'a [u8]) -> Result<Self, ItemError> {
        let available = bytes.len();
        let len_bytes = header.len_bytes();
        let bytes = bytes.get(..len_bytes).ok_or(ItemError::Truncated { len_bytes, available })?;
        let (key, value) = bytes[ITEM_HEADER_BYTES..].split_at(header.key_len);
        let ItemState { stale, win_sent, object, generation } = header.state;
        let Header { client_flags, expiry, version, .. } = *header;
        Ok(Self { key, value, client_flags, expiry, version, stale, win_sent, object, generation, bytes })
    }

    /// Whether the checksum is right.
    #[must_use]
    pub fn verify(&self) -> bool {
        let (crc, rest) = self.bytes.split_at(CRC_BYTES);
        crc == checksum(rest).to_le_bytes()
    }

    /// Length of header, key and value.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The whole item: header, key and value.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whose it is, and since which flush.
    #[must_use]
    pub fn cohort(&self) -> Cohort {
        Cohort::of(split_key(self.key).0, self.generation)
    }

    /// Its marks.
    #[must_use]
    pub fn state(&self) -> ItemState {
        let Self { stale, win_sent, object, generation, .. } = *self;
        ItemState { stale, win_sent, object, generation }
    }

    /// Whether it may not be read any more at `now` (Unix seconds).
    #[must_use]
    pub fn is_expired(&self, now: types::UnixSeconds) -> bool {
        self.expiry != 0 && self.expiry <= now.0
    }
}

/// The fixed part of an item, readable before key and value are present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) key_len: usize,
    pub(crate) value_len: usize,
    pub(crate) client_flags: u32,
    pub(crate) expiry: u32,
    pub(crate) version: u64,
    pub(crate) state: ItemState,
}

impl Header {
    #[inline(always)]
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ItemError> {
        let header = bytes.first_chunk::<ITEM_HEADER_BYTES>().ok_or(ItemError::NoHeader)?;
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Ok(Self {
            value_len: word(4) as usize,
            expiry: word(8),
            client_flags: word(12),
            version: u64::from(word(16)) | u64::from(word(20)) << 32,
            key_len: usize::from(header[24]),
            state: ItemState::from_byte(header[25]),
        })
    }

    pub(crate) fn len_bytes(&self) -> usize {
        encoded_len(self.key_len, self.value_len)
    }
}

/// What to write into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemSpec<'a> {
    /// The key, at most [`types::MAX_ITEM_KEY_BYTES`].
    pub key: &'a [u8],
    /// The value in two parts, so that append and prepend copy nothing; either may be empty.
    pub value: [&'a [u8]; 2],
    /// Opaque client flags.
    pub client_flags: u32,
    /// Unix seconds from which on it is not readable; 0 = never expires.
    pub expiry: u32,
    /// The cas unique.
    pub version: u64,
    /// Marks.
    pub state: ItemState,
}

impl ItemSpec<'_> {
    /// Length of the item in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        encoded_len(self.key.len(), self.value_len())
    }

    /// Appends the item's bytes.
    ///
    /// # Panics
    /// If the key or the value is longer than the header can say.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.len_bytes());
        out.extend_from_slice(&[0; CRC_BYTES]);
        out.extend_from_slice(
            &u32::try_from(self.value_len()).expect("a value is below 4 GiB").to_le_bytes(),
        );
        out.extend_from_slice(&self.expiry.to_le_bytes());
        out.extend_from_slice(&self.client_flags.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(u8::try_from(self.key.len()).expect("a key has at most 255 bytes"));
        out.push(self.state.to_byte());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value[0]);
        out.extend_from_slice(self.value[1]);
        // Over all that follows it, so it comes last.
        let crc = checksum(&out[start + CRC_BYTES..]);
        out[start..start + CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    fn value_len(&self) -> usize {
        self.value[0].len() + self.value[1].len()
    }
}

/// Length in bytes of an item with a key of `key_len` and a value of `value_len` bytes.
#[must_use]
pub fn encoded_len(key_len: usize, value_len: usize) -> usize {
    ITEM_HEADER_BYTES + key_len + value_len
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::UnixSeconds;

    use super::*;

    fn spec<'a>(key: &'a [u8], value: [&'a [u8]; 2]) -> ItemSpec<'a> {
        ItemSpec { key, value, client_flags: 1, expiry: 2, version: 3, state: ItemState::default() }
    }

    fn encode(spec: &ItemSpec<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        spec.encode(&mut bytes);
        bytes
    }

    #[test]
    fn the_bytes_are_those_of_the_format_document() {
        let state = ItemState { stale: true, ..ItemState::default() };
        let spec = ItemSpec {
            key: b"k",
            value: [b"v", b"w"],
            client_flags: 0x0a,
            expiry: 0x0b,
            version: 0x0c_0000_000d,
            state,
        };
        let bytes = encode(&spec);
        let head = [2, 0, 0, 0, 0x0b, 0, 0, 0, 0x0a, 0, 0, 0, 0x0d, 0, 0, 0, 0x0c, 0, 0, 0, 1, 1];
        assert_eq!(bytes[4..26], head);
        assert_eq!(&bytes[26..], b"kvw");
        assert_eq!(bytes[..4], crc32c::crc32c(&bytes[4..]).to_le_bytes());
    }

    #[test]
    fn an_item_expires_at_its_second() {
        let bytes = encode(&ItemSpec { expiry: 100, ..spec(b"k", [b"", b""]) });
        let item = Item::parse(&bytes).unwrap();
        assert!(!item.is_expired(UnixSeconds(99)) && item.is_expired(UnixSeconds(100)));
        let bytes = encode(&ItemSpec { expiry: 0, ..spec(b"k", [b"", b""]) });
        assert!(!Item::parse(&bytes).unwrap().is_expired(UnixSeconds(u32::MAX)));
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = encode(&spec(b"some key", [b"some", b" value"]));
        assert!(Item::parse(&bytes).unwrap().verify());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!Item::parse(&bad).is_ok_and(|item| item.verify()), "bit {bit}");
        }
    }

    #[test]
    fn too_few_bytes_are_an_error() {
        let bytes = encode(&spec(b"key", [b"value", b""]));
        assert_eq!(Item::parse(&bytes[..25]), Err(ItemError::NoHeader));
        for len in ITEM_HEADER_BYTES..bytes.len() {
            let truncated = ItemError::Truncated { len_bytes: bytes.len(), available: len };
            assert_eq!(Item::parse(&bytes[..len]), Err(truncated));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_encoded_is_parsed(
            key in proptest::collection::vec(any::<u8>(), 0..=255),
            first in proptest::collection::vec(any::<u8>(), 0..200),
            second in proptest::collection::vec(any::<u8>(), 0..200),
            (client_flags, expiry, version) in any::<(u32, u32, u64)>(),
            (stale, win_sent, object, generation) in (any::<bool>(), any::<bool>(), any::<bool>(), 0..16u8),
            tail in 0usize..20,
        ) {
            let state = ItemState { stale, win_sent, object, generation };
            let spec = ItemSpec { key: &key, value: [&first, &second], client_flags, expiry, version, state };
            let mut bytes = encode(&spec);
            prop_assert_eq!(bytes.len(), spec.len_bytes());
            bytes.resize(bytes.len() + tail, 0xee);
            let item = Item::parse(&bytes).unwrap();
            prop_assert!(item.verify());
            prop_assert_eq!(item.key, key.as_slice());
            prop_assert_eq!(item.value, [first.as_slice(), second.as_slice()].concat());
            prop_assert_eq!((item.client_flags, item.expiry, item.version), (client_flags, expiry, version));
            prop_assert_eq!(item.state(), state);
            prop_assert_eq!(item.len_bytes() + tail, bytes.len());
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(item) = Item::parse(&bytes) {
                let _ = item.verify();
                prop_assert!(item.len_bytes() <= bytes.len());
            }
        }
    }
}
