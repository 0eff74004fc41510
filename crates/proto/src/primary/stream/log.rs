//! The send log: the records of a primary that are not yet committed, in order, and before them the history of those that
//! are and that somebody may still want.

use bytes::Bytes;
use smallvec::SmallVec;
use store::{Budget, Category, DataStore};
use types::op::{OpKind, Outcome};
use types::{Addr, Seq, Time};
use wire::message::Record;

use super::history::History;
use crate::outbox::ReplyTo;
use crate::primary::charges::Charged;
use crate::primary::objects::ObjectEffects;
use crate::queue::Queue;
use crate::size::record_bytes;

/// A record on its way to being committed.
pub(super) struct Entry {
    pub record: Record,
    /// Who is told what once it is committed.
    pub answers: SmallVec<[(ReplyTo, Outcome); 1]>,
    /// Whose newest state this record may be.
    pub keys: SmallVec<[Bytes; 1]>,
    /// Slots that may not be reclaimed meanwhile.
    pub pinned: SmallVec<[Addr; 1]>,
    /// What was charged for it.
    pub charged: Option<Charged>,
    /// What it does to objects.
    pub objects: Option<Box<ObjectEffects>>,
    /// Why the record exists.
    pub purpose: Purpose,
    pub logged_at: Time,
}

/// Why a record exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::primary) enum Purpose {
    /// A client asked for this.
    Request(OpKind),
    /// A flush was due, or the end of a session.
    Schedule,
    /// Space is being made.
    Reclaim,
    /// An extent is on its way back.
    Release,
}

/// Records `committed + 1 ..= last`, and the history.
pub(super) struct Log {
    history: History,
    entries: Queue<Entry>,
    last: Seq,
    bytes: usize,
    budget: Budget,
}

impl Log {
    pub(super) fn starting_after(last: Seq, budget: Budget) -> Self {
        let history = History::starting_after(last, budget.clone());
        Self { history, entries: Queue::default(), last, bytes: 0, budget }
    }

    /// Number of the newest record.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of deltas and structure held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory of the records and of the places that they take, the history's included.
    pub(super) fn memory_bytes(&self) -> usize {
        let deltas = self.bytes - self.entries.len() * size_of::<Record>();
        deltas + self.entries.capacity() * size_of::<Entry>() + self.history.memory_bytes()
    }

    /// Appends the record that follows `last`.
    pub(super) fn push(&mut self, entry: Entry) {
        assert_eq!(entry.record.seq, self.last.next(), "records are consecutive");
        let bytes = record_bytes(&entry.record);
        // The log is bounded by `Limits::log_bytes`; a record of the largest size always fits the node's reserve.
        self.budget.charge(Category::Log, bytes);
        self.bytes += bytes;
        self.last = entry.record.seq;
        self.entries.push_back(entry);
    }

    /// Takes the oldest uncommitted record, for good.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        let bytes = record_bytes(&entry.record);
        self.budget.release(Category::Log, bytes);
        self.bytes -= bytes;
        Some(entry)
    }

    /// Takes the oldest uncommitted record, to commit it; [`Self::keep_committed`] must follow.
    pub(super) fn pop_to_commit(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// The record that [`Self::pop_to_commit`] gave is committed, and history.
    pub(super) fn keep_committed(&mut self, record: Record) {
        let bytes = record_bytes(&record);
        self.bytes -= bytes;
        self.history.push(record, bytes);
    }

    /// The committed records that are still here.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Drops committed records: those up to `unwanted`, and the oldest beyond `most_bytes`.
    pub(super) fn trim_history(&mut self, unwanted: Seq, most_bytes: usize) {
        self.history.trim(unwanted, most_bytes);
    }

    /// All records, oldest first.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    pub(super) fn entry_mut(&mut self, seq: Seq) -> Option<&mut Entry> {
        let first = self.entries.front()?.record.seq;
        let at = usize::try_from(seq.0.checked_sub(first.0)?).ok()?;
        self.entries.get_mut(at)
    }

    pub(super) fn entry(&self, seq: Seq) -> Option<&Entry> {
        let first = self.entries.front()?.record.seq;
        let at = usize::try_from(seq.0.checked_sub(first.0)?).ok()?;
        self.entries.get(at)
    }

    pub(super) fn record(&self, seq: Seq) -> Option<&Record> {
        self.entry(seq).map(|entry| &entry.record)
    }

    /// Records after `after`, in order, committed or not.
    pub(super) fn records_after(&self, after: Seq) -> impl Iterator<Item = &Record> {
        let first = self.entries.front().map_or(self.last.next(), |entry| entry.record.seq);
        let skip = (after.0 + 1).saturating_sub(first.0);
        let uncommitted = self.entries.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        self.history.after(after).chain(uncommitted.map(|entry| &entry.record))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.budget.release(Category::Log, self.bytes);
    }
}

/// The bytes first, then the index: nobody finds an item before it is there.
pub(super) fn apply_record(store: &mut DataStore, record: &Record) {
    for write in &record.writes {
        store.apply_write(write.addr, &write.delta);
    }
    for op in &record.ops {
        store.apply_op(op);
    }
}
