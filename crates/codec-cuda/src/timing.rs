//! How long something takes on a card, and beside it.
#![expect(
    clippy::disallowed_methods,
    reason = "what is fastest is found with a clock; the bytes are the same whatever it says"
)]

use std::time::Instant;

use crate::{Combination, CudaError, Matrix, Stripe};

/// How often each is done; the best counts.
pub(crate) const TRIES: usize = 3;

/// Seconds that the card takes for chunks in its own memory: of all of them together, a 64th of what is free.
#[expect(unsafe_code, reason = "addresses in a buffer of this function")]
pub(crate) fn seconds_on_device(combination: &Combination) -> Result<f64, CudaError> {
    let (device, matrix) = (combination.device(), combination.matrix());
    let (free, _) = device.memory()?;
    let len = chunk_len(matrix, (free / 64).min(MAX_DEVICE_BYTES))?;
    let buffer = device.allocate(matrix.chunks() * len)?;
    let at = |chunk: usize| buffer.address_of(chunk * len, len);
    let sources = (0..matrix.columns()).map(at).collect();
    let outputs = (matrix.columns()..matrix.chunks()).map(at).collect();
    let stripe = [Stripe { sources, outputs, len: len as u64 }];
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        // SAFETY: all chunks are in the buffer, apart from each other.
        best = best.min(unsafe { combination.run_on_device(&stripe) }?);
    }
    Ok(best)
}

pub(crate) fn seconds(work: impl FnOnce() -> Result<(), CudaError>) -> Result<f64, CudaError> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Most bytes of all chunks when only the card is measured: far more than its caches hold.
const MAX_DEVICE_BYTES: usize = 1 << 30;

/// Chunks begin at multiples of this there.
const ALIGN: usize = 4096;

/// Bytes of each chunk, if all of them are to take `bytes`.
pub(crate) fn chunk_len(matrix: &Matrix, bytes: usize) -> Result<usize, CudaError> {
    match bytes / matrix.chunks() / ALIGN * ALIGN {
        0 => Err(CudaError::OutOfMemory { place: "device", bytes: matrix.chunks() * ALIGN }),
        len => Ok(len),
    }
}
