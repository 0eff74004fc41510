//! Codes of outcomes, in the one place where they are made.

use types::op::{Failure, Outcome};

use crate::answer::Code;

/// What clients are told of an outcome.
#[must_use]
pub fn code_of(outcome: &Outcome) -> Code {
    match outcome {
        Outcome::Hit(_) => Code::Value,
        Outcome::Miss => Code::Miss,
        Outcome::Stored(_) => Code::Stored,
        Outcome::NotStored => Code::NotStored,
        Outcome::Exists => Code::Exists,
        Outcome::NotFound => Code::NotFound,
        Outcome::Deleted | Outcome::Flushed => Code::Deleted,
        Outcome::Noted => Code::Noted,
        Outcome::Touched(_) => Code::Touched,
        Outcome::Number(..) => Code::Number,
        // Where the chunks go is said beside it; without that nobody can go on.
        Outcome::Begun(_) => Code::Unavailable,
        Outcome::Session(_) => Code::Session,
        Outcome::Keys(_) => Code::Keys,
        Outcome::Failed(failure) => code_of_failure(*failure),
    }
}

fn code_of_failure(failure: Failure) -> Code {
    match failure {
        Failure::NotANumber => Code::NotANumber,
        Failure::TooLarge => Code::TooLarge,
        Failure::OutOfMemory => Code::OutOfMemory,
        Failure::Busy | Failure::Replaced => Code::Busy,
        Failure::NotOpen => Code::NotOpen,
        Failure::Unavailable | Failure::WrongPrimary | Failure::Departed(_) => Code::Unavailable,
        Failure::NoSession => Code::NoSession,
        Failure::Expired => Code::Expired,
        Failure::Lost => Code::Lost,
        Failure::NoNamespace => Code::NoNamespace,
        Failure::Unknown => Code::Unknown,
        Failure::Corrupt => Code::Corrupt,
    }
}
