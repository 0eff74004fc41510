//! Everything that was measured: `native.json`, from which page and plots are made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cells::{Cell, Side};
use super::clients::Client;
use super::modes::Mode;
use super::overlap::Overlap;
use super::python::Rate;
use super::scans::Scanned;
use super::ycsb::Workload;
use crate::document::by_lines;
use crate::spread::Spread;

const FILE: &str = "native.json";

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    /// Processor, cores, kernel.
    pub machine: String,
    /// The flags of the last run of the matrix.
    pub command: String,
    /// Name and version of memcached.
    pub memcached: String,
    pub cells: Vec<Measured>,
    pub overlaps: Vec<Overlap>,
    #[serde(default)]
    pub python: Vec<Rate>,
    #[serde(default)]
    pub clients: Vec<Client>,
    #[serde(default)]
    pub modes: Vec<Mode>,
    #[serde(default)]
    pub scans: Vec<Scanned>,
    #[serde(default)]
    pub ycsb: Vec<Workload>,
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
    /// Megabytes (10^6) of values a second.
    pub rate: Spread,
    pub p50_us: Spread,
    pub p99_us: Spread,
    /// CPU time of all server processes per operation, in microseconds.
    pub server_us: Spread,
    /// The same of the client.
    pub client_us: Spread,
    /// Of the native side's p99, and of its servers' CPU time, in the same round.
    pub p99_ratio: Spread,
    pub server_ratio: Spread,
    /// Operations that failed, over all rounds.
    pub failed: u64,
}

impl Document {
    /// What is in `dir`, or nothing yet.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let path = dir.join(FILE);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(Self::default()) };
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}: remove it", path.display()))
    }

    /// Writes it.
    pub fn save(&self, dir: &Path) -> Result<(), String> {
        let path = dir.join(FILE);
        let text = by_lines(self).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// In place of what was measured of the same cell before.
    pub fn put(&mut self, measured: Measured) {
        self.cells.retain(|other| other.cell != measured.cell);
        self.cells.push(measured);
        self.cells.sort_by_key(|measured| measured.cell);
    }
}
