//! What comes of requests: a code, and what belongs to it.

use bytes::Bytes;
use types::{ClientSession, GroupId, NodeId, ObjectLayout, RoleIndex, ScanPage, Slot};

use crate::chunks::{BegunChunks, Cells, FoundChunks};
use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Header, Kind, MAX_PIECE_BYTES, put_frame};
use crate::scan;

/// Most spans of one answer.
pub const MAX_SPANS: usize = 512;
/// Bytes of the body of an answer with a value in it that come before the value.
pub const VALUE_HEAD_BYTES: usize = 1 + META_BYTES + 16;
const META_BYTES: usize = 24;
/// Most nodes that one span lies on.
const MAX_SPAN_NODES: usize = 64;
/// Stands for "for ever", and for "no node".
const FOREVER: u32 = u32::MAX;
const NOBODY: u16 = u16::MAX;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $done:ident;)*) => {
        /// What came of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code with this number.
            #[must_use]
            pub fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Whether the request is known to have changed nothing, and may be sent again as it is.
            #[must_use]
            pub fn may_repeat(self) -> bool {
                match self {
                    $(Self::$name => codes!(@$done),)*
                }
            }
        }
    };
    (@again) => { true };
    (@final) => { false };
}

codes! {
    /// The value.
    Value = 0, final;
    /// There is none.
    Miss = 1, final;
    /// Stored.
    Stored = 2, final;
    /// Not stored: there is, or there is no, such key.
    NotStored = 3, final;
    /// Not done: another version is there.
    Exists = 4, final;
    /// Not done: there is no such key.
    NotFound = 5, final;
    /// Removed.
    Deleted = 6, final;
    /// It lives for as long as was asked.
    Touched = 7, final;
    /// The number.
    Number = 8, final;
    /// What is known of it.
    About = 9, final;
    /// Where it lies.
    Places = 10, final;
    /// A value that came in pieces is whole.
    Whole = 11, final;
    /// A session has begun.
    Session = 12, final;
    /// The value lies in chunks: where they are.
    Chunks = 13, final;
    /// Cells of a chunk.
    Cells = 14, final;
    /// What was said of chunks is known now.
    Noted = 15, final;
    /// A value may be put into chunks.
    Begun = 16, final;
    /// A chunk is kept.
    Placed = 17, final;
    /// Keys of a data role.
    Keys = 18, final;
    /// Nothing was done: the value is no number.
    NotANumber = 64, final;
    /// Nothing was done: the value is longer than it may be.
    TooLarge = 65, final;
    /// Nothing was done: there is no memory, and nothing may be evicted.
    OutOfMemory = 66, final;
    /// Nothing was done: too much waits already, or the value changed while it was written or read.
    Busy = 67, again;
    /// Nothing was done: no primary could be reached in time.
    Unavailable = 68, again;
    /// More members were lost than the code makes up for.
    Lost = 69, final;
    /// There is no such namespace.
    NoNamespace = 70, final;
    /// The primary was lost meanwhile: it may or may not have been done.
    Unknown = 71, final;
    /// What is there is damaged.
    Corrupt = 72, final;
    /// The client has cancelled it; a write may or may not have been done.
    Cancelled = 73, final;
    /// Nothing was done: its deadline had passed before it was begun.
    Late = 74, final;
    /// Nothing was done: the session that was named is not there any more.
    NoSession = 75, final;
    /// Nothing was done: the value has to go through a node.
    NotDirect = 76, final;
    /// Nothing was done: the chunk belongs elsewhere by now.
    Moved = 77, final;
    /// Nothing was done: this node does not say which keys there are.
    ScansOff = 78, final;
    /// The session of the write is over: nobody knows any more whether it was done.
    Expired = 79, final;
    /// Nothing was done: the id of the value is not open any more.
    NotOpen = 80, again;
}

/// What is known of an item that has a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its version.
    pub version: u64,
    /// Opaque to the server.
    pub flags: u32,
    /// Seconds to live; none = for ever.
    pub ttl: Option<u32>,
    /// Length of the whole value in bytes.
    pub value_len: u64,
}

/// A value, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Of the item.
    pub meta: Meta,
    /// The first byte that is wanted and there.
    pub start: u64,
    /// So many bytes of it come, from there on.
    pub len: u64,
    /// They, if they are in the answer's frame; else they come in pieces, and an end behind them.
    pub bytes: Option<Bytes>,
}

/// How a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Whole at one member.
    Packed,
    /// In chunks.
    Chunks {
        /// Longest chunk in bytes.
        chunk_len: u32,
        /// Data chunks of a stripe.
        k: u8,
        /// By which rule its bytes are dealt to them.
        rule: ObjectLayout,
    },
}

