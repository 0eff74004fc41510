//! Extents that go back: to the node, which is short of memory, and to the parities.
//!
//! A vacant one goes that is not needed; and where the node has no room for chunks, which have less than their share of its memory, one
//! is emptied first (`Space::empty_extent`).
//!
//! What was freed in an extent is still in the sums of the parities. So a vacant extent is written with zeros, run by run, by
//! records like any other. When every parity has applied the last of them none has anything of the extent left, and it is given
//! up here, too; to be used again it has to be reserved again. Nothing is begun or ended while there are learners or while a
//! parity may come back, for they learn what the role has in their own time.

use store::{DataStore, Wipe};
use types::{Seq, Time};
use wire::message::Write;

use super::core::Core;
use super::parities::Parities;
use super::stream::{Draft, Purpose, SendStream};
use crate::outbox::Context;

/// Wipes that are under way at a time: a quarter of a MiB.
const WIPES_AT_ONCE: u64 = 4;

/// Vacant extents that may wait.
const MANY_VACANT: usize = 4;

/// See the module.
#[derive(Default)]
pub(super) struct Release {
    vacating: Option<Vacating>,
    /// Whether one more is to go, whatever is needed here.
    is_wanted: bool,
    /// Extents given back, and when the last one was.
    released: u64,
    released_at: Time,
}

/// An extent on its way back.
#[derive(Clone, Copy)]
struct Vacating {
    extent: u32,
    /// The next run to be wiped.
    next_run: u32,
    /// The newest wipe.
    last: Seq,
}

impl Release {
    /// Extents given back so far.
    pub(super) fn released(&self) -> u64 {
        self.released
    }

    /// Whether an extent is on its way.
    pub(super) fn is_under_way(&self) -> bool {
        self.vacating.is_some()
    }

    /// Whether one more is to go, whatever is needed here.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// The node has no room for chunks, or those that may go cannot make some.
    pub(super) fn want(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self, stream: &SendStream) {
        let is_logged = |vacating: Vacating| vacating.last <= stream.last();
        assert!(self.vacating.is_none_or(is_logged), "wipes are records");
    }

    /// Whether an extent that is not needed should go: at once if the node is short of memory, or if so much is vacant that somebody
    /// waits for it (a namespace was removed, a large one flushed); else now and then, for the nodes of the parities may be short.
    pub(super) fn is_due(&self, context: &Context<'_>, core: &Core, store: &DataStore) -> bool {
        let rested = context.now.time.since(self.released_at) >= context.timing.retry_us;
        let kept = context.limits.vacant_extents;
        let vacant = || store.vacant_extents().count();
        let is_much = || vacant() > kept + MANY_VACANT && 4 * vacant() > store.area().extents().count();
        (rested || !core.budget().has_room_to_spare() || is_much())
            && store.vacant_extents().nth(kept).is_some()
    }

    /// Begins to give an extent back, unless one is on its way.
    pub(super) fn begin(&mut self, store: &mut DataStore, stream: &mut SendStream) {
        let vacant = if self.vacating.is_none() { store.vacant_extents().next() } else { None };
        if let Some(extent) = vacant {
            self.begin_with(extent, store, stream);
        }
    }

    /// Begins to give `extent` back, which is vacant; none is on its way.
    pub(super) fn begin_with(&mut self, extent: u32, store: &mut DataStore, stream: &mut SendStream) {
        store.vacating().begin(extent);
        let next_run = Wipe::runs(extent).start;
        // As if the newest record were a wipe: while more than a few records are uncommitted no wipe joins them.
        self.vacating = Some(Vacating { extent, next_run, last: stream.last() });
        stream.stir();
    }

    /// Logs the next wipes.
    pub(super) fn wipe(&mut self, context: &mut Context<'_>, store: &mut DataStore, stream: &mut SendStream) {
        let Some(vacating) = &mut self.vacating else { return };
        let runs = Wipe::runs(vacating.extent);
        while runs.contains(&vacating.next_run)
            && vacating.last.0.saturating_sub(stream.committed().0) < WIPES_AT_ONCE
        {
            let wipe = store.vacating().wipe(vacating.next_run);
            vacating.next_run += 1;
            // A run that was never written needs no record, but the last one tells the parities.
            if wipe.write.is_none() && vacating.next_run < runs.end {
                continue;
            }
            let mut draft = Draft::of(Purpose::Release);
            draft.writes.extend(wipe.write.map(|(addr, delta)| Write::new(addr, delta)));
            draft.ops.push(wipe.op);
            vacating.last = stream.append(context, store, draft);
        }
    }

    /// Gives the extent up once all wipes are applied everywhere; whether it did.
    pub(super) fn give_up(
        &mut self,
        now: Time,
        core: &Core,
        store: &mut DataStore,
        stream: &SendStream,
        parities: &mut Parities,
    ) -> bool {
        let Some(Vacating { extent, next_run, last }) = self.vacating else { return false };
        if next_run < Wipe::runs(extent).end || stream.committed() < last {
            return false;
        }
        // An idle role would tell them only after a while that the last wipe is committed, and memory may be short.
        parities.hurry_to_apply(last);
        let are_applied = parities.applied_by_all().is_none_or(|applied| applied >= last);
        if !core.rules().release_needs_applied_wipes(are_applied) {
            return false;
        }
        (self.vacating, self.is_wanted) = (None, false);
        self.released += 1;
        self.released_at = now;
        if !store.vacating().give_up(extent) {
            tracing::warn!(member = %core.member(), extent, "the system takes no memory back");
        }
        true
    }
}
