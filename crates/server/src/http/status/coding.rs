//! Who computes the codes of values in chunks.

use codec::Work;
use serde::{Deserialize, Serialize};

use crate::node::shared::Shared;

/// An accelerator beside a node's workers, and what it has done. What it does not do, the processor does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodingStatus {
    /// Its name.
    pub place: String,
    /// Rows and slices that it has combined.
    pub done: u64,
    /// Bytes of their sources.
    pub bytes: u64,
    /// Rows and slices that the processor has combined instead.
    pub left: u64,
    /// Times that it has failed.
    pub faults: u64,
}

impl CodingStatus {
    /// None where the processor does everything.
    pub(super) fn of(shared: &Shared) -> Option<Self> {
        let accelerator = shared.config.coder.accelerator()?;
        let Work { done, bytes, left, faults } = accelerator.work();
        Some(Self { place: accelerator.name(), done, bytes, left, faults })
    }
}
