//! Committed records that somebody may still want: a parity that applies them with its next Frame, or one that was evicted
//! and comes back (group protocol, section 6).
//!
//! What is here is a courtesy: whoever finds it gone starts from nothing. So it is the first thing to go when memory is
//! short.

use store::{Budget, Category};
use types::Seq;
use wire::message::Record;

use crate::queue::Queue;
use crate::size::record_bytes;

/// Records `start + 1 ..= committed`.
pub(super) struct History {
    records: Queue<Record>,
    /// The newest record that is gone.
    start: Seq,
    bytes: usize,
    budget: Budget,
}

impl History {
    pub(super) fn starting_after(start: Seq, budget: Budget) -> Self {
        Self { records: Queue::default(), start, bytes: 0, budget }
    }

    /// The record after which it begins.
    pub(super) fn start(&self) -> Seq {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory of the records and of the places that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        let unused = self.records.capacity() - self.records.len();
        self.bytes + unused * size_of::<Record>()
    }

    /// The next record, whose `bytes` are charged to the budget already.
    pub(super) fn push(&mut self, record: Record, bytes: usize) {
        debug_assert_eq!(
            record.seq.0,
            self.start.0 + self.records.len() as u64 + 1,
            "records are consecutive"
        );
        self.bytes += bytes;
        self.records.push_back(record);
    }

    /// Records after `after`, in order; `after` must not be older than [`Self::start`].
    pub(super) fn after(&self, after: Seq) -> impl Iterator<Item = &Record> {
        let skip = after.0.saturating_sub(self.start.0);
        self.records.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX))
    }

    /// Drops what nobody wants, up to `unwanted`, and then the oldest until no more than `most_bytes` are left.
    pub(super) fn trim(&mut self, unwanted: Seq, most_bytes: usize) {
        let before = self.bytes;
        while let Some(record) =
            self.records.pop_front_if(|record| record.seq <= unwanted || self.bytes > most_bytes)
        {
            self.bytes -= record_bytes(&record);
            self.start = record.seq;
        }
        if before > self.bytes {
            self.budget.release(Category::Log, before - self.bytes);
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.budget.release(Category::Log, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64) -> Record {
        Record { seq: Seq(seq), writes: Default::default(), ops: Default::default() }
    }

    fn filled(budget: &Budget) -> History {
        let mut history = History::starting_after(Seq(4), budget.clone());
        for seq in 5..=9 {
            let bytes = record_bytes(&record(seq));
            budget.charge(Category::Log, bytes);
            history.push(record(seq), bytes);
        }
        history
    }

    fn seqs(history: &History, after: u64) -> Vec<u64> {
        history.after(Seq(after)).map(|record| record.seq.0).collect()
    }

    #[test]
    fn what_is_unwanted_goes_and_what_is_wanted_stays() {
        let budget = Budget::new(1 << 20);
        let mut history = filled(&budget);
        assert_eq!(seqs(&history, 4), [5, 6, 7, 8, 9]);
        assert_eq!(seqs(&history, 7), [8, 9]);
        history.trim(Seq(6), usize::MAX);
        assert_eq!((history.start(), seqs(&history, 6)), (Seq(6), vec![7, 8, 9]));
        history.trim(Seq(0), 2 * record_bytes(&record(0)));
        assert_eq!((history.start(), seqs(&history, 7)), (Seq(7), vec![8, 9]));
        history.trim(Seq(9), 0);
        assert_eq!((history.start(), seqs(&history, 9)), (Seq(9), vec![]));
        assert_eq!(budget.total_used(), 0);
    }

    #[test]
    fn its_memory_is_returned_with_it() {
        let budget = Budget::new(1 << 20);
        drop(filled(&budget));
        assert_eq!(budget.total_used(), 0);
    }
}
