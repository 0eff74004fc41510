//! A data role's store, driven as the protocol drives it: records are logged, and applied some time later.

mod driver;
mod large;
mod model;
mod reclaim;
mod shift;
mod takeover;
