//! How a client wants to be answered.

use bytes::Bytes;

/// Whether versions (cas uniques) are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithCas {
    /// gets, gats.
    Yes,
    /// get, gat.
    No,
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
    pub sent_len: u64,
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
