//! What calls and requests come to, in numbers and sentences.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use gestalt::raw::{Code, Error};

/// 0 and above: it has come to an answer. Below: it has failed.
macro_rules! statuses {
    ($($name:ident = $number:literal, $harm:ident, $sentence:literal;)*) => {
        /// See the module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[expect(missing_docs, reason = "the sentence of each says it")]
        pub enum Status {
            $($name = $number,)*
        }

        impl Status {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The status with this number.
            #[must_use]
            pub fn of(number: c_int) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name, as the conformance suite has it.
            #[must_use]
            pub fn name(self) -> &'static CStr {
                let text = match self {
                    $(Self::$name => concat!(stringify!($name), "\0"),)*
                };
                CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
            }

            /// What it means.
            #[must_use]
            pub fn sentence(self) -> &'static CStr {
                let text = match self {
                    $(Self::$name => concat!($sentence, "\0"),)*
                };
                CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
            }

            /// Whether a write that came to this is known to have changed nothing.
            #[must_use]
            pub fn is_harmless(self) -> bool {
                match self {
                    $(Self::$name => statuses!(@$harm),)*
                }
            }
        }
    };
    (@harmless) => { true };
    (@maybe) => { false };
}

statuses! {
    Ok = 0, maybe, "done";
    Miss = 1, harmless, "there is no such key";
    NotStored = 2, harmless, "not stored: there is such a key (add), or there is none (replace, append, prepend)";
    Exists = 3, harmless, "not stored: another version is there";
    Null = -1, harmless, "a pointer that may not be null is null";
    Argument = -2, harmless, "an argument is out of its range";
    Handle = -3, harmless, "no such client, request or queue: it was closed or released, or never was";
    Uri = -4, harmless, "this does not name a cluster";
    Full = -5, harmless, "too many requests have not been released";
    BadKey = -6, harmless, "a key has 1 to 250 bytes";
    TooLarge = -7, harmless, "the value is longer than it may be; nothing was done";
    NotANumber = -8, harmless, "the value is no number; nothing was done";
    NoNamespace = -9, harmless, "there is no such namespace";
    ShortBuffer = -10, maybe, "the buffer is too short for it";
    Pending = -11, maybe, "it is not over";
    Released = -12, maybe, "it was released while it was waited for";
    Cancelled = -13, maybe, "it was cancelled; a write may or may not have been done";
    Closed = -14, maybe, "the client was closed; a write may or may not have been done";
    Unreachable = -15, harmless, "it could not be sent to a node in time, or not all of it; nothing was done";
    TimedOut = -16, maybe, "the deadline has passed; a write may or may not have been done";
    Unknown = -17, maybe, "a node or its connection was lost; a write may or may not have been done";
    Busy = -18, harmless, "too much waits already; nothing was done";
    Unavailable = -19, harmless, "no primary could be reached in time; nothing was done";
    Late = -20, harmless, "the deadline had passed before it was begun; nothing was done";
    OutOfMemory = -21, harmless, "there is no room, and nothing may be evicted; nothing was done";
    Lost = -22, maybe, "more members were lost than the code makes up for";
    Corrupt = -23, harmless, "what is there is damaged";
    Changed = -24, maybe, "the value was replaced while it was read";
    BufferChanged = -25, maybe, "the buffer of a write was changed before the write was over";
    System = -26, harmless, "the system refused a thread or a file descriptor";
    Internal = -27, maybe, "a fault of the library";
    ScansOff = -28, harmless, "the nodes do not say which keys there are: --native-scans";
    Expired = -29, maybe, "the session of the write is over; the write may or may not have been done";
    TooOld = -30, harmless, "the node is of an older release and does not know what was asked; nothing was done";
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Code(code) => code.into(),
            Error::Unreachable => Self::Unreachable,
            Error::Interrupted(_) => Self::Unavailable,
            Error::TimedOut => Self::TimedOut,
            Error::Unknown => Self::Unknown,
            Error::Changed => Self::Changed,
            Error::Cancelled => Self::Cancelled,
            Error::NoNamespace => Self::NoNamespace,
            Error::Full => Self::Full,
            Error::BadKey => Self::BadKey,
            Error::TooLarge => Self::TooLarge,
            Error::TooOld => Self::TooOld,
            Error::NoRoom => Self::ShortBuffer,
            Error::Closed => Self::Closed,
        }
    }
}

