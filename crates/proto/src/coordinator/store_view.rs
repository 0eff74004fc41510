//! What the store of the records knows of the nodes' lives, held against what this coordinator hears. A coordinator that hears
//! less than half of them is cut off; it resigns before it takes anybody's silence for a death.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{HostId, Time};

use super::nodes::NodeState;
use super::{Coordinator, CoordinatorAction};
use crate::Now;

/// The processes that live by the store's own leases.
#[derive(Default)]
pub(super) struct StoreView {
    alive: BTreeMap<HostId, Seen>,
}

/// What this coordinator knows of a process's life by itself.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// When it was heard last; before that, by when it should have found this coordinator.
    pub last: Time,
    /// Whether this coordinator has heard it.
    pub heard: bool,
}

impl StoreView {
    /// The coordinator was away for `late` microseconds: nobody's silence counts for that time.
    pub(super) fn forgive(&mut self, late: u64) {
        for seen in self.alive.values_mut() {
            seen.last = seen.last + late;
        }
    }

    /// `host` was heard, although it has no place among the nodes yet: it waits for one.
    pub(super) fn hear(&mut self, now: Now, host: HostId) {
        if let Some(seen) = self.alive.get_mut(&host) {
            *seen = Seen { last: now.time.max(seen.last), heard: true };
        }
    }
}

impl Coordinator {
    /// The processes that the store shows as alive, by leases that they keep there themselves. To be told after every change.
    /// Where nobody says so, the coordinator never resigns.
    pub fn store_sees(&mut self, now: Now, alive: &BTreeSet<HostId>) {
        let known = std::mem::take(&mut self.store.alive);
        let unheard = Seen { last: now.time + self.config.timing.node_lease_us, heard: false };
        let seen = |host: &HostId| known.get(host).copied().unwrap_or(unheard);
        self.store.alive = alive.iter().map(|host| (*host, seen(host))).collect();
    }

    /// Whether it has resigned: it does nothing any more.
    #[must_use]
    pub fn has_resigned(&self) -> bool {
        self.resigned
    }

    pub(super) fn resign_if_cut_off(&mut self, now: Time) {
        // Who has had no time yet to find this coordinator is not missed.
        if self.resigned || self.hears_half(now, |_| true) {
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

    /// Whether half of the processes that the store shows have been heard here, so that the silence of the others is their own.
    pub(super) fn has_heard_half(&self, now: Time) -> bool {
        self.hears_half(now, |seen| seen.heard)
    }

    /// Of the processes that the store shows, by those that count as heard. Sooner than a lease runs out: then nobody has been
    /// given up yet.
    fn hears_half(&self, now: Time, counts_as_heard: impl Fn(Seen) -> bool) -> bool {
        let patience = self.config.timing.node_lease_us * 3 / 4;
        let counts = |host: &HostId| self.nodes.get(*host).is_none_or(|node| !node.is_fenced());
        let (mut all, mut heard) = (0, 0);
        for (host, seen) in self.store.alive.iter().filter(|(host, _)| counts(host)) {
            let seen = self.nodes.get(*host).map_or(*seen, NodeState::seen);
            all += 1;
            heard += usize::from(counts_as_heard(seen) && now.since(seen.last) < patience);
        }
        2 * heard >= all
    }
}
