//! What a primary shows of itself.

use std::ops::AddAssign;

use store::DataStore;
use types::{MemberId, Seq, Term};
use wire::message::Record;

use super::space::Removed;

/// A primary, seen from outside.
pub struct PrimaryInfo<'a> {
    /// Which role.
    pub member: MemberId,
    /// Its term.
    pub term: Term,
    /// Newest committed record.
    pub committed: Seq,
    /// Newest record.
    pub last: Seq,
    /// The store; none while a stand-in fetches its index.
    pub store: Option<&'a DataStore>,
    /// Records `committed + 1 ..= last`.
    pub uncommitted: Vec<&'a Record>,
    /// Requests that wait.
    pub waiting: usize,
}

/// What a primary has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrimaryCounts {
    pub removed: Removed,
    /// Reads that met an item which had expired.
    pub expired_reads: u64,
    /// Writes refused for want of room.
    pub refused_writes: u64,
    /// Extents given back.
    pub released_extents: u64,
    /// Bytes that repair has brought and lessons have taken.
    pub rebuilt_bytes: u64,
}

impl AddAssign for PrimaryCounts {
    fn add_assign(&mut self, other: Self) {
        self.removed += other.removed;
        self.expired_reads += other.expired_reads;
        self.refused_writes += other.refused_writes;
        self.released_extents += other.released_extents;
        self.rebuilt_bytes += other.rebuilt_bytes;
    }
}

/// What a primary has done and holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrimaryStats {
    pub counts: PrimaryCounts,
    pub uncommitted_records: u64,
    pub waiting_requests: u64,
    /// Bytes that lessons have still to take.
    pub untaught_bytes: u64,
    /// Ids of objects that may be committed, and readers of objects.
    pub open_ids: u64,
    pub pins: u64,
    /// Sessions of clients, and results of their writes that are kept.
    pub client_sessions: u64,
    pub write_results: u64,
}

/// Where a primary's memory is, besides its store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrimaryMemory {
    /// Records that are kept.
    pub log_bytes: usize,
    /// Pages that sessions have brought.
    pub repair_bytes: usize,
    /// Requests that wait, and the table of keys with uncommitted records.
    pub queue_bytes: usize,
}
