//! What requests come to.

use std::io;

use bytes::Bytes;
use client_core::Error;
use native::{Answer, Code, Meta};

/// A value, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// What is known of its item.
    pub meta: Meta,
    /// The bytes.
    pub bytes: Bytes,
}

/// What became of a value that was to be stored under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is stored, under this version.
    Version(u64),
    /// There is such a key (add), or there is none (replace, append, prepend).
    No,
    /// Another version is there.
    Other,
    /// A version was named, and there is no such key.
    Missing,
}

/// What a server's answer to a write means.
pub(crate) fn stored(answer: Answer) -> Result<Stored, Error> {
    match answer {
        Answer::Stored(version) => Ok(Stored::Version(version)),
        Answer::Just(Code::NotStored) => Ok(Stored::No),
        Answer::Just(Code::Exists) => Ok(Stored::Other),
        Answer::Just(Code::NotFound) => Ok(Stored::Missing),
        other => Err(Error::Code(other.code())),
    }
}

/// A failure as streams have it; the error is inside.
pub(crate) fn to_io(error: Error) -> io::Error {
    let kind = match error {
        Error::TimedOut => io::ErrorKind::TimedOut,
        Error::Code(Code::Corrupt) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
