//! What clients ask.

use bytes::Bytes;
use types::op::{Direction, Key, StoreMode};
use types::{ClientSession, MAX_OBJECT_BYTES, NamespaceId, ObjectId, Once};

use crate::chunks::{BeginAsk, CommitAsk, FetchAsk, PutAsk, UnpinAsk, Written, put_object, take_object};
use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Header, Kind, MAX_DEADLINE_MS, MAX_PIECE_BYTES, put_frame};

/// A request about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose value it is about, with its namespace.
    pub key: Key,
    /// The server does not begin it when it has had it for so many milliseconds; 0 = whenever it can.
    pub deadline_ms: u32,
    /// The name of a write under which it is done once, if it has one.
    pub once: Option<Once>,
    /// What is wanted.
    pub ask: Ask,
}

/// What is wanted of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Its value, or a part of it.
    Get(GetAsk),
    /// A value is to be stored.
    Store(StoreAsk),
    /// It is to be removed.
    Delete {
        /// Only if its version is this.
        compare: Option<u64>,
    },
    /// Its number is to grow or to shrink.
    Arith {
        /// Which way.
        direction: Direction,
        /// By how much.
        delta: u64,
        /// The number, and its seconds to live, if there is none yet; else that is an answer.
        initial: Option<(u64, u32)>,
    },
    /// It is to live for so many seconds from now on; 0 = for ever.
    Touch {
        /// Seconds.
        ttl: u32,
    },
    /// What is known of it.
    Stat,
    /// Where its bytes lie, from this one on; beyond 0 where [`PAGES`](crate::Capabilities::PAGES) is.
    Locate {
        /// The stripe with this byte of the value is the first of the answer.
        from: u64,
    },
    /// A session begins, for writes of all keys of its data role.
    Session,
    /// Rows of a chunk of its value.
    Fetch(Box<FetchAsk>),
    /// So far its chunks have been read.
    Unpin(UnpinAsk),
    /// A value is to be put into chunks.
    Begin(BeginAsk),
    /// A chunk of that.
    Put(Box<PutAsk>),
    /// All of them are there.
    Commit(Box<CommitAsk>),
    /// Nothing comes of it.
    Abandon(Box<Written>),
    /// Its bytes are still coming: its id is to stay open.
    Renew(ObjectId),
}

/// A read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetAsk {
    /// Which bytes; none = all.
    pub range: Option<Range>,
    /// It is to live for so many seconds from now on.
    pub touch: Option<u32>,
    /// How many bytes of a value that comes in pieces may be sent before the client grants more.
    pub window: u32,
    /// Of a value in chunks the client wants to hear where these are, instead of its bytes.
    pub direct: bool,
    /// What lies in one lost chunk is to be made by a coding graph; where [`GRAPHS`](crate::Capabilities::GRAPHS) is.
    pub by_graph: bool,
}

/// Bytes of a value. What lies beyond its end is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From this one on.
    pub start: u64,
    /// So many.
    pub len: u64,
}

impl Range {
    /// What there is of it in a value of `len` bytes: from where to where.
    #[must_use]
    pub fn within(self, len: u64) -> (u64, u64) {
        let start = self.start.min(len);
        (start, start.saturating_add(self.len).min(len))
    }
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAsk {
    /// How.
    pub mode: StoreMode,
    /// Opaque to the server.
    pub flags: u32,
    /// Seconds to live; 0 = as long as its namespace says, for ever if that says nothing.
    pub ttl: u32,
    /// Only if the version is this.
    pub compare: Option<u64>,
    /// The value.
    pub content: Content,
}

/// The value of a write: in its frame if it fits there, else in pieces behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// At most [`MAX_PIECE_BYTES`].
    Here(Bytes),
    /// So many bytes, which are more than that.
    Pieces(u64),
}

impl Content {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Pieces(len) => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const RANGE: u8 = 1;
const TOUCH: u8 = 2;
const DIRECT: u8 = 4;
const BY_GRAPH: u8 = 8;
const COMPARE: u8 = 1;
const INITIAL: u8 = 1;
const FROM: u8 = 1;
const NAMED: u8 = 128;

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

impl Request {
    /// Appends the frame, but for the bytes of a value that is in it: these follow, and the caller appends them.
    pub fn put_head(&self, id: u64, out: &mut Vec<u8>) {
        let (kind, flags) = self.ask.kind_and_flags();
        let flags = flags | flag(self.once.is_some(), NAMED);
        let more = match &self.ask {
            Ask::Store(StoreAsk { content: Content::Here(bytes), .. }) => bytes.len(),
            _ => 0,
        };
        put_frame((kind, flags, id), more, out, |out| {
            let client = self.key.client();
            out.put_u32(self.key.namespace().0);
            out.put_u32(self.deadline_ms);
            // A key has at most 250 bytes.
            out.put_u8(client.len() as u8);
            out.extend_from_slice(client);
            if let Some(once) = &self.once {
                put_once(once, out);
            }
            self.ask.put(out);
        });
    }

    /// The bytes that follow [`Self::put_head`].
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.ask {
            Ask::Store(StoreAsk { content: Content::Here(bytes), .. }) => bytes,
            _ => &[],
        }
    }

