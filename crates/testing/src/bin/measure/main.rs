//! Figures beside stock memcached and redis, taken in one run on this machine: throughput, latency and CPU per
//! operation; memory per stored value; the pause that clients see when a node is lost; repair.
//!
//! The machine may be shared, so servers alternate round by round and nothing is judged: figures are printed.
#![allow(clippy::disallowed_methods)]

mod faults;
mod memory;
mod servers;
mod throughput;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Measures Gestalt beside stock memcached and redis; servers are installed by apt if they are not there.
#[derive(Parser, Clone, Debug)]
#[command(after_help = "Example: cargo xtask measure throughput --rounds 3 --seconds 5")]
pub struct Arguments {
    /// What to measure; everything if nothing is named
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Alternating rounds of the throughput part
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each run of the throughput part
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Keys of the throughput part
    #[arg(long, default_value_t = 500_000)]
    keys: u32,
    /// Connections of the throughput part
    #[arg(long, default_value_t = 48)]
    clients: u32,
    /// Requests in flight on each connection
    #[arg(long, default_value_t = 1)]
    depth: u32,
    /// Values of the memory and repair parts
    #[arg(long, default_value_t = 200_000)]
    values: u32,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// GET, 95/5, 50/50 and SET at 1 KiB: operations a second, latency, server CPU per operation.
    Throughput,
    /// Resident memory per stored value at 100 B, 1 KiB and 4 KiB.
    Memory,
    /// The pause that clients see when a node is killed, and when it is stopped.
    Pause,
    /// How fast a lost node's data is repaired.
    Repair,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let all = [Part::Throughput, Part::Memory, Part::Pause, Part::Repair];
    let parts = if arguments.parts.is_empty() { all.to_vec() } else { arguments.parts.clone() };
    for part in parts {
        let result = match part {
            Part::Throughput => throughput::measure(&arguments),
            Part::Memory => memory::measure(&arguments),
            Part::Pause => faults::pause(),
            Part::Repair => faults::repair(&arguments),
        };
        if let Err(reason) = result {
            eprintln!("{part:?}: {reason}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
