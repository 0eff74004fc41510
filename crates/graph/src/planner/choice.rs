//! What is good, and the best of several graphs by it.

use serde::{Deserialize, Serialize};

use super::refusal::Unplannable;
use super::scheme::Scheme;
use super::shape::Shape;
use crate::model::Prediction;

/// What counts how much. The cost of a graph is the sum, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aim {
    /// Of a microsecond from start to end.
    pub latency: f64,
    /// Of a microsecond that the busiest link is busy.
    pub busiest: f64,
    /// Of a MiB between two zones, in microseconds.
    pub zone_mib: f64,
}

impl Default for Aim {
    fn default() -> Self {
        Self::READER
    }
}

impl Aim {
    /// Somebody waits.
    pub const READER: Self = Self { latency: 1.0, busiest: 0.0, zone_mib: 0.0 };
    /// Many chunks are repaired, and others want the links: the busiest one decides, and the sooner it is over the better.
    pub const REPAIR: Self = Self { latency: 0.2, busiest: 1.0, zone_mib: 0.0 };

    /// What `prediction` costs.
    #[must_use]
    pub fn cost(&self, prediction: &Prediction) -> f64 {
        let mib = prediction.zone_bytes as f64 / f64::from(1 << 20);
        self.latency * prediction.us + self.busiest * prediction.busiest_us + self.zone_mib * mib
    }
}

/// The cheapest of `schemes`; the first of those that cost the same.
pub(super) fn best(
    schemes: &[Scheme],
    shape: impl Fn(Scheme) -> Result<Shape, Unplannable>,
    aim: &Aim,
) -> Result<Shape, Unplannable> {
    let mut best: Option<Shape> = None;
    let mut refused = Unplannable::Question("no scheme to choose from");
    for scheme in schemes {
        match shape(*scheme) {
            Ok(shape) => {
                let cost = aim.cost(&shape.prediction);
                if best.as_ref().is_none_or(|best| cost < 0.999 * aim.cost(&best.prediction)) {
                    best = Some(shape);
                }
            }
            Err(error) => refused = error,
        }
    }
    best.ok_or(refused)
}
