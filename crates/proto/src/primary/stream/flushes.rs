//! Flushes: while one is in the log nothing else is decided. So whoever writes knows by the committed state alone which cohort an
//! item is of.

use std::collections::VecDeque;

use store::Cohorts;
use types::{IndexOp, NamespaceId, Seq, Time};

use super::log::Purpose;
use crate::outbox::ReplyTo;

/// Flushes that are not committed.
#[derive(Default)]
pub(super) struct Flushes {
    /// Until the one before them is committed, or their next generation has no items any more; the first one next.
    waiting: VecDeque<Waiting>,
    /// The one that is in the log.
    logged: Option<Seq>,
}

/// A flush that is not logged yet.
pub(super) struct Waiting {
    pub namespace: NamespaceId,
    pub op: IndexOp,
    pub purpose: Purpose,
    pub reply: ReplyTo,
    pub since: Time,
}

impl Flushes {
    /// Whether one is in the log: until it is committed nobody knows what an item is.
    pub(super) fn is_logged(&self) -> bool {
        self.logged.is_some()
    }

    /// Whether none has to be committed before anything else is decided.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.logged.is_none()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// Takes the one whose turn it is, if none is in the log.
    pub(super) fn next(&mut self, cohorts: &Cohorts) -> Option<Waiting> {
        if self.is_logged() {
            return None;
        }
        // Its next generation may still have items of sixteen flushes ago; they go first.
        let at = self.waiting.iter().position(|waiting| cohorts.can_flush(waiting.namespace))?;
        self.waiting.remove(at)
    }

    /// The next one is record `seq`.
    pub(super) fn note_logged(&mut self, seq: Seq) {
        self.logged = Some(seq);
    }

    /// Record `seq` is committed.
    pub(super) fn note_committed(&mut self, seq: Seq) {
        self.logged.take_if(|logged| *logged == seq);
    }

    /// Takes those that somebody has waited for too long; nothing was done.
    pub(super) fn take_late(&mut self, now: Time, patience_us: u64) -> Vec<ReplyTo> {
        let is_late =
            |waiting: &Waiting| now.since(waiting.since) >= patience_us && waiting.reply != ReplyTo::Nobody;
        let (late, rest): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_late);
        self.waiting.extend(rest);
        late.into_iter().map(|waiting| waiting.reply).collect()
    }

    /// When somebody has.
    pub(super) fn due(&self, patience_us: u64) -> Time {
        let asked = self.waiting.iter().filter(|waiting| waiting.reply != ReplyTo::Nobody);
        asked.map(|waiting| waiting.since + patience_us).min().unwrap_or(Time::NEVER)
    }

    /// Takes all that are not logged.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = ReplyTo> {
        self.waiting.drain(..).map(|waiting| waiting.reply)
    }

    /// That the one in the log is there.
    pub(super) fn check_invariants(&self, uncommitted: &std::ops::RangeInclusive<Seq>) {
        let is_there = self.logged.is_none_or(|seq| uncommitted.contains(&seq));
        assert!(is_there, "a flush that is waited for is on its way");
    }
}
