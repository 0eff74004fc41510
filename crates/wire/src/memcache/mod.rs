//! The memcached text and meta protocols, to the letter of memcached 1.6.18 except where that is unsafe.
//!
//! [`Parser`] turns the bytes of one connection into [`Command`]s; `reply` turns outcomes into bytes. Neither
//! knows a socket, a clock or a store.
//!
//! Where this face is deliberately safer than memcached:
//!
//! - A data block is never executed as commands: after a refused storage command its block is swallowed, and if the
//!   line has no valid length the connection is closed after the error.
//! - Lengths, client flags and times never wrap.
//! - A misspelt `noreply` is refused; a key with a NUL byte is refused.
//! - The binary protocol, TLS and HTTP are closed at once, without an answer.
//! - Keys are never dumped, and nothing that tunes or stops a server is offered.
//! - Memory is never reserved by a declared length; every line and every value has a bound.

mod command;
mod failure;
mod lines;
mod meta;
mod parser;
pub mod reply;
mod text;
mod tokens;

pub use command::{Command, Keys, MetaStyle, MetaVerb, ReplyStyle, ReturnFlags, Stats, WithCas};
pub use failure::{Again, Effect, FailureCode};
pub use lines::Line;
pub use parser::{Access, Parser, Step};

/// Longest command line, newline included, except for a line of many keys once the client may read.
pub const MAX_LINE_BYTES: usize = 2049;
/// Longest `get`, `gets`, `gat` or `gats` line, newline included. It bounds the keys of one command too: at most half
/// as many as it has bytes, each at most [`crate::op::MAX_KEY_BYTES`] long. They are kept as the line itself.
pub const MAX_KEYS_LINE_BYTES: usize = 1024 * 1024;
/// Most spaces in front of a line of many keys that is longer than [`MAX_LINE_BYTES`].
pub const MAX_LEADING_SPACES: usize = 100;
/// Longest opaque token of a meta command, without its `O`.
pub const MAX_OPAQUE_BYTES: usize = 31;
/// Most tokens of a meta command: its name, key, length and flags.
pub const MAX_META_TOKENS: usize = 19;
/// Longest data block of the `set` that carries a user name and a password.
pub const MAX_CREDENTIALS_BYTES: usize = 1024;
