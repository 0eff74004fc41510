//! A primary's stream: what is decided and not yet committed, as numbered records, and what each key will be by them.
//!
//! The store holds committed state only. `log` has the records on their way, `keys` the newest state of each key that one
//! of them changes; so a write is decided against both. One file per concern: `log` and `history` keep the records,
//! `write` makes them, `newest` reads them, `commit` ends them.

mod commit;
mod history;
mod log;
mod newest;
mod versions;
mod write;

use bytes::Bytes;
use store::{Budget, DataStore};
use types::op::{Failure, Outcome};
use types::{FastMap, NamespaceId, Seq, Time, UnixSeconds};
use wire::message::Record;

pub(super) use log::Purpose;
pub(super) use newest::{Newest, Unknown};
pub(super) use versions::Versions;
pub(super) use write::{Draft, Header, PlacedItem};

use super::core::Core;
use crate::outbox::{Context, ReplyTo};
use log::Log;
use newest::PendingKey;

/// See the module.
pub(super) struct SendStream {
    log: Log,
    /// Newest committed record (ST).
    committed: Seq,
    keys: FastMap<Bytes, PendingKey>,
    /// The flush that is on its way: nothing else is decided meanwhile.
    flush: Option<Seq>,
    /// Those who wait for records up to this one have been told that its outcome is unknown.
    answered_upto: Seq,
    /// Whether something may have to be sent since the last look.
    stirred: bool,
    budget: Budget,
}

impl SendStream {
    /// Goes on after record `start`, which is committed.
    pub(super) fn starting_after(start: Seq, budget: Budget) -> Self {
        Self {
            log: Log::starting_after(start, budget.clone()),
            committed: start,
            keys: FastMap::default(),
            flush: None,
            answered_upto: start,
            stirred: false,
            budget,
        }
    }

    /// Number of the newest record.
    pub(super) fn last(&self) -> Seq {
        self.log.last()
    }

    /// Newest committed record.
    pub(super) fn committed(&self) -> Seq {
        self.committed
    }

    /// How many records are not committed.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    /// Whether everything is committed.
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Whether the log takes one more record.
    pub(super) fn has_room(&self, limits: &crate::Limits) -> bool {
        self.log.bytes() < limits.log_bytes && self.log.len() < limits.log_records
    }

    /// Records not yet committed, oldest first.
    pub(super) fn uncommitted(&self) -> impl Iterator<Item = &Record> {
        self.log.records_after(self.committed)
    }

    /// The newest record, unless it is committed.
    pub(super) fn newest_record(&self) -> Option<&Record> {
        self.log.record(self.last())
    }

    /// Records after `after`, in order, committed or not.
    pub(super) fn records_after(&self, after: Seq) -> impl Iterator<Item = &Record> {
        self.log.records_after(after)
    }

    /// The record after which those begin that are still here.
    pub(super) fn history_start(&self) -> Seq {
        self.log.history().start()
    }

    /// Bytes of the committed records that are still here.
    pub(super) fn history_bytes(&self) -> usize {
        self.log.history().bytes()
    }

    /// Whether whoever has applied the stream up to `applied` can go on from there.
    ///
    /// What a parity applies was committed, and what was committed is in the stream of every later term: so it has the
    /// same records as this stream, even if it was evicted under another primary.
    pub(super) fn reaches_back_to(&self, applied: Seq) -> bool {
        (self.history_start()..=self.committed).contains(&applied)
    }

    /// Drops the committed records that nobody wants any more, or for which there is no room. Somebody may want those after
    /// `wanted`.
    pub(super) fn trim_history(&mut self, limits: &crate::Limits, wanted: Option<Seq>) {
        let unwanted = wanted.unwrap_or(self.committed).min(self.committed);
        let most_bytes = if self.budget.has_room_to_spare() { limits.history_bytes } else { 0 };
        self.log.trim_history(unwanted, most_bytes);
    }

    /// The version of what the next record of `core` writes.
    pub(super) fn next_version(&self, core: &Core) -> u64 {
        core.versions().at(self.last().next())
    }

    /// Memory of the records that are kept.
    pub(super) fn log_memory_bytes(&self) -> usize {
        self.log.memory_bytes()
    }

    /// Memory of the table of keys with uncommitted records.
    pub(super) fn keys_memory_bytes(&self) -> usize {
        self.keys.capacity() * (size_of::<(Bytes, PendingKey)>() + 1)
    }

    /// Something may have to be sent.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Whether something may have to be sent.
    pub(super) fn is_stirred(&self) -> bool {
        self.stirred
    }

    /// The same; the next call says no unless something stirs it again.
    pub(super) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Whether a scheduled flush of this namespace must come before anything else.
    #[inline]
    pub(super) fn flush_is_due(
        store: &DataStore,
        namespace: impl FnOnce() -> NamespaceId,
        now: UnixSeconds,
    ) -> bool {
        let cohorts = store.replica().cohorts();
        cohorts.has_scheduled() && cohorts.scheduled(namespace()).is_some_and(|at| at <= now)
    }

    /// Answers when record `seq` commits; gives the outcome back if it has.
    pub(super) fn answer_with(&mut self, seq: Seq, reply: ReplyTo, outcome: Outcome) -> Result<(), Outcome> {
        let Some(entry) = self.log.entry_mut(seq) else { return Err(outcome) };
        entry.answers.push((reply, outcome));
        // Those who waited for it may have been told already that nobody knows; now there is somebody again.
        self.answered_upto = self.answered_upto.min(Seq(seq.0 - 1));
        Ok(())
    }

    /// Requests whose record has waited for too long: it stays in the log, but nobody is kept waiting for it.
    pub(super) fn expire_answers(&mut self, context: &mut Context<'_>) {
        let patience = context.timing.request_deadline_us;
        let now = context.now.time;
        // A parity may have it, and a stand-in go on from it: it can no more be taken back than be confirmed.
        for entry in self.log.entries_mut().take_while(|entry| now.since(entry.logged_at) >= patience) {
            self.answered_upto = entry.record.seq;
            for (reply, _) in entry.answers.drain(..) {
                context.reply(reply, Outcome::Failed(Failure::Unknown));
            }
        }
    }

    /// When somebody has waited for a record for too long.
    pub(super) fn answers_due(&self, timing: &crate::Timing) -> Time {
        let first = self.committed.max(self.answered_upto).next();
        self.log.entry(first).map_or(Time::NEVER, |entry| entry.logged_at + timing.request_deadline_us)
    }

    /// The primary is deposed: what its records will have been, nobody knows.
    pub(super) fn abandon(mut self, context: &mut Context<'_>) {
        while let Some(entry) = self.log.pop() {
            for (reply, _) in entry.answers {
                context.reply(reply, Outcome::Failed(Failure::Unknown));
            }
        }
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        let uncommitted = self.committed.next()..=self.log.last();
        let held = self.log.last().0 - self.committed.0;
        assert_eq!(held, self.log.len() as u64, "the log has each uncommitted record once");
        assert!(self.history_start() <= self.committed, "history is of what is committed");
        let is_there = self.flush.is_none_or(|seq| uncommitted.contains(&seq));
        assert!(is_there, "a flush that is waited for is on its way");
    }
}