/// What is known of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// As with its value.
    pub meta: Meta,
    /// Seconds since it was last read.
    pub idle: u32,
    /// Whether it has been read.
    pub fetched: bool,
    /// How it lies.
    pub layout: Layout,
}

/// Bytes of a value that lie on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Which ones, of the whole value.
    pub bytes: std::ops::Range<u64>,
    /// The node. None = it is lost there, or nobody has it now.
    pub node: Option<NodeId>,
}

/// Bytes of a value that lie on certain nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// How many.
    pub len: u64,
    /// Bytes that lie on one of the nodes before it is the next one's turn, round and round; 0 if there is one node.
    pub cell_len: u32,
    /// The nodes, in their order. None = it is lost there, or nobody serves it now.
    pub nodes: Vec<Option<NodeId>>,
}

/// Where a key's bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its hash slot.
    pub slot: Slot,
    /// Its group.
    pub group: GroupId,
    /// Its data role.
    pub role: RoleIndex,
    /// The node of its primary, if there is one now.
    pub primary: Option<NodeId>,
    /// What there is under the key, and where it lies, from the byte on that was asked for; at most [`MAX_SPANS`], behind which
    /// [`Self::next_page`] is. None = there is nothing.
    pub found: Option<(Meta, Vec<Span>)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// See [`Code::Value`].
    Value(Value),
    /// See [`Code::Stored`]: the new version.
    Stored(u64),
    /// See [`Code::Number`]: the number and the new version.
    Number(u64, u64),
    /// See [`Code::About`].
    About(About),
    /// See [`Code::Places`].
    Places(Places),
    /// See [`Code::Session`].
    Session(ClientSession),
    /// See [`Code::Chunks`].
    Chunks(Box<FoundChunks>),
    /// See [`Code::Cells`]; they come in pieces.
    Cells(Cells),
    /// See [`Code::Begun`].
    Begun(Box<BegunChunks>),
    /// See [`Code::Keys`].
    Keys(Box<ScanPage>),
    /// Any other code; nothing belongs to it.
    Just(Code),
}

/// The bytes come in pieces.
const PIECES: u8 = 1;

impl Answer {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Value(_) => Code::Value,
            Self::Stored(_) => Code::Stored,
            Self::Number(..) => Code::Number,
            Self::About(_) => Code::About,
            Self::Places(_) => Code::Places,
            Self::Session(_) => Code::Session,
            Self::Chunks(_) => Code::Chunks,
            Self::Cells(_) => Code::Cells,
            Self::Begun(_) => Code::Begun,
            Self::Keys(_) => Code::Keys,
            Self::Just(code) => *code,
        }
    }

    /// Whether more frames follow.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Value(Value { bytes: None, .. }) | Self::Cells(_))
    }

    /// Appends it.
    pub fn put(&self, id: u64, out: &mut Vec<u8>) {
        if let Self::Value(value) = self {
            value.put_head(id, out);
            return out.extend_from_slice(value.bytes.as_deref().unwrap_or_default());
        }
        let flags = if self.goes_on() { PIECES } else { 0 };
        put_frame((Kind::Answer, flags, id), 0, out, |out| {
            out.put_u8(self.code() as u8);
            match self {
                Self::Stored(version) => out.put_u64(*version),
                Self::Number(number, version) => {
                    out.put_u64(*number);
                    out.put_u64(*version);
                }
                Self::About(about) => about.put(out),
                Self::Places(places) => places.put(out),
                Self::Session(session) => out.put_u64(session.0),
                Self::Chunks(found) => found.put(out),
                Self::Cells(cells) => cells.put(out),
                Self::Begun(begun) => begun.put(out),
                Self::Keys(page) => scan::put_page(page, out),
                Self::Value(_) | Self::Just(_) => {}
            }
        });
    }

    pub(crate) fn take(header: &Header, body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let code = Code::of(fields.u8()?).ok_or(Malformed::Field("the code"))?;
        let known = if matches!(code, Code::Value | Code::Cells) { PIECES } else { 0 };
        let lacks_one = code == Code::Cells && header.flags == 0;
        if header.flags & !known != 0 || lacks_one {
            return Err(Malformed::Reserved);
        }
        let answer = match code {
            Code::Value => Self::Value(Value::take(header.flags & PIECES != 0, &mut fields)?),
            Code::Stored => Self::Stored(fields.u64()?),
            Code::Number => Self::Number(fields.u64()?, fields.u64()?),
            Code::About => Self::About(About::take(&mut fields)?),
            Code::Places => Self::Places(Places::take(&mut fields)?),
            Code::Session => Self::Session(ClientSession(fields.u64()?)),
            Code::Chunks => Self::Chunks(Box::new(FoundChunks::take(&mut fields)?)),
            Code::Cells => Self::Cells(Cells::take(&mut fields)?),
            Code::Begun => Self::Begun(Box::new(BegunChunks::take(&mut fields)?)),
            Code::Keys => Self::Keys(Box::new(scan::take_page(&mut fields)?)),
            // It is an end's.
            Code::Whole => return Err(Malformed::Field("the code")),
            code => Self::Just(code),
        };
        fields.end()?;
        Ok(answer)
    }
}

