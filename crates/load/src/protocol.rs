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
    },
    /// A read found nothing.
    Miss,
    /// A write is done.
    Stored,
    /// The server refused, in these words.
    Refused(&'a [u8]),
}

impl<'a> Answer<'a> {
    /// A read found this.
    #[must_use]
    pub fn hit(value: &'a [u8]) -> Self {
        Self::Hit { len: value.len() as u64, bytes: Some(value) }
    }
}

/// A request whose answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub operation: Operation,
    pub key: u32,
    /// When it was handed to the kernel.
    pub sent_ns: u64,
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
