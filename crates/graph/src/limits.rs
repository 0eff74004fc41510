//! Bounds of everything that a graph may name and an executor may keep. A graph beyond one of them is refused where it arrives.

use types::MAX_CHUNK_BYTES;

/// Most steps of a graph: a writer, its holders, and for each part of a chunk a combiner and an end.
pub const MAX_STEPS: usize = 4096;
/// Most edges: those of `tri` for the code with the most products of data and parity roles, 128 and 127.
pub const MAX_EDGES: usize = 1 << 14;
/// Most inputs of a step, and most outputs: as many as a code has roles.
pub const MAX_DEGREE: usize = codec::MAX_ROLES;
/// Most chunks that a graph runs over, one behind the other.
pub const MAX_PARTS: usize = 1024;
/// Most bytes of a strand: one chunk as long as there are, or shorter ones up to it.
pub const MAX_STRAND_BYTES: u32 = MAX_CHUNK_BYTES;
/// Shortest slice, unless all that a step does is shorter.
pub const MIN_SLICE_BYTES: u32 = 1 << 10;
/// Longest slice.
pub const MAX_SLICE_BYTES: u32 = 1 << 20;
/// Slices that an edge's receiver has memory for, unless the planner says otherwise.
pub const DEFAULT_WINDOW: u8 = 4;
/// Most slices of that.
pub const MAX_WINDOW: u8 = 16;
/// Longest deadline, in microseconds.
pub const MAX_DEADLINE_US: u64 = 600_000_000;
/// Most graphs that one executor runs at once.
pub const MAX_RUNS: usize = 256;
/// Of these, how many are kept free for readers who wait.
pub const READER_RUNS: usize = 64;
/// Credits that arrived before their graph and are remembered; the oldest give way, and are asked for again.
pub const MAX_EARLY_CREDITS: usize = 512;
/// Graphs that have ended and are remembered, so that none runs twice.
pub const MAX_ENDED_RUNS: usize = 1024;
/// Parts into which `tri` cuts a chunk at most.
pub const MAX_TRI_PARTS: usize = 16;
/// Links between two nodes of which planners know more than of their ends.
pub const MAX_PAIRS: usize = 256;
/// Graphs that an asker starts for one task at most.
pub const MAX_ATTEMPTS: u32 = 64;
/// Runs of one task have numbers next to each other: the task's times this, and which one it is.
pub const RUNS_PER_TASK: u64 = 256;

const _: () = assert!(MIN_SLICE_BYTES < MAX_SLICE_BYTES && MAX_SLICE_BYTES <= MAX_STRAND_BYTES);
const _: () = assert!((MAX_ATTEMPTS as u64) < RUNS_PER_TASK);
const _: () = assert!(READER_RUNS < MAX_RUNS && DEFAULT_WINDOW <= MAX_WINDOW);
const _: () = assert!(128 * 127 + 128 <= MAX_EDGES);
const _: () = assert!(MAX_DEGREE * MAX_TRI_PARTS + MAX_TRI_PARTS <= MAX_EDGES);