    /// The same, as they are kept.
    #[must_use]
    pub fn value_bytes(&self) -> Bytes {
        match &self.ask {
            Ask::Store(StoreAsk { content: Content::Here(bytes), .. }) => bytes.clone(),
            _ => Bytes::new(),
        }
    }

    /// Appends the whole frame.
    pub fn put(&self, id: u64, out: &mut Vec<u8>) {
        self.put_head(id, out);
        out.extend_from_slice(self.value());
    }

    pub(crate) fn take(header: &Header, body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let namespace = NamespaceId(fields.u32()?);
        let deadline_ms = fields.u32()?;
        let key_len = usize::from(fields.u8()?);
        if namespace > NamespaceId::MAX {
            return Err(Malformed::Field("the namespace"));
        }
        if deadline_ms > MAX_DEADLINE_MS {
            return Err(Malformed::Field("the deadline"));
        }
        let key = Key::of(namespace, fields.bytes(key_len)?)
            .map_err(|_| Malformed::Field("the length of the key"))?;
        let may_have_one = matches!(
            header.kind,
            Kind::Store | Kind::Delete | Kind::Arith | Kind::Touch | Kind::Begin | Kind::Commit
        );
        let has_one = may_have_one && header.flags & NAMED != 0;
        let once = if has_one { Some(take_once(&mut fields)?) } else { None };
        let flags = if has_one { header.flags & !NAMED } else { header.flags };
        let ask = Ask::take(&Header { flags, ..*header }, &mut fields)?;
        fields.end()?;
        Ok(Self { key, deadline_ms, once, ask })
    }
}

impl Ask {
    fn kind_and_flags(&self) -> (Kind, u8) {
        match self {
            Self::Get(get) => (Kind::Get, get.flags()),
            Self::Store(store) => (Kind::Store, flag(store.compare.is_some(), COMPARE)),
            Self::Delete { compare } => (Kind::Delete, flag(compare.is_some(), COMPARE)),
            Self::Arith { initial, .. } => (Kind::Arith, flag(initial.is_some(), INITIAL)),
            Self::Touch { .. } => (Kind::Touch, 0),
            Self::Stat => (Kind::Stat, 0),
            Self::Locate { from } => (Kind::Locate, flag(*from > 0, FROM)),
            Self::Session => (Kind::Session, 0),
            Self::Fetch(_) => (Kind::Fetch, 0),
            Self::Unpin(_) => (Kind::Unpin, 0),
            Self::Begin(begin) => (Kind::Begin, flag(begin.compare.is_some(), COMPARE)),
            Self::Put(_) => (Kind::Put, 0),
            Self::Commit(commit) => (Kind::Commit, flag(commit.compare.is_some(), COMPARE)),
            Self::Abandon(_) => (Kind::Abandon, 0),
            Self::Renew(_) => (Kind::Renew, 0),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Get(get) => get.put(out),
            Self::Store(store) => store.put(out),
            Self::Delete { compare } => compare.iter().for_each(|version| out.put_u64(*version)),
            Self::Arith { direction, delta, initial } => {
                out.put_u8(u8::from(*direction == Direction::Decrement));
                out.put_u64(*delta);
                if let Some((number, ttl)) = initial {
                    out.put_u64(*number);
                    out.put_u32(*ttl);
                }
            }
            Self::Touch { ttl } => out.put_u32(*ttl),
            Self::Locate { from: 0 } | Self::Stat | Self::Session => {}
            Self::Locate { from } => out.put_u64(*from),
            Self::Fetch(fetch) => fetch.put(out),
            Self::Unpin(unpin) => unpin.put(out),
            Self::Begin(begin) => begin.put(out),
            Self::Put(put) => put.put(out),
            Self::Commit(commit) => commit.put(out),
            Self::Abandon(written) => written.put(out),
            Self::Renew(object) => put_object(object, out),
        }
    }

    fn take(header: &Header, fields: &mut Fields) -> Result<Self, Malformed> {
        let flags = header.flags;
        let only = |known: u8| if flags & !known == 0 { Ok(()) } else { Err(Malformed::Reserved) };
        match header.kind {
            Kind::Get => {
                let known = RANGE | TOUCH | DIRECT | BY_GRAPH;
                only(known).and_then(|()| GetAsk::take(flags, fields)).map(Self::Get)
            }
            Kind::Store => only(COMPARE).and_then(|()| StoreAsk::take(flags, fields)).map(Self::Store),
            Kind::Delete => {
                only(COMPARE).and_then(|()| compare(flags, fields)).map(|compare| Self::Delete { compare })
            }
            Kind::Arith => only(INITIAL).and_then(|()| take_arith(flags, fields)),
            Kind::Touch => only(0).and_then(|()| fields.u32()).map(|ttl| Self::Touch { ttl }),
            Kind::Stat => only(0).map(|()| Self::Stat),
            Kind::Locate => {
                only(FROM).and_then(|()| take_from(flags, fields)).map(|from| Self::Locate { from })
            }
            Kind::Session => only(0).map(|()| Self::Session),
            Kind::Fetch => only(0).and_then(|()| FetchAsk::take(fields)).map(|it| Self::Fetch(it.into())),
            Kind::Unpin => only(0).and_then(|()| UnpinAsk::take(fields)).map(Self::Unpin),
            Kind::Begin => {
                only(COMPARE).and_then(|()| BeginAsk::take(flags & COMPARE != 0, fields)).map(Self::Begin)
            }
            Kind::Put => only(0).and_then(|()| PutAsk::take(fields)).map(|it| Self::Put(it.into())),
            Kind::Commit => only(COMPARE)
                .and_then(|()| CommitAsk::take(flags & COMPARE != 0, fields))
                .map(|it| Self::Commit(it.into())),
            Kind::Abandon => only(0).and_then(|()| Written::take(fields)).map(|it| Self::Abandon(it.into())),
            Kind::Renew => only(0).and_then(|()| take_object(fields)).map(Self::Renew),
            other => Err(Malformed::Kind(other as u8)),
        }
    }
}

