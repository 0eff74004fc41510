//! Streams of random numbers, one for each purpose.

pub(crate) const OPTIONS: u64 = 1;
pub(crate) const NETWORK: u64 = 2;
pub(crate) const CLIENTS: u64 = 3;
pub(crate) const FAULTS: u64 = 4;
pub(crate) const CHECKS: u64 = 5;
pub(crate) const PROCESSES: u64 = 6;
pub(crate) const FOCUS: u64 = 7;
pub(crate) const SCRUBS: u64 = 8;
pub(crate) const SUCCESSION: u64 = 9;
pub(crate) const RESTARTS: u64 = 10;
pub(crate) const WALL: u64 = 11;
pub(crate) const OBJECTS: u64 = 12;
pub(crate) const GRAPHS: u64 = 13;
pub(crate) const NATIVES: u64 = 14;
pub(crate) const LANDINGS: u64 = 15;
