//! Flushes: while one is in the log nothing else is decided. So whoever writes knows by the committed state alone which cohort an
//! item is of.

use std::collections::VecDeque;

use store::DataStore;
use types::op::{Failure, Flush, FlushAt, OpKind, Outcome};
use types::{IndexOp, NamespaceId, Seq, Time};

use super::SendStream;
use super::log::Purpose;
use super::write::Draft;
use crate::Rules;
use crate::outbox::{Context, ReplyTo};

/// Flushes that are not committed.
#[derive(Default)]
pub(super) struct Flushes {
    /// Until the one before them is committed, or their next generation has no items any more; the first one next.
    waiting: VecDeque<Waiting>,
    /// The one that is in the log.
    logged: Option<Seq>,
}

struct Waiting {
    namespace: NamespaceId,
    op: IndexOp,
    purpose: Purpose,
    reply: ReplyTo,
    since: Time,
}

impl Flushes {
    /// Whether one is in the log: until it is committed nobody knows what an item is.
    pub(super) fn is_logged(&self) -> bool {
        self.logged.is_some()
    }

    /// Whether nothing else may be decided.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.logged.is_none()
    }

    /// Record `seq` is committed.
    pub(super) fn note_committed(&mut self, seq: Seq) {
        self.logged.take_if(|logged| *logged == seq);
    }

    /// That the one in the log is there.
    pub(super) fn check_invariants(&self, uncommitted: &std::ops::RangeInclusive<Seq>) {
        assert!(
            self.logged.is_none_or(|seq| uncommitted.contains(&seq)),
            "a flush that is waited for is on its way"
        );
    }

    fn take_late(&mut self, now: Time, patience_us: u64) -> Vec<ReplyTo> {
        let late =
            |waiting: &Waiting| now.since(waiting.since) >= patience_us && waiting.reply != ReplyTo::Nobody;
        let (late, rest): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(late);
        self.waiting.extend(rest);
        late.into_iter().map(|waiting| waiting.reply).collect()
    }
}

impl SendStream {
    /// Whether a flush is to be committed before anything else is decided.
    pub(in crate::primary) fn is_flushing(&self, rules: Rules) -> bool {
        !self.flushes.is_empty() && rules.flushes_hold_writes_up()
    }

    /// All keys of a namespace go, now or later.
    pub(in crate::primary) fn flush(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        flush: Flush,
        reply: ReplyTo,
    ) {
        let Flush { namespace, at } = flush;
        let op = match at {
            FlushAt::Now => IndexOp::Flush { namespace },
            FlushAt::At(at) => IndexOp::FlushAt { namespace, at },
        };
        self.queue_flush(context, namespace, op, Purpose::Request(OpKind::FlushAll), reply);
        self.log_next_flush(context, store);
    }

    /// A scheduled flush whose time has come.
    pub(in crate::primary) fn flush_due(&mut self, context: &mut Context<'_>, store: &mut DataStore) {
        // One after the other: the next one is found when this one is over.
        if !self.flushes.is_empty() {
            return;
        }
        let Some(namespace) = store.replica().cohorts().due(context.now.unix) else { return };
        let op = IndexOp::Flush { namespace };
        self.queue_flush(context, namespace, op, Purpose::Schedule, ReplyTo::Nobody);
        self.log_next_flush(context, store);
    }

    fn queue_flush(
        &mut self,
        context: &Context<'_>,
        namespace: NamespaceId,
        op: IndexOp,
        purpose: Purpose,
        reply: ReplyTo,
    ) {
        let since = context.now.time;
        self.flushes.waiting.push_back(Waiting { namespace, op, purpose, reply, since });
    }

    /// Logs the flush whose turn it is, if none is on its way.
    pub(in crate::primary) fn log_next_flush(&mut self, context: &mut Context<'_>, store: &mut DataStore) {
        if self.flushes.is_logged() {
            return;
        }
        // Its next generation may still have items of sixteen flushes ago; they go first.
        let can_flush = |waiting: &Waiting| store.replica().cohorts().can_flush(waiting.namespace);
        let Some(at) = self.flushes.waiting.iter().position(can_flush) else { return };
        let Some(Waiting { op, purpose, reply, .. }) = self.flushes.waiting.remove(at) else { return };
        let mut draft = Draft::of(purpose);
        draft.ops.push(op);
        draft.answer = Some((reply, Outcome::Flushed));
        let seq = self.append(context, store, draft);
        self.flushes.logged = Some(seq);
    }

    /// Flushes that have waited for too long: nothing was done.
    pub(super) fn expire_flushes(&mut self, context: &mut Context<'_>) {
        let late = self.flushes.take_late(context.now.time, context.timing.request_deadline_us);
        late.into_iter().for_each(|reply| context.reply(reply, Outcome::Failed(Failure::Unavailable)));
    }

    /// When one has.
    pub(super) fn flushes_due(&self, timing: &crate::Timing) -> Time {
        let asked = self.flushes.waiting.iter().filter(|waiting| waiting.reply != ReplyTo::Nobody);
        asked.map(|waiting| waiting.since + timing.request_deadline_us).min().unwrap_or(Time::NEVER)
    }

    /// The primary is deposed: those that were not logged were not done.
    pub(super) fn abandon_flushes(&mut self, context: &mut Context<'_>) {
        for waiting in self.flushes.waiting.drain(..) {
            context.reply(waiting.reply, Outcome::Failed(Failure::Unavailable));
        }
    }
}
