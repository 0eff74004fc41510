//! Operations on one key, in the union of what memcached's text and meta protocols can ask for. A face parses its
//! protocol into [`Request`], the primary of the key executes it, the face prints the [`Outcome`].

use crate::{
    ClientSession, Descriptor, MemberId, NamespaceId, ObjectId, Once, Scan, ScanPage, Term, UnixSeconds,
};
use bytes::Bytes;

pub use crate::{BadKey, Key, MAX_KEY_BYTES};

/// Longest value, under a key of one byte; see [`is_too_large`].
pub const MAX_VALUE_BYTES: usize = MAX_PAYLOAD_BYTES - 1;
/// Most bytes of a key and its value together: as in memcached, whose largest item of 1 MiB has a header of 48 bytes, a cas
/// unique of 8, an end of the key and an end of line.
pub const MAX_PAYLOAD_BYTES: usize = 1024 * 1024 - 48 - 8 - 1 - 2;
/// Client flags other than 0 take so many of those.
const FLAGS_BYTES: usize = 4;

/// Whether a value of `value_len` bytes with these flags may not be stored under a key of `key_len` bytes: by memcached's
/// rule, byte for byte.
#[must_use]
pub fn is_too_large(key_len: usize, value_len: usize, flags: u32) -> bool {
    let flags_len = if flags == 0 { 0 } else { FLAGS_BYTES };
    key_len + value_len + flags_len > MAX_PAYLOAD_BYTES
}

/// An operation on one key, or on all keys of a data role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key, already decoded if it came as base64. None for [`Op::Flush`], [`Op::Scan`] and [`Op::Expect`], and for nothing else.
    pub key: Option<Key>,
    /// What to do with it.
    pub op: Op,
    /// The name under which it is done once; none for most.
    pub once: Option<Box<Once>>,
    /// How it comes to a data role that its key does not lie at yet by the map; none for most.
    pub via: Option<Box<Via>>,
}

impl Request {
    /// Of one key.
    #[must_use]
    pub fn on(key: Key, op: Op) -> Self {
        Self { key: Some(key), op, once: None, via: None }
    }

    /// Of a data role.
    fn of_role(op: Op) -> Self {
        Self { key: None, op, once: None, via: None }
    }

    /// Items that a data role gives away are to come to another one.
    #[must_use]
    pub fn expect(expect: Expect) -> Self {
        Self::of_role(Op::Expect(expect))
    }

    /// Of a data role.
    #[must_use]
    pub fn flush(flush: Flush) -> Self {
        Self::of_role(Op::Flush(flush))
    }

    /// Of the keys that a data role has.
    #[must_use]
    pub fn scan(scan: Scan) -> Self {
        Self::of_role(Op::Scan(Box::new(scan)))
    }

    /// Whose keys it is about.
    #[must_use]
    #[inline]
    pub fn namespace(&self) -> NamespaceId {
        match &self.op {
            Op::Flush(flush) => flush.namespace,
            Op::Scan(scan) => scan.namespace,
            _ => self.key.as_ref().map_or(NamespaceId::DEFAULT, Key::namespace),
        }
    }

    /// Done once under this name, if one is given.
    #[must_use]
    pub fn once(self, once: Option<Once>) -> Self {
        Self { once: once.map(Box::new), ..self }
    }

    /// Whether it may have come before under its name.
    #[must_use]
    pub fn comes_again(&self) -> bool {
        self.once.as_ref().is_some_and(|once| once.again)
    }

    /// What is said of it in all, if this came of it now: what comes again may have been done when it came before.
    #[must_use]
    pub fn in_all(&self, now: Outcome) -> Outcome {
        match &self.once {
            Some(once) => once.in_all(now),
            None => now,
        }
    }

    /// What was said when its key left the role where it was; none if it has not.
    #[must_use]
    #[inline]
    pub fn departure(&self) -> Option<Departure> {
        match self.via.as_deref()? {
            Via::Departed(departure) => Some(*departure),
            Via::Transfer(transfer) => Some(transfer.departure),
        }
    }

