//! The memcached text and meta protocols, to the letter of memcached 1.6.45 except where that is unsafe.
//!
//! [`Parser`] turns the bytes of one connection into [`Ask`]s; `reply` turns outcomes into bytes. Neither
//! knows a socket, a clock or a store.
//!
//! Where this face is deliberately safer than memcached:
//!
//! - A data block whose length is known is never executed as commands: after a refused storage command it is swallowed.
//! - Lengths and client flags never wrap.
//! - A key with a NUL byte is refused.
//! - The binary protocol, TLS and HTTP are closed at once, without an answer.
//! - Keys are never dumped, and nothing that tunes or stops a server is offered.
//! - Memory is never reserved by a declared length; every line and every value has a bound.
//!
//! `tests/golden` has memcached's answers and every deviation from them.

mod face;
mod failure;
mod lines;
mod meta;
mod parser;
pub mod reply;
mod style;
mod text;
mod tokens;

pub use face::VERSION;
pub use failure::{Again, Effect, FailureCode};
pub use lines::Line;
pub use parser::{Access, Parser};
pub use style::{MetaStyle, MetaVerb, ReplyStyle, ReturnFlags, WithCas};

/// What a client asks for.
pub type Ask = crate::Ask<ReplyStyle, WithCas>;
/// What comes next on a connection.
pub type Step = crate::Step<ReplyStyle, WithCas>;
pub(crate) use tokens::split;

/// Shortest command line, newline included.
pub(crate) const MIN_LINE_BYTES: usize = 4;
/// Shortest line that may ask for access, newline not included.
pub(crate) const MIN_LOCKED_LINE_BYTES: usize = 6;
/// Longest command line, newline included, except for a line of many keys once the client may read.
pub const MAX_LINE_BYTES: usize = 2049;
/// Longest `get`, `gets`, `gat` or `gats` line, newline included. It bounds the keys of one command too: at most half
/// as many as it has bytes, each at most [`types::op::MAX_KEY_BYTES`] long. They are kept as the line itself.
pub const MAX_KEYS_LINE_BYTES: usize = 1024 * 1024;
/// Most spaces in front of a line of many keys that is longer than [`MAX_LINE_BYTES`].
pub const MAX_LEADING_SPACES: usize = 100;
/// Longest opaque token of a meta command, without its `O`.
pub const MAX_OPAQUE_BYTES: usize = 31;
/// Most tokens of a meta command: its name, key, length and flags.
pub const MAX_META_TOKENS: usize = 20;
/// Longest data block of the `set` that carries a user name and a password.
pub const MAX_CREDENTIALS_BYTES: usize = 16384;
