//! Coordinators, embedded and elected, and a node's connection to the one that there is.

pub(crate) mod client;
pub(crate) mod elected;
pub(crate) mod embedded;
mod frames;
mod presiding;
pub(crate) mod processes;
pub(crate) mod report;
