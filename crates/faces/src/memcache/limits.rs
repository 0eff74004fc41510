//! Bounds of what a client may send.

/// Shortest command line, newline included.
pub(super) const MIN_LINE_BYTES: usize = 4;

/// Shortest line that may ask for access, newline not included.
pub(super) const MIN_LOCKED_LINE_BYTES: usize = 6;

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
