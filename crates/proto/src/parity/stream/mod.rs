//! What a parity keeps of one data role: its fence, its log and the replica of its index.

mod grants;
mod taught;

use store::{Area, Budget, Category, Replica};
use types::{DataRole, PAGE_BYTES, Seq, Term, Time, UnixSeconds};
use wire::message::{Record, Write};

use crate::Rules;
use crate::queue::Queue;
use crate::size::record_bytes;
use grants::Grants;
use taught::Taught;

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
    fence: Term,
    settled: Option<Term>,
    /// When a Frame was last acknowledged: no read lease counts from later.
    acknowledged: Option<Time>,
    /// Highest second of any primary's Frame: no later one is below it.
    wall: UnixSeconds,
    received: Seq,
    applied: Seq,
    taught: Taught,
    /// Records `applied + 1 ..= received`.
    kept: Queue<Record>,
    replica: Replica,
    grants: Grants,
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
            taught: Taught::default(),
            kept: Queue::default(),
            replica: Replica::new(budget.clone()),
            grants: Grants::default(),
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
        self.grants.memory_bytes()
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
        // Now, and not when it is applied: an acknowledged record must be applicable.
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

    /// Whether there is a record to apply, by what is committed.
    #[inline]
    pub(super) fn has_applicable(&self, committed: Seq) -> bool {
        // `committed` may be beyond what a learner has: then everything that is kept goes.
        self.applied < committed && self.applied < self.received
    }

    /// The next record to apply, if it is committed. `finish` must follow.
    pub(super) fn pop_applicable(&mut self, committed: Seq) -> Option<Record> {
        if self.has_applicable(committed) { self.kept.pop_front() } else { None }
    }

    /// The record is in the area: now the index follows.
    pub(super) fn finish(&mut self, record: &Record) {
        debug_assert_eq!(record.seq, self.applied.next());
        for write in &record.writes {
            self.replica.touch(write.addr, write.delta.len());
        }
        // At a learner: what is in a segment to come would be in it twice.
        let known = self.taught.known_segments();
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
    pub(super) fn rest(&mut self, rules: Rules) {
        if rules.only_applied_records_stay() {
            self.drop_kept();
            self.received = self.applied;
        }
        (self.settled, self.acknowledged) = (None, None);
        self.taught = Taught::default();
    }

    /// The stream of the terms before `term` ends at `upto`; what came after is dropped.
    pub(super) fn settle(&mut self, rules: Rules, term: Term, upto: Seq) {
        // What was beyond the end one of the parities lacked, so nobody was told that it is done.
        self.drop_kept();
        self.received = upto;
        self.applied = rules.applied_at_the_end(self.applied, upto);
        debug_assert_eq!(self.applied, upto, "all up to the end was applied");
        // The role has what its stand-in starts from: what was ever written. For anything else it asks.
        self.grants.keep_only(|extent| grants::touches(&self.replica, extent));
        self.settled = Some(term);
    }

    /// What a mirror hands to the primary that it becomes.
    pub(super) fn into_replica(mut self) -> Replica {
        std::mem::replace(&mut self.replica, Replica::new(self.budget.clone()))
    }

    /// The role may use `extent`.
    pub(super) fn grant(&mut self, extent: u32) {
        self.grants.insert(extent);
    }

    /// All of `extent` is zero again, if nothing of it is written to; whether the role does not have it any more.
    pub(super) fn give_up_wiped(&mut self, extent: u32) -> bool {
        let wiped = !grants::touches(&self.replica, extent);
        if wiped {
            self.grants.remove(extent);
        }
        wiped
    }

    /// Whether the role has `extent`, or a kept record writes there.
    pub(super) fn uses(&self, extent: u32) -> bool {
        self.grants.contain(extent)
            || grants::touches(&self.replica, extent)
            // It will be applied, and has to find its memory then.
            || self.kept.iter().any(|record| grants::writes_to(record, extent))
    }

    /// At a learner: whether its lesson has begun, or ended.
    pub(super) fn has_begun(&self) -> bool {
        self.taught != Taught::Nothing
    }

    /// At a learner: whether its lesson has begun and has not ended.
    pub(super) fn is_being_taught(&self) -> bool {
        matches!(self.taught, Taught::Some(_))
    }

    /// At a learner: whether part `number` comes next.
    pub(super) fn awaits_part(&self, number: u32) -> bool {
        self.taught.awaits(number)
    }

    /// The lesson from nothing has begun, by the primary of `term`.
    pub(super) fn begin(&mut self, term: Term, base: Seq, replica: Replica) {
        self.fence = term;
        self.received = base;
        self.applied = base;
        self.replica = replica;
        self.taught = Taught::first_part_of_all();
    }

    /// The primary of `term` goes on after what is here.
    pub(super) fn resume(&mut self, term: Term) {
        self.fence = term;
        self.taught = Taught::first_part_of_rest();
    }

    /// One more part of the lesson is in.
    pub(super) fn part_is_in(&mut self) {
        self.taught.count_part();
    }

    /// The lesson is over.
    pub(super) fn all_is_in(&mut self) {
        self.taught = Taught::All;
    }

    /// Whether `run` can come now.
    pub(super) fn awaits_run(&self, run: u32) -> bool {
        self.taught.awaits_run(run)
    }

    /// `run` is in the area: these pages of it were touched.
    pub(super) fn run_is_in(&mut self, run: u32, pages: impl Iterator<Item = u32>) {
        for page in pages {
            self.replica.touch(types::Addr::from_byte(page as usize * PAGE_BYTES), PAGE_BYTES);
        }
        self.taught.run_is_in(run);
    }

    /// A segment of the index has come; whether it fits.
    pub(super) fn learn_segment(&mut self, segment: usize, entries: &[u8]) -> bool {
        self.taught.segment_is_in(segment) && self.replica.learn_segment(segment, entries).is_ok()
    }

    /// What of `write` changes the area now.
    pub(super) fn known_part<'a>(&self, rules: Rules, write: &'a Write) -> &'a [u8] {
        self.taught.known_part(rules, write)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.drop_kept();
    }
}
