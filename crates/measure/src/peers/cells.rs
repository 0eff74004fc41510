//! What is run: one point of the matrix.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One point of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of a value.
    pub value: u32,
    /// Connections of the one client thread.
    pub connections: u16,
    /// Requests in flight on each connection.
    pub depth: u16,
    pub distribution: Distribution,
    pub workload: Workload,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Reads.
    C,
    /// 95 % reads.
    B,
    /// Half reads.
    A,
    /// Writes.
    Set,
}

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All keys alike.
    Uniform,
    /// Zipf's law with YCSB's exponent.
    Zipf,
}

/// YCSB's exponent of Zipf's law.
const THETA: &str = "0.99";

impl Workload {
    /// As `gestalt bench` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::B => "b",
            Self::A => "a",
            Self::Set => "set",
        }
    }

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::C => "GET",
            Self::B => "95/5",
            Self::A => "50/50",
            Self::Set => "SET",
        }
    }
}

impl Distribution {
    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf 0.99",
        }
    }
}

impl Cell {
    /// Flags of `gestalt bench` for it.
    pub fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = [
            ("--value-size", self.value.to_string()),
            ("--clients", self.connections.to_string()),
            ("--depth", self.depth.to_string()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect();
        if self.distribution == Distribution::Zipf {
            flags.extend(["--zipf".to_owned(), THETA.to_owned()]);
        }
        flags
    }
}

/// `100 B`, `4 KiB`.
pub fn size(bytes: u32) -> String {
    if bytes >= 1024 { format!("{} KiB", bytes / 1024) } else { format!("{bytes} B") }
}
