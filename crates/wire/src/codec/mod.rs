//! Message bodies as bytes: fixed-width little-endian numbers, one tag byte per choice, a count before every list.
//!
//! Every value has exactly one encoding; a body must be used up to its last byte. Sixteen entries at most are reserved for a declared
//! count: a longer list grows as its entries are read, and bytes are slices of the frame that was received.
//! The layout of each type is one `wire_*!` line, which serves both directions.

use bytes::{Buf, Bytes};
use smallvec::{Array, SmallVec};
use thiserror::Error;
use types::{BadCatalog, ImpossibleMap, ImpossibleView};

mod admin;
mod catalog;
mod coordinator;
mod graph;
mod group;
mod link;
mod object;
mod op;
mod record;

pub(crate) use object::{descriptor_bytes, descriptor_of};

/// Why a body is no message.
/// Small, for every field of every message may come with one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadBody {
    /// It ends before the message does.
    #[error("the body ends too early")]
    Truncated,
    /// It goes on after the message.
    #[error("the body goes on after its message")]
    Trailing,
    /// A choice that does not exist.
    #[error("tag {0} is none of the choices")]
    Tag(u8),
    /// A list with more entries than this protocol allows.
    #[error("a list of {0} entries is too long")]
    TooMany(u32),
    /// Text that is not UTF-8, or a name that cannot be one.
    #[error("a text is not UTF-8, or no name")]
    Text,
    /// A table whose keys do not ascend, or records that do not follow each other.
    #[error("a table or a list of records is out of order")]
    Order,
    /// A profile outside its bounds.
    #[error("a profile is out of bounds")]
    Profile,
    /// No key of a request, too long a one, or one where there is none.
    #[error("a key is too long, or there is one too few or too many")]
    Key,
    /// A number outside of its range (docs/protocol.md, "Ranges").
    #[error("a number is out of its range")]
    Range,
    /// A view that no group can have.
    #[error("a view that cannot be: {0}")]
    View(Box<ImpossibleView>),
    /// Pools and namespaces that no cluster can have.
    #[error("pools and namespaces that cannot be: {0}")]
    Catalog(Box<BadCatalog>),
    /// A map that no cluster can have.
    #[error("{0}")]
    Map(Box<ImpossibleMap>),
}

/// Long deltas that are sent from where they are: the length of what is copied before each, the delta, and its checksum.
pub(crate) type SharedDeltas = SmallVec<[(usize, Bytes, u32); 2]>;

/// Where a body is written to.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Long bytes that are not copied, with the length of `out` before them; none if all are.
    shared: Option<&'a mut SharedDeltas>,
    /// A list or a text is longer than the reader will accept.
    pub(crate) overflow: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, shared: None, overflow: false }
    }

    /// Long deltas go to `shared` instead.
    pub(crate) fn sharing(out: &'a mut Vec<u8>, shared: &'a mut SharedDeltas) -> Self {
        Self { out, shared: Some(shared), overflow: false }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Numbers that follow each other, at most [`Number::MOST`]: room is made for all of them at once.
    #[inline(always)]
    pub(crate) fn numbers<const N: usize>(&mut self, numbers: [Number; N]) {
        const { assert!(N <= Number::MOST) };
        let (mut all, mut len) = ([0; Number::MOST * 8], 0);
        for number in numbers {
            if let Some(room) = all.get_mut(len..len + 8) {
                room.copy_from_slice(&number.bytes);
            }
            len += number.len;
        }
        self.bytes(all.get(..len).unwrap_or_default());
    }

    /// Bytes whose checksum is known stay where they are, if this writer shares any. Their count was written.
    fn known(&mut self, bytes: &Bytes, checksum: u32) {
        match &mut self.shared {
            Some(shared) => shared.push((self.out.len(), bytes.clone(), checksum)),
            None => self.bytes(bytes),
        }
    }

    /// The count of a list of at most `max` entries.
    fn count(&mut self, count: usize, max: u32) {
        self.counted(count, max).put(self);
    }

    /// The same, as it is to be written.
    fn counted(&mut self, count: usize, max: u32) -> u32 {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.overflow |= count > max;
        count
    }
}

/// A number as it is encoded, beside others.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    bytes: [u8; 8],
    len: usize,
}

impl Number {
    /// Most that are appended at once.
    const MOST: usize = 6;
}

