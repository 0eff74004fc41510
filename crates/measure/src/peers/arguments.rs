//! The flags.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::document::cores;
use crate::peers::cells::{Cell, Distribution, Workload};
use crate::peers::side::Side;

/// Measures Gestalt beside stock memcached and valkey, which are fetched and built if they are not there.
#[derive(Parser, Clone, Debug)]
#[command(
    after_help = "Examples:\n  cargo xtask bench peers --quick\n  cargo xtask bench peers matrix --values 1024 --workloads c,set --rounds 9\n  cargo xtask bench peers failure"
)]
pub struct Arguments {
    /// What to measure; everything if nothing is named. What is not measured is kept from the last time
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Few cells, short runs: to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Where the page, the JSON document and the plots go
    #[arg(long, default_value = "docs/benchmarks")]
    pub out: PathBuf,
    /// Sides to compare; rs82 only where there are cores for its ten nodes, unless it is named
    #[arg(long, value_enum, value_delimiter = ',')]
    sides: Vec<Side>,
    /// Rounds of each cell; all sides take turns in each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Milliseconds of each run
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(50..=600_000))]
    pub milliseconds: u32,
    /// Bytes of data loaded for each size of value
    #[arg(long, default_value_t = 200 << 20)]
    pub bytes: u64,
    /// Sizes of values in bytes
    #[arg(long, value_delimiter = ',', default_value = "100,1024,4096,32768")]
    values: Vec<u32>,
    /// a: half reads; b: 95 % reads; c: reads; set: writes
    #[arg(long, value_enum, value_delimiter = ',', default_value = "c,b,a,set")]
    workloads: Vec<Workload>,
    /// Connections, all of one client thread
    #[arg(long, value_delimiter = ',', default_value = "48,1")]
    connections: Vec<u16>,
    /// Requests in flight on each connection
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    depths: Vec<u16>,
    /// Which keys are asked for
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform,zipf")]
    distributions: Vec<Distribution>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Operations a second, latency and CPU of every cell, and resident memory per stored value.
    Matrix,
    /// The same servers under YCSB, a client that others wrote.
    Ycsb,
    /// The same load while one node, and two nodes, are killed.
    Failure,
}

impl Arguments {
    /// What to measure.
    pub fn parts(&self) -> Vec<Part> {
        if self.parts.is_empty() { Part::value_variants().to_vec() } else { self.parts.clone() }
    }

    /// Whom to compare.
    pub fn sides(&self) -> Vec<Side> {
        if !self.sides.is_empty() {
            return self.sides.clone();
        }
        let (fit, left_out): (Vec<Side>, Vec<Side>) =
            Side::value_variants().iter().copied().partition(|side| side.cores() <= cores());
        for side in left_out {
            println!("left out: {side:?}, which wants {} cores; --sides names it anyway", side.cores());
        }
        fit
    }

    /// Rounds of each cell.
    pub fn rounds(&self) -> u32 {
        if self.quick { 2 } else { self.rounds }
    }

    /// Sizes of values in bytes.
    pub fn values(&self) -> Vec<u32> {
        if self.quick { vec![1024] } else { self.values.clone() }
    }

    /// Everything that is run with values of `value` bytes.
    pub fn cells(&self, value: u32) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &connections in &self.connections {
            for &depth in &self.depths {
                for &distribution in &self.distributions {
                    for &workload in &self.workloads {
                        cells.push(Cell { value, connections, depth, distribution, workload });
                    }
                }
            }
        }
        if self.quick {
            cells.retain(|cell| cell.distribution == Distribution::Uniform);
        }
        cells
    }
}
