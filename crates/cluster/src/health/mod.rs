//! How well a cluster is: a pure function of what somebody knows of it, and of how old that is.
//!
//! A map says how things were when a coordinator last spoke; nodes say how things are, if they answer. What neither of them
//! says is unknown, and unknown is never well.

mod risk;
mod slots;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use types::{ClusterMap, GroupView, HostId, MemberId, NodeId, PoolSlots};

use crate::{Codes, PoolProtection, worst_off};

pub use risk::Loss;
pub use slots::slot_count;

/// After how many leases of silence what a coordinator has said is too old to say how things are now.
pub const FRESH_LEASES: u64 = 3;

/// One state of a cluster; the worst that holds is its health. Ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As well protected as was asked for, all of it served, by knowledge that is fresh.
    Ok,
    /// Items are evicted to make room, or writes are refused.
    Full,
    /// Less protected than was asked for; nothing is lost, and another loss would be survived.
    Degraded,
    /// Nodes are still missing that the cluster forms with.
    Forming,
    /// No coordinator has been heard of late, or a node does not answer: a loss may have been missed.
    Unknown,
    /// The next loss of a node may cost data, or is one too many already.
    AtRisk,
    /// Nobody serves some slots now.
    Unavailable,
    /// Data is lost.
    Lost,
}

/// How old the newest word of a coordinator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Microseconds since somebody who tells has heard a coordinator; none = never.
    pub coordinator_us: Option<u64>,
    /// The cluster's lease.
    pub lease_us: u64,
}

/// Whether a node has room for what clients write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    /// It has.
    #[default]
    Room,
    /// It removes items that have not expired, to make room.
    Evicting,
    /// It refuses writes for want of memory.
    Refusing,
}

/// What is known of a node at first hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The process of the map has answered.
    Answered {
        /// Data roles that it may serve now: it has their index, and a read lease.
        serves: BTreeSet<MemberId>,
        /// Whether it has room.
        fullness: Fullness,
    },
    /// It lives, but nobody has asked it for more.
    Reached,
    /// It does not answer.
    Silent,
}

/// Everything that the verdict rests on.
#[derive(Clone, Copy, Debug)]
pub struct Knowledge<'a> {
    /// The newest map at hand.
    pub map: &'a ClusterMap,
    /// How old it may be.
    pub age: Age,
    /// What nodes say; of those that are not here only the map tells.
    pub nodes: &'a BTreeMap<NodeId, Word>,
}

/// How well, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// The worst of the states.
    pub health: Health,
    /// All that hold, the worst first.
    pub states: Vec<Health>,
    /// Node losses that the profile of the worst-off pool is to survive.
    pub protection_asked: usize,
    /// Further node losses that every group of that pool would survive now, if nobody comes back who is missing.
    pub protection_achieved: usize,
    /// The same of every pool.
    pub pools: Vec<PoolProtection>,
    /// Hash slots whose data is lost, ascending, merged.
    pub lost_slots: Vec<PoolSlots>,
    /// Hash slots that nobody serves now, though nobody has called them lost; ascending, merged.
    pub unavailable_slots: Vec<PoolSlots>,
    /// Nodes that do not answer, whatever the map says of them; not those that were drained and have left.
    pub silent_nodes: Vec<NodeId>,
    /// Nodes that host something, and on whose memory nobody can count now.
    pub missing_nodes: Vec<NodeId>,
    /// What will be lost unless nodes come back that are missing: more is missing than the code can make up for.
    pub beyond_repair: Option<Loss>,
    /// What the loss of one more node would cost, node by node.
    pub at_risk_by: Vec<Loss>,
    /// Nodes that remove items to make room.
    pub evicting_nodes: Vec<NodeId>,
    /// Nodes that refuse writes for want of memory.
    pub refusing_nodes: Vec<NodeId>,
}

impl Health {
    /// Of a cluster of which there is no map: it has not formed yet, if there is a coordinator who would know.
    #[must_use]
    pub fn without_map(age: Age) -> Self {
        if age.is_fresh() { Self::Forming } else { Self::Unknown }
    }
}

impl Age {
    /// Whether the map says how things are.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.is_within(FRESH_LEASES)
    }

    /// Whether a node that is alive by the map was surely heard by the coordinator a moment ago.
    fn is_within_a_lease(&self) -> bool {
        self.is_within(1)
    }

    fn is_within(&self, leases: u64) -> bool {
        self.coordinator_us.is_some_and(|age| age <= self.lease_us.saturating_mul(leases))
    }
}

