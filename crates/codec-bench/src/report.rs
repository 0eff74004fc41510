//! Figures, as JSON has them.

use codec_cuda::Span;
use serde::Serialize;

use crate::{Job, Machine, Op, Spread};

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// What was found.
    pub cases: Vec<Case>,
}

/// One job, done by all sides.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The code that was asked for.
    pub code: String,
    /// Data roles.
    pub k: usize,
    /// Parity roles.
    pub m: usize,
    /// The operation.
    pub op: &'static str,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Data bytes of all chunks.
    pub object_bytes: usize,
    /// Lost data chunks; none unless it is a decode.
    pub losses: Option<usize>,
    /// Threads.
    pub threads: usize,
    /// Whether chunks came from memory.
    pub cold: bool,
    /// Rounds.
    pub rounds: usize,
    /// Milliseconds of each side in a round.
    pub turn_ms: f64,
    /// Ours first, then the peers.
    pub sides: Vec<SideFigures>,
    /// The machine's own, for the same chunks.
    pub limits: Vec<Limit>,
    /// Who was asked for and could not do it.
    pub skipped: Vec<Skipped>,
}

impl Case {
    /// Without figures yet.
    #[must_use]
    pub fn new(job: &Job, (k, m): (usize, usize)) -> Self {
        Self {
            code: job.scheme.to_string(),
            k,
            m,
            op: job.op.name(),
            chunk_bytes: job.len,
            object_bytes: job.len * k,
            losses: (job.op == Op::Decode).then_some(job.losses),
            threads: job.threads.get(),
            cold: job.cold,
            rounds: 0,
            turn_ms: 0.0,
            sides: Vec::new(),
            limits: Vec::new(),
            skipped: Vec::new(),
        }
    }
}

/// One side's figures.
#[derive(Clone, Debug, Serialize)]
pub struct SideFigures {
    /// What it is: of ours the code, the kernel and the method; of others their name.
    pub name: String,
    /// What `--against` calls it; nothing if it is this library.
    pub peer: Option<&'static str>,
    /// GB/s of data bytes.
    pub gb_per_second: Spread,
    /// Where the time went, if it is a card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// GB/s that the card's copies alone would allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_gb_per_second: Option<f64>,
    /// What the card did when, in the last call.
    #[serde(skip)]
    pub trace: Vec<Span>,
    /// How many times as fast as each peer it was, if it is ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
}

/// Shares of the time that copies and kernels of a card took, in percent of their sum: they overlap.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// Copies by the processor to and from page-locked memory.
    pub staging_percent: f64,
    /// Copies to the card.
    pub copy_in_percent: f64,
    /// Kernels.
    pub compute_percent: f64,
    /// Copies from the card.
    pub copy_out_percent: f64,
}

/// How fast in comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// The peer.
    pub peer: &'static str,
    /// The median over rounds of ours / theirs.
    pub ratio: f64,
}

/// What the machine can do.
#[derive(Clone, Debug, Serialize)]
pub struct Limit {
    /// What is done.
    pub name: String,
    /// GB/s of source bytes.
    pub gb_per_second: Spread,
}

/// A peer, or a card, that could not.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub peer: &'static str,
    /// Why.
    pub reason: String,
}
