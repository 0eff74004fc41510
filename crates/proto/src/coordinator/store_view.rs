//! What the store of the records knows of the nodes' lives, held against what this coordinator hears. A coordinator that hears
//! less than half of them is cut off; it resigns before it takes anybody's silence for a death.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{HostId, Time};

use super::membership::NodeState;
use super::{Coordinator, CoordinatorAction};
use crate::Now;

/// The processes that live by the store's own leases, and by when they should have found this coordinator.
#[derive(Default)]
pub(super) struct StoreView {
    alive: BTreeMap<HostId, Time>,
}

impl StoreView {
    /// The coordinator was away for `late` microseconds: nobody's silence counts for that time.
    pub(super) fn forgive(&mut self, late: u64) {
        for found_by in self.alive.values_mut() {
            *found_by = *found_by + late;
        }
    }

    /// `host` was heard, although it has no place among the nodes yet: it waits for one.
    pub(super) fn hear(&mut self, now: Now, host: HostId) {
        if let Some(found_by) = self.alive.get_mut(&host) {
            *found_by = now.time.max(*found_by);
        }
    }
}

impl Coordinator {
    /// The processes that the store shows as alive, by leases that they keep there themselves. To be told after every change.
    /// Where nobody says so, the coordinator never resigns.
    pub fn store_sees(&mut self, now: Now, alive: &BTreeSet<HostId>) {
        let known = std::mem::take(&mut self.store.alive);
        let soon = now.time + self.config.timing.node_lease_us;
        let found_by = |host: &HostId| known.get(host).copied().unwrap_or(soon);
        self.store.alive = alive.iter().map(|host| (*host, found_by(host))).collect();
    }

    /// Whether it has resigned: it does nothing any more.
    #[must_use]
    pub fn has_resigned(&self) -> bool {
        self.resigned
    }

    pub(super) fn resign_if_cut_off(&mut self, now: Time) {
        if self.resigned || !self.hears_less_than_half(now) {
            return;
        }
        self.resign("most nodes that live are not heard here");
    }

    /// Decides nothing any more.
    pub(super) fn resign(&mut self, why: &'static str) {
        tracing::error!("{why}: resigning");
        self.resigned = true;
        self.actions.push_back(CoordinatorAction::Resign);
    }

    /// Of the processes that the store shows. Sooner than a lease runs out: then nobody has been given up yet.
    fn hears_less_than_half(&self, now: Time) -> bool {
        let patience = self.config.timing.node_lease_us * 3 / 4;
        let counts = |host: &HostId| self.node_of(*host).is_none_or(|node| !node.is_fenced());
        let heard = |host: HostId, found_by: Time| {
            let last = self.node_of(host).map_or(found_by, NodeState::last_heard);
            now.since(last) < patience
        };
        let all = self.store.alive.keys().filter(|host| counts(host)).count();
        let heard = self
            .store
            .alive
            .iter()
            .filter(|(host, found_by)| counts(host) && heard(**host, **found_by))
            .count();
        2 * heard < all
    }
}
