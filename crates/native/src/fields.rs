//! Fields of a body: numbers are little-endian, and whatever is not as it should be is [`Malformed`].

use bytes::{Buf, Bytes};
use thiserror::Error;

/// Why bytes are no message of this protocol. It costs the connection.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// A body or a frame is longer than there can be.
    #[error("a frame of {0} bytes, which none may have")]
    Long(u64),
    /// A kind that nobody knows, or that the other side may not send.
    #[error("a frame of kind {0}, which is not to be sent here")]
    Kind(u8),
    /// Bits that must be zero are not.
    #[error("a reserved bit is set")]
    Reserved,
    /// A body ends too early.
    #[error("a body ends too early")]
    Short,
    /// A body is longer than what it says.
    #[error("a body has bytes left")]
    Rest,
    /// A field has a value that it cannot have.
    #[error("{0} cannot have this value")]
    Field(&'static str),
    /// The first frame is not a hello.
    #[error("no hello")]
    Hello,
}

/// Takes the fields of a body one by one.
pub(crate) struct Fields(Bytes);

impl Fields {
    pub(crate) fn of(body: Bytes) -> Self {
        Self(body)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed::Short)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.0.try_get_u16_le().map_err(|_| Malformed::Short)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32_le().map_err(|_| Malformed::Short)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.try_get_u64_le().map_err(|_| Malformed::Short)
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Field(what)),
        }
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len > self.0.len() { Err(Malformed::Short) } else { Ok(self.0.split_to(len)) }
    }

    /// A list of `count`; its memory grows with what comes.
    pub(crate) fn list<T>(
        &mut self,
        count: usize,
        mut one: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(one(self)?);
        }
        Ok(all)
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Rest) }
    }
}

/// Appends fields.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
}
