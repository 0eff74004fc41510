//! Why there is no graph.

use thiserror::Error;

use super::scheme::Scheme;
use crate::limits::{MAX_EDGES, MAX_STEPS};

/// Why there is no graph.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unplannable {
    /// What can be read does not determine what is wanted.
    #[error("role {role} cannot be computed from the {present} chunks that can be read")]
    Unsolvable {
        /// What is wanted.
        role: usize,
        /// How many roles can be read.
        present: usize,
    },
    /// The question contradicts itself: a role beyond the code, one wanted twice, nothing wanted, no bytes.
    #[error("{0}")]
    Question(&'static str),
    /// The scheme has no way to encode.
    #[error("{} is no way to encode", .0.name())]
    NoEncoding(Scheme),
    /// The graph would have more steps or edges than a graph may have.
    #[error("{steps} steps and {edges} edges: more than {MAX_STEPS} or {MAX_EDGES}")]
    TooLarge {
        /// Its steps.
        steps: usize,
        /// Its edges.
        edges: usize,
    },
}
