//! The types of a cluster, with what placement makes of them.

#![allow(clippy::unwrap_used)] // Helpers of tests count as tests.

mod changes;
mod map;
mod safety;
