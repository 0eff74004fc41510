//! Parities that left their views while their process lives on: a while they keep what they have, for it may be that the
//! coordinator wants them back (group protocol, section 6).
//!
//! Nobody counts on a dormant parity: it gets no message, answers none, and is not asked in a recovery. It goes when another
//! host serves its row, when the node wants the memory, and after [`crate::Timing::rejoin_us`].

use cluster::{GroupView, MemberId, Time, ViewVersion};

use super::Host;
use crate::Now;
use crate::parity::{Parity, Rejoined};

/// See the module.
pub(super) struct Dormant {
    parity: Parity,
    until: Time,
}

impl Dormant {
    pub(super) fn parity(&self) -> &Parity {
        &self.parity
    }
}

impl Host {
    /// A parity is none any more in `view`.
    pub(super) fn dismiss_parity(&mut self, now: Now, id: MemberId, view: &GroupView) {
        let Some(mut parity) = self.members.parities.remove(&id) else { return };
        self.left.insert(id);
        let may_return =
            parity.may_rejoin() && parity.has_nothing_lost(view) && view.parity_host(id.role).is_none();
        tracing::info!(member = %id, view = %view.version, may_return, "parity left the view");
        if may_return {
            parity.rest();
            let until = now.time + self.config.timing.rejoin_us();
            self.members.dormant.insert(id, Dormant { parity, until });
        }
    }

    /// `view` wants this host to learn a role: with what it has of it, if it has been a parity of that role before.
    pub(super) fn begin_to_learn(&mut self, id: MemberId, view: &GroupView, since: ViewVersion) {
        // It may not have heard of the views between.
        let known = self.members.parities.remove(&id).filter(Parity::may_rejoin);
        let dormant = self.members.dormant.remove(&id).map(|dormant| dormant.parity);
        let former = known.or(dormant).filter(|parity| parity.has_nothing_lost(view));
        tracing::info!(member = %id, view = %view.version, rejoins = former.is_some(), "learner appointed");
        self.left.remove(&id);
        match former {
            Some(mut parity) => {
                parity.rejoin(view, since);
                self.members.parities.insert(id, parity);
            }
            None => self.create_parity(id, view),
        }
    }

    /// A view in which a dormant parity is not named: somebody else may serve its row now, or it has lost data in its sum.
    pub(super) fn reconsider_dormant(&mut self, id: MemberId, view: &GroupView) {
        let is_of_use = |dormant: &Dormant| dormant.parity.has_nothing_lost(view);
        if view.parity_host(id.role).is_some() || !self.members.dormant.get(&id).is_none_or(is_of_use) {
            self.members.dormant.remove(&id);
        }
    }

    /// Dormant parities go that have waited for too long, and all of them if the node is short of memory.
    pub(super) fn trim_dormant(&mut self, now: Now) {
        if self.members.dormant.is_empty() {
            return;
        }
        let has_room = self.config.budget.has_room_to_spare();
        self.members.dormant.retain(|_, dormant| has_room && now.time < dormant.until);
    }

    /// A parity that has come back is in sync.
    pub(super) fn note_rejoined(&mut self, id: MemberId, rejoined: Option<Rejoined>) {
        let Some(Rejoined { records, bytes, instead_of_bytes }) = rejoined else { return };
        tracing::info!(member = %id, records, bytes, instead_of_bytes, "resumed");
        self.stats.resumed_parities += 1;
        self.stats.resumed_records += records;
        self.stats.resumed_bytes += bytes;
        self.stats.spared_bytes += instead_of_bytes.saturating_sub(bytes);
    }
}
