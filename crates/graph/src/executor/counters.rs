//! What an executor has done, by primitive.

use serde::Serialize;

use super::run::Run;
use super::step::Turn;
use crate::graph::Primitive;

/// Of one primitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PrimitiveCounters {
    /// Steps that were begun.
    pub started: u64,
    /// Slices that came along edges.
    pub in_slices: u64,
    /// Bytes of them.
    pub in_bytes: u64,
    /// Slices that went along edges.
    pub out_slices: u64,
    /// Bytes of them.
    pub out_bytes: u64,
    /// Bytes that were multiplied and added up: those of each input for each row that is more than a copy.
    pub combined_bytes: u64,
}

/// What an executor has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// By `Primitive::ALL`.
    pub primitives: [PrimitiveCounters; 3],
    /// Graphs that were refused.
    pub refused: u64,
    /// Runs that failed here.
    pub failed: u64,
}

impl Counters {
    /// Those of one primitive.
    #[must_use]
    pub fn of(&self, primitive: Primitive) -> &PrimitiveCounters {
        &self.primitives[primitive as usize]
    }

    /// These and those.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        for (mine, others) in sum.primitives.iter_mut().zip(&other.primitives) {
            mine.started += others.started;
            mine.in_slices += others.in_slices;
            mine.in_bytes += others.in_bytes;
            mine.out_slices += others.out_slices;
            mine.out_bytes += others.out_bytes;
            mine.combined_bytes += others.combined_bytes;
        }
        sum.refused += other.refused;
        sum.failed += other.failed;
        sum
    }

    /// Of all primitives together: bytes combined.
    #[must_use]
    pub fn combined_bytes(&self) -> u64 {
        self.primitives.iter().map(|counters| counters.combined_bytes).sum()
    }

    pub(super) fn started(&mut self, run: &Run) {
        for primitive in run.primitives() {
            self.primitives[primitive as usize].started += 1;
        }
    }

    pub(super) fn received(&mut self, step: u32, run: Option<&Run>, bytes: u64) {
        if let Some(run) = run {
            let primitive = run.graph().steps[step as usize].primitive();
            let counters = &mut self.primitives[primitive as usize];
            counters.in_slices += 1;
            counters.in_bytes += bytes;
        }
    }

    pub(super) fn turned(&mut self, turn: &Turn) {
        let counters = &mut self.primitives[turn.primitive as usize];
        counters.out_slices += turn.slices;
        counters.out_bytes += turn.sent;
        counters.combined_bytes += turn.combined;
    }
}
