//! Runs one hot path so and so often, for counting its instructions (`cargo xtask bench counts`): one thread, no sockets,
//! and a time that stands still.
//!
//! Only what happens inside [`path::counted`] counts: callgrind starts and stops collecting at that function's name. Around it
//! inputs are made, the other nodes of the cluster are run, and every result is checked.

mod cluster;
mod data;
mod path;
mod pieces;
mod requests;
mod spread;

use std::process::ExitCode;

use clap::Parser;
use path::{BATCH, Path};

/// Runs a hot path N times.
#[derive(Parser, Debug)]
#[command(after_help = "Example: hot_paths get-100 --times 160")]
struct Arguments {
    /// Which one
    #[arg(required_unless_present_any = ["list", "processor"])]
    path: Option<String>,
    /// How many operations; a multiple of 16
    #[arg(long, default_value_t = 16)]
    times: usize,
    /// Names all paths
    #[arg(long)]
    list: bool,
    /// Says what the processor can do, and which kernel the codec has for it
    #[arg(long)]
    processor: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // The first is the best of the machine. Which one is fastest would be found with a clock.
    let kernel = codec::kernels()[0];
    codec::select(kernel.name()).expect("no kernel is in use yet");
    if arguments.processor {
        println!("{} (codec: {kernel:?})", features().join(" "));
        return ExitCode::SUCCESS;
    }
    if arguments.list {
        paths().for_each(|path| println!("{:<20} {}", path.name, path.about));
        return ExitCode::SUCCESS;
    }
    let found = paths().find(|path| Some(path.name) == arguments.path.as_deref());
    let Some(path) = found.filter(|_| arguments.times.is_multiple_of(BATCH)) else {
        eprintln!("no such path (--list names them), or --times is no multiple of {BATCH}");
        return ExitCode::FAILURE;
    };
    (path.run)(arguments.times);
    ExitCode::SUCCESS
}

/// All paths.
fn paths() -> impl Iterator<Item = &'static Path> {
    requests::PATHS.iter().chain(spread::PATHS).chain(pieces::PATHS)
}

/// Instructions that programs choose their loops by.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    macro_rules! present {
        ($($name:tt)*) => {
            [$(($name, std::arch::is_x86_feature_detected!($name))),*]
        };
    }
    let known = present!("ssse3" "sse4.2" "popcnt" "avx" "avx2" "bmi2" "fma" "pclmulqdq" "gfni" "avx512f");
    known.into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    vec![std::env::consts::ARCH]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_does_what_it_says() {
        for path in paths() {
            (path.run)(2 * BATCH);
        }
    }
}
