//! Commit: a record that every required parity has becomes readable, and its client hears of it.

use cluster::Seq;
use store::DataStore;
use wire::message::Record;

use super::Primary;
use super::log::{Entry, Purpose};
use crate::outbox::Context;

impl Primary {
    /// Commits what all parities of the view have acknowledged; everything if there are none.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) {
        let target = self.committable(context);
        if self.committed >= target {
            return;
        }
        self.send_records_to_learners(context);
        while self.committed < target {
            let entry = self.log.pop_to_commit().expect("the log holds what is not committed");
            self.commit(context, entry);
        }
        self.dirty = true;
        self.answer_hand_over(context);
        self.retry_waiting(context);
    }

    fn committable(&self, context: &Context<'_>) -> Seq {
        let last = self.log.last();
        let unilateral = crate::planted(crate::Bug::UnilateralRemoval);
        let required =
            self.parities.iter().filter(|p| !unilateral || !p.is_silent(context.now.time, context.timing));
        let target = required.map(|peer| peer.acked()).min().unwrap_or(last);
        debug_assert!(target <= last, "what was never sent is not believed to be acknowledged");
        target.min(last)
    }

    fn commit(&mut self, context: &mut Context<'_>, entry: Entry) {
        let seq = entry.record.seq;
        debug_assert_eq!(seq, self.committed.next(), "records commit in order");
        self.committed = seq;
        let store = self.store_mut().expect("a primary with a log serves");
        for &addr in &entry.pinned {
            store.unpin(addr);
        }
        if !crate::planted(crate::Bug::IndexSwitchBeforeCommit) {
            apply_record(store, &entry.record);
        }
        if entry.purpose == Purpose::Reclaim {
            self.growth.reclaim_committed();
        }
        if self.cleared == Some(seq) {
            self.cleared = None;
        }
        if self.scheduled == Some(seq) {
            self.scheduled = None;
        }
        for key in &entry.keys {
            if self.keys.get(key).is_some_and(|pending| pending.newest == seq) {
                self.keys.remove(key);
            }
        }
        if let Purpose::Request(kind) = entry.purpose {
            context.out.latencies.parities.record(kind, entry.logged_at, context.now.time);
        }
        for (reply, outcome) in entry.answers {
            context.reply(reply, outcome);
        }
        self.log.keep_committed(entry.record);
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
