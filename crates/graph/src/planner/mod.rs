//! Planners: pure functions from what is lost, who has what and what links are worth, to a graph.
//!
//! A scheme is a way to lay out the same sums: what is computed from what is the codec's answer ([`helpers`]), a scheme says where.

mod build;
mod chain;
mod choice;
mod decode;
mod encode;
mod helpers;
mod ppr;
mod question;
mod shape;
mod star;
mod tri;

use thiserror::Error;

pub use choice::Aim;
pub use encode::plan_encode;
pub use question::{EncodeQuestion, Question, Scheme, Source, UnknownScheme, Wanted};
pub use shape::{Envelope, Shape};

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

/// The graph of `scheme` that gives what `question` wants; with [`Scheme::Auto`] the one that the model says is best.
///
/// # Errors
/// `Unsolvable` if too much is lost; `Question` for one that contradicts itself; `TooLarge`.
pub fn plan(question: &Question<'_>, scheme: Scheme) -> Result<Shape, Unplannable> {
    question.check()?;
    match scheme {
        Scheme::Auto => {
            choice::best(Scheme::DECODING, |scheme| decode::shape(question, scheme), &question.aim)
        }
        scheme => decode::shape(question, scheme),
    }
}
