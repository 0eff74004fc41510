//! What both `serve` and `local` choose for a node.

use std::time::Duration;

use clap::ValueEnum;
use graph::{Execution, Scheme};
use types::LossPolicy;

use crate::units::{Size, choice, written};

written!(
    Eviction = choice,
    Scheduling = choice,
    OnLoss = choice,
    RepairBy = choice,
    EncodeBy = choice,
    GraphExecution = choice,
    CodingPlace = choice
);

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

/// How a node gets chunks of long values that it is to hold and lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RepairBy {
    /// It fetches cells of as many others as it takes, and combines them.
    #[default]
    Cells,
    /// The same by a coding graph, many chunks at once.
    Star,
    /// A star of as few helpers as the code allows.
    Lrc,
    /// A tree of helpers.
    Ppr,
    /// A chain of helpers.
    Chain,
    /// Three layers: each helper combines one part.
    Tri,
    /// Whatever the model says is best.
    Auto,
}

impl RepairBy {
    /// The scheme of the graphs, if it is by graphs.
    pub fn scheme(self) -> Option<Scheme> {
        match self {
            Self::Cells => None,
            Self::Star => Some(Scheme::Star),
            Self::Lrc => Some(Scheme::Lrc),
            Self::Ppr => Some(Scheme::Ppr),
            Self::Chain => Some(Scheme::Chain),
            Self::Tri => Some(Scheme::Tri),
            Self::Auto => Some(Scheme::Auto),
        }
    }
}

/// Who makes the parities of a long value that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EncodeBy {
    /// The node that has the client's connection: it sends them as it sends all other chunks.
    #[default]
    Node,
    /// The holders of its data, of products that they send each other: the node sends data alone.
    Tri,
    /// Whichever of these takes less, by what the model of coding graphs says and by what values have taken.
    Auto,
}

impl From<EncodeBy> for proto::EncodeBy {
    fn from(by: EncodeBy) -> Self {
        match by {
            EncodeBy::Node => Self::Node,
            EncodeBy::Tri => Self::Tri,
            EncodeBy::Auto => Self::Auto,
        }
    }
}

/// How the steps of coding graphs work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphExecution {
    /// Slice by slice: what arrives is combined and passed on at once.
    #[default]
    Coherent,
    /// All is received, then all is computed, then all is sent: to compare with.
    Incoherent,
}

impl From<GraphExecution> for Execution {
    fn from(execution: GraphExecution) -> Self {
        match execution {
            GraphExecution::Coherent => Self::Coherent,
            GraphExecution::Incoherent => Self::Incoherent,
        }
    }
}

/// Where the codes of values in chunks are computed. The bytes are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CodingPlace {
    /// By the workers. No card is looked for.
    #[default]
    Processor,
    /// On an NVIDIA card where that is measured to be faster than a worker.
    Auto,
    /// On an NVIDIA card even if it is slower: to compare with.
    Card,
}

impl CodingPlace {
    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Auto => "auto",
            Self::Card => "card",
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
