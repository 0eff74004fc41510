//! What nodes and the wires between them are like.

/// Delays of the network.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Least delay of the fastest wire.
    pub least_us: u64,
    /// Least delay of the slowest ordinary wire.
    pub most_us: u64,
    /// Mean of what comes on top for each message.
    pub jitter_us: u64,
    /// Percent of wires that are ten times slower.
    pub slow_percent: u64,
    /// Percent of cells of chunks that a wire drops because it is full.
    pub full_percent: u64,
    /// How long an end takes at most to see that its wire was cut.
    pub notice_us: u64,
    /// How long a broken connection stays broken at least.
    pub reconnect_us: u64,
    /// Delay of the slowest line between a node and the coordinator, one way.
    pub line_us: u64,
}

/// Memory of stores and nodes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Limit of each node.
    pub node_bytes: u64,
    /// Extents of one data area at most.
    pub area_extents: u32,
    /// Whether a full store evicts instead of refusing.
    pub evict: bool,
}

/// How the driver batches inputs before `Host::flush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// After every input.
    Never,
    /// After up to so many microseconds.
    Upto(u64),
}
