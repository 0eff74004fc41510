//! Simulator (to be written).
fn main() {}
