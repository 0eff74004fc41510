//! What is good, and the best of several graphs by it.

use serde::{Deserialize, Serialize};

use super::refusal::Unplannable;
use super::scheme::Scheme;
use super::shape::{Shape, Sketch};
use crate::model::Prediction;

/// What counts how much. The cost of a graph is the sum, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aim {
    /// Of a microsecond from start to end.
    pub latency: f64,
    /// Of a microsecond that the busiest link is busy.
    pub busiest: f64,
    /// Of a microsecond that slices take processors, besides their bytes.
    pub slices: f64,
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
    pub const READER: Self = Self { latency: 1.0, busiest: 0.0, slices: 0.0, zone_mib: 0.0 };
    /// Many chunks are repaired, and others want the links and the processors: the busiest link decides, and the sooner it is over and the
    /// fewer messages it takes the better.
    pub const REPAIR: Self = Self { latency: 0.2, busiest: 1.0, slices: 0.2, zone_mib: 0.0 };

    /// What `prediction` costs.
    #[must_use]
    pub fn cost(&self, prediction: &Prediction) -> f64 {
        let mib = prediction.zone_bytes as f64 / f64::from(1 << 20);
        let (links, slices) = (self.busiest * prediction.busiest_us, self.slices * prediction.slices_us);
        self.latency * prediction.us + links + slices + self.zone_mib * mib
    }
}

/// By how much less a scheme must cost than those before it.
const CHEAPER: f64 = 0.999;

/// The cheapest of `schemes`; the first of those that cost the same. What costs more than another one whatever its slices is not
/// looked at further.
pub(super) fn best(
    schemes: &[Scheme],
    sketch: impl Fn(Scheme) -> Result<Sketch, Unplannable>,
    aim: &Aim,
) -> Result<Shape, Unplannable> {
    let mut refused = Unplannable::Question("no scheme to choose from");
    let mut sketches = Vec::with_capacity(schemes.len());
    for (turn, scheme) in schemes.iter().enumerate() {
        match sketch(*scheme) {
            Ok(sketch) => sketches.push((sketch.least_cost(), turn, sketch)),
            Err(error) => refused = error,
        }
    }
    sketches.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut best: Option<(f64, usize, Shape)> = None;
    for (least_cost, turn, sketch) in sketches {
        if best.as_ref().is_some_and(|(cost, ..)| least_cost > *cost) {
            break;
        }
        let shape = sketch.shape();
        let cost = aim.cost(&shape.prediction);
        let is_better = match &best {
            None => true,
            Some((other, its_turn, _)) if turn < *its_turn => CHEAPER * cost <= *other,
            Some((other, ..)) => cost < CHEAPER * other,
        };
        if is_better {
            best = Some((cost, turn, shape));
        }
    }
    best.map(|(.., shape)| shape).ok_or(refused)
}
