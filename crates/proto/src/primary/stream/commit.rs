//! Commit: records that every required parity has become readable, and their clients hear of it.

use store::DataStore;
use types::Seq;

use super::SendStream;
use super::log::{Entry, Purpose, apply_record};
use crate::outbox::Context;
use crate::primary::charges::Charges;
use crate::primary::objects::ObjectEffects;
use crate::rules::Stage;

/// What was committed.
#[derive(Debug, Default)]
pub(in crate::primary) struct Committed {
    /// Records that were logged to make room.
    pub reclaims: u32,
    /// What they have done to objects, in order.
    pub objects: Vec<ObjectEffects>,
}

impl SendStream {
    /// Commits all records up to `target`, in order.
    pub(in crate::primary) fn commit_upto(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        charges: &mut Charges,
        target: Seq,
    ) -> Committed {
        let mut committed = Committed::default();
        while self.committed < target {
            let mut entry = self.log.pop_to_commit().expect("the log holds what is not committed");
            committed.objects.extend(entry.objects.take().map(|effects| *effects));
            committed.reclaims += u32::from(entry.purpose == Purpose::Reclaim);
            self.commit(context, store, charges, entry);
        }
        // The parities are to hear of the commit index.
        self.stirred = true;
        committed
    }

    fn commit(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        charges: &mut Charges,
        entry: Entry,
    ) {
        let seq = entry.record.seq;
        debug_assert_eq!(seq, self.committed.next(), "records commit in order");
        self.committed = seq;
        for &addr in &entry.pinned {
            store.unpin(addr);
        }
        if context.rules.shows_at() == Stage::Committed {
            apply_record(store, &entry.record);
        }
        if !charges.is_empty() {
            let cohorts = store.replica().cohorts();
            charges.note_committed(&entry.record, cohorts);
            entry.charged.into_iter().for_each(|charged| charges.settle(charged, cohorts));
        }
        self.forget_pending(&entry);
        if let Purpose::Request(kind) = entry.purpose {
            context.out.latencies.parities.record(kind, entry.logged_at, context.now.time);
        }
        for (reply, outcome) in entry.answers {
            context.reply(reply, outcome);
        }
        self.log.keep_committed(entry.record);
    }

    /// From here on the store has what this record did, unless a later one has changed it again.
    fn forget_pending(&mut self, entry: &Entry) {
        let seq = entry.record.seq;
        self.flush.take_if(|flush| *flush == seq);
        for key in &entry.keys {
            if self.keys.get(key).is_some_and(|pending| pending.newest == seq) {
                self.keys.remove(key);
            }
        }
    }
}
