//! `cargo xtask bench values`: what long values cost beside stock memcached and valkey, with a client that knows no map: server CPU for each
//! megabyte, a value of a gigabyte, memory, reads with nodes less.
//!
//! The machine may be shared: all sides take turns within each round, medians count, nothing is judged.

mod cost;
mod degraded;
mod floor;
mod large;
mod memory;
mod page;
pub(crate) mod plain;
pub(crate) mod sides;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use cost::Cost;
use degraded::Degraded;
use floor::Floor;
use large::Large;
use memory::Stored;

/// What long values cost.
#[derive(Parser, Debug)]
#[command(name = "values", after_help = "Example: values --sizes 128KiB,1MB --rounds 3")]
struct Arguments {
    /// Lengths of values, in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [16_384, 65_536, 131_072, 262_144, 524_288, 1_000_000, 4_000_000, 16_000_000])]
    sizes: Vec<usize>,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Bytes that each side writes and reads in a turn
    #[arg(long, default_value_t = 256_000_000)]
    bytes: usize,
    /// Length of the largest value, in bytes
    #[arg(long, default_value_t = 1 << 30)]
    largest: usize,
    /// Leave out memory, the largest value and degraded reads
    #[arg(long)]
    costs_only: bool,
    /// Where the page goes
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
}

/// All that was measured.
#[derive(Debug, Default, Serialize)]
struct Document {
    costs: Vec<Cost>,
    floor: Option<Floor>,
    large: Vec<Large>,
    stored: Vec<Stored>,
    degraded: Vec<Degraded>,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("values", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut document = Document {
        costs: cost::measure(&arguments.sizes, arguments.rounds, arguments.bytes)?,
        floor: Some(floor::measure()?),
        ..Document::default()
    };
    // After each part: the next one may fail.
    save(&document, arguments)?;
    if !arguments.costs_only {
        document.large = large::measure(arguments.largest, arguments.rounds)?;
        save(&document, arguments)?;
        document.stored = memory::measure()?;
        save(&document, arguments)?;
        document.degraded = degraded::measure()?;
    }
    save(&document, arguments)
}

fn save(document: &Document, arguments: &Arguments) -> Result<(), String> {
    let write = |name: &str, text: String| {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("values.json", serde_json::to_string_pretty(document).map_err(|error| error.to_string())?)?;
    write("values.md", page::render(document))
}
