//! Every fixed line that this face can say, in one place; failures of commands are in `failure`.

use super::failure::FailureCode;

/// A whole line to send, newline included.
pub type Line = &'static [u8];

pub(super) const ERROR: Line = b"ERROR\r\n";
pub(super) const BAD_FORMAT: Line = b"CLIENT_ERROR bad command line format\r\n";
pub(super) const BAD_CHUNK: Line = b"CLIENT_ERROR bad data chunk\r\n";
pub(super) const BAD_EXPTIME: Line = b"CLIENT_ERROR invalid exptime argument\r\n";
pub(super) const BAD_DELTA: Line = b"CLIENT_ERROR invalid numeric delta argument\r\n";
pub(super) const DELETE_USAGE: Line =
    b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
pub(super) const UNAUTHENTICATED: Line = b"CLIENT_ERROR unauthenticated\r\n";

pub(super) const META_TOO_MANY_FLAGS_GET: Line = b"CLIENT_ERROR options flags are too long\r\n";
pub(super) const META_TOO_MANY_FLAGS: Line = b"CLIENT_ERROR options flags too long\r\n";
pub(super) const META_DUPLICATE: Line = b"CLIENT_ERROR duplicate flag\r\n";
pub(super) const META_INVALID: Line = b"CLIENT_ERROR invalid flag\r\n";
pub(super) const META_INVALID_OR_DUPLICATE: Line = b"CLIENT_ERROR invalid or duplicate flag\r\n";
pub(super) const META_BAD_TOKEN: Line = b"CLIENT_ERROR bad token in command line format\r\n";
pub(super) const META_BAD_KEY: Line = b"CLIENT_ERROR error decoding key\r\n";
pub(super) const META_OPAQUE: Line = b"CLIENT_ERROR opaque token too long\r\n";
pub(super) const META_MODE_LENGTH: Line = b"CLIENT_ERROR incorrect length for M token\r\n";
pub(super) const META_MODE_SET: Line = b"CLIENT_ERROR invalid mode for ms M token\r\n";
pub(super) const META_MODE_ARITH: Line = b"CLIENT_ERROR invalid mode for ma M token\r\n";
pub(super) const META_BAD_INITIAL: Line = b"CLIENT_ERROR invalid numeric initial value\r\n";
pub(super) const META_BAD_DELTA: Line = b"CLIENT_ERROR invalid numeric delta value\r\n";

pub(super) const NO_SHUTDOWN: Line = b"ERROR: shutdown not enabled\r\n";
/// Clients expect a list here, so the answer is an empty one: keys are not dumped.
pub(super) const NO_CACHEDUMP: Line = b"END\r\n";
pub(super) const NO_DETAIL: Line = b"CLIENT_ERROR stats detail not allowed\r\n";
pub(super) const NO_METADUMP: Line = b"ERROR metadump not allowed\r\n";
pub(super) const NO_WATCH: Line = b"CLIENT_ERROR watch commands not allowed\r\n";

/// What is refused before it is stored.
pub(super) const TOO_LARGE: Line = FailureCode::TooLarge.line();