impl Value {
    /// Appends the frame, but for the bytes that are in it: these follow, [`Self::len`] of them if there are `bytes`.
    pub fn put_head(&self, id: u64, out: &mut Vec<u8>) {
        let more = self.bytes.as_ref().map(Bytes::len);
        Self::put_head_of(&self.meta, (self.start, self.len), more, id, out);
    }

    /// The same without a value at hand: `here` bytes follow in the frame, or all come in pieces.
    pub fn put_head_of(
        meta: &Meta,
        (start, len): (u64, u64),
        here: Option<usize>,
        id: u64,
        out: &mut Vec<u8>,
    ) {
        let flags = if here.is_none() { PIECES } else { 0 };
        put_frame((Kind::Answer, flags, id), here.unwrap_or(0), out, |out| {
            out.put_u8(Code::Value as u8);
            meta.put(out);
            out.put_u64(start);
            out.put_u64(len);
        });
    }

    /// What an answer says of the value in it whose frame has this header, and whose body begins so: its bytes need not have come. None
    /// if it is another answer, or too little of it is here.
    ///
    /// # Errors
    /// There can be no such answer.
    pub fn announced(header: &Header, body: &[u8]) -> Result<Option<Self>, Malformed> {
        let is_one = header.kind == Kind::Answer && body.first() == Some(&(Code::Value as u8));
        let Some(head) = body.get(..VALUE_HEAD_BYTES).filter(|_| is_one && header.flags == 0) else {
            return Ok(None);
        };
        let value = Self::take_head(&mut Fields::of(Bytes::copy_from_slice(&head[1..])))?;
        let is_all = value.len == u64::from(header.len).saturating_sub(VALUE_HEAD_BYTES as u64);
        if is_all && value.len <= MAX_PIECE_BYTES as u64 {
            Ok(Some(value))
        } else {
            Err(Malformed::Field("the length of the value"))
        }
    }

    fn take_head(fields: &mut Fields) -> Result<Self, Malformed> {
        let meta = Meta::take(fields)?;
        let (start, len) = (fields.u64()?, fields.u64()?);
        if start.checked_add(len).is_none_or(|end| end > meta.value_len) {
            return Err(Malformed::Field("the range"));
        }
        Ok(Self { meta, start, len, bytes: None })
    }

    fn take(in_pieces: bool, fields: &mut Fields) -> Result<Self, Malformed> {
        let Self { meta, start, len, .. } = Self::take_head(fields)?;
        let bytes = match usize::try_from(len) {
            _ if in_pieces && len > 0 => None,
            Ok(here) if !in_pieces && here <= MAX_PIECE_BYTES => Some(fields.bytes(here)?),
            _ => return Err(Malformed::Field("the length of the value")),
        };
        Ok(Self { meta, start, len, bytes })
    }
}

impl Meta {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(self.version);
        out.put_u32(self.flags);
        out.put_u32(self.ttl.unwrap_or(FOREVER));
        out.put_u64(self.value_len);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (version, flags, ttl) = (fields.u64()?, fields.u32()?, fields.u32()?);
        Ok(Self { version, flags, ttl: Some(ttl).filter(|ttl| *ttl != FOREVER), value_len: fields.u64()? })
    }
}

impl About {
    fn put(&self, out: &mut Vec<u8>) {
        self.meta.put(out);
        out.put_u32(self.idle);
        out.put_u8(u8::from(self.fetched));
        let (chunk_len, k, rule) = match self.layout {
            Layout::Packed => (0, 0, 0),
            Layout::Chunks { chunk_len, k, rule } => (chunk_len, k, number_of(rule)),
        };
        out.put_u32(chunk_len);
        out.put_u8(k);
        out.put_u8(rule);
    }

    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let meta = Meta::take(fields)?;
        let (idle, fetched) = (fields.u32()?, fields.bool("whether it was read")?);
        let layout = match (fields.u32()?, fields.u8()?, rule_of(fields.u8()?)) {
            (0, 0, Some(ObjectLayout::Spread)) => Layout::Packed,
            (0, _, _) | (_, 0, _) | (_, _, None) => return Err(Malformed::Field("the layout")),
            (chunk_len, k, Some(rule)) => Layout::Chunks { chunk_len, k, rule },
        };
        Ok(Self { meta, idle, fetched, layout })
    }
}

