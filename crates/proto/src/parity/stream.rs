//! What a parity keeps of one data role: its fence, its log and the replica of its index.

use std::collections::VecDeque;

use cluster::{DataRole, Seq, Term, Time, UnixSeconds};
use store::{Area, Budget, Category, PageSet, Replica};
use wire::message::{Record, Write};

use super::learner::Progress;
use crate::size::record_bytes;

/// A record names a place that was never reserved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

/// Where a record stands against what was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Duplicate,
    Next,
    Gap,
}

/// One data role's stream, as far as a parity has it.
pub(crate) struct Stream {
    /// The first term of the life of the role that this is of.
    origin: Term,
    pub(super) fence: Term,
    settled: Option<Term>,
    /// When a Frame was last acknowledged: no read lease counts from later.
    acknowledged: Option<Time>,
    /// Highest second of any primary's Frame: no later one is below it.
    wall: UnixSeconds,
    pub(super) received: Seq,
    pub(super) applied: Seq,
    /// At a learner: whether its lesson has begun, and how far it has come while it lasts.
    pub(super) begun: bool,
    pub(super) progress: Option<Progress>,
    /// Records `applied + 1 ..= received`.
    pub(super) kept: VecDeque<Record>,
    pub(super) replica: Replica,
    /// Extents that the role may use.
    pub(super) granted: PageSet,
    budget: Budget,
}

impl Stream {
    /// The stream of a role of which nothing is here.
    pub(super) fn new(role: &DataRole, budget: Budget) -> Self {
        Self {
            origin: role.origin,
            fence: role.term,
            settled: None,
            acknowledged: None,
            wall: UnixSeconds(0),
            received: role.first_seq(),
            applied: role.first_seq(),
            begun: false,
            progress: None,
            kept: VecDeque::new(),
            replica: Replica::new(budget.clone()),
            granted: PageSet::new(),
            budget,
        }
    }

    /// Whether it is of the life that `role` is in.
    pub(super) fn is_of_life(&self, role: &DataRole) -> bool {
        self.origin == role.origin
    }

    /// Whether no byte of it is in the area, and none is kept.
    pub(super) fn is_blank(&self) -> bool {
        self.kept.is_empty() && self.replica.touched().count() == 0
    }

    /// Lowest term that is accepted.
    pub(crate) fn fence(&self) -> Term {
        self.fence
    }

    /// The term whose predecessor's stream has been ended here.
    pub(crate) fn settled(&self) -> Option<Term> {
        self.settled
    }

    /// Newest record of the contiguous prefix.
    pub(crate) fn received(&self) -> Seq {
        self.received
    }

    /// Newest record that the area contains.
    pub(crate) fn applied(&self) -> Seq {
        self.applied
    }

    /// Records received and not yet applied.
    pub(crate) fn kept(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.kept.iter()
    }

    /// Memory of the kept records and of the places that they take.
    pub(crate) fn kept_memory_bytes(&self) -> usize {
        let records: usize = self.kept.iter().map(record_bytes).sum();
        records + (self.kept.capacity() - self.kept.len()) * size_of::<Record>()
    }

    /// Memory of the set of extents that the role may use.
    pub(crate) fn grants_memory_bytes(&self) -> usize {
        self.granted.memory_bytes()
    }

    pub(crate) fn replica(&self) -> &Replica {
        &self.replica
    }

    pub(super) fn note_acknowledged(&mut self, now: Time, wall: UnixSeconds) {
        self.acknowledged = Some(now);
        self.wall = self.wall.max(wall);
    }

    /// The newest second that a primary of this role may have used.
    pub(super) fn wall(&self) -> UnixSeconds {
        self.wall
    }

    /// Microseconds since a Frame was last acknowledged; for ever if none was.
    pub(super) fn quiet_us(&self, now: Time) -> u64 {
        self.acknowledged.map_or(u64::MAX, |at| now.since(at))
    }

    pub(super) fn raise_fence(&mut self, term: Term) {
        self.fence = self.fence.max(term);
    }

    pub(super) fn place(&self, seq: Seq) -> Place {
        if seq <= self.received {
            Place::Duplicate
        } else if seq == self.received.next() {
            Place::Next
        } else {
            Place::Gap
        }
    }

    /// Keeps the next record, unless it has no place in the area.
    pub(super) fn keep(&mut self, record: Record, area: &Area) -> Result<(), NoPlace> {
        debug_assert_eq!(record.seq, self.received.next());
        let has_place = |write: &Write| area.covers(write.addr.byte(), write.delta.len());
        if !record.writes.iter().all(has_place) || !record.ops.iter().all(Replica::accepts) {
            tracing::error!(seq = %record.seq, "record names a place that was never reserved");
            return Err(NoPlace);
        }
        // Bounded by the primary's log, whose records these are.
        self.budget.charge(Category::Log, record_bytes(&record));
        self.received = record.seq;
        self.kept.push_back(record);
        Ok(())
    }

    /// Hints that the records up to `committed` will be applied at once: what they touch is fetched side by side.
    pub(super) fn prefetch(&self, committed: Seq, area: &Area) {
        for record in self.kept.iter().take_while(|record| record.seq <= committed) {
            record.writes.iter().for_each(|write| area.prefetch(write.addr.byte()));
            record.ops.iter().for_each(|op| self.replica.prefetch(op));
        }
    }

    /// The next record to apply, if it is committed. `finish` must follow.
    pub(super) fn pop_applicable(&mut self, committed: Seq) -> Option<Record> {
        if self.applied >= committed {
            return None;
        }
        self.kept.pop_front()
    }

    /// The record is in the area: now the index follows.
    pub(super) fn finish(&mut self, record: &Record) {
        debug_assert_eq!(record.seq, self.applied.next());
        for write in &record.writes {
            self.replica.touch(write.addr, write.delta.len());
        }
        let known = self.known_segments();
        for op in &record.ops {
            self.replica.learn(op, known);
        }
        self.applied = record.seq;
        self.budget.release(Category::Log, record_bytes(record));
        debug_assert!(self.applied <= self.received, "I1");
    }

    fn drop_kept(&mut self) {
        for record in self.kept.drain(..) {
            self.budget.release(Category::Log, record_bytes(&record));
        }
    }

    /// Nobody counts on this parity any more. What it has applied was committed, and stays true; what it has only received
    /// may be ended otherwise by a takeover that it does not hear of.
    pub(super) fn rest(&mut self) {
        if !crate::planted(crate::Bug::ResumeFromReceived) {
            self.drop_kept();
            self.received = self.applied;
        }
        (self.settled, self.acknowledged) = (None, None);
        (self.begun, self.progress) = (false, None);
    }

    /// The stream of the terms before `term` ends at `upto`; what came after is dropped.
    pub(super) fn settle(&mut self, term: Term, upto: Seq) {
        self.drop_kept();
        self.received = upto;
        if crate::planted(crate::Bug::NoSettle) || crate::planted(crate::Bug::LostTailAfterTakeover) {
            self.applied = upto;
        }
        debug_assert_eq!(self.applied, upto, "all up to the end was applied");
        self.grant_touched_only();
        self.settled = Some(term);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.drop_kept();
    }
}
