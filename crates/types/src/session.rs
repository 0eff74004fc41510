//! Clients' sessions: under which name a write is done once, however often it comes (docs/protocol.md, "Writes that are done once").

use crate::op::{Failure, ItemView, Outcome};

/// A client's standing at one data role. Whoever knows the number can write under its names, so it is one that nobody can guess: 64
/// bits, pseudorandom. That two of a role have the same is left to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientSession(pub u64);

/// Most numbers of writes between the lowest one that a client waits for and its newest.
pub const MAX_BEHIND: u16 = 1023;

/// The name of a write. Whatever comes under it again is the same write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Of which session.
    pub session: ClientSession,
    /// The write's number in it, from 1 on.
    pub sequence: u32,
    /// How far below it the lowest number is that the client still waits for, at most [`MAX_BEHIND`]. What is lower is over.
    pub behind: u16,
    /// Whether it may have come before.
    pub again: bool,
}

impl Once {
    /// Whether there can be such a name.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        can_be(self.sequence, self.behind)
    }

    /// The lowest number that the client still waits for.
    #[must_use]
    pub fn floor(&self) -> u32 {
        self.sequence - u32::from(self.behind)
    }

    /// What is said of the write in all, if this came of it now: what comes again may have been done when it came before.
    #[must_use]
    pub fn in_all(&self, now: Outcome) -> Outcome {
        if now == Outcome::Failed(Failure::NoSession) && self.again {
            return Outcome::Failed(Failure::Expired);
        }
        let done_nothing = matches!(
            now,
            Outcome::Failed(
                Failure::OutOfMemory
                    | Failure::Busy
                    | Failure::Unavailable
                    | Failure::Lost
                    | Failure::NoNamespace
            )
        );
        if done_nothing && self.again { Outcome::Failed(Failure::Unknown) } else { now }
    }
}

/// Whether there can be a write of this number, so far above the lowest one that is waited for.
pub(crate) fn can_be(sequence: u32, behind: u16) -> bool {
    behind <= MAX_BEHIND && sequence > u32::from(behind)
}

/// What came of a write, as far as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteResult {
    /// Which outcome it is.
    pub code: ResultCode,
    /// The version of what was written, where there is one.
    pub version: u64,
    /// The number that was counted to.
    pub number: u64,
}

/// The outcomes that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultCode {
    /// See [`Outcome::Stored`], and so on.
    Stored,
    /// The key went, or was marked.
    Deleted,
    /// Another expiry.
    Touched,
    /// It was counted.
    Number,
    /// The condition did not hold.
    NotStored,
    /// Another version is there.
    Exists,
    /// The key is not there.
    NotFound,
    /// The value is no number.
    NotANumber,
    /// The value would be too long.
    TooLarge,
}

impl ResultCode {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Stored,
        Self::Deleted,
        Self::Touched,
        Self::Number,
        Self::NotStored,
        Self::Exists,
        Self::NotFound,
        Self::NotANumber,
        Self::TooLarge,
    ];

    /// By its number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl WriteResult {
    /// What is kept of `outcome`; none if it says only that nothing was done now.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Option<Self> {
        let (code, version, number) = match outcome {
            Outcome::Stored(view) => (ResultCode::Stored, view.version, 0),
            Outcome::Touched(view) => (ResultCode::Touched, view.version, 0),
            Outcome::Number(number, view) => (ResultCode::Number, view.version, *number),
            Outcome::Deleted => (ResultCode::Deleted, 0, 0),
            Outcome::NotStored => (ResultCode::NotStored, 0, 0),
            Outcome::Exists => (ResultCode::Exists, 0, 0),
            Outcome::NotFound => (ResultCode::NotFound, 0, 0),
            Outcome::Failed(Failure::NotANumber) => (ResultCode::NotANumber, 0, 0),
            Outcome::Failed(Failure::TooLarge) => (ResultCode::TooLarge, 0, 0),
            Outcome::Hit(_)
            | Outcome::Miss
            | Outcome::Flushed
            | Outcome::Begun(_)
            | Outcome::Noted
            | Outcome::Session(_)
            | Outcome::Keys(_)
            | Outcome::Failed(_) => return None,
        };
        Some(Self { code, version, number })
    }

    /// What a client is told that asks again: of the item, no more than its version.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        let view = || ItemView { version: self.version, ..ItemView::default() };
        match self.code {
            ResultCode::Stored => Outcome::Stored(view()),
            ResultCode::Deleted => Outcome::Deleted,
            ResultCode::Touched => Outcome::Touched(view()),
            ResultCode::Number => Outcome::Number(self.number, view()),
            ResultCode::NotStored => Outcome::NotStored,
            ResultCode::Exists => Outcome::Exists,
            ResultCode::NotFound => Outcome::NotFound,
            ResultCode::NotANumber => Outcome::Failed(Failure::NotANumber),
            ResultCode::TooLarge => Outcome::Failed(Failure::TooLarge),
        }
    }
}
