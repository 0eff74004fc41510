//! What was measured.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    pub repaired: Vec<Repaired>,
    pub cells: Vec<Cell>,
    pub encoded: Vec<Encoded>,
    pub filled: Vec<Filled>,
    pub ycsb: Vec<Ycsb>,
    pub planning: Vec<Planning>,
    pub combining: Vec<Combining>,
}

/// One lost chunk of 1 MiB at 1 Gbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Repaired {
    pub code: String,
    pub scheme: String,
    /// A plain read of one chunk.
    pub read_us: f64,
    pub us: f64,
    pub incoherent_us: f64,
    pub predicted_us: f64,
    pub moved_bytes: u64,
}

/// One lost chunk of any length at any bandwidth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub code: String,
    pub scheme: String,
    pub len: u32,
    pub gbit: f64,
    pub us: f64,
    pub incoherent_us: f64,
    pub predicted_us: f64,
    pub slice_len: u32,
    pub window: u8,
}

/// One new stripe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Encoded {
    pub code: String,
    pub scheme: String,
    pub len: u32,
    pub gbit: f64,
    pub us: f64,
    #[serde(default)]
    pub incoherent_us: f64,
    pub predicted_us: f64,
    /// Bytes that the writer sends for each byte of the value.
    pub uplink: f64,
}

/// A holder that is filled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Filled {
    pub nodes: u16,
    pub gbit: f64,
    pub scheme: String,
    pub mib_per_s: f64,
}

/// One of YCSB's workloads, by one way of working.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ycsb {
    pub figure: String,
    pub code: String,
    pub scheme: String,
    pub workload: char,
    pub value_len: u32,
    /// Chunks that are lost at a degraded read.
    pub lost: usize,
    pub coherent: YcsbRun,
    pub incoherent: YcsbRun,
}

/// A run of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct YcsbRun {
    pub operations_per_s: f64,
    pub updates: Percentiles,
    pub degraded: Percentiles,
    pub worked: Vec<Worked>,
}

/// What nodes took for a primitive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Worked {
    pub primitive: String,
    pub us: Percentiles,
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Percentiles {
    pub count: usize,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Percentiles {
    pub(super) fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all.get((all.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        Self { count: all.len(), p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }
}

/// How long a plan takes this processor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Planning {
    pub code: String,
    pub scheme: String,
    pub us: f64,
}

/// What executors cost this processor for each byte that is repaired, beside a star of identities.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Combining {
    pub code: String,
    pub scheme: String,
    pub slice_len: u32,
    pub ns_per_byte: f64,
    pub identities_ns_per_byte: f64,
}
