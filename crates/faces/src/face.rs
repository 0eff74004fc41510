//! The seam between clients' protocols and the node: bytes into what is asked, outcomes into bytes.

use std::fmt::Debug;

use bytes::{Buf, Bytes, BytesMut};
use types::op::{Expiry, Failure, FlushAt, ItemView, Key, OpKind, Outcome, Request};
use types::{NamespaceId, UnixSeconds};

/// A fixed answer.
pub type Line = &'static [u8];

/// One protocol, and what it remembers of one connection between two commands. Another protocol is another implementor.
///
/// Everything that prints appends to a buffer of the connection, and allocates nothing else.
pub trait Face: Default + 'static {
    /// How the outcome of one request is to be printed: of what the client asked, as much as that takes.
    type Style: Clone + Debug + PartialEq;
    /// How the values of a read of one or several keys are to be printed.
    type Values: Copy + Debug + PartialEq;

    /// What clients call the operations, for whoever counts them.
    const NAMES: &'static [&'static str];
    /// What follows the bytes of a value, both ways.
    const VALUE_END: Line;

    /// Which values this client may send, from now on.
    fn limit_values(&mut self, limits: ValueLimits);

    /// How many bytes more make the next step possible, at least 1: a hint for the size of the next read. It follows a length
    /// that the client declared, so bound what you reserve by it.
    fn wanted(&self, buffer: &BytesMut) -> usize;

    /// Whether the connection is between two commands: nothing was half received.
    fn is_idle(&self, buffer: &BytesMut) -> bool;

    /// Takes the next command off the front of `buffer`. `now` turns relative times into absolute ones.
    fn next(&mut self, buffer: &mut BytesMut, now: UnixSeconds) -> Step<Self::Style, Self::Values>;

    /// The client has authenticated itself: the answer.
    fn unlock(&mut self) -> Line;

    /// Whether `end`, as long as [`Self::VALUE_END`], is what must follow a value that was streamed.
    ///
    /// # Errors
    /// What to say if not; nothing to a client that wants to hear nothing.
    fn check_value_end(style: &Self::Style, end: &[u8]) -> Result<(), Line>;

    /// Prints the outcome of a request on `key`. Of a value that [`Self::streams`] all that stands before its bytes.
    fn print(style: &Self::Style, key: &[u8], outcome: &Outcome, out: &mut Vec<u8>);

    /// The same of a read that has found `item`, whose bytes lie elsewhere in memory.
    fn print_found(style: &Self::Style, key: &[u8], item: &ItemView, value: &[u8], out: &mut Vec<u8>);

    /// Whether `key` is looked at when the outcome is printed; such commands are counted for themselves (`cmd_meta`).
    fn prints_key(style: &Self::Style) -> bool;

    /// Whether the bytes of `item`, which lie elsewhere, are a part of what is printed, with [`Self::VALUE_END`] behind them.
    fn streams(style: &Self::Style, item: &ItemView) -> bool;

    /// Prints what stands before the bytes of a value that was found and lies elsewhere; [`Self::VALUE_END`] comes behind them.
    fn print_head(style: Self::Values, key: &[u8], item: &ItemView, out: &mut Vec<u8>);

    /// Prints one value that was found.
    fn print_value(style: Self::Values, key: &[u8], found: &Found<'_>, out: &mut Vec<u8>);

    /// Ends the values of a read: all that there are have been printed, or `failure` is the reason why one of them could not be
    /// read.
    fn print_end(style: Self::Values, failure: Option<Failure>, out: &mut Vec<u8>);

    /// Prints that an operation on all data was carried out for a part of it.
    fn print_partial(style: &Self::Style, out: &mut Vec<u8>);

    /// Prints that operations on all data are switched off.
    fn print_no_flush(style: &Self::Style, out: &mut Vec<u8>);

    /// Prints statistics, as names and values; none if they were set to zero.
    fn print_stats(stats: Option<&[(String, String)]>, out: &mut Vec<u8>);

    /// Which of [`Self::NAMES`] a request of this kind has, by how it was asked for.
    fn name_of(kind: OpKind, style: &Self::Style) -> usize;

    /// The same of a read of one or several keys.
    fn name_of_read(kind: OpKind, style: Self::Values) -> usize;
}

