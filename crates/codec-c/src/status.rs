//! What went wrong, as a number for programs and as a sentence for people.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use codec::CodeError;
use thiserror::Error;

/// What a function returns. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer that may not be null is null.
    Null = -1,
    /// A name that no family, scheme or place has.
    Name = -2,
    /// There is no such code: too many roles, or a matrix that could not repair some losses.
    Code = -3,
    /// A role that the code has not, or that is listed twice.
    Role = -4,
    /// A length or a count that cannot be.
    Length = -5,
    /// More is lost than the chunks at hand make up for.
    Lost = -6,
    /// An output that overlaps another buffer.
    Overlap = -7,
    /// A fault of this library.
    Internal = -8,
}

/// Why a call was refused.
#[derive(Debug, Error)]
pub enum Failure {
    /// A null pointer.
    #[error("{0} is null")]
    Null(&'static str),
    /// Text that is not UTF-8, or names nothing.
    #[error("{0}")]
    Name(String),
    /// A list or length that cannot be.
    #[error("{0}")]
    Length(String),
    /// Buffers that share bytes.
    #[error("an output shares bytes with another buffer")]
    Overlap,
    /// What the code says.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A panic.
    #[error("the library failed: this is a bug of Gestalt")]
    Internal,
}

impl Failure {
    fn status(&self) -> Status {
        match self {
            Self::Null(_) => Status::Null,
            Self::Name(_) => Status::Name,
            Self::Length(_) => Status::Length,
            Self::Overlap => Status::Overlap,
            Self::Internal => Status::Internal,
            Self::Code(error) => status_of(*error),
        }
    }
}

fn status_of(error: CodeError) -> Status {
    match error {
        CodeError::Bounds { .. }
        | CodeError::Groups { .. }
        | CodeError::NotMds { .. }
        | CodeError::Points { .. }
        | CodeError::ZeroRow { .. }
        | CodeError::Singular => Status::Code,
        CodeError::Count { .. } | CodeError::Length { .. } | CodeError::Empty => Status::Length,
        CodeError::NoSuchRole { .. } | CodeError::Duplicate { .. } | CodeError::NotLost { .. } => {
            Status::Role
        }
        CodeError::Undetermined { .. } => Status::Lost,
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The number for `result`; the sentence is kept for this thread.
pub fn conclude(result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => Status::Ok as c_int,
        Err(failure) => {
            // Nothing that is said has a zero byte in it, unless the caller's text had.
            let sentence = failure.to_string().replace('\0', " ");
            LAST.with(|last| *last.borrow_mut() = CString::new(sentence).unwrap_or_default());
            failure.status() as c_int
        }
    }
}

/// The sentence of this thread's last failure; valid until its next one.
pub fn last_sentence() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
