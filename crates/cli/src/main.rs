//! `gestalt`, the one binary.
fn main() {}