/// What comes next on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<S, V> {
    /// More bytes are needed; see [`Face::wanted`].
    Incomplete,
    /// A command that takes more than printing.
    Ask(Ask<S, V>),
    /// A value that is too long to be kept until all of it has come. Its bytes follow, and [`Face::VALUE_END`]: the caller takes
    /// both, and asks for the next command behind them.
    Stream(Box<Streamed<S>>),
    /// A command whose answer is known: this.
    Say(Line),
    /// What is due is answered, then the connection is closed.
    Quit,
    /// No command: what to send in the place of an answer.
    Refuse(Line),
    /// Close without an answer.
    Close,
}

/// A value that comes bit by bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Streamed<S> {
    /// The operation, a set of some kind, without the value.
    pub request: Request,
    /// How its outcome is printed.
    pub style: S,
    /// Length of the value in bytes, not 0.
    pub len: u64,
}

/// Which values a client may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueLimits {
    /// Longer values are streamed; none = they are refused, when they are too long for an item.
    pub streamed_above: Option<u32>,
    /// Longest value that is streamed, in bytes.
    pub longest: u64,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask<S, V> {
    /// The values of one or several keys.
    Read {
        /// The keys, in order, duplicates included.
        keys: Keys,
        /// Set this expiry on every hit.
        touch: Option<Expiry>,
        /// How they are printed.
        style: V,
    },
    /// Any other operation on one key.
    One {
        /// The operation; in a box, for it is longer than all else, and goes through many hands.
        request: Box<Request>,
        /// How its outcome is printed.
        style: S,
    },
    /// A flush of all data roles.
    Flush {
        /// When.
        at: FlushAt,
        /// How its outcome is printed.
        style: S,
    },
    /// Statistics.
    Stats(Stats),
    /// The user name and password of a connection that must authenticate, as sent.
    Authenticate(Bytes),
}

/// Which statistics are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stats {
    /// Without argument.
    General,
    /// The configuration.
    Settings,
    /// Per class of items.
    Items,
    /// Per class of slots.
    Slabs,
    /// Histogram of sizes.
    Sizes,
    /// Per connection.
    Conns,
    /// The counters of all nodes together; not memcached's.
    Cluster,
    /// Set the counters to zero.
    Reset,
}

/// A value that was found, where its bytes lie.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Opaque client flags.
    pub flags: u32,
    /// The cas unique.
    pub version: u64,
    /// The bytes.
    pub value: &'a [u8],
}

/// The keys of a multi-key command, as they came: one buffer, no list. Each is 1..=250 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    list: Bytes,
    count: usize,
}

impl Keys {
    /// Of a list whose tokens have been checked and counted.
    pub(crate) fn new(list: Bytes, count: usize) -> Self {
        Self { list, count }
    }

    /// How many keys.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        crate::memcache::split(&self.list)
    }

    /// Takes the first key off, as one of `namespace`, for work that goes on where it stopped.
    #[inline]
    pub fn pop(&mut self, namespace: NamespaceId) -> Option<Key> {
        let start = self.list.iter().position(|&byte| byte != b' ')?;
        let key = if self.count > 1 {
            self.list.advance(start);
            let end = self.list.iter().position(|&byte| byte == b' ').unwrap_or(self.list.len());
            self.list.split_to(end)
        } else {
            // All that is left, but for spaces behind it.
            let end = self.list.iter().rposition(|&byte| byte != b' ')? + 1;
            let mut last = std::mem::take(&mut self.list);
            last.truncate(end);
            last.advance(start);
            last
        };
        self.count = self.count.saturating_sub(1);
        // Its tokens have been counted.
        Key::of(namespace, key).ok()
    }

    /// The keys as cheap handles, for requests that outlive the command.
    pub fn handles(&self) -> impl Iterator<Item = Bytes> {
        self.iter().map(|key| self.list.slice_ref(key))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|key| key.escape_ascii().to_string())).finish()
    }
}
