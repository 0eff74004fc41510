//! What a graph will cost, from what links are worth.

mod fit;
mod lanes;
mod links;
mod outline;
mod predict;

pub use fit::Fit;
#[cfg(feature = "net")]
pub(crate) use links::Between;
pub use links::{LinkEnd, Links, Pair};
pub(crate) use outline::Outline;
pub(crate) use predict::{Flow, LANES, Round};
pub use predict::{Prediction, predict};