impl From<u8> for Number {
    fn from(value: u8) -> Self {
        Self { bytes: u64::from(value).to_le_bytes(), len: 1 }
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Self {
        Self { bytes: u64::from(value).to_le_bytes(), len: 4 }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self { bytes: value.to_le_bytes(), len: 8 }
    }
}

/// What is left of a body.
pub(crate) struct Reader {
    rest: Bytes,
    /// Long bytes that were summed up when they were taken: what was left of the body behind them, how many they are, and their checksum.
    summed: SmallVec<[(usize, usize, u32); 1]>,
}

impl Reader {
    pub fn new(body: Bytes) -> Self {
        Self { rest: body, summed: SmallVec::new() }
    }

    /// The checksum of `body`, of which this reads. Bytes that were summed up already are not looked at again.
    pub fn checksum(&self, body: &[u8]) -> u32 {
        let part = |from: usize, to: usize| body.get(from..to).unwrap_or_default();
        let (mut sum, mut at) = (types::checksum(&[]), 0);
        for (behind, len, checksum) in &self.summed {
            let end = body.len() - behind;
            sum = types::checksum_append(sum, part(at, end - len));
            sum = types::checksum_combine(sum, *checksum, *len);
            at = end;
        }
        types::checksum_append(sum, part(at, body.len()))
    }

    /// Bytes, and their checksum.
    fn summed(&mut self) -> Result<(Bytes, u32), BadBody> {
        let bytes = <Bytes as Wire>::take(self)?;
        let checksum = types::checksum(&bytes);
        self.summed.push((self.rest.len(), bytes.len(), checksum));
        Ok((bytes, checksum))
    }

    /// The body must be used up.
    pub fn end(&self) -> Result<(), BadBody> {
        if self.rest.is_empty() { Ok(()) } else { Err(BadBody::Trailing) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadBody> {
        let array = *self.rest.first_chunk::<N>().ok_or(BadBody::Truncated)?;
        self.rest.advance(N);
        Ok(array)
    }

    /// Whether the next byte is this one, which is taken then.
    fn skip_if(&mut self, byte: u8) -> bool {
        let is_it = self.rest.first() == Some(&byte);
        self.rest.advance(usize::from(is_it));
        is_it
    }

    fn bytes(&mut self, len: usize) -> Result<Bytes, BadBody> {
        if len > self.rest.len() {
            return Err(BadBody::Truncated);
        }
        Ok(self.rest.split_to(len))
    }

    fn count(&mut self, max: u32) -> Result<u32, BadBody> {
        let count = u32::take(self)?;
        if count > max { Err(BadBody::TooMany(count)) } else { Ok(count) }
    }
}

/// Something that has an encoding.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Writer<'_>);
    fn take(from: &mut Reader) -> Result<Self, BadBody>;
}

macro_rules! wire_integers {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                out.bytes(&self.to_le_bytes());
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        }
    )* };
}

/// Types around one value.
macro_rules! wire_newtypes {
    ($($type:ident),* $(,)?) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                self.0.put(out);
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                Ok(Self(Wire::take(from)?))
            }
        }
    )* };
}

/// Types around a number that has a largest value: `MAX`, or the one that is given.
macro_rules! wire_bounded {
    ($($type:ident),* $(,)?) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                // Nobody counts so far.
                debug_assert!(*self <= Self::MAX);
                self.0.put(out);
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                let value = Self(Wire::take(from)?);
                if value > Self::MAX { Err(BadBody::Range) } else { Ok(value) }
            }
        }
    )* };
}

/// Structs: their fields in this order. With a condition, only those for which it holds.
macro_rules! wire_struct {
    ($type:ident { $($field:ident),* $(,)? } if $possible:expr) => {
        wire_struct!($type { $($field),* } checked |value: &Self| {
            if $possible(value) { Ok(()) } else { Err(BadBody::Range) }
        });
    };
    ($type:ident { $($field:ident),* $(,)? } checked $check:expr) => {
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                let Self { $($field),* } = self;
                $( $field.put(out); )*
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                $( let $field = Wire::take(from)?; )*
                let value = Self { $($field),* };
                ($check)(&value)?;
                Ok(value)
            }
        }
    };
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                let Self { $($field),* } = self;
                $( $field.put(out); )*
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                $( let $field = Wire::take(from)?; )*
                Ok(Self { $($field),* })
            }
        }
    };
}