impl Knowledge<'_> {
    /// The verdict.
    #[must_use]
    pub fn assess(&self) -> Assessment {
        let map = self.map;
        let gone = self.missing_nodes();
        let codes = Codes::of(&map.catalog);
        let pools = codes.protections(map, &gone);
        let (asked, achieved) = worst_off(&pools).map_or((0, 0), |worst| (worst.asked, worst.achieved));
        let mut found = Assessment {
            health: Health::Ok,
            states: Vec::new(),
            protection_asked: asked,
            protection_achieved: achieved,
            pools,
            lost_slots: map.lost_slots(),
            unavailable_slots: self.unavailable_slots(),
            silent_nodes: self.silent_nodes(),
            beyond_repair: risk::beyond_repair(map, &codes, &gone),
            at_risk_by: risk::by_node(map, &codes, &gone),
            missing_nodes: gone,
            evicting_nodes: self.nodes_that_are(Fullness::Evicting),
            refusing_nodes: self.nodes_that_are(Fullness::Refusing),
        };
        found.states = self.states(&found);
        found.health = found.states.first().copied().unwrap_or(Health::Ok);
        found
    }

    /// All states that hold, the worst first.
    fn states(&self, found: &Assessment) -> Vec<Health> {
        let is_at_risk = found.pools.iter().any(PoolProtection::is_at_risk);
        let is_short = found.pools.iter().any(|pool| pool.missing() > 0);
        let is_whole = self.map.groups.iter().all(|view| view.roles_in_play() == 0);
        // Of a node that counts as lost all is known.
        let is_doubtful = found.silent_nodes.iter().any(|node| self.is_alive(*node));
        let is_unknown = !self.age.is_fresh() || is_doubtful;
        [
            (Health::Lost, !found.lost_slots.is_empty()),
            (Health::Unavailable, !found.unavailable_slots.is_empty()),
            (Health::AtRisk, found.beyond_repair.is_some() || is_at_risk),
            (Health::Unknown, is_unknown),
            (Health::Degraded, is_short || !is_whole),
            (Health::Full, !found.evicting_nodes.is_empty() || !found.refusing_nodes.is_empty()),
        ]
        .into_iter()
        .filter_map(|(state, holds)| holds.then_some(state))
        .collect()
    }

    /// Nodes that have something, and on whose memory nobody can count: they do not answer, and no coordinator vouches for them; or their lease has run
    /// out, and nobody has heard them since.
    fn missing_nodes(&self) -> Vec<NodeId> {
        let hosts = self.map.groups.iter().flat_map(GroupView::keepers);
        let nodes: BTreeSet<NodeId> = hosts.map(|host| host.node).collect();
        nodes.into_iter().filter(|node| self.is_missing(*node)).collect()
    }

    fn is_missing(&self, node: NodeId) -> bool {
        let Some(info) = self.map.node(node) else { return true };
        match self.nodes.get(&node) {
            // It has just answered, whatever the map says.
            Some(Word::Answered { .. } | Word::Reached) => false,
            // Silent to whoever asks, but a coordinator has heard it: the asker may be the one that is cut off.
            Some(Word::Silent) => !(info.alive && self.age.is_within_a_lease()),
            None => !info.alive,
        }
    }

    /// Nodes that do not answer; not those that were drained and have left.
    fn silent_nodes(&self) -> Vec<NodeId> {
        let has_left = |node: NodeId| {
            self.map.layout.is_draining(node) && !self.is_alive(node) && self.map.roles_left_on(node) == 0
        };
        let silent = self.nodes.iter().filter(|(_, word)| **word == Word::Silent);
        silent.map(|(node, _)| *node).filter(|node| !has_left(*node)).collect()
    }

    /// Whether the map takes it for alive.
    fn is_alive(&self, node: NodeId) -> bool {
        self.map.node(node).is_some_and(|info| info.alive)
    }

    fn nodes_that_are(&self, wanted: Fullness) -> Vec<NodeId> {
        let is = |word: &Word| matches!(word, Word::Answered { fullness, .. } if *fullness == wanted);
        self.nodes.iter().filter(|(_, word)| is(word)).map(|(node, _)| *node).collect()
    }

    fn unavailable_slots(&self) -> Vec<PoolSlots> {
        let served: BTreeSet<MemberId> = self.nodes.values().flat_map(Word::serves).collect();
        let members = self.map.groups.iter().flat_map(|view| {
            let unlost = view.data_roles().filter(|(_, known)| !known.status.is_lost());
            unlost.map(|(role, known)| (MemberId { group: view.group, role }, known.primary))
        });
        // Whoever may serve it does, even where the map does not know of that yet.
        let unserved = members.filter(|(member, primary)| {
            !served.contains(member) && !primary.is_some_and(|p| self.may_serve(p))
        });
        self.map.slots_of_all(unserved.map(|(member, _)| member))
    }

    /// Whether the process `host`, of which nobody knows whether it serves, is to be believed to do so.
    fn may_serve(&self, host: HostId) -> bool {
        // A view may still name the process before this one, whose memory is gone.
        let is_current = self.map.node(host.node).is_some_and(|info| info.host == host);
        // Who has told what it serves has told all of it.
        let has_told = matches!(self.nodes.get(&host.node), Some(Word::Answered { .. }));
        is_current && !has_told && !self.is_missing(host.node)
    }
}

impl Word {
    fn serves(&self) -> impl Iterator<Item = MemberId> + '_ {
        let serves = match self {
            Self::Answered { serves, .. } => Some(serves),
            Self::Reached | Self::Silent => None,
        };
        serves.into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests;