    /// Whether it brings an item that a data role gives away.
    #[must_use]
    #[inline]
    pub fn is_transfer(&self) -> bool {
        matches!(self.via.as_deref(), Some(Via::Transfer(_)))
    }

    /// The bytes of the key; none of them if there is no key.
    #[must_use]
    pub fn key_bytes(&self) -> &[u8] {
        self.key.as_deref().unwrap_or_default()
    }
}

/// How a request comes to a data role of the pool that its namespace moves to ([`crate::Conversion`]). By the map its key lies at a
/// data role of the former pool, which decides about it for as long as it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// That one does not have the key, and will not have it again in this conversion.
    Departed(Departure),
    /// It gives the item away.
    Transfer(Transfer),
}

/// What the data role that a key leaves says to whoever has to do with it from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Which conversion of the namespace it is.
    pub number: u32,
    /// By this second it may have said that something has expired.
    pub wall: UnixSeconds,
}

/// An item that one data role gives to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Who gives it away, and under which number ([`Expect`]).
    pub expected: Expect,
    /// Of what its key leaves.
    pub departure: Departure,
    /// The item is marked stale (mg X).
    pub stale: bool,
    /// A client has the win already (mg Z).
    pub win_sent: bool,
}

/// From now on items come of a data role under this number, and under no other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expect {
    /// Who gives them away.
    pub from: MemberId,
    /// Its term.
    pub term: Term,
    /// A number that it has not used before in this term.
    pub number: u64,
}

/// What to do with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// get gets gat gats mg.
    Get(Get),
    /// set add replace append prepend cas ms.
    Store(Store),
    /// delete md.
    Delete(Delete),
    /// incr decr ma.
    Arith(Arith),
    /// touch.
    Touch(Expiry),
    /// me: a line of debug data about the item.
    Debug,
    /// flush_all on one data role; there is no key.
    Flush(Flush),
    /// What a value that lies in chunks takes of its owner (docs/objects.md).
    Object(ObjectOp),
    /// A session begins at the primary of the key.
    Session,
    /// Which keys a data role has; there is no key.
    Scan(Box<Scan>),
    /// Items of another data role will come; there is no key.
    Expect(Expect),
}

/// What the writer and the gatherer of an object ask of the primary that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectOp {
    /// An id for a value that is to be stored.
    Begin(Begin),
    /// Bytes of it are still coming.
    Renew(ObjectId),
    /// All of its chunks are there: a write like any other.
    Commit(Box<Commit>),
    /// Nothing will come of it.
    Abandon(Box<Descriptor>),
    /// What was pinned for a reader is read so far, or is not wanted any more.
    Unpin(Unpin),
}

impl ObjectOp {
    /// The object that it names; none if it asks for one.
    #[must_use]
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Begin(_) => None,
            Self::Renew(object) => Some(*object),
            Self::Commit(commit) => Some(commit.descriptor.id),
            Self::Abandon(descriptor) => Some(descriptor.id),
            Self::Unpin(unpin) => Some(unpin.object),
        }
    }
}

impl ObjectOp {
    /// The owner of the object that it names, if it is for that one wherever the key is by now.
    #[must_use]
    pub fn for_owner(&self) -> Option<MemberId> {
        let object = match self {
            Self::Begin(_) | Self::Commit(_) => None,
            Self::Renew(_) | Self::Abandon(_) | Self::Unpin(_) => self.object(),
        };
        object.map(|object| object.owner)
    }
}

/// A value is to be stored, if it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Under which condition.
    pub condition: Condition,
    /// In which pool its chunks are to lie: the one that its namespace has when it has begun to move to another one so often.
    pub conversions: u32,
}

/// Under which condition a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Set, add or replace.
    pub mode: StoreMode,
    /// Only if the item's version is this.
    pub compare: Option<u64>,
    /// See [`Store::invalidate`].
    pub invalidate: bool,
}

