//! What a failure is called on the memcached face. Servers print from this table, and clients decide by it: by the code,
//! never by the words behind it.
//!
//! The code is what stands after `SERVER_ERROR ` or `CLIENT_ERROR `, up to a colon or the end of the line. Where memcached
//! has a text of its own, and clients look for it, that text is the code.

use super::lines::Line;
use types::op::Failure;

/// Why a command that was understood failed. `docs/format.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureCode {
    /// incr or decr on a value that is no number.
    NotANumber,
    /// Longer than an item may be.
    TooLarge,
    /// No memory for it, and nothing may be evicted.
    OutOfMemory,
    /// Too much waits already.
    Busy,
    /// No node serves the key at the moment.
    Unavailable,
    /// More nodes failed than the protection can make up for.
    Lost,
    /// The node failed with the request in flight.
    Unknown,
    /// A command on all data was carried out for a part of it.
    Partial,
    /// What is stored does not match its checksum.
    Corrupt,
    /// The namespace that the address is bound to is not there.
    NoNamespace,
}

/// What a failed command has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing, for certain.
    NotDone,
    /// Perhaps something.
    MaybeDone,
}

/// Whether the same command may succeed later, without anybody's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It may.
    Worthwhile,
    /// It will fail again.
    Pointless,
}

/// One row of the table.
struct Row {
    code: &'static str,
    line: Line,
    effect: Effect,
    again: Again,
}

macro_rules! row {
    ($kind:literal, $code:literal, $words:literal, $effect:ident, $again:ident) => {
        Row {
            code: $code,
            line: concat!($kind, " ", $code, $words, "\r\n").as_bytes(),
            effect: Effect::$effect,
            again: Again::$again,
        }
    };
}

impl FailureCode {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::NotANumber,
        Self::TooLarge,
        Self::OutOfMemory,
        Self::Busy,
        Self::Unavailable,
        Self::Lost,
        Self::Unknown,
        Self::Partial,
        Self::Corrupt,
        Self::NoNamespace,
    ];

    /// The table.
    #[rustfmt::skip]
    const fn row(self) -> Row {
        match self {
            Self::NotANumber => row!("CLIENT_ERROR", "cannot increment or decrement non-numeric value", "",
                NotDone, Pointless),
            Self::TooLarge => row!("SERVER_ERROR", "object too large for cache", "", NotDone, Pointless),
            Self::OutOfMemory => row!("SERVER_ERROR", "out of memory storing object", "", NotDone, Pointless),
            Self::Busy => row!("SERVER_ERROR", "busy", ": nothing was done, try again later", NotDone, Worthwhile),
            Self::Unavailable => row!("SERVER_ERROR", "unavailable",
                ": no node serves this key at the moment, nothing was done, try again", NotDone, Worthwhile),
            Self::Lost => row!("SERVER_ERROR", "lost",
                ": more nodes failed than this key's protection can make up for", NotDone, Pointless),
            Self::Unknown => row!("SERVER_ERROR", "unknown",
                ": the node failed with this request in flight, it may or may not have been done",
                MaybeDone, Worthwhile),
            Self::Partial => row!("SERVER_ERROR", "partial",
                ": done for a part of the data, the rest did not answer or refused, try again",
                MaybeDone, Worthwhile),
            Self::Corrupt => row!("SERVER_ERROR", "corrupt",
                ": the stored bytes do not match their checksum, nothing is returned", NotDone, Pointless),
            Self::NoNamespace => row!("SERVER_ERROR", "no such namespace",
                ": the one that this address is bound to is not there (any more), nothing was done", NotDone, Pointless),
        }
    }

    /// What stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().code
    }

    /// The code of an answer; `text` is what follows `SERVER_ERROR ` or `CLIENT_ERROR `. None if it is another server's, or
    /// about a command that was not understood.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let code = text.split(|&byte| byte == b':').next()?;
        Self::ALL.into_iter().find(|known| known.as_str().as_bytes() == code)
    }

    /// The whole answer, newline included.
    #[must_use]
    pub const fn line(self) -> Line {
        self.row().line
    }

    /// What the command has done.
    #[must_use]
    pub const fn effect(self) -> Effect {
        self.row().effect
    }

    /// Whether to try again.
    #[must_use]
    pub const fn again(self) -> Again {
        self.row().again
    }
}

impl From<Failure> for FailureCode {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotANumber => Self::NotANumber,
            Failure::TooLarge => Self::TooLarge,
            Failure::OutOfMemory => Self::OutOfMemory,
            // Nothing of it can be read, and another try gets another id.
            Failure::Busy | Failure::NotOpen | Failure::Replaced => Self::Busy,
            // A wrong primary is for the node to sort out, and nobody here has a session; should one get here, nothing was done.
            Failure::Unavailable | Failure::WrongPrimary | Failure::NoSession | Failure::Departed(_) => {
                Self::Unavailable
            }
            Failure::Lost => Self::Lost,
            Failure::Unknown | Failure::Expired => Self::Unknown,
            Failure::Corrupt => Self::Corrupt,
            Failure::NoNamespace => Self::NoNamespace,
        }
    }
}
