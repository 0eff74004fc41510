//! Why a request has failed.

use native::Code;
use thiserror::Error;

/// See the module. What comes of a write that failed is said by [`Error::is_harmless`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The server has said so. `Code::Expired` is said of a write that may have been done, and of which nobody will know any more.
    #[error("the server says: {0:?}")]
    Code(Code),
    /// Nothing was done, of a value of which so many bytes had been fed: they are gone, so it has to be fed anew.
    #[error("nothing was done: the value has to be fed anew, of which {0} bytes were gone")]
    Interrupted(u64),
    /// Nothing was done: it could not be sent to a node in time, or not all of it.
    #[error("it could not be sent to a node in time, or not all of it; nothing was done")]
    Unreachable,
    /// The deadline has passed; a write may or may not have been done.
    #[error("the deadline has passed; a write may or may not have been done")]
    TimedOut,
    /// The connection was lost; a write may or may not have been done.
    #[error("the connection was lost; the write may or may not have been done")]
    Unknown,
    /// Nothing was done: the node is of a release that does not know what was asked.
    #[error("the node does not know what was asked: it is of an older release; nothing was done")]
    TooOld,
    /// The value was replaced while it was read, and only a part of it has been given to the caller.
    #[error("the value was replaced while it was read")]
    Changed,
    /// The caller has cancelled it; a write may or may not have been done.
    #[error("cancelled; a write may or may not have been done")]
    Cancelled,
    /// There is no such namespace.
    #[error("there is no such namespace")]
    NoNamespace,
    /// As many requests are under way as there may be.
    #[error("too many requests are under way; nothing was done")]
    Full,
    /// The key has no bytes, or more than 250.
    #[error("a key has 1 to 250 bytes")]
    BadKey,
    /// The value is longer than a node takes.
    #[error("the value is longer than the cluster takes; nothing was done")]
    TooLarge,
    /// The caller's buffer is shorter than the value.
    #[error("the value is longer than the buffer")]
    NoRoom,
    /// The client has been closed.
    #[error("the client has been closed; a write may or may not have been done")]
    Closed,
}

impl Error {
    /// Whether the request is known to have changed nothing.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        match self {
            Self::Code(Code::Unknown | Code::Expired | Code::Cancelled | Code::Lost) => false,
            Self::Code(_) => true,
            Self::Interrupted(_) | Self::Unreachable | Self::NoNamespace => true,
            Self::Full | Self::BadKey | Self::TooLarge | Self::TooOld => true,
            Self::TimedOut
            | Self::Unknown
            | Self::Changed
            | Self::Cancelled
            | Self::NoRoom
            | Self::Closed => false,
        }
    }
}
