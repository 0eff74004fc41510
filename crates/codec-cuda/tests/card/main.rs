//! What a card computes: the bytes of the processor, whatever way is taken.
//!
//! On a machine with a card these run on it. `cargo xtask test cuda` runs them anywhere, with a driver that runs the same kernels on
//! the processor (`emulator/`). Without either, they say that they were skipped.

#![allow(clippy::unwrap_used)] // Helpers of tests count as tests.

mod choice;
mod conforms;
mod device;
mod pipeline;

use std::sync::Arc;

use codec_cuda::{CudaError, Device};

/// The card; none, and a line that says why, where there is none. With `GESTALT_REQUIRE_CUDA` there must be one.
fn card() -> Option<Arc<Device>> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error @ (CudaError::NoDriver | CudaError::NoDevice { .. })) => {
            assert!(std::env::var_os("GESTALT_REQUIRE_CUDA").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
