//! What a record costs in memory while it is kept.

use wire::message::Record;

/// Bytes charged to the budget for one record: its deltas, and its own structure.
pub(crate) fn record_bytes(record: &Record) -> usize {
    let deltas: usize = record.writes.iter().map(|write| write.delta.len()).sum();
    deltas + std::mem::size_of::<Record>()
}
