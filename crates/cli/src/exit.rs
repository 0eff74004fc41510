//! Exit codes, and errors that carry one.

use std::fmt::Display;
use std::process::ExitCode;

use thiserror::Error;

/// How a command ends when it does not end well. The text is one line that says what to do next.
#[derive(Debug, Error)]
pub enum Exit {
    /// Wrong usage: flags, config, ports, memory. Exit code 1.
    #[error("{0}")]
    Usage(String),
    /// Nobody answers. Exit code 2.
    #[error("{0}")]
    Unreachable(String),
    /// The cluster works with less protection than was asked for. Exit code 3.
    #[error("{0}")]
    Degraded(String),
    /// One more loss costs data, or data is lost. Exit code 4.
    #[error("{0}")]
    AtRisk(String),
}

impl Exit {
    /// From whatever explains itself.
    pub fn usage(reason: impl Display) -> Self {
        Self::Usage(reason.to_string())
    }

    /// From whatever explains itself.
    pub fn unreachable(reason: impl Display) -> Self {
        Self::Unreachable(reason.to_string())
    }

    /// The process' exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 1,
            Self::Unreachable(_) => 2,
            Self::Degraded(_) => 3,
            Self::AtRisk(_) => 4,
        })
    }
}
