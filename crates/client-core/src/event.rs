//! What comes out of the core.

use std::net::SocketAddr;

use bytes::Bytes;
use native::{Answer, Meta};
use types::ScanPage;

use crate::error::Error;

/// A connection, as the core calls it. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// A request, as the core calls it. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What is to be done with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One is to be made.
    Connect(ConnId, SocketAddr),
    /// It is not wanted any more.
    Close(ConnId),
    /// It has something to send.
    Send(ConnId),
}

/// What a request has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A value was found: what is known of it, and how many bytes follow.
    Head(RequestId, Meta, u64),
    /// Bytes of it. The core is told when they have been [taken](crate::Core::taken).
    Data(RequestId, Bytes),
    /// So many are where [`Landed::Kept`] has said, and count as the next ones.
    Kept(RequestId, usize),
    /// More bytes of a value that is fed may be given.
    Wants(RequestId),
    /// It has come to its end. Nothing follows.
    Done(RequestId, Result<Done, Error>),
}

/// How a request has ended that has not failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// All bytes of the value have been given.
    Value,
    /// What the server has answered.
    Answer(Answer),
    /// Keys of a data role, of which there are so many in all.
    Keys(Box<ScanPage>, u32),
}

/// Where bytes of a value go that are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Whose they are.
    pub id: RequestId,
    /// How many bytes are read in all.
    pub all: u64,
    /// Which of these they begin with, and how many they are.
    pub at: u64,
    /// See `at`.
    pub len: usize,
    /// Bytes of the frame that come before them.
    pub head: usize,
    /// Whether they follow those that have come before.
    pub in_order: bool,
}

/// What has been received where it was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landed {
    /// It can be looked at there.
    Bytes(Bytes),
    /// So many bytes, which nobody needs to look at: whoever has received them keeps them. Only of what comes [in order](Landing::in_order).
    Kept(usize),
}

impl Landed {
    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Kept(len) => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// They, if they can be looked at.
    pub(crate) fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Kept(_) => None,
        }
    }
}
