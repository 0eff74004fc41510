//! The flags.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::cells::{Cell, USUAL, by_clients, by_size, crowded};

/// Measures the native protocol and its clients in the manner of OHB, beside memcached's protocol to the same cluster and memcached itself.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "native",
    after_help = "Examples:\n  cargo xtask bench native --quick\n  cargo xtask bench native matrix --sizes 1024 --rounds 9\n  cargo xtask bench native overlap\n  cargo xtask bench native python\n  cargo xtask bench native clients\n  cargo xtask bench native modes\n  cargo xtask bench native scans\n  cargo xtask bench native ycsb"
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
    /// Rounds of each cell; all sides take turns in each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Milliseconds of each run
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(50..=600_000))]
    milliseconds: u32,
    /// Lengths of values in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20])]
    sizes: Vec<usize>,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32])]
    clients: Vec<u16>,
    /// Transfers whose overlap with computing is measured, of each kind
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    transfers: u32,
    /// The C client's shared library; without it Python and the C client are left out
    #[arg(long)]
    pub python_library: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Set, get and mixed: by length, by clients, waiting and not, many connections.
    Matrix,
    /// How much of a transfer's time its caller can compute in, from Rust and from Python.
    Overlap,
    /// What a program in Python gets done: small operations from asyncio, long values into NumPy's arrays.
    Python,
    /// What a client's process takes for an operation, in C and Rust, beside libmemcached.
    Clients,
    /// Who codes long values: the client or a node, both ways, with the servers' CPU for each megabyte.
    Modes,
    /// What it takes to list keys, by pages.
    Scans,
    /// YCSB's workloads A, B, C, D and F, beside memcached and valkey.
    Ycsb,
}

impl Arguments {
    /// What a test runs: of everything a little, into `out`.
    #[must_use]
    pub fn shortest(out: PathBuf) -> Self {
        let mut arguments = Self::parse_from(["native", "--quick", "--milliseconds", "100", "--rounds", "1"]);
        arguments.out = out;
        arguments
    }

    /// What a page says of them: nothing of where files are.
    pub(super) fn told(&self) -> String {
        let mut told: Vec<String> = self
            .parts
            .iter()
            .filter_map(|part| part.to_possible_value())
            .map(|part| part.get_name().to_owned())
            .collect();
        if self.quick {
            told.push("--quick".to_owned());
        }
        let list = |numbers: Vec<String>| numbers.join(",");
        told.extend(["--rounds".to_owned(), self.rounds.to_string()]);
        told.extend(["--milliseconds".to_owned(), self.milliseconds.to_string()]);
        told.extend(["--sizes".to_owned(), list(self.sizes.iter().map(ToString::to_string).collect())]);
        told.extend(["--clients".to_owned(), list(self.clients.iter().map(ToString::to_string).collect())]);
        told.join(" ")
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        if self.parts.is_empty() { Part::value_variants().to_vec() } else { self.parts.clone() }
    }

    pub(super) fn rounds(&self) -> u32 {
        if self.quick { self.rounds.min(2) } else { self.rounds }
    }

    pub(super) fn milliseconds(&self) -> u32 {
        if self.quick { self.milliseconds.min(100) } else { self.milliseconds }
    }

    pub(super) fn transfers(&self) -> u32 {
        if self.quick { self.transfers.min(10) } else { self.transfers }
    }

    /// All cells, those with the shortest values first.
    pub(super) fn cells(&self) -> BTreeSet<Cell> {
        let sizes = if self.quick { &[1, 96 << 10][..] } else { &self.sizes[..] };
        let clients = if self.quick { &[1, 8][..] } else { &self.clients[..] };
        let mut cells: BTreeSet<Cell> = sizes.iter().flat_map(|size| by_size(*size)).collect();
        if self.quick || self.sizes.contains(&USUAL) {
            cells.extend(clients.iter().flat_map(|clients| by_clients(*clients)));
            cells.extend(crowded());
        }
        cells
    }
}