fn put_once(once: &Once, out: &mut Vec<u8>) {
    out.put_u64(once.session.0);
    out.put_u32(once.sequence);
    out.put_u16(once.behind);
    out.put_u8(u8::from(once.again));
}

fn take_once(fields: &mut Fields) -> Result<Once, Malformed> {
    let session = ClientSession(fields.u64()?);
    let (sequence, behind) = (fields.u32()?, fields.u16()?);
    let once = Once { session, sequence, behind, again: fields.bool("whether it comes again")? };
    if once.is_possible() { Ok(once) } else { Err(Malformed::Field("the name of the write")) }
}

pub(crate) fn put_mode(mode: StoreMode, out: &mut Vec<u8>) {
    out.put_u8(match mode {
        StoreMode::Set => 0,
        StoreMode::Add => 1,
        StoreMode::Replace => 2,
        StoreMode::Append => 3,
        StoreMode::Prepend => 4,
    });
}

pub(crate) fn take_mode(fields: &mut Fields) -> Result<StoreMode, Malformed> {
    Ok(match fields.u8()? {
        0 => StoreMode::Set,
        1 => StoreMode::Add,
        2 => StoreMode::Replace,
        3 => StoreMode::Append,
        4 => StoreMode::Prepend,
        _ => return Err(Malformed::Field("the mode")),
    })
}

fn compare(flags: u8, fields: &mut Fields) -> Result<Option<u64>, Malformed> {
    if flags & COMPARE == 0 { Ok(None) } else { fields.u64().map(Some) }
}

fn take_from(flags: u8, fields: &mut Fields) -> Result<u64, Malformed> {
    if flags & FROM == 0 { Ok(0) } else { fields.u64() }
}

fn take_arith(flags: u8, fields: &mut Fields) -> Result<Ask, Malformed> {
    let is_down = fields.bool("the direction")?;
    let direction = if is_down { Direction::Decrement } else { Direction::Increment };
    let delta = fields.u64()?;
    let initial = if flags & INITIAL == 0 { None } else { Some((fields.u64()?, fields.u32()?)) };
    Ok(Ask::Arith { direction, delta, initial })
}

impl GetAsk {
    fn flags(&self) -> u8 {
        let of_what = flag(self.range.is_some(), RANGE) | flag(self.touch.is_some(), TOUCH);
        of_what | flag(self.direct, DIRECT) | flag(self.by_graph, BY_GRAPH)
    }

    fn put(&self, out: &mut Vec<u8>) {
        if let Some(range) = self.range {
            out.put_u64(range.start);
            out.put_u64(range.len);
        }
        if let Some(ttl) = self.touch {
            out.put_u32(ttl);
        }
        out.put_u32(self.window);
    }

    fn take(flags: u8, fields: &mut Fields) -> Result<Self, Malformed> {
        let range = match flags & RANGE {
            0 => None,
            _ => Some(Range { start: fields.u64()?, len: fields.u64()? }),
        };
        let touch = if flags & TOUCH == 0 { None } else { Some(fields.u32()?) };
        let (window, direct, by_graph) = (fields.u32()?, flags & DIRECT != 0, flags & BY_GRAPH != 0);
        Ok(Self { range, touch, window, direct, by_graph })
    }
}

impl StoreAsk {
    fn put(&self, out: &mut Vec<u8>) {
        put_mode(self.mode, out);
        out.put_u32(self.flags);
        out.put_u32(self.ttl);
        self.compare.iter().for_each(|version| out.put_u64(*version));
        out.put_u64(self.content.len());
    }

    fn take(flags: u8, fields: &mut Fields) -> Result<Self, Malformed> {
        let mode = take_mode(fields)?;
        let (item_flags, ttl) = (fields.u32()?, fields.u32()?);
        let compare = compare(flags, fields)?;
        let len = fields.u64()?;
        let content = match usize::try_from(len) {
            Ok(here) if here <= MAX_PIECE_BYTES => Content::Here(fields.bytes(here)?),
            _ if len <= MAX_OBJECT_BYTES => Content::Pieces(len),
            _ => return Err(Malformed::Field("the length of the value")),
        };
        Ok(Self { mode, flags: item_flags, ttl, compare, content })
    }
}
