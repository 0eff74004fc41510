//! What was measured.

use serde::{Deserialize, Serialize};

/// What was measured of one cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub nodes: u16,
    pub groups: u32,
    /// Bytes of the whole map, as a node is sent it.
    pub map_bytes: u64,
    pub changes: Vec<Change>,
}

/// What one change cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    /// What happened.
    pub what: String,
    /// Versions of the map that it took.
    pub versions: u64,
    /// Processor time of the coordinator, with encoding each message.
    pub cpu_us: f64,
    /// Bytes that it sent.
    pub sent_bytes: u64,
    /// Bytes that it wrote down, keys left out.
    pub recorded_bytes: u64,
    /// From the event to the last node that heard all of it: processor time, bytes through one line, and round trips.
    pub last_us: f64,
    /// Processor time of a node that makes the changes to its map, in the mean of three.
    pub node_us: f64,
}
