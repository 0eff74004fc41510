//! How long something takes beside a card.
#![expect(
    clippy::disallowed_methods,
    reason = "where an operation runs is decided by a clock; the bytes are the same whatever it says"
)]

use std::time::Instant;

use crate::CudaError;

/// How often each is done; the best counts.
pub(crate) const TRIES: usize = 3;

pub(crate) fn seconds(work: impl FnOnce() -> Result<(), CudaError>) -> Result<f64, CudaError> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}
