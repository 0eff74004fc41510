//! Rows of the page: one way of filling each, measured.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

const MIB: f64 = 1_048_576.0;

/// What is wrong with one of those whose chunks are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Trouble {
    /// Nothing
    None,
    /// Its link has a quarter of the bandwidth
    Slow,
    /// Its process stands still for half of the time
    Busy,
}

/// One way of filling, measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Filled {
    pub code: String,
    pub mbit: u32,
    #[serde(default = "nothing")]
    pub trouble: Trouble,
    /// How often it was run.
    #[serde(default)]
    pub runs: usize,
    pub way: String,
    pub execution: String,
    /// Bytes of a chunk, in KiB.
    #[serde(default = "mebibyte")]
    pub chunk: u32,
    /// Bytes of the chunks that the node has got.
    pub bytes: u64,
    /// From when it knew what it lacked to the last of them, median, least and most.
    pub seconds: [f64; 3],
    /// Bytes that all nodes have sent each other, median.
    pub sent_bytes: u64,
    /// Processor time of all nodes, median.
    pub cpu_seconds: f64,
}

fn nothing() -> Trouble {
    Trouble::None
}

fn mebibyte() -> u32 {
    1024
}

impl Filled {
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let key = |filled: &Self| (filled.mbit, filled.trouble, filled.chunk);
        let names = |filled: &Self| [&filled.code, &filled.way, &filled.execution].map(String::clone);
        key(self) == key(other) && names(self) == names(other)
    }

    fn mib_per_s(&self) -> f64 {
        self.bytes as f64 / MIB / self.seconds[0]
    }

    /// Of what the link of the node that is filled would carry.
    fn of_link(&self) -> f64 {
        self.bytes as f64 * 8e-6 / f64::from(self.mbit) / self.seconds[0]
    }
}

/// Its row of the page, but for the number of runs.
pub(super) fn line(filled: &Filled) -> String {
    format!(
        "| {} | {} | {} | {} | {}{} | {:.0} | {:.2} ({:.2} to {:.2}) | {:.1} | {:.2} | {:.2} | {:.2} |",
        filled.code,
        filled.chunk,
        filled.mbit,
        match filled.trouble {
            Trouble::None => "none",
            Trouble::Slow => "slow link",
            Trouble::Busy => "busy node",
        },
        filled.way,
        if filled.execution == "incoherent" { ", incoherent" } else { "" },
        filled.bytes as f64 / MIB,
        filled.seconds[0],
        filled.seconds[1],
        filled.seconds[2],
        filled.mib_per_s(),
        filled.of_link(),
        filled.sent_bytes as f64 / filled.bytes as f64,
        filled.cpu_seconds / (filled.bytes as f64 / MIB) * 1e3,
    )
}
