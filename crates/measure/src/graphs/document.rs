//! What was measured.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Document {
    pub repaired: Vec<Repaired>,
    pub cells: Vec<Cell>,
    pub encoded: Vec<Encoded>,
    pub filled: Vec<Filled>,
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
