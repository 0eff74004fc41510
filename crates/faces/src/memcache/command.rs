//! What a client asks for, and how it wants to be answered.

use bytes::{Buf, Bytes};

use types::op::{Expiry, FlushAt, Key, Request};

/// One command of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// get gets gat gats: one or more keys, answered with the values found and `END`.
    Get {
        /// The keys, in order, duplicates included.
        keys: Keys,
        /// Whether the versions are printed too.
        with_cas: WithCas,
        /// gat, gats: set this expiry on every hit.
        touch: Option<Expiry>,
    },
    /// Any other operation on one key, with the way to print its outcome (`reply::write`).
    One {
        /// The operation.
        request: Request,
        /// How the outcome is printed.
        reply: ReplyStyle,
    },
    /// flush_all on all data roles.
    FlushAll {
        /// When.
        at: FlushAt,
        /// How the outcome is printed.
        reply: ReplyStyle,
    },
    /// version.
    Version,
    /// verbosity: accepted and ignored.
    Verbosity {
        /// How `OK` is printed.
        reply: ReplyStyle,
    },
    /// stats.
    Stats(Stats),
    /// mn: print `MN`, and everything before it.
    MetaNoop,
    /// quit: print what is due, then close.
    Quit,
    /// The user name and password of a connection that must authenticate, as sent (`user password`). The answer is
    /// `STORED` and [`super::Parser::unlock`], or an error.
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
    /// Set the counters to zero; answered with `RESET`.
    Reset,
}

/// Whether versions (cas uniques) are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithCas {
    /// gets, gats.
    Yes,
    /// get, gat.
    No,
}

/// The keys of a multi-key command, as they came: one buffer, no list. Each is 1..=250 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    list: Bytes,
    count: usize,
}

impl Keys {
    /// Of a list whose tokens have been checked and counted.
    pub(super) fn new(list: Bytes, count: usize) -> Self {
        Self { list, count }
    }

    /// How many keys.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        super::tokens::split(&self.list)
    }

    /// Takes the first key off, for work that goes on where it stopped.
    pub fn pop(&mut self) -> Option<Key> {
        let start = self.list.iter().position(|&byte| byte != b' ')?;
        self.list.advance(start);
        // The last key is what is left, but for spaces behind it.
        let end = self.list.iter().position(|&byte| byte == b' ').unwrap_or(self.list.len());
        self.count = self.count.saturating_sub(1);
        // Its tokens have been counted.
        Key::new(self.list.split_to(end)).ok()
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

/// How the outcome of a request is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// The words of the text protocol.
    Text,
    /// Nothing at all: the text protocol's `noreply`.
    Silent,
    /// The codes of the meta protocol.
    Meta(MetaStyle),
    /// The request removes the old value of a key whose new one is too large; the answer says the latter, whatever
    /// the outcome.
    TooLarge,
    /// As `TooLarge`, with `noreply`.
    TooLargeSilent,
}

/// How the outcome of a meta command is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaStyle {
    /// The command.
    pub verb: MetaVerb,
    /// `q`: nominal outcomes are not printed.
    pub quiet: bool,
    /// `b`: the key is printed in base64.
    pub base64: bool,
    /// `v`: the value is printed.
    pub value: bool,
    /// mg: not if the item has this version, which the client has already.
    pub known_version: Option<u64>,
    /// The flags to print, in the order of the request.
    pub flags: ReturnFlags,
    /// The opaque token, without its `O`; empty is printed too if the flags have it.
    pub opaque: Bytes,
    /// ms: length of the value that was sent, for `s` when nothing was stored.
    pub sent_len: u32,
}

/// Which meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// mg.
    Get,
    /// ms.
    Set,
    /// md.
    Delete,
    /// ma.
    Arith,
    /// me.
    Debug,
}

/// Letters of the flags that a meta command wants printed, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnFlags {
    letters: [u8; Self::MAX],
    count: u8,
}

impl ReturnFlags {
    /// All letters there are: c f h k l O s t.
    const ALL: &'static [u8; Self::MAX] = b"cfhklOst";
    const MAX: usize = 8;

    /// Of some letters; those that are never printed are left out.
    #[must_use]
    pub fn of(letters: &[u8]) -> Self {
        let mut flags = Self::default();
        for &letter in letters {
            flags.push(letter);
        }
        flags
    }

    /// Adds a letter if it is one that is ever printed.
    pub(super) fn push(&mut self, letter: u8) {
        if Self::ALL.contains(&letter)
            && let Some(place) = self.letters.get_mut(usize::from(self.count))
        {
            *place = letter;
            self.count += 1;
        }
    }

    /// The letters, in the order of the request.
    #[must_use]
    pub fn letters(&self) -> &[u8] {
        self.letters.get(..usize::from(self.count)).unwrap_or_default()
    }
}
