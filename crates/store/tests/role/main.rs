//! A data role's store, driven as the protocol drives it: records are logged, and applied some time later.

#![allow(clippy::unwrap_used)] // Helpers of tests count as tests.

mod damage;
mod driver;
mod forecast;
mod hot;
mod large;
mod model;
mod reclaim;
mod shift;
mod spans;
mod surrender;
mod takeover;
mod tenants;
mod vacate;
mod walk;
