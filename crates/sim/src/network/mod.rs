//! What is under way: between nodes on wires, between nodes and coordinators on lines.

pub(crate) mod lines;
pub(crate) mod wires;