/// A whole object takes the place of what is under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// What it is and where it lies.
    pub descriptor: Descriptor,
    /// As for any value, of which no bytes are here.
    pub store: Store,
}

/// How far a reader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpin {
    /// What it reads.
    pub object: ObjectId,
    /// Its number for the pin.
    pub pin: u64,
    /// Whether it wants no more of it.
    pub done: bool,
}

/// What an operation does, by the name of memcached's command for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A read.
    Get,
    /// A read that sets the expiry.
    GetAndTouch,
    /// A value.
    Set,
    /// A value where there was none.
    Add,
    /// A value where there was one.
    Replace,
    /// Bytes behind a value.
    Append,
    /// Bytes before a value.
    Prepend,
    /// A value in the place of a certain version.
    Cas,
    /// A removal.
    Delete,
    /// A number grows.
    Incr,
    /// A number shrinks.
    Decr,
    /// A new expiry.
    Touch,
    /// A removal of all.
    FlushAll,
    /// Debug data.
    Debug,
    /// A step of writing or reading a value that lies in chunks.
    Object,
    /// A session.
    Session,
    /// Keys of a data role.
    Scan,
    /// Items that move to another pool.
    Expect,
}

impl OpKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Get,
        Self::GetAndTouch,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Delete,
        Self::Incr,
        Self::Decr,
        Self::Touch,
        Self::FlushAll,
        Self::Debug,
        Self::Object,
        Self::Session,
        Self::Scan,
        Self::Expect,
    ];

    /// memcached's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetAndTouch => "gat",
            Self::Set => "set",
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Cas => "cas",
            Self::Delete => "delete",
            Self::Incr => "incr",
            Self::Decr => "decr",
            Self::Touch => "touch",
            Self::FlushAll => "flush_all",
            Self::Debug => "me",
            Self::Object => "object",
            Self::Session => "session",
            Self::Scan => "scan",
            Self::Expect => "expect",
        }
    }
}

impl Op {
    /// What it does.
    #[must_use]
    pub fn kind(&self) -> OpKind {
        match self {
            Self::Get(get) if get.touch.is_some() => OpKind::GetAndTouch,
            Self::Get(_) => OpKind::Get,
            Self::Store(store) if store.compare.is_some() => OpKind::Cas,
            Self::Store(store) => match store.mode {
                StoreMode::Set => OpKind::Set,
                StoreMode::Add => OpKind::Add,
                StoreMode::Replace => OpKind::Replace,
                StoreMode::Append => OpKind::Append,
                StoreMode::Prepend => OpKind::Prepend,
            },
            Self::Delete(_) => OpKind::Delete,
            Self::Arith(arith) => match arith.direction {
                Direction::Increment => OpKind::Incr,
                Direction::Decrement => OpKind::Decr,
            },
            Self::Touch(_) => OpKind::Touch,
            Self::Flush(_) => OpKind::FlushAll,
            Self::Debug => OpKind::Debug,
            Self::Object(_) => OpKind::Object,
            Self::Session => OpKind::Session,
            Self::Scan(_) => OpKind::Scan,
            Self::Expect(_) => OpKind::Expect,
        }
    }

    /// Whether it is a write that may have a name, and not a read that may also write.
    #[must_use]
    pub fn can_be_done_once(&self) -> bool {
        match self {
            Self::Store(_) | Self::Delete(_) | Self::Arith(_) | Self::Touch(_) => true,
            // A Begin is asked first whether what it begins was done.
            Self::Object(object) => matches!(object, ObjectOp::Begin(_) | ObjectOp::Commit(_)),
            Self::Get(_) | Self::Debug | Self::Flush(_) | Self::Session | Self::Scan(_) | Self::Expect(_) => {
                false
            }
        }
    }

    /// Bytes of the value that comes with it.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        match self {
            Self::Store(store) => store.value.len(),
            Self::Get(_)
            | Self::Delete(_)
            | Self::Arith(_)
            | Self::Touch(_)
            | Self::Debug
            | Self::Object(_)
            | Self::Session
            | Self::Scan(_)
            | Self::Expect(_)
            | Self::Flush(_) => 0,
        }
    }
}

