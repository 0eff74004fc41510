//! The protocol from outside: its document, hostile bytes, and versions.

// A sample that cannot be made fails its test.
#![allow(clippy::unwrap_used)]

mod hostile;
mod maps;
mod places;
mod reading;
mod samples;
mod vectors;
