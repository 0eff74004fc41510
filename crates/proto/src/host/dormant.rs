//! Parities that left their views while their process lives on: a while they keep what they have, for it may be that the
//! coordinator wants them back (group protocol, section 6).
//!
//! Nobody counts on a dormant parity: it gets no message, answers none, and is not asked in a recovery. It goes when another
//! host serves its row, when the node wants the memory, and after [`crate::Timing::rejoin_us`].

use std::collections::BTreeMap;

use store::Budget;
use types::{GroupView, MemberId, Time};

use crate::parity::Parity;

/// See the module.
#[derive(Default)]
pub(super) struct Dormants {
    parities: BTreeMap<MemberId, Dormant>,
}

struct Dormant {
    parity: Parity,
    until: Time,
}

impl Dormants {
    /// A parity is none any more in `view`; whether it may come back.
    pub(super) fn keep(&mut self, mut parity: Parity, view: &GroupView, until: Time) -> bool {
        let id = parity.member();
        // Its sum has to be one of what is still somebody's, and its row still without a host.
        let may_return =
            parity.may_rejoin() && parity.has_nothing_lost(view) && view.parity_host(id.role).is_none();
        if may_return {
            parity.rest();
            self.parities.insert(id, Dormant { parity, until });
        }
        may_return
    }

    /// Those of which `is_gone` is true go.
    pub(super) fn forget(&mut self, is_gone: impl Fn(&MemberId) -> bool) {
        self.parities.retain(|id, _| !is_gone(id));
    }

    /// Takes the one that has been a parity of `id`.
    pub(super) fn take(&mut self, id: MemberId) -> Option<Parity> {
        self.parities.remove(&id).map(|dormant| dormant.parity)
    }

    /// A view in which it is not named: somebody else may serve its row now, or it has lost data in its sum.
    pub(super) fn reconsider(&mut self, id: MemberId, view: &GroupView) {
        let is_of_use = |dormant: &Dormant| dormant.parity.has_nothing_lost(view);
        if view.parity_host(id.role).is_some() || !self.parities.get(&id).is_none_or(is_of_use) {
            self.parities.remove(&id);
        }
    }

    /// Those go that have waited for too long, and all of them if the node is short of memory.
    pub(super) fn trim(&mut self, now: Time, budget: &Budget) {
        if !self.parities.is_empty() {
            let has_room = budget.has_room_to_spare();
            self.parities.retain(|_, dormant| has_room && now < dormant.until);
        }
    }

    /// When the first one has waited for too long.
    pub(super) fn due(&self) -> Time {
        self.parities.values().map(|dormant| dormant.until).min().unwrap_or(Time::NEVER)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Parity> {
        self.parities.values().map(|dormant| &dormant.parity)
    }
}
