//! How well a cluster is, computed from its map alone.

use cluster::{ClusterMap, GroupView, HostId, RoleIndex, RoleStatus, SlotRange};
use serde::Serialize;

/// The worst that is true of any group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As well protected as was asked for.
    Ok,
    /// Less protected than was asked for; nothing is lost, and another loss would be survived.
    Degraded,
    /// The next loss of a node may cost data.
    AtRisk,
    /// Data is lost.
    Lost,
}

/// How well, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assessment {
    /// The verdict.
    pub health: Health,
    /// Node losses that the profile is to survive.
    pub protection_asked: usize,
    /// Further node losses that every group would survive now.
    pub protection_achieved: usize,
    /// Hash slots whose data is lost, ascending.
    pub lost_slots: Vec<SlotRange>,
}

impl Assessment {
    /// Of the groups of `map`.
    pub fn of(map: &ClusterMap) -> Self {
        let asked = map.profile.m();
        let achieved = map.groups.iter().map(GroupView::losses_survived).min().unwrap_or(0).min(asked);
        let lost_slots = map.lost_slots();
        let all_full = map.groups.iter().all(|group| group.roles_in_play() == 0);
        let health = if !lost_slots.is_empty() {
            Health::Lost
        } else if achieved == asked && all_full {
            Health::Ok
        } else if achieved == 0 {
            Health::AtRisk
        } else {
            Health::Degraded
        };
        Self { health, protection_asked: asked, protection_achieved: achieved, lost_slots }
    }
}

/// One role of a group, in words.
#[derive(Clone, Debug, Serialize)]
pub struct RoleReport {
    /// Its index.
    pub role: RoleIndex,
    /// `data` or `parity`.
    pub kind: &'static str,
    /// Who hosts it.
    pub host: Option<HostId>,
    /// Where it stands.
    pub state: &'static str,
}

/// The roles of a group, data first.
pub fn roles_of(group: &GroupView) -> Vec<RoleReport> {
    let data = group.data_roles().map(|(role, known)| RoleReport {
        role,
        kind: "data",
        host: known.primary,
        state: match known.status {
            RoleStatus::Full => "full",
            RoleStatus::Fenced => "fenced",
            RoleStatus::Orphan(_) => "orphan",
            RoleStatus::Rebuilding { .. } => "rebuilding",
            RoleStatus::Lost => "lost",
            RoleStatus::Accepted => "accepted",
        },
    });
    let k = group.k();
    let parity = group.parity.iter().enumerate().map(|(index, host)| RoleReport {
        role: RoleIndex((k + index) as u8),
        kind: "parity",
        host: *host,
        state: if host.is_some() { "in_sync" } else { "absent" },
    });
    let learners = group.learners.iter().map(|learner| RoleReport {
        role: learner.role,
        kind: if usize::from(learner.role.0) < k { "mirror" } else { "parity" },
        host: Some(learner.host),
        state: if learner.whole { "whole" } else { "learner" },
    });
    data.chain(parity).chain(learners).collect()
}

#[cfg(test)]
mod tests {
    use cluster::{ClusterId, Incarnation, NodeId, Profile, Seq, place};

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn map() -> ClusterMap {
        let hosts: Vec<_> = (0..5).map(host).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 5).unwrap();
        let (layout, nodes) = (Default::default(), vec![]);
        ClusterMap { cluster: ClusterId(1), version: 1, profile, shards: 1, layout, nodes, groups }
    }

    #[test]
    fn a_fresh_cluster_is_as_protected_as_asked() {
        let found = Assessment::of(&map());
        assert_eq!((found.health, found.protection_achieved), (Health::Ok, 2));
    }

    #[test]
    fn a_missing_parity_degrades_and_two_put_data_at_risk() {
        let mut map = map();
        map.groups[2].parity[0] = None;
        let found = Assessment::of(&map);
        assert_eq!((found.health, found.protection_achieved), (Health::Degraded, 1));
        map.groups[2].parity[1] = None;
        assert_eq!(Assessment::of(&map).health, Health::AtRisk);
    }

    #[test]
    fn a_stand_in_beside_a_parity_makes_its_node_count_twice() {
        let mut map = map();
        let parity_host = map.groups[0].parity[0];
        map.groups[0].data[0].primary = parity_host;
        assert_eq!(map.groups[0].losses_survived(), 1);
        let status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
        map.groups[0].data[0].status = status;
        let found = Assessment::of(&map);
        assert_eq!((found.health, found.protection_achieved), (Health::Degraded, 1));
    }

    #[test]
    fn lost_roles_are_named_by_their_slots() {
        let mut map = map();
        map.groups[1].data[2].status = RoleStatus::Lost;
        let found = Assessment::of(&map);
        assert_eq!(found.health, Health::Lost);
        let member = MemberId { group: map.groups[1].group, role: RoleIndex(2) };
        assert_eq!(found.lost_slots, [map.slots_of(member)]);
    }
}
