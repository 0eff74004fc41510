//! What a graph will cost, from what links are worth.

mod fit;
mod links;
mod predict;

pub use fit::Fit;
pub use links::{LinkEnd, Links};
pub(crate) use predict::{Flow, Outline};
pub use predict::{Prediction, predict};
