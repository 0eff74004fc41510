//! Why a server closes a connection.

use bytes::Bytes;

use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Kind, put_frame};
use crate::hello::{NEWEST_VERSION, OLDEST_VERSION};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Why.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $name = $number,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// The first frame was no hello.
    NoHello = 1,
    /// There is no version that both sides speak.
    Version = 2,
    /// A frame was malformed.
    Malformed = 3,
    /// The number of a request was not above those before it, or a frame was about a request that there never was.
    BadId = 4,
    /// More requests were unanswered than there were credits for.
    TooManyRequests = 5,
    /// More bytes of a value came than were announced, or than the window allowed.
    TooManyBytes = 6,
    /// The client did not read, or granted no window for what it had asked for.
    SlowReader = 7,
    /// The client was silent for too long.
    Idle = 8,
    /// A frame or a value was begun and did not come.
    HalfSent = 9,
    /// All places for connections are taken.
    TooManyConnections = 10,
    /// The node ends.
    Ends = 11,
}

/// The last thing that a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Why.
    pub reason: Reason,
    /// The oldest version that it speaks.
    pub oldest: u16,
    /// The newest one.
    pub newest: u16,
}

impl Closing {
    /// What this version of the protocol says.
    #[must_use]
    pub fn with(reason: Reason) -> Self {
        Self { reason, oldest: OLDEST_VERSION, newest: NEWEST_VERSION }
    }

    /// Appends it; `id` is of the request that it is about, or 0.
    pub fn put(&self, id: u64, out: &mut Vec<u8>) {
        put_frame((Kind::Closing, 0, id), 0, out, |out| {
            out.put_u8(self.reason as u8);
            out.put_u16(self.oldest);
            out.put_u16(self.newest);
        });
    }

    pub(crate) fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let reason = Reason::of(fields.u8()?).ok_or(Malformed::Field("the reason"))?;
        let (oldest, newest) = (fields.u16()?, fields.u16()?);
        fields.end()?;
        Ok(Self { reason, oldest, newest })
    }
}
