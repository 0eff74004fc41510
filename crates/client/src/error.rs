//! What can go wrong, sorted by whose fault it is.

use std::io;
use std::net::SocketAddr;

use faces::memcache::FailureCode;
use thiserror::Error;

use crate::HttpError;

/// Why an operation has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No node could be reached before the deadline; nothing was done.
    #[error("no node could be reached (last tried {last}): {reason}")]
    Unreachable {
        /// The node tried last.
        last: SocketAddr,
        /// What the operating system or the node said.
        reason: String,
    },
    /// The connection broke or the deadline passed with a write in flight: it may or may not have been done.
    #[error("the write may or may not have been done: {0}")]
    Unknown(String),
    /// The node refused: out of memory, too large, data lost, …
    #[error("the server refused: {words}")]
    Server {
        /// Why; none if the server has a failure that this client does not know.
        code: Option<FailureCode>,
        /// What it said, for people.
        words: String,
    },
    /// The request was malformed, which includes a key of more than 250 bytes.
    #[error("bad request: {0}")]
    Request(String),
    /// The answer is not memcached's protocol.
    #[error("the answer is not memcached's protocol: {0}")]
    Protocol(&'static str),
    /// No map could be had.
    #[error("no cluster map: {0}")]
    Map(#[from] HttpError),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
