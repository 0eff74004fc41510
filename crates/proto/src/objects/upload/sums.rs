//! Parities of a stripe that its writer does not send: the holders of data chunks send products of their cells to the holders of
//! parities, who add them up (docs/graphs.md, "Uploads that send `k` chunks").
//!
//! The writer codes all the same, for it names the checksum of each cell, and it has the cells: whatever goes wrong, a parity that is not
//! acknowledged is put cell by cell, under a new number. A holder that is put a parity so is first told of it when the stripe begins, and
//! never again: who is named later, and whatever is put again, gets cells.

use std::ops::Range;

use smallvec::SmallVec;
use types::{Holder, HostId, MemberId, ObjectLayout, RoleIndex, ViewVersion};
use wire::object::{Lend, ObjectMessage, Put, PutShared, PutSum, Share, Shares};

use super::stripe::{Attempt, StripeUpload};
use super::ways::By;
use crate::objects::scope::Scope;

/// At least so many chunks of which no row is complete may be added up at one host.
const CHUNKS_AT_ONCE: usize = 4;

/// How a holder gets a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The writer sends its cells.
    Cells,
    /// Holders of data chunks send products of theirs.
    Sums,
    /// They were to, and the writer sends its cells after all.
    CellsAfterAll,
}

impl Way {
    /// How it is put again.
    pub(super) fn after_all(self) -> Self {
        if self == Self::Cells { Self::Cells } else { Self::CellsAfterAll }
    }
}

/// A cell as it is put: without its bytes if others send what makes them, and with those who are to have products of it.
pub(super) fn message_of(put: Put, way: Way, shares: &Shares) -> ObjectMessage {
    if way == Way::Sums {
        ObjectMessage::PutSum(PutSum::of(put))
    } else if shares.is_empty() {
        ObjectMessage::Put(put)
    } else {
        ObjectMessage::PutShared(Box::new(PutShared { put, shares: shares.clone() }))
    }
}

impl StripeUpload {
    /// Which parities are made of products, of those that it begins to be put to: one holder of each, whose data roles all have holders.
    pub(super) fn choose_sums(&mut self, scope: &Scope<'_>) {
        if self.by == By::Node || !self.fits(scope) {
            return;
        }
        for at in 0..self.attempts.len() {
            let role = self.attempts[at].role;
            if self.is_first_of_role(at) && !self.is_data(role) && self.has_all_data_of(scope, role) {
                self.attempts[at].way = Way::Sums;
            }
        }
    }

    /// Whether whoever adds up has memory for it. Where the rows of a chunk come before those of the next one, that is for all of a chunk.
    fn fits(&self, scope: &Scope<'_>) -> bool {
        let chunk = self.stripe.rows as usize * self.stripe.cell_len as usize;
        self.stripe.layout == ObjectLayout::Spread || chunk <= scope.limits().sum_bytes / CHUNKS_AT_ONCE
    }

    /// Those of which some data role has no holder any more are put cell by cell.
    pub(super) fn put_orphans(&mut self, scope: &Scope<'_>, attempts: &mut u64) {
        for at in 0..self.attempts.len() {
            let Attempt { role, view, .. } = self.attempts[at];
            if self.awaits_sums(at) && !self.has_all_data_of(scope, role) {
                self.put_after_all(scope, at, view, attempts);
            }
        }
    }

    /// So are those that have still not come about when the holders of all data chunks have had them for a while: all products were sent.
    pub(super) fn put_late_sums(&mut self, scope: &Scope<'_>, attempts: &mut u64) {
        let mut of_data = self.attempts.iter().filter(|attempt| self.is_data(attempt.role));
        if !self.is_whole || !of_data.all(|attempt| attempt.acknowledged) {
            self.shared_since = None;
            return;
        }
        let since = *self.shared_since.get_or_insert(scope.now.time);
        if scope.now.time.since(since) < scope.timing().retry_us {
            return;
        }
        for at in 0..self.attempts.len() {
            if self.awaits_sums(at) {
                let view = self.attempts[at].view;
                self.put_after_all(scope, at, view, attempts);
            }
        }
    }

    fn put_after_all(&mut self, scope: &Scope<'_>, at: usize, view: ViewVersion, attempts: &mut u64) {
        if scope.rules().graphs().sums_give_way() {
            self.attempts[at].restart(view, attempts);
        }
    }

    /// Who is to have products of the cells that this holder gets.
    pub(super) fn shares_at(&self, at: usize) -> Shares {
        if !self.is_data(self.attempts[at].role) || !self.is_first_of_role(at) {
            return Shares::new();
        }
        let awaiting = (0..self.attempts.len()).filter(|parity| self.awaits_sums(*parity));
        let share = |parity: usize| {
            let Attempt { role, holder: Holder { host, .. }, number, .. } = self.attempts[parity];
            Share { role, holder: host, attempt: number }
        };
        awaiting.map(share).collect()
    }

    /// What the writer keeps itself of a stripe would leave it as often as there are parities: so it lends these cells to the holders of
    /// other data chunks by turns, who give the products. Whether it does.
    pub(super) fn lend(&self, scope: &mut Scope<'_>, at: usize, shares: &Shares, rows: Range<u32>) -> bool {
        let Attempt { role, view, .. } = self.attempts[at];
        let here = scope.here();
        if shares.len() < 2 || self.attempts[at].holder.host != here {
            return false;
        }
        let of_data = self.attempts.iter().filter(|attempt| self.is_data(attempt.role));
        let helpers: SmallVec<[HostId; 8]> =
            of_data.map(|attempt| attempt.holder.host).filter(|host| *host != here).collect();
        let member = MemberId { group: self.group(), role };
        for row in rows.start..rows.end.min(self.stripe.rows) {
            let Some(helper) = helpers.get(row as usize % helpers.len().max(1)) else { return false };
            let cell = self.chunks[usize::from(role.0)][row as usize].clone();
            let lend = Lend { member, view, row, cell, shares: shares.clone() };
            scope.send(*helper, ObjectMessage::Lend(lend));
        }
        !helpers.is_empty()
    }

    /// How many parities others have made of it, and how many were put after all.
    pub(super) fn count_sums(&self) -> (u64, u64) {
        let count = |way: Way| self.attempts.iter().filter(|attempt| attempt.way == way).count() as u64;
        (count(Way::Sums), count(Way::CellsAfterAll))
    }

    fn is_data(&self, role: RoleIndex) -> bool {
        role.0 < self.stripe.k
    }

    fn awaits_sums(&self, at: usize) -> bool {
        self.attempts[at].way == Way::Sums && self.attempts[at].is_to_be_sent()
    }

    fn is_first_of_role(&self, at: usize) -> bool {
        let role = self.attempts[at].role;
        self.attempts.iter().position(|attempt| attempt.role == role) == Some(at)
    }

    /// Whether there is a holder of each data role that a parity covers.
    fn has_all_data_of(&self, scope: &Scope<'_>, parity: RoleIndex) -> bool {
        let Some(protection) = scope.protection(self.group()) else { return false };
        let (code, k) = (protection.code(), usize::from(self.stripe.k));
        let Some(row) = usize::from(parity.0).checked_sub(k).filter(|row| *row < code.m() && k == code.k())
        else {
            return false;
        };
        let has = |data: usize| self.attempts.iter().any(|attempt| usize::from(attempt.role.0) == data);
        (0..k).all(|data| code.coefficient(row, data) == 0 || has(data))
    }
}