/// Absolute time of expiry. The face turns memcached's relative times into absolute ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// Not readable from this second on.
    At(UnixSeconds),
}

impl Expiry {
    /// As stored in an item's header: 0 = never.
    #[must_use]
    pub fn to_stored(self) -> u32 {
        match self {
            Self::Never => 0,
            // A 0 in an item means never.
            Self::At(at) => at.0.max(1),
        }
    }
}

/// A removal of all items of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// Whose.
    pub namespace: NamespaceId,
    /// When.
    pub at: FlushAt,
}

/// When to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushAt {
    /// At once.
    Now,
    /// At this time.
    At(UnixSeconds),
}

/// A read, which may also touch, claim or create the item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Get {
    /// gat, mg T: set this expiry on a hit.
    pub touch: Option<Expiry>,
    /// mg N: on a miss create an empty item with this expiry and hand the win to this client.
    pub vivify: Option<Expiry>,
    /// mg R: hand out the win if the time to live left is below this many seconds.
    pub recache_below_seconds: Option<u32>,
    /// Whether the value is wanted in the outcome (mg without `v` does not).
    pub value: Want,
    /// Whether this client may be handed the win of a stale or expiring item (mg does, get does not).
    pub claim: Claim,
    /// mg E: version to use if this request creates an item.
    pub version: Option<u64>,
    /// Whether the access counts for the LRU and the fetched bit (mg `u` says no).
    pub bump: Bump,
}

impl Get {
    /// Whether it may change something: it sets an expiry, creates the item, or hands out who is to fetch it anew.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.touch.is_some() || self.vivify.is_some() || self.recache_below_seconds.is_some()
    }
}

/// Whether a client takes part in the hand-out of wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// It only reads.
    #[default]
    Never,
    /// It recomputes the value if it is the first to see the item stale or expiring.
    IfDue,
}

/// Whether the value travels back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Want {
    /// The value is needed.
    #[default]
    Value,
    /// Only what is known about it.
    NoValue,
}

/// Whether an access counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bump {
    /// It does.
    #[default]
    Count,
    /// It leaves no trace.
    Silent,
}

/// A write of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Under which condition, and how.
    pub mode: StoreMode,
    /// The bytes.
    pub value: Bytes,
    /// Opaque client flags.
    pub flags: u32,
    /// Expiry of the new item.
    pub expiry: Expiry,
    /// cas, ms C: only if the item's version is this.
    pub compare: Option<u64>,
    /// ms E: the version to give.
    pub version: Option<u64>,
    /// ms I: a `compare` older than the item's version stores the value marked stale, under the old expiry, instead
    /// of being refused.
    pub invalidate: bool,
    /// ms N in append/prepend mode: create the item with this expiry if it is missing.
    pub vivify: Option<Expiry>,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Always.
    Set,
    /// Only if missing.
    Add,
    /// Only if present.
    Replace,
    /// After the present bytes.
    Append,
    /// Before the present bytes.
    Prepend,
}

/// A removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// md C: only if the item's version is this.
    pub compare: Option<u64>,
    /// md E: the version to give where the item stays.
    pub version: Option<u64>,
    /// md I: mark stale instead of removing.
    pub invalidate: bool,
    /// md T: the new expiry where the item stays; without it, a removed value leaves an item that never expires.
    pub touch: Option<Expiry>,
    /// md x: remove the value and keep the item, with these client flags.
    pub drop_value: Option<u32>,
}

/// An increment or decrement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arith {
    /// Which way.
    pub direction: Direction,
    /// By how much.
    pub delta: u64,
    /// ma N: create with `initial` and this expiry if missing.
    pub vivify: Option<Expiry>,
    /// ma J: the value to create.
    pub initial: u64,
    /// ma T: set this expiry too.
    pub touch: Option<Expiry>,
    /// ma C: only if the item's version is this.
    pub compare: Option<u64>,
    /// ma E: the version to give.
    pub version: Option<u64>,
}