/// One of several variants, told apart by a number.
pub(crate) trait Choice: Sized {
    /// The number of the variant.
    fn tag(&self) -> u8;
    /// Appends its fields.
    fn put_fields(&self, out: &mut Writer<'_>);
    /// The variant of this number, with its fields from `from`.
    fn take_fields(tag: u8, from: &mut Reader) -> Result<Self, BadBody>;
}

/// Choices: a tag, and the fields of the variant in this order. Tuple variants name their fields `0`, `1`, ...
macro_rules! wire_choice {
    ($type:ident { $($tag:literal => $variant:ident { $($field:tt: $name:ident),* $(,)? }),* $(,)? }) => {
        impl $crate::codec::Choice for $type {
            #[allow(unused_variables, reason = "the tag is that of the variant, whatever its fields")]
            fn tag(&self) -> u8 {
                match self { $( Self::$variant { $($field: $name),* } => $tag, )* }
            }

            #[allow(unused_variables, reason = "a choice without any fields")]
            fn put_fields(&self, out: &mut Writer<'_>) {
                match self { $( Self::$variant { $($field: $name),* } => { $( $name.put(out); )* } )* }
            }

            #[allow(unused_variables, reason = "a choice without any fields")]
            fn take_fields(tag: u8, from: &mut Reader) -> Result<Self, BadBody> {
                match tag {
                    $( $tag => {
                        $( let $name = Wire::take(from)?; )*
                        Ok(Self::$variant { $($field: $name),* })
                    } )*
                    _ => Err(BadBody::Tag(tag)),
                }
            }
        }
    };
}

/// Choices inside a body: the tag goes first.
macro_rules! wire_enum {
    ($type:ident { $($body:tt)* }) => {
        wire_choice!($type { $($body)* });

        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                $crate::codec::Choice::tag(self).put(out);
                $crate::codec::Choice::put_fields(self, out);
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                let tag = u8::take(from)?;
                $crate::codec::Choice::take_fields(tag, from)
            }
        }
    };
}

pub(crate) use {wire_bounded, wire_choice, wire_enum, wire_newtypes, wire_struct};

wire_integers!(u8, u16, u32, u64, u128, i64);

impl Wire for bool {
    fn put(&self, out: &mut Writer<'_>) {
        u8::from(*self).put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(BadBody::Tag(tag)),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Writer<'_>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Writer<'_>) {
        self.is_ok().put(out);
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(if bool::take(from)? { Ok(T::take(from)?) } else { Err(E::take(from)?) })
    }
}

/// The length of bytes is bounded by the frame.
impl Wire for Bytes {
    fn put(&self, out: &mut Writer<'_>) {
        out.count(self.len(), u32::MAX);
        out.bytes(self);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let len = u32::take(from)?;
        from.bytes(usize::try_from(len).map_err(|_| BadBody::Truncated)?)
    }
}

/// Longest text: a zone, a reason.
const MAX_TEXT_BYTES: u32 = 4096;

impl Wire for String {
    fn put(&self, out: &mut Writer<'_>) {
        out.count(self.len(), MAX_TEXT_BYTES);
        out.bytes(self.as_bytes());
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let len = from.count(MAX_TEXT_BYTES)?;
        let bytes = from.bytes(usize::try_from(len).map_err(|_| BadBody::Truncated)?)?;
        std::str::from_utf8(&bytes).map(Self::from).map_err(|_| BadBody::Text)
    }
}

/// Something that stands in lists.
pub(crate) trait Entry: Wire {
    /// Most entries of one list.
    const MAX_COUNT: u32;
}

impl<T: Entry> Wire for Vec<T> {
    fn put(&self, out: &mut Writer<'_>) {
        put_list(self, out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let count = from.count(T::MAX_COUNT)?;
        // A count says what a peer claims: no more than this is reserved for it.
        let mut list = Self::with_capacity(count.min(FIRST_ENTRIES) as usize);
        for _ in 0..count {
            list.push(T::take(from)?);
        }
        Ok(list)
    }
}

/// Entries of a list that there is room for before the first one is read.
const FIRST_ENTRIES: u32 = 16;

impl<A: Array> Wire for SmallVec<A>
where
    A::Item: Entry,
{
    fn put(&self, out: &mut Writer<'_>) {
        put_list(self, out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let mut list = Self::new();
        for _ in 0..from.count(A::Item::MAX_COUNT)? {
            // One by one: nothing is reserved for a claim.
            list.push(A::Item::take(from)?);
        }
        Ok(list)
    }
}

fn put_list<T: Entry>(list: &[T], out: &mut Writer<'_>) {
    out.count(list.len(), T::MAX_COUNT);
    for entry in list {
        entry.put(out);
    }
}