fn number_of(rule: ObjectLayout) -> u8 {
    match rule {
        ObjectLayout::Spread => 0,
        ObjectLayout::Wide => 1,
        ObjectLayout::Copy => 2,
    }
}

fn rule_of(number: u8) -> Option<ObjectLayout> {
    [ObjectLayout::Spread, ObjectLayout::Wide, ObjectLayout::Copy].get(usize::from(number)).copied()
}

pub(crate) fn put_node(node: Option<NodeId>, out: &mut Vec<u8>) {
    out.put_u16(node.map_or(NOBODY, |node| node.0));
}

pub(crate) fn take_node(fields: &mut Fields) -> Result<Option<NodeId>, Malformed> {
    Ok(Some(NodeId(fields.u16()?)).filter(|node| node.0 != NOBODY))
}

impl Places {
    /// The byte from which on the rest is to be asked for; none if there is none.
    #[must_use]
    pub fn next_page(&self) -> Option<u64> {
        let (meta, spans) = self.found.as_ref()?;
        let end = spans.last()?.end();
        (end < meta.value_len).then_some(end)
    }

    /// Puts the next page behind this one; whether it is that, and of the same value.
    pub fn join(&mut self, page: Self) -> bool {
        let next = self.next_page();
        let (Some((meta, spans)), Some((of, more))) = (&mut self.found, page.found) else { return false };
        let is_next = meta.version == of.version && more.first().map(|span| span.start) == next;
        if is_next {
            spans.extend(more);
        }
        is_next
    }

    /// Which bytes of the value lie on which node, in their order: those that follow each other on one node together.
    pub fn ranges(&self) -> impl Iterator<Item = Located> + use<'_> {
        let spans = self.found.iter().flat_map(|(_, spans)| spans);
        let mut parts = spans.flat_map(Span::ranges).peekable();
        std::iter::from_fn(move || {
            let mut range = parts.next()?;
            let goes_on = |range: &Located, next: &Located| {
                next.node == range.node && next.bytes.start == range.bytes.end
            };
            while let Some(next) = parts.next_if(|next| goes_on(&range, next)) {
                range.bytes.end = next.bytes.end;
            }
            Some(range)
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.slot.0);
        out.put_u32(self.group.0);
        out.put_u8(self.role.0);
        put_node(self.primary, out);
        out.put_u8(u8::from(self.found.is_some()));
        let Some((meta, spans)) = &self.found else { return };
        meta.put(out);
        let spans = &spans[..spans.len().min(MAX_SPANS)];
        out.put_u16(spans.len() as u16);
        spans.iter().for_each(|span| span.put(out));
    }

    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (slot, group) = (Slot(fields.u32()?), GroupId(fields.u32()?));
        let (role, primary) = (RoleIndex(fields.u8()?), take_node(fields)?);
        let found = if fields.bool("whether there is a value")? {
            let (meta, count) = (Meta::take(fields)?, usize::from(fields.u16()?));
            if count > MAX_SPANS {
                return Err(Malformed::Field("the number of spans"));
            }
            Some((meta, fields.list(count, Span::take)?))
        } else {
            None
        };
        Ok(Self { slot, group, role, primary, found })
    }
}

impl Span {
    /// The first byte behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Which bytes lie on which node, in their order.
    pub fn ranges(&self) -> impl Iterator<Item = Located> + use<'_> {
        let step = if self.cell_len == 0 { self.len } else { self.cell_len.into() };
        let cells = self.len.div_ceil(step.max(1));
        (0..cells).zip(self.nodes.iter().cycle()).map(move |(cell, node)| {
            let start = cell * step;
            let end = (start + step).min(self.len);
            Located { bytes: self.start + start..self.start + end, node: *node }
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(self.start);
        out.put_u64(self.len);
        out.put_u32(self.cell_len);
        let nodes = &self.nodes[..self.nodes.len().min(MAX_SPAN_NODES)];
        out.put_u8(nodes.len() as u8);
        nodes.iter().for_each(|node| put_node(*node, out));
    }

    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (start, len, cell_len) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let count = usize::from(fields.u8()?);
        if !(1..=MAX_SPAN_NODES).contains(&count) {
            return Err(Malformed::Field("the number of nodes"));
        }
        Ok(Self { start, len, cell_len, nodes: fields.list(count, take_node)? })
    }
}
