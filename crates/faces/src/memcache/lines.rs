//! Every fixed line that this face can say, in one place; failures of commands are in `failure`.

use super::failure::FailureCode;

pub use crate::face::Line;

pub(super) const ERROR: Line = b"ERROR\r\n";
pub(super) const BAD_FORMAT: Line = b"CLIENT_ERROR bad command line format\r\n";
pub(super) const BAD_CHUNK: Line = b"CLIENT_ERROR bad data chunk\r\n";
pub(super) const BAD_EXPTIME: Line = b"CLIENT_ERROR invalid exptime argument\r\n";
pub(super) const BAD_DELTA: Line = b"CLIENT_ERROR invalid numeric delta argument\r\n";

pub(super) const UNAUTHENTICATED: Line = b"CLIENT_ERROR unauthenticated\r\n";
pub(super) const AUTH_TOO_LONG: Line = b"CLIENT_ERROR auth token too long\r\n";
pub(super) const AUTH_BAD_END: Line = b"CLIENT_ERROR bad command line termination\r\n";
pub(super) const AUTH_BAD_FORMAT: Line = b"CLIENT_ERROR bad authentication token format\r\n";
pub(super) const AUTH_FAILED: Line = b"CLIENT_ERROR authentication failure\r\n";

pub(super) const META_TOO_MANY_FLAGS: Line = b"CLIENT_ERROR options flags are too long\r\n";
pub(super) const META_DUPLICATE: Line = b"CLIENT_ERROR duplicate flag\r\n";
pub(super) const META_INVALID: Line = b"CLIENT_ERROR invalid flag\r\n";
pub(super) const META_INVALID_OR_DUPLICATE: Line = b"CLIENT_ERROR invalid or duplicate flag\r\n";
pub(super) const META_BAD_TOKEN: Line = b"CLIENT_ERROR bad token in command line format\r\n";
pub(super) const META_BAD_KEY: Line = b"CLIENT_ERROR error decoding key\r\n";
pub(super) const META_OPAQUE: Line = b"CLIENT_ERROR opaque token too long\r\n";
pub(super) const META_MODE_SET: Line = b"CLIENT_ERROR invalid mode for ms M token\r\n";
pub(super) const META_MODE_ARITH: Line = b"CLIENT_ERROR invalid mode for ma M token\r\n";
pub(super) const META_BAD_INITIAL: Line = b"CLIENT_ERROR invalid numeric initial value\r\n";
pub(super) const META_BAD_DELTA: Line = b"CLIENT_ERROR invalid numeric delta value\r\n";

pub(super) const NO_SHUTDOWN: Line = b"SERVER_ERROR: shutdown not enabled\r\n";
pub(super) const NO_FLUSH: Line = b"CLIENT_ERROR flush_all not allowed\r\n";
pub(super) const NO_CACHEDUMP: Line = b"CLIENT_ERROR stats cachedump not allowed\r\n";
pub(super) const NO_DETAIL: Line = b"CLIENT_ERROR stats detail not allowed\r\n";
pub(super) const NO_METADUMP: Line = b"ERROR metadump not allowed\r\n";
pub(super) const NO_MGDUMP: Line = b"ERROR key dump not allowed\r\n";
pub(super) const NO_WATCH: Line = b"CLIENT_ERROR watch commands not allowed\r\n";
pub(super) const MEMLIMIT_TOO_SMALL: Line = b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
pub(super) const MEMLIMIT_NOT_MEGABYTES: Line =
    b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
pub(super) const NO_MEMLIMIT: Line = b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";

/// What is refused before it is stored.
pub(super) const TOO_LARGE: Line = FailureCode::TooLarge.line();

pub(super) const VERSION_LINE: Line = b"VERSION 1.6.45\r\n";