/// Up or down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Wraps at 2^64.
    #[default]
    Increment,
    /// Stops at 0.
    Decrement,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A read found the item (or created it: see `ItemView::win`).
    Hit(ItemView),
    /// A read found nothing.
    Miss,
    /// The write took place; what `c`-like return flags need to know of the new item.
    Stored(ItemView),
    /// Refused: the condition of add, replace, append or prepend did not hold.
    NotStored,
    /// Refused: another version is there.
    Exists,
    /// Refused: the key is not there (cas, delete, incr, touch).
    NotFound,
    /// Removed, or marked stale.
    Deleted,
    /// Touched.
    Touched(ItemView),
    /// The new number, and the item that now holds it.
    Number(u64, ItemView),
    /// flush_all is done or scheduled.
    Flushed,
    /// A value may be put into chunks under this name, if its condition still holds in the end.
    Begun(ObjectId),
    /// An object's owner has taken note.
    Noted,
    /// A session has begun.
    Session(ClientSession),
    /// Keys that a data role has.
    Keys(Box<ScanPage>),
    /// Nothing was changed, for this reason.
    Failed(Failure),
}

/// Why a request changed nothing, or why nobody knows whether it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// incr on a value that is no number.
    NotANumber,
    /// Longer than an item may be.
    TooLarge,
    /// No memory, and nothing may be evicted.
    OutOfMemory,
    /// The queue of waiting requests is full, or the deadline passed before the request began.
    Busy,
    /// No primary could be reached in time; nothing was done.
    Unavailable,
    /// More members were lost than the code can make up for.
    Lost,
    /// The namespace is not there (any more); nothing was done.
    NoNamespace,
    /// The primary was lost or deposed with the request in flight: it may or may not have been done.
    Unknown,
    /// The bytes decoded to something whose checksum is wrong; nothing is returned.
    Corrupt,
    /// Not the primary (any more); the sender's view is old. Never printed to a client.
    WrongPrimary,
    /// The object was not committed in time, or its owner has changed: it has to be written anew.
    NotOpen,
    /// A value in chunks was replaced while it was read, and its chunks are gone: it has to be read anew.
    Replaced,
    /// The session that a write names is not there (any more); the write was not done.
    NoSession,
    /// The same of a write that may have come before: nobody knows any more whether it was done.
    Expired,
    /// The key is not here, and what becomes of it another data role decides: its namespace moves to another pool. Never printed to a
    /// client.
    Departed(Departure),
}

impl ItemView {
    /// Whether the length of the value is that of the value, where there is one.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let of_object = |object: &Object| object.descriptor.geometry.len == self.value_len;
        let is_whole = self.value.is_empty() || self.value.len() as u64 == self.value_len;
        is_whole && self.object.as_deref().is_none_or(of_object)
    }
}

/// What is known of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemView {
    /// The bytes; empty if not wanted.
    pub value: Bytes,
    /// Length of the value, wanted or not.
    pub value_len: u64,
    /// Opaque client flags.
    pub flags: u32,
    /// The cas unique.
    pub version: u64,
    /// Seconds to live; none = for ever.
    pub ttl_seconds: Option<u32>,
    /// Whether it had been fetched before this request.
    pub fetched: bool,
    /// Seconds since the last access before this request.
    pub idle_seconds: u32,
    /// Bytes that the item takes in its slot.
    pub size_bytes: u32,
    /// This client is to recompute the value (mg W).
    pub win: bool,
    /// The item is marked stale (mg X).
    pub stale: bool,
    /// Another client has the win already (mg Z).
    pub win_sent: bool,
    /// Where the bytes lie of a value that is in chunks.
    pub object: Option<Box<Object>>,
}

/// A value in chunks, as whoever may read it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is and where it lies.
    pub descriptor: Descriptor,
    /// The number of the pin that keeps it there while it is read; none if the value was not asked for.
    pub pin: Option<u64>,
}
