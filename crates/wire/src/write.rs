//! Bytes of a record that change an area.

use std::num::NonZeroU32;

use bytes::Bytes;
use types::Addr;

use crate::segments::SHARED_FROM;

/// Bytes to XOR into an area.
#[derive(Clone, Debug)]
pub struct Write {
    /// Where.
    pub addr: Addr,
    /// New bytes XOR the bytes that lie there.
    pub delta: Bytes,
    /// Of long ones that are made here: it is asked for once for each parity. In one word with `addr`: a record is moved often.
    checksum: Option<NonZeroU32>,
}

impl Write {
    /// Of bytes that are made here, to be sent to every parity.
    #[must_use]
    pub fn new(addr: Addr, delta: Bytes) -> Self {
        let checksum =
            // A checksum that happens to be 0 counts as none: such a delta is copied, which is as right.
            if delta.len() < SHARED_FROM { None } else { NonZeroU32::new(types::checksum(&delta)) };
        Self { addr, delta, checksum }
    }

    /// Of bytes that somebody else has made, and that nobody will be sent.
    pub(crate) fn received(addr: Addr, delta: Bytes) -> Self {
        Self { addr, delta, checksum: None }
    }

    /// The checksum of the delta, if that is long and was made here.
    pub(crate) fn checksum(&self) -> Option<u32> {
        self.checksum.map(NonZeroU32::get)
    }
}

impl PartialEq for Write {
    fn eq(&self, other: &Self) -> bool {
        (self.addr, &self.delta) == (other.addr, &other.delta)
    }
}
