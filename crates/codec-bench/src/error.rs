//! Why nothing was measured.

use codec::CodeError;
use thiserror::Error;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The code, or what was to be done with it, is refused by the codec.
    #[error("{0}")]
    Code(#[from] CodeError),
    /// Numbers that make no sense together.
    #[error("{0}")]
    Job(String),
    /// A peer that this binary was built without.
    #[error(
        "{peer} is not built in: build with `--features peers` (README of docs/benchmarks says what that needs)"
    )]
    NotBuilt {
        /// Its name.
        peer: &'static str,
    },
    /// A peer that cannot do this job.
    #[error("{peer}: {reason}")]
    Unable {
        /// Its name.
        peer: &'static str,
        /// Why not.
        reason: String,
    },
    /// A side that gave wrong bytes.
    #[error("{side} gave wrong bytes for {job}")]
    Wrong {
        /// Which.
        side: String,
        /// Doing what.
        job: String,
    },
    /// Files, processes.
    #[error("{0}")]
    Io(String),
}
