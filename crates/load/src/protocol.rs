//! What is asked of servers and what they answer, whichever protocol carries it.

use std::io;

use native::Reason;

use crate::targets::{Listener, Targets};
use crate::values::Values;

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read.
    Get,
    /// Write.
    Set,
    /// Read, and write in the place of what was read.
    Modify,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Lines, answered in their order.
    Text(Text),
    /// Gestalt's native protocol.
    Native(Naming),
}

/// Protocols of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// memcached's text protocol.
    Memcached,
    /// RESP; each SET may be followed by `WAIT n 0`.
    Redis {
        /// How many replicas to wait for.
        wait: Option<u32>,
    },
}

/// Whether writes have names, under which the servers do them once (docs/native-protocol.md, "Sessions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// As those of the client `gestalt` have.
    Named,
    /// They have none: what names cost is seen beside the others.
    Nameless,
}

impl Protocol {
    /// Which of a node's listeners speaks it.
    #[must_use]
    pub fn listener(self) -> Listener {
        match self {
            Self::Text(_) => Listener::Memcached,
            Self::Native(_) => Listener::Native,
        }
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A read found a value.
    Hit {
        /// Its length in bytes.
        len: u64,
        /// All of it; none if it came in pieces and nobody checks it.
        bytes: Option<&'a [u8]>,
        /// Its version, where that was asked for and there is one.
        version: Option<u64>,
    },
    /// A read found nothing.
    Miss,
    /// A write is done.
    Stored,
    /// A write is not done: another version is there than the one that was read.
    Exists,
    /// The server refused, in these words.
    Refused(&'a [u8]),
}

impl<'a> Answer<'a> {
    /// A read found this.
    #[must_use]
    pub fn hit(value: &'a [u8]) -> Self {
        Self::Hit { len: value.len() as u64, bytes: Some(value), version: None }
    }
}

/// A request whose answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub step: Step,
    pub key: u32,
    /// When the first request of its operation was handed to the kernel.
    pub begun_ns: u64,
    /// When it was itself.
    pub sent_ns: u64,
}

/// What a request is of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Get,
    Set,
    /// A value is read that is to be written.
    Look,
    /// It is written, in the place of this version; whatever is there where servers know no versions.
    Replace(Option<u64>),
}

impl Step {
    /// With which an operation begins.
    pub(crate) fn first_of(operation: Operation) -> Self {
        match operation {
            Operation::Get => Self::Get,
            Operation::Set => Self::Set,
            Operation::Modify => Self::Look,
        }
    }

    pub(crate) fn operation(self) -> Operation {
        match self {
            Self::Get => Operation::Get,
            Self::Set => Operation::Set,
            Self::Look | Self::Replace(_) => Operation::Modify,
        }
    }
}

/// What requests are made of.
pub(crate) struct Material<'a> {
    pub values: &'a Values,
    pub targets: &'a Targets,
    /// Of a value that is written.
    pub version: u64,
    /// The server need not begin a request any more when it has had it for so long.
    pub timeout_ms: u32,
}

/// Why a connection is of no more use.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The operating system says so.
    Io(io::Error),
    /// What came is nothing that a server may say.
    Malformed,
    /// The server has said so.
    Closed(Reason),
}

impl Broken {
    /// For the report: as few different ones as there are kinds.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Io(error) => format!("connection: {}", error.kind()),
            Self::Malformed => "connection: invalid data".to_owned(),
            Self::Closed(reason) => format!("closed by the server: {reason:?}"),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
