//! Chunks on their way from a card to page-locked memory, while the caller does something else.
#![allow(unsafe_code)] // What is copied must stay: see `Readout`.

use std::mem;
use std::sync::Arc;

use crate::driver::{Mark, Stream};
use crate::{CudaError, Device, PinnedBuffer};

/// Some memory of a card that is being copied to page-locked memory. Dropping it waits.
#[derive(Debug)]
pub struct Readout {
    end: Mark,
    /// Before what it writes to: it is dropped first.
    copying: Copying,
    into: PinnedBuffer,
}

/// Dropping it waits.
#[derive(Debug)]
struct Copying(Stream);

impl Drop for Copying {
    fn drop(&mut self) {
        // A card that fails here has stopped copying.
        let _ = self.0.wait();
    }
}

impl Device {
    /// Begins to copy `ranges`, addresses and lengths, one after the other to the beginning of `into`.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The ranges are memory of this card that stays, and that nobody writes, until the readout is over.
    ///
    /// # Panics
    /// If `into` is shorter than all of them.
    pub unsafe fn read_out(
        self: &Arc<Self>,
        ranges: &[(u64, usize)],
        mut into: PinnedBuffer,
    ) -> Result<Readout, CudaError> {
        // Whatever is refused later: what has begun is waited for before `into` goes.
        let copying = Copying(self.context().new_stream()?);
        let mut rest = into.bytes_mut();
        for (address, len) in ranges {
            let (range, behind) = mem::take(&mut rest).split_at_mut(*len);
            rest = behind;
            // SAFETY: the caller's; `into` is not looked at before the stream has been waited for.
            unsafe { copying.0.copy_out(range, *address) }?;
        }
        Ok(Readout { end: copying.0.mark()?, copying, into })
    }
}

impl Readout {
    /// Whether everything is there.
    ///
    /// # Errors
    /// The driver's.
    pub fn is_over(&self) -> Result<bool, CudaError> {
        self.end.has_passed()
    }

    /// Waits, and gives the memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait(self) -> Result<PinnedBuffer, CudaError> {
        // Dropped in the reverse order, if waiting fails.
        let Self { into, copying, .. } = self;
        copying.0.wait()?;
        Ok(into)
    }
}
