//! The header says what the library does: each declaration is that of a function here, to the type, each struct is as long, and has its fields
//! where it has them here; and programs in C and C++ run against a cluster, under sanitizers.
// Programs have time limits.
#![allow(clippy::disallowed_methods)]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../../server/tests/loop/harness.rs"]
mod harness;
mod header;
mod landing;
mod programs;
mod steps;
