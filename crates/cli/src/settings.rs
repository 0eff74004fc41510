//! What both `serve` and `local` choose for a node.

use std::time::Duration;

use clap::ValueEnum;
use types::LossPolicy;

use crate::units::{Size, choice, written};

written!(Eviction = choice, Scheduling = choice, OnLoss = choice);

/// What a node does when its memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Eviction {
    /// Makes room by removing items that were not read lately.
    #[default]
    Clock,
    /// Refuses writes; nothing that was acknowledged is ever removed.
    None,
}

impl Eviction {
    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::None => "none",
        }
    }
}

/// How the system schedules a node's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scheduling {
    /// A worker that is woken does not push another thread off its core: where nodes share cores, messages gather into batches.
    #[default]
    Batch,
    /// As any other thread: where busy programs share the workers' cores, so that a worker does not wait for the end of their slice.
    Normal,
}

impl Scheduling {
    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Normal => "normal",
        }
    }
}

/// What becomes of data that is lost for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnLoss {
    /// Its keys answer with an error until an operator accepts the loss: `gestalt lost accept`.
    #[default]
    Error,
    /// It begins anew, empty, by itself: for caches.
    Empty,
}

impl From<OnLoss> for LossPolicy {
    fn from(policy: OnLoss) -> Self {
        match policy {
            OnLoss::Error => Self::Error,
            OnLoss::Empty => Self::Empty,
        }
    }
}

/// Memory of a node.
pub const DEFAULT_MEMORY: Size = Size(1 << 30);
/// Silence after which a node counts as lost.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(1);
/// Shortest and longest lease: below, a busy machine looks dead; above, a pause is an outage.
pub const LEASE_RANGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));

/// That `lease` is within its bounds.
///
/// # Errors
/// One line with the bounds.
pub fn check_lease(lease: Duration) -> Result<(), String> {
    if lease < LEASE_RANGE.0 || lease > LEASE_RANGE.1 {
        return Err(format!("--lease {lease:?} is out of bounds: choose 50ms to 60s"));
    }
    Ok(())
}
