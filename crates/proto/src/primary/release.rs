//! Extents that go back: to the node, which is short of memory, and to the parities.
//!
//! What was freed in an extent is still in the sums of the parities. So a vacant extent is written with zeros, run by run, by
//! records like any other. When every parity has applied the last of them none has anything of the extent left, and it is given
//! up here, too; to be used again it has to be reserved again. Nothing is begun or ended while there are learners or while a
//! parity may come back, for they learn what the role has in their own time.

use cluster::Seq;
use smallvec::{SmallVec, smallvec};
use store::DataStore;
use wire::message::Write;

use super::Primary;
use super::log::Purpose;
use super::write::Draft;
use crate::outbox::Context;

/// Wipes that are under way at a time: a quarter of a MiB.
const WIPES_AT_ONCE: u64 = 4;

/// An extent on its way back.
pub(super) struct Release {
    extent: u32,
    /// The next run to be wiped.
    next_run: u32,
    /// The newest wipe.
    last: Seq,
}

impl Primary {
    /// An extent that is not needed goes: at once if the node is short of memory, else now and then, for the nodes of the
    /// parities may be.
    pub(super) fn tick_release(&mut self, context: &mut Context<'_>) {
        let rested = context.now.time.since(self.growth.released_at) >= context.timing.retry_us;
        if !rested && self.budget.has_room_to_spare() {
            return;
        }
        let kept = context.limits.vacant_extents;
        let spare = self.store().is_some_and(|store| store.vacant_extents().nth(kept).is_some());
        if spare {
            self.begin_release(context);
        }
    }

    /// Begins to give an extent back, unless one is on its way; whether one is then, and nothing holds it up.
    pub(super) fn begin_release(&mut self, context: &mut Context<'_>) -> bool {
        if self.release.is_none() && self.may_release() && self.may_serve(context.now.time, context.timing) {
            let extent = self.store().and_then(|store| store.vacant_extents().next());
            if let (Some(extent), Some(store)) = (extent, self.store_mut()) {
                store.begin_to_vacate(extent);
                let next_run = DataStore::wipes(extent).start;
                self.release = Some(Release { extent, next_run, last: self.log.last() });
                self.dirty = true;
            }
        }
        self.release.is_some() && self.may_release()
    }

    fn may_release(&self) -> bool {
        self.learners.is_empty() && self.evicted.is_empty() && !self.is_rebuilding()
    }

    /// Logs the next wipes; gives the extent up once all are applied everywhere.
    pub(super) fn go_on_releasing(&mut self, context: &mut Context<'_>) {
        while let Some(run) = self.next_wipe() {
            self.log_wipe(context, run);
        }
        let Some(release) = &self.release else { return };
        let wiped = release.next_run == DataStore::wipes(release.extent).end;
        if !wiped || self.committed < release.last || !self.may_release() {
            return;
        }
        self.parities.iter_mut().for_each(|peer| peer.hurry(release.last));
        let early = crate::planted(crate::Bug::ReleaseBeforeApplied);
        if !early && self.parities.iter().any(|peer| peer.applied() < release.last) {
            return;
        }
        let extent = release.extent;
        self.release = None;
        self.growth.released += 1;
        self.growth.released_at = context.now.time;
        let store = self.store_mut().expect("a primary that serves has begun this");
        if !store.vacate(extent) {
            tracing::warn!(member = %self.member, extent, "the system takes no memory back");
        }
        self.retry_waiting(context);
        self.tick_release(context);
    }

    fn next_wipe(&self) -> Option<u32> {
        let release = self.release.as_ref()?;
        let under_way = release.last.0.saturating_sub(self.committed.0) >= WIPES_AT_ONCE;
        let runs = DataStore::wipes(release.extent);
        (!under_way && runs.contains(&release.next_run)).then_some(release.next_run)
    }

    /// Makes a run zero. One that was never written needs no record, but the last one tells the parities.
    fn log_wipe(&mut self, context: &mut Context<'_>, run: u32) {
        let store = self.store().expect("a primary that serves has begun this");
        let wipe = store.wipe(run);
        let Some(release) = &mut self.release else { return };
        release.next_run = run + 1;
        if wipe.write.is_none() && release.next_run < DataStore::wipes(release.extent).end {
            return;
        }
        let writes: SmallVec<[Write; 1]> =
            wipe.write.map(|(addr, delta)| Write::new(addr, delta)).into_iter().collect();
        let draft = Draft { writes, ops: smallvec![wipe.op], ..Draft::default() };
        let last = self.append(context, draft, Purpose::Release, SmallVec::new(), None);
        if let Some(release) = &mut self.release {
            release.last = last;
        }
    }
}
