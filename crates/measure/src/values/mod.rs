//! `cargo xtask bench values`: what long values cost beside stock memcached and valkey, with a client that knows no map: server CPU for each
//! megabyte, a value of a gigabyte, memory, reads with nodes less.
//!
//! The machine may be shared: all sides take turns within each round, medians count, nothing is judged.

mod cost;
mod degraded;
mod floor;
mod growth;
mod large;
mod lost;
mod memory;
mod page;
pub(crate) mod plain;
pub(crate) mod sides;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use cost::Cost;
use degraded::Degraded;
use floor::Floor;
use growth::Growth;
use large::Large;
use lost::Lost;
use memory::Stored;
use sides::Side;

/// What long values cost.
#[derive(Parser, Debug)]
#[command(name = "values", after_help = "Example: values costs --sizes 131072,1000000 --rounds 3")]
struct Arguments {
    /// What to measure; everything if nothing is named. What is not measured is kept from the last time
    parts: Vec<Part>,
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
    /// Bytes of values that are stored before a node is lost
    #[arg(long, default_value_t = 4 << 30)]
    stored: usize,
    /// Where the page goes
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Server CPU for each megabyte, by the length of values, beside the peers
    Costs,
    /// The same for each layout of values in chunks, from 1 MB on
    Layouts,
    /// One value of a gigabyte
    Large,
    /// Resident memory for each byte
    Memory,
    /// Reads with nodes less
    Degraded,
    /// A node is lost, and its chunks are made anew
    Lost,
    /// What a value costs with 5 to 40 nodes
    Growth,
}

const PARTS: [Part; 7] =
    [Part::Costs, Part::Layouts, Part::Large, Part::Memory, Part::Degraded, Part::Lost, Part::Growth];
/// Shorter values hardly differ by their layout.
const LEAST_LAID_OUT: usize = 1_000_000;

/// All that was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Document {
    costs: Vec<Cost>,
    layouts: Vec<Cost>,
    floor: Option<Floor>,
    large: Vec<Large>,
    stored: Vec<Stored>,
    degraded: Vec<Degraded>,
    lost: Vec<Lost>,
    growth: Vec<Growth>,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("values", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut document = open(&arguments.out.join("values.json"))?;
    for part in PARTS {
        if !arguments.parts.is_empty() && !arguments.parts.contains(&part) {
            continue;
        }
        match part {
            Part::Costs => {
                let (sizes, rounds) = (&arguments.sizes, arguments.rounds);
                document.costs = cost::measure(&Side::PEERS, sizes, rounds, arguments.bytes)?;
                document.floor = Some(floor::measure()?);
            }
            Part::Layouts => {
                let mut sizes = arguments.sizes.clone();
                sizes.retain(|len| *len >= LEAST_LAID_OUT);
                let (rounds, bytes) = (arguments.rounds, arguments.bytes);
                document.layouts = cost::measure(&Side::LAYOUTS, &sizes, rounds, bytes)?;
            }
            Part::Large => document.large = large::measure(arguments.largest, arguments.rounds)?,
            Part::Memory => document.stored = memory::measure()?,
            Part::Degraded => document.degraded = degraded::measure()?,
            Part::Lost => document.lost = lost::measure(arguments.stored)?,
            Part::Growth => document.growth = growth::measure(arguments.rounds)?,
        }
        // After each part: the next one may fail.
        save(&document, arguments)?;
    }
    Ok(())
}

/// What was measured the last time.
fn open(path: &Path) -> Result<Document, String> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display())),
        Err(_) => Ok(Document::default()),
    }
}

fn save(document: &Document, arguments: &Arguments) -> Result<(), String> {
    let write = |name: &str, text: String| {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("values.json", serde_json::to_string_pretty(document).map_err(|error| error.to_string())?)?;
    write("values.md", page::render(document))
}
