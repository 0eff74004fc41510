//! A stream, and memory for the descriptions of what is launched in it: kept from one launch to the next, since making them takes
//! longer than many a launch.
#![allow(unsafe_code)] // A copy from memory that stays.

use crate::CudaError;
use crate::driver::{Context, Memory, Pinned, Stream};

/// Bytes of descriptions for which there is room at least.
const LEAST_BYTES: usize = 64 << 10;

/// For one launch at a time.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: Stream,
    staging: Pinned,
    memory: Memory,
}

impl Lane {
    /// With room for `len` bytes of descriptions.
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, CudaError> {
        let len = len.max(LEAST_BYTES).next_power_of_two();
        Ok(Self {
            stream: context.new_stream()?,
            staging: context.allocate_pinned(len)?,
            memory: context.allocate(len)?,
        })
    }

    /// Bytes of descriptions that it has room for.
    pub(crate) fn room(&self) -> usize {
        self.memory.len()
    }

    /// Puts a copy of `bytes` into the stream, and gives the address where they will be.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<u64, CudaError> {
        let at = self.memory.address_of(0, bytes.len());
        let staged = &mut self.staging.bytes_mut()[..bytes.len()];
        staged.copy_from_slice(bytes);
        // SAFETY: both are this lane's, and who has it waits for its stream before he gives it back.
        unsafe { self.stream.copy_in(at, staged) }?;
        Ok(at)
    }
}
