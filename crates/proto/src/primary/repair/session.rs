//! One repair session of a stand-in: who takes part, and what has come of it.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use types::{PageRange, RoleIndex, Time};
use wire::message::Residual;

use crate::outbox::Peer;
use crate::primary::core::Core;

/// A session under way.
pub(super) struct Session {
    pages: PageRange,
    parities: SmallVec<[RoleIndex; 4]>,
    opened: SmallVec<[RoleIndex; 4]>,
    residuals: Vec<(RoleIndex, Residual)>,
    started: Time,
    cause: Cause,
}

/// Why a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::primary) enum Cause {
    /// A request waits for the pages.
    Demand,
    /// The background sweep.
    Sweep,
}

/// A residual that no parity can have sent.
pub(super) struct NotOfThisSession;

impl Session {
    pub(super) fn new(
        pages: PageRange,
        parities: SmallVec<[RoleIndex; 4]>,
        cause: Cause,
        started: Time,
    ) -> Self {
        Self { pages, parities, opened: SmallVec::new(), residuals: Vec::new(), started, cause }
    }

    pub(super) fn pages(&self) -> PageRange {
        self.pages
    }

    pub(super) fn parities(&self) -> &SmallVec<[RoleIndex; 4]> {
        &self.parities
    }

    pub(super) fn cause(&self) -> Cause {
        self.cause
    }

    pub(super) fn started(&self) -> Time {
        self.started
    }

    /// Bytes that it has brought.
    pub(super) fn residual_bytes(&self) -> usize {
        self.residuals.iter().map(|(_, residual)| residual.bytes.len()).sum()
    }

    pub(super) fn covers(&self, page: u32) -> bool {
        (self.pages.first..self.pages.first + self.pages.count).contains(&page)
    }

    pub(super) fn overlaps(&self, pages: PageRange) -> bool {
        self.pages.first < pages.first + pages.count && pages.first < self.pages.first + self.pages.count
    }

    /// `parity` has taken its snapshot; whether all have by now, for the first time.
    pub(super) fn opened(&mut self, parity: RoleIndex) -> bool {
        if !self.parities.contains(&parity) || self.opened.contains(&parity) {
            return false;
        }
        self.opened.push(parity);
        self.opened.len() == self.parities.len()
    }

    /// What is left at `parity`; whether all have answered by now.
    pub(super) fn add(
        &mut self,
        core: &Core,
        parity: RoleIndex,
        residual: Residual,
    ) -> Result<bool, NotOfThisSession> {
        let known = self.residuals.iter().any(|(role, _)| *role == parity);
        if known || !self.parities.contains(&parity) {
            return Ok(false);
        }
        let (k, own, lost) = (core.view().k(), core.member().role, &residual.lost);
        // What its row does not cover is not in its sum, and what it covers of this role is all that is missing for
        // sure.
        let can_be_lost = lost.is_sorted_by(|before, after| before < after)
            && lost.contains(&own) == core.protection().covers(parity, own)
            && lost.iter().all(|role| usize::from(role.0) < k);
        if !can_be_lost || residual.bytes.len() != self.pages.len_bytes() {
            return Err(NotOfThisSession);
        }
        self.residuals.push((parity, residual));
        Ok(self.residuals.len() == self.parities.len())
    }

    /// This role's pages out of the residuals; none if the members answered differently or too much is lost.
    pub(super) fn solve(&self, core: &Core) -> Option<Vec<u8>> {
        let lost: BTreeSet<RoleIndex> =
            self.residuals.iter().flat_map(|(_, residual)| residual.lost.iter().copied()).collect();
        let is_of_all = |(parity, residual): &(RoleIndex, Residual)| {
            lost.iter().filter(|role| core.protection().covers(*parity, **role)).eq(&residual.lost)
        };
        // If they disagree about who is lost, their sums do not have the same unknowns.
        if !self.residuals.iter().all(is_of_all) {
            return None;
        }
        let k = core.view().k();
        let rows: Vec<usize> = self.residuals.iter().map(|(role, _)| usize::from(role.0) - k).collect();
        let lost: Vec<usize> = lost.iter().map(|role| usize::from(role.0)).collect();
        let sums: Vec<&[u8]> = self.residuals.iter().map(|(_, r)| r.bytes.as_ref()).collect();
        let mut out = vec![0; self.pages.len_bytes()];
        let wanted = usize::from(core.member().role.0);
        core.protection().code().recover(&rows, &lost, wanted, &sums, &mut out).ok()?;
        Some(out)
    }

    /// Its parities that are in sync.
    pub(super) fn peers(&self, core: &Core) -> SmallVec<[Peer; 4]> {
        core.in_sync_of(&self.parities)
    }
}
