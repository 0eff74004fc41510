//! Parities that were evicted and may come back (group protocol, section 6): their primary keeps the records that they
//! lack, for a while and up to a bound, so that little has to travel.

use types::{RoleIndex, Seq, Time};

use super::core::Core;
use crate::Timing;

/// The parity rows that nobody serves at present, while their former hosts may come back.
#[derive(Default)]
pub(super) struct Absentees {
    rows: Vec<Absentee>,
}

struct Absentee {
    role: RoleIndex,
    /// Its former host has applied this much at least.
    applied: Seq,
    since: Time,
}

impl Absentees {
    /// The former host of `role`, which has applied the stream up to `applied`, may come back.
    pub(super) fn expect(&mut self, core: &Core, role: RoleIndex, applied: Seq, now: Time) {
        let view = core.view();
        // A mirror never comes back, and a row that is served needs nothing.
        let is_missing = usize::from(role.0) >= view.k() && view.parity_host(role).is_none();
        self.rows.retain(|absentee| absentee.role != role);
        if is_missing {
            self.rows.push(Absentee { role, applied, since: now });
        }
    }

    /// Rows that cover the role and have no host, when a primary begins: their former hosts may have all that it starts from.
    pub(super) fn expect_all(&mut self, core: &Core, applied: Seq, now: Time) {
        for role in core.covering() {
            self.expect(core, *role, applied, now);
        }
    }

    /// A newer view: some rows are served again.
    pub(super) fn adopt(&mut self, core: &Core) {
        self.rows.retain(|absentee| core.view().parity_host(absentee.role).is_none());
    }

    /// Nobody is waited for for ever.
    pub(super) fn tick(&mut self, now: Time, timing: &Timing) {
        let patience = timing.rejoin_us();
        self.rows.retain(|absentee| now.since(absentee.since) < patience);
    }

    /// When the first one has been waited for for too long.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let since = self.rows.iter().map(|absentee| absentee.since).min();
        since.map_or(Time::NEVER, |since| since + timing.rejoin_us())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The oldest point from which one of them may go on.
    pub(super) fn applied_by_all(&self) -> Option<Seq> {
        self.rows.iter().map(|absentee| absentee.applied).min()
    }
}
