//! A connection to any node, one request of it at a time, and what an answer says.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use client::reply::{Parsed, Reply, parse};
use faces::memcache::FailureCode;

use crate::linearizability::{Bytes, Op, Outcome};

/// Seconds until an item that was touched ends: behind the end of any run.
const LONG_AFTERWARDS: u64 = 1_000_000;
static TOUCHES: AtomicU64 = AtomicU64::new(0);

/// See the module.
pub(super) struct Socket {
    pub stream: TcpStream,
    pub buffer: Vec<u8>,
}

/// Why a request was not done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Unavailable,
    NoMemory,
    Lost,
}

/// What came of a request.
pub(super) enum Heard {
    Outcome(Outcome),
    /// Refused, and certainly not done.
    Refused(Refusal),
    /// The same, and the connection is of no more use.
    Broken(Refusal),
    /// Nobody knows.
    Unknown,
}

impl Socket {
    /// Asks for `op`, whose request this is.
    pub(super) fn exchange(&mut self, request: &[u8], op: &Op) -> io::Result<Heard> {
        self.stream.write_all(request)?;
        let mut chunk = [0; 16 * 1024];
        loop {
            match parse(&self.buffer) {
                Parsed::Complete(reply, len) => {
                    let heard = hear(reply, op);
                    self.buffer.drain(..len);
                    return Ok(heard);
                }
                Parsed::Malformed(reason) => return Err(io::Error::other(reason)),
                Parsed::Incomplete(_) => {}
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => self.buffer.extend_from_slice(&chunk[..got]),
            }
        }
    }
}

/// A whole request.
pub(super) fn request(key: &str, op: &Op) -> Vec<u8> {
    let store = |verb: &str, value: &Bytes, tail: String| {
        let mut request = format!("{verb} {key} 0 0 {}{tail}\r\n", value.0.len()).into_bytes();
        request.extend_from_slice(&value.0);
        request.extend_from_slice(b"\r\n");
        request
    };
    match op {
        // With the unique: what clients may see of it is checked, too.
        Op::Get => format!("gets {key}\r\n").into_bytes(),
        Op::Set(value) => store("set", value, String::new()),
        Op::Add(value) => store("add", value, String::new()),
        Op::Replace(value) => store("replace", value, String::new()),
        Op::Append(value) => store("append", value, String::new()),
        Op::Cas { value, unique } => store("cas", value, format!(" {unique}")),
        Op::Delete => format!("delete {key}\r\n").into_bytes(),
        // Always for another time: else nothing would be done.
        Op::Touch => format!("touch {key} {}\r\n", LONG_AFTERWARDS + TOUCHES.fetch_add(1, Ordering::Relaxed))
            .into_bytes(),
        Op::Incr(by) => format!("incr {key} {by}\r\n").into_bytes(),
        Op::Flush => b"flush_all\r\n".to_vec(),
    }
}

/// What a reply to `op` says.
pub(super) fn hear(reply: Reply<'_>, op: &Op) -> Heard {
    let outcome = match reply {
        Reply::Value { value, cas, .. } => Outcome::Value { value: Bytes(value.to_vec()), cas },
        Reply::Miss | Reply::NotFound => Outcome::NotFound,
        Reply::Stored => Outcome::Stored,
        Reply::NotStored => Outcome::NotStored,
        Reply::Exists => Outcome::Exists,
        Reply::Deleted => Outcome::Deleted,
        Reply::Touched => Outcome::Touched,
        Reply::Ok => Outcome::Flushed,
        Reply::Number(number) => Outcome::Number(number),
        Reply::ServerError(words) | Reply::ClientError(words) => match FailureCode::parse(words) {
            // A namespace that this node has not heard of yet.
            Some(FailureCode::Busy | FailureCode::Unavailable | FailureCode::NoNamespace) => {
                return Heard::Refused(Refusal::Unavailable);
            }
            Some(FailureCode::Unknown | FailureCode::Partial) => return Heard::Unknown,
            Some(FailureCode::OutOfMemory) => return Heard::Refused(Refusal::NoMemory),
            Some(FailureCode::Lost) => return Heard::Refused(Refusal::Lost),
            Some(FailureCode::NotANumber) => Outcome::NotNumber,
            // Corrupt, or not understood: nobody may come across one.
            _ => panic!("the answer to {op} is {reply:?}"),
        },
        other => panic!("the answer to {op} is {other:?}"),
    };
    Heard::Outcome(outcome)
}
