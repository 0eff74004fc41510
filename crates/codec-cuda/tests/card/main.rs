//! What a card computes: the bytes of the processor, whatever way is taken.
//!
//! On a machine with a card these run on it. `cargo xtask test cuda` runs them anywhere, with a driver that runs the same kernels on
//! the processor (`emulator/`). Without either, they say that they were skipped.

#![allow(clippy::unwrap_used)] // Helpers of tests count as tests.

mod accelerator;
mod choice;
mod conforms;
mod device;
mod pipeline;
mod sweep;

use std::path::PathBuf;
use std::process::Command;
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

/// Whether the card is one of `emulator/`.
fn is_emulated() -> bool {
    std::env::var_os("GESTALT_EMULATED_CUDA_DIR").is_some()
}

/// Runs the ignored test `name` in a process of its own, with the environment that `prepare` gives it: an emulated driver reads there how
/// it is to fail. It hears where the emulated driver is.
fn in_another_process(name: &str, prepare: impl FnOnce(&mut Command, PathBuf) -> &mut Command) {
    let Some(dir) = std::env::var_os("GESTALT_EMULATED_CUDA_DIR") else {
        return println!("skipped: this card is not an emulated one");
    };
    run_alone(name, |child| prepare(child, dir.into()));
}

/// The same with the real card; nothing where it is emulated, since that one knows of one process.
fn in_a_process_of_the_card(name: &str) {
    if is_emulated() || card().is_none() {
        return println!("skipped: not a real card");
    }
    run_alone(name, |child| child);
}

fn run_alone(name: &str, prepare: impl FnOnce(&mut Command) -> &mut Command) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--ignored"]);
    let output = prepare(&mut child).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
