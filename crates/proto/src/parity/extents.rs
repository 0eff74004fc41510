//! Which extents data roles may use, and when this parity's memory for one goes back.
//!
//! A role has an extent from the moment it is granted until its stream says that all of it is zero again. A primary that asks
//! again does so only after every parity has applied that (`primary/release.rs`), so no grant is older than the wipe that takes
//! it away. What no role has is zero: a sum of nothing but zeros.

use cluster::{HostId, RoleIndex};
use store::{EXTENT_BYTES, IndexOp, PAGE_BYTES, PageRange, RUN_BYTES, RunClass};
use wire::message::{GroupBody, Record, Reserve, Reserved, Write};

use super::{Parity, Stream};
use crate::outbox::Context;

const RUNS_PER_EXTENT: u32 = (EXTENT_BYTES / RUN_BYTES) as u32;
const PAGES_PER_EXTENT: u32 = (EXTENT_BYTES / PAGE_BYTES) as u32;

impl Parity {
    /// May a data role use this extent? Yes if there is memory for its parity.
    pub(crate) fn handle_reserve(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        reserve: &Reserve,
    ) {
        if !self.admits(context, from, role, reserve.term) {
            return;
        }
        let granted = self.area.commit(reserve.extent).is_ok();
        if granted && let Some(stream) = self.stream(role) {
            stream.grant(reserve.extent);
        }
        let reserved = Reserved { term: reserve.term, extent: reserve.extent, granted };
        self.sender().send(context, from, role, GroupBody::Reserved(reserved));
    }

    /// A record of `role` has been applied. If it has made the last run of an extent zero, the role does not have it any more.
    pub(super) fn note_wiped(&mut self, role: RoleIndex, record: &Record) {
        for op in &record.ops {
            let IndexOp::Assign { run, class: RunClass::FREE } = *op else { continue };
            let extent = run / RUNS_PER_EXTENT;
            let stream = &mut self.streams[usize::from(role.0)];
            if !stream.has_touched(extent) {
                stream.granted.remove(extent);
                self.return_if_unused(extent);
            }
        }
    }

    /// Gives back the memory of all extents that no role has.
    pub(super) fn return_unused_extents(&mut self) {
        let extents: Vec<u32> = self.area.extents().collect();
        extents.into_iter().for_each(|extent| self.return_if_unused(extent));
    }

    /// A learner gives nothing back: what it has been told of is not all yet.
    fn return_if_unused(&mut self, extent: u32) {
        if self.learner.is_none() && !self.streams.iter().any(|stream| stream.uses(extent)) {
            self.area.decommit(extent);
        }
    }
}

impl Stream {
    pub(super) fn grant(&mut self, extent: u32) {
        self.granted.insert(extent);
    }

    /// After a takeover the role has what its stand-in starts from: what was ever written. For anything else it asks.
    pub(super) fn grant_touched_only(&mut self) {
        let untouched: Vec<u32> = self.granted.iter().filter(|extent| !self.has_touched(*extent)).collect();
        for extent in untouched {
            self.granted.remove(extent);
        }
    }

    fn uses(&self, extent: u32) -> bool {
        self.granted.contains(extent) || self.has_touched(extent) || self.will_write(extent)
    }

    fn has_touched(&self, extent: u32) -> bool {
        let pages = PageRange { first: extent * PAGES_PER_EXTENT, count: PAGES_PER_EXTENT };
        let touched = self.replica.touched().first_present(pages.first);
        touched.is_some_and(|page| page < pages.first + pages.count)
    }

    /// Whether a kept record writes there.
    fn will_write(&self, extent: u32) -> bool {
        let (start, end) = (extent as usize * EXTENT_BYTES, (extent as usize + 1) * EXTENT_BYTES);
        let over = |write: &Write| write.addr.byte() < end && start < write.addr.byte() + write.delta.len();
        self.kept.iter().flat_map(|record| &record.writes).any(over)
    }
}
