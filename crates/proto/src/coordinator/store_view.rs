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
        let patience_us = patience_us(state);
        let (mut all, mut heard) = (0, 0);
        for seen in self.seen(state) {
            all += 1;
            heard += usize::from(counts_as_heard(seen) && now.since(seen.last) < patience_us);
        }
        2 * heard >= all
    }

    /// Until when [`Self::hears_half`] holds, if nobody else speaks: the last of those falls silent that make up the half.
    pub(super) fn hears_half_until(
        &self,
        state: &ClusterState,
        counts_as_heard: impl Fn(Seen) -> bool,
    ) -> Option<Time> {
        let needed = self.seen(state).count().div_ceil(2);
        let mut heard: Vec<Time> =
            self.seen(state).filter(|seen| counts_as_heard(*seen)).map(|seen| seen.last).collect();
        heard.sort_unstable();
        let last = heard.len().checked_sub(needed.max(1))?;
        (needed > 0).then(|| heard[last] + patience_us(state))
    }

    /// What is known of those that the store shows and that may be heard.
    fn seen(&self, state: &ClusterState) -> impl Iterator<Item = Seen> {
        let counts = |host: &HostId| state.nodes().get(*host).is_none_or(|node| !node.is_fenced());
        let alive = self.alive.iter().filter(move |(host, _)| counts(host));
        alive.map(|(host, seen)| state.nodes().get(*host).map_or(*seen, NodeState::seen))
    }
}

/// How long a process may be silent and count as heard.
fn patience_us(state: &ClusterState) -> u64 {
    state.lease_us() * 3 / 4
}
