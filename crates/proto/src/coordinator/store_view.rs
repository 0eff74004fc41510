//! What the store of the records knows of the nodes' lives, held against what this coordinator hears. A coordinator that hears
//! less than half of them is cut off; it resigns before it takes anybody's silence for a death.

use std::collections::{BTreeMap, BTreeSet};

use types::{HostId, Time};

use super::nodes::{NodeState, Seen};
use super::state::ClusterState;
use crate::Now;

/// The processes that live by the store's own leases.
#[derive(Default)]
pub(super) struct StoreView {
    alive: BTreeMap<HostId, Seen>,
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

    /// The processes that the store shows as alive. Who is new there should have found this coordinator `found_by` then.
    pub(super) fn show(&mut self, found_by: Time, alive: &BTreeSet<HostId>) {
        let known = std::mem::take(&mut self.alive);
        let unheard = Seen { last: found_by, heard: false };
        let seen = |host: &HostId| known.get(host).copied().unwrap_or(unheard);
        self.alive = alive.iter().map(|host| (*host, seen(host))).collect();
    }

    /// Whether half of the processes that the store shows have been heard here lately, by those that count as heard. Sooner than
    /// a lease runs out: then nobody has been given up yet.
    pub(super) fn hears_half(
        &self,
        now: Time,
        state: &ClusterState,
        counts_as_heard: impl Fn(Seen) -> bool,
    ) -> bool {
        let patience = state.lease_us() * 3 / 4;
        // A fenced process may keep its lease at the store as long as it lives, and is not listened to here.
        let counts = |host: &HostId| state.nodes().get(*host).is_none_or(|node| !node.is_fenced());
        let (mut all, mut heard) = (0, 0);
        for (host, seen) in self.alive.iter().filter(|(host, _)| counts(host)) {
            let seen = state.nodes().get(*host).map_or(*seen, NodeState::seen);
            all += 1;
            heard += usize::from(counts_as_heard(seen) && now.since(seen.last) < patience);
        }
        2 * heard >= all
    }
}
