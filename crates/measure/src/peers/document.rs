//! Everything that was measured, as it is kept in `peers.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::document::by_lines;
use crate::peers::cells::{Cell, Workload};
use crate::peers::side::Side;
use crate::spread::Spread;

const FILE: &str = "peers.json";

/// The document.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// The processor, its cores, the kernel.
    pub machine: String,
    /// How the matrix was run.
    pub matrix_command: String,
    /// Names of the sides, with versions.
    pub names: BTreeMap<Side, String>,
    /// Processes of each side.
    pub processes: BTreeMap<Side, usize>,
    pub cells: Vec<Measured>,
    pub memory: Vec<Memory>,
    /// CPU time of each side's processes while nobody asks, in thousandths of a core.
    pub idle_millicores: BTreeMap<Side, f64>,
    pub crosschecks: Vec<Crosscheck>,
    pub failures: Vec<Failure>,
}

/// One cell and all sides' figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    #[serde(flatten)]
    pub cell: Cell,
    pub rounds: u32,
    pub sides: BTreeMap<Side, Figures>,
}

/// One side's figures in one cell, over the rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Thousands of operations a second.
    pub kops: Spread,
    pub p50_us: Spread,
    pub p99_us: Spread,
    pub p999_us: Spread,
    /// CPU time of all server processes per operation, in microseconds.
    pub cpu_us: Spread,
    /// Of the first side's CPU time in the same round.
    pub cpu_ratio: Spread,
    /// Of the first side's operations a second in the same round.
    pub kops_ratio: Spread,
    /// Operations that failed, over all rounds.
    pub failed: u64,
}

/// Resident bytes per stored value, net of the empty processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes of a value.
    pub value: u32,
    /// How many were stored.
    pub values: u32,
    pub bytes: BTreeMap<Side, f64>,
}

/// What YCSB saw: values of 1 KiB, zipf.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crosscheck {
    pub workload: Workload,
    pub sides: BTreeMap<Side, CrosscheckFigures>,
}

/// One side's figures under YCSB. Latencies are those of reads, or of writes where there are more of them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CrosscheckFigures {
    pub kops: Spread,
    pub p50_us: Spread,
    pub p99_us: Spread,
    pub cpu_us: Spread,
}

/// A load during which nodes are killed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub side: Side,
    /// `killed` or `stopped`.
    pub how: String,
    /// How many nodes at once.
    pub nodes: usize,
    /// When, in seconds from the start of the load.
    pub at_s: f64,
    /// Operations a second before, median of the stretches.
    pub before: f64,
    /// Median of the stretches' p99 before, in microseconds.
    pub before_p99_us: f64,
    /// Longest time without any answer to anybody, in seconds.
    pub silent_s: f64,
    /// From the fault until throughput stays above nine tenths of `before`, in seconds; none if it never does.
    pub normal_s: Option<f64>,
    /// From the fault until every group survives as many losses as before, in seconds; none if that took too long.
    pub protected_s: Option<f64>,
    /// Median of the last stretches.
    pub after: f64,
    pub after_p99_us: f64,
    pub failed: u64,
    pub wrong: u64,
    pub misses: u64,
    pub errors: BTreeMap<String, u64>,
    pub timeline: Vec<Stretch>,
}

/// A tenth of a second or so.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stretch {
    pub until_s: f64,
    pub operations_per_second: f64,
    pub failed: u64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Document {
    /// What is in `dir`, or nothing yet.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let path = dir.join(FILE);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(Self::default()) };
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}: remove it", path.display()))
    }

    /// Writes it, one line for each thing that was measured.
    pub fn save(&self, dir: &Path) -> Result<(), String> {
        let path = dir.join(FILE);
        let text = by_lines(self).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// What was measured of `cell`, if it was.
    pub fn cell(&self, cell: &Cell) -> Option<&Measured> {
        self.cells.iter().find(|measured| measured.cell == *cell)
    }

    /// In place of what was measured of the same cell before.
    pub fn put(&mut self, measured: Measured) {
        self.cells.retain(|other| other.cell != measured.cell);
        self.cells.push(measured);
        self.cells.sort_by_key(|measured| measured.cell);
    }

    /// How a side is called.
    pub fn name(&self, side: Side) -> &str {
        self.names.get(&side).map_or("?", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::cells::Distribution;

    #[test]
    fn what_is_written_can_be_read() {
        let mut document = Document { machine: "a \"machine\"".into(), ..Document::default() };
        let cell = Cell {
            value: 100,
            connections: 48,
            depth: 1,
            distribution: Distribution::Zipf,
            workload: Workload::Set,
        };
        document.put(Measured { cell, rounds: 1, sides: BTreeMap::new() });
        document.put(Measured { cell, rounds: 2, sides: BTreeMap::new() });
        let again: Document = serde_json::from_str(&by_lines(&document).unwrap()).unwrap();
        assert_eq!(again.machine, document.machine);
        assert_eq!(again.cells.len(), 1);
        assert_eq!(again.cell(&cell).unwrap().rounds, 2);
    }
}
