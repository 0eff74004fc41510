//! What graphs promise.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

mod bytes;
mod checks;
mod failures;
mod looks;
mod model;
mod pairs;
mod planted;
mod room;
mod solve;
mod support;
mod theory;