impl From<Code> for Status {
    fn from(code: Code) -> Self {
        match code {
            Code::Value
            | Code::Stored
            | Code::Deleted
            | Code::Touched
            | Code::Number
            | Code::About
            | Code::Places
            | Code::Session
            | Code::Chunks
            | Code::Cells
            | Code::Noted
            | Code::Begun
            | Code::Placed
            | Code::Keys
            | Code::Whole => Self::Ok,
            Code::Miss | Code::NotFound => Self::Miss,
            Code::NotStored => Self::NotStored,
            Code::Exists => Self::Exists,
            Code::NotANumber => Self::NotANumber,
            Code::TooLarge => Self::TooLarge,
            Code::OutOfMemory => Self::OutOfMemory,
            Code::Busy | Code::NotOpen => Self::Busy,
            // Nothing was done, and the client begins another session.
            Code::Unavailable | Code::NoSession | Code::NotDirect | Code::Moved => Self::Unavailable,
            Code::Lost => Self::Lost,
            Code::NoNamespace => Self::NoNamespace,
            Code::Unknown => Self::Unknown,
            Code::Corrupt => Self::Corrupt,
            Code::Cancelled => Self::Cancelled,
            Code::Late => Self::Late,
            Code::ScansOff => Self::ScansOff,
            Code::Expired => Self::Expired,
        }
    }
}

/// Why a call has done nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub status: Status,
    /// What it is about, in front of the status's sentence; empty = nothing more is to be said.
    pub what: String,
}

impl Failure {
    pub(crate) fn of(status: Status, what: impl Into<String>) -> Self {
        Self { status, what: what.into() }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, what: String::new() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Status::from(error).into()
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The number for `result`; the sentence of a failure is kept for this thread.
pub(crate) fn conclude(result: Result<Status, Failure>) -> c_int {
    let failure = match result {
        Ok(status) => return status as c_int,
        Err(failure) => failure,
    };
    let sentence = failure.status.sentence().to_string_lossy();
    let sentence =
        if failure.what.is_empty() { sentence.into_owned() } else { format!("{}: {sentence}", failure.what) };
    // A caller's text may have a zero byte in it.
    LAST.with(|last| *last.borrow_mut() = CString::new(sentence.replace('\0', " ")).unwrap_or_default());
    failure.status as c_int
}

/// The sentence of this thread's last failure; valid until its next one.
pub(crate) fn last_sentence() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_nothing_is_the_same_here_and_in_rust() {
        let codes = Code::ALL.iter().filter(|code| **code as u8 >= Code::NotANumber as u8);
        for error in codes.map(|code| Error::Code(*code)).chain([
            Error::Unreachable,
            Error::Interrupted(7),
            Error::TimedOut,
            Error::Unknown,
            Error::Changed,
            Error::Cancelled,
            Error::NoNamespace,
            Error::Full,
            Error::BadKey,
            Error::TooLarge,
            Error::TooOld,
            Error::Closed,
        ]) {
            assert_eq!(Status::from(error).is_harmless(), error.is_harmless(), "{error:?}");
        }
    }

    #[test]
    fn numbers_lead_back_to_their_statuses() {
        assert!(Status::ALL.iter().all(|status| Status::of(*status as c_int) == Some(*status)));
        assert_eq!(Status::of(17), None);
        assert_eq!(Status::NotANumber.name().to_bytes(), b"NotANumber");
        assert!(Status::ALL.iter().all(|status| !status.sentence().to_bytes().is_empty()));
    }
}
