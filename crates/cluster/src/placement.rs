//! Placement: which node hosts which role, balanced by kind of role.

use thiserror::Error;

use crate::plan::plan_groups;
use crate::{Codes, PlanLimits, PlanNode, RoleCounts};
use types::{Catalog, DataRole, GroupId, GroupView, HostId, Pool, Profile, RoleStatus, Term, ViewVersion};

/// Why no placement exists.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlacementError {
    /// Two roles of a group would share a node.
    #[error(
        "profile {profile} needs {needed} nodes, there are {nodes}: start more nodes or choose a smaller profile"
    )]
    TooFewNodes {
        /// The profile asked for.
        profile: Profile,
        /// Its roles.
        needed: usize,
        /// Nodes at hand.
        nodes: usize,
    },
}

/// Views of `groups` new groups over `hosts`: role `r` of group `g` lives on host `(g + r) mod hosts`, so that with
/// a multiple of `hosts` groups every node hosts the same number of data and of parity roles.
///
/// # Errors
/// `TooFewNodes` if two roles of a group would share a node.
pub fn place(profile: Profile, hosts: &[HostId], groups: u32) -> Result<Vec<GroupView>, PlacementError> {
    check(profile, hosts.len())?;
    let host_of = |group: u32, role: usize| hosts[(group as usize + role) % hosts.len()];
    Ok((0..groups).map(|group| new_view(profile, group, |role| host_of(group, role))).collect())
}

/// Like [`place`], for nodes with zones. No two roles of a group are in one zone if there are as many zones as roles,
/// else the zones are as even as their nodes allow; the nodes are balanced as far as that leaves a choice. The planner
/// finds nothing to move. Without any zone this is [`place`].
///
/// # Errors
/// `TooFewNodes` if two roles of a group would share a node.
pub fn place_in_zones(
    profile: Profile,
    nodes: &[PlanNode],
    groups: u32,
) -> Result<Vec<GroupView>, PlacementError> {
    if nodes.iter().all(|node| node.zone.is_empty()) {
        let hosts: Vec<HostId> = nodes.iter().map(|node| node.host).collect();
        return place(profile, &hosts, groups);
    }
    check(profile, nodes.len())?;
    let mut counts = vec![RoleCounts::default(); nodes.len()];
    let mut seats: Vec<Vec<HostId>> =
        (0..groups).map(|group| seats_in_zones(profile, nodes, group, &mut counts)).collect();
    let views = |seats: &[Vec<HostId>]| -> Vec<GroupView> {
        (0..groups).zip(seats).map(|(group, seats)| new_view(profile, group, |role| seats[role])).collect()
    };
    // One group after the other leaves the last ones little choice. The planner's own moves even that out, so that
    // it has none left to make when the cluster has formed.
    for step in plan_groups(
        &views(&seats),
        &Codes::of(&Catalog::first(profile, groups)),
        nodes,
        &PlanLimits::default(),
    ) {
        seats[step.group.0 as usize][usize::from(step.role.0)] = step.to;
    }
    Ok(views(&seats))
}

/// Roles that each node gets of a new pool, and at least so many for each of its workers: the cluster may grow eightfold before
/// a node has only five.
const ROLES_PER_NODE: usize = 40;
const ROLES_PER_WORKER: usize = 8;
/// What all nodes together get at most: less than half of what a map without etcd can tell of, so that there is room for another pool.
const MOST_ROLES: usize = 16_384;

/// How many groups of `profile` so many nodes have use for: of a cluster that forms, and of a pool that is made later. Where that is
/// not more than a map can tell of, as many on each node.
#[must_use]
pub fn groups_for(profile: Profile, nodes: usize, workers: u16) -> u32 {
    let roles = nodes * ROLES_PER_NODE.max(ROLES_PER_WORKER * usize::from(workers));
    let most = (MOST_ROLES / profile.n()).max(1);
    let groups = (roles / profile.n()).next_multiple_of(nodes.max(1)).clamp(1, most);
    u32::try_from(groups).unwrap_or(u32::MAX)
}

/// As [`place_in_zones`], for the groups of `pool`.
///
/// # Errors
/// `TooFewNodes` if two roles of a group would share a node.
pub fn place_pool(pool: &Pool, nodes: &[PlanNode]) -> Result<Vec<GroupView>, PlacementError> {
    let mut views = place_in_zones(pool.profile, nodes, pool.groups)?;
    for (view, group) in views.iter_mut().zip(pool.group_ids()) {
        view.group = group;
    }
    Ok(views)
}

/// The host of each role of `group`: the least loaded of the zone with the fewest roles of the group.
fn seats_in_zones(
    profile: Profile,
    nodes: &[PlanNode],
    group: u32,
    counts: &mut [RoleCounts],
) -> Vec<HostId> {
    let mut taken: Vec<usize> = Vec::new();
    for role in 0..profile.n() {
        let is_data = role < profile.k();
        let in_zone = |at: usize| {
            let zone = &nodes[at].zone;
            taken.iter().filter(|&&other| !zone.is_empty() && nodes[other].zone == *zone).count()
        };
        let load =
            |at: usize| (if is_data { counts[at].data } else { counts[at].parity }, counts[at].total());
        // As in `place`: of nodes that are alike each group begins with the next one.
        let turn = |at: usize| (at + nodes.len() - group as usize % nodes.len()) % nodes.len();
        let free = (0..nodes.len()).filter(|at| !taken.contains(at));
        let best = free.min_by_key(|&at| (in_zone(at), load(at), turn(at)));
        let best = best.expect("there are as many nodes as roles");
        *(if is_data { &mut counts[best].data } else { &mut counts[best].parity }) += 1;
        taken.push(best);
    }
    taken.into_iter().map(|at| nodes[at].host).collect()
}

fn check(profile: Profile, nodes: usize) -> Result<(), PlacementError> {
    if nodes < profile.n() {
        return Err(PlacementError::TooFewNodes { profile, needed: profile.n(), nodes });
    }
    Ok(())
}

/// A view in which every role is served by the host that `host_of` names.
fn new_view(profile: Profile, group: u32, host_of: impl Fn(usize) -> HostId) -> GroupView {
    GroupView {
        group: GroupId(group),
        version: ViewVersion(1),
        data: (0..profile.k())
            .map(|r| DataRole {
                primary: Some(host_of(r)),
                term: Term(1),
                origin: Term(1),
                status: RoleStatus::Full,
            })
            .collect(),
        parity: (profile.k()..profile.n()).map(|r| Some(host_of(r))).collect(),
        learners: Vec::new(),
        former: Vec::new(),
        holders: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Incarnation, NodeId};

    #[test]
    fn no_two_roles_share_a_node_and_all_nodes_carry_the_same() {
        let hosts: Vec<_> = (0..7).map(|n| HostId { node: NodeId(n), incarnation: Incarnation(9) }).collect();
        let views = place(Profile::rs(3, 2).unwrap(), &hosts, 14).unwrap();
        for node in 0..7 {
            let node = NodeId(node);
            assert!(views.iter().all(|v| v.roles_on(node) <= 1));
            let data = views.iter().flat_map(|v| &v.data).filter(|r| r.primary.unwrap().node == node).count();
            let parity = views.iter().flat_map(|v| v.in_sync()).filter(|(_, h)| h.node == node).count();
            assert_eq!((data, parity), (6, 4));
        }
    }

    #[test]
    fn too_few_nodes_are_refused() {
        let hosts = [HostId { node: NodeId(0), incarnation: Incarnation(0) }];
        let error = place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap_err();
        assert!(error.to_string().contains("needs 5 nodes"));
    }

    fn nodes_in(zones: &[&str]) -> Vec<PlanNode> {
        let node = |(n, zone): (usize, &&str)| PlanNode {
            former: vec![],
            host: HostId { node: NodeId(n as u16), incarnation: Incarnation(9) },
            zone: (*zone).into(),
            draining: false,
            can_host: true,
            bytes: 0,
            room: u64::MAX,
        };
        zones.iter().enumerate().map(node).collect()
    }

    /// Node of each role, by group.
    fn seats(views: &[GroupView]) -> Vec<Vec<usize>> {
        let seats = |view: &GroupView| {
            let primaries = view.data_roles().filter_map(|(_, role)| role.primary);
            primaries
                .chain(view.in_sync().map(|(_, host)| host))
                .map(|host| usize::from(host.node.0))
                .collect()
        };
        views.iter().map(seats).collect()
    }

    #[test]
    fn without_zones_nothing_is_different() {
        let profile = Profile::rs(3, 2).unwrap();
        let nodes = nodes_in(&[""; 7]);
        let hosts: Vec<HostId> = nodes.iter().map(|node| node.host).collect();
        assert_eq!(place_in_zones(profile, &nodes, 20), place(profile, &hosts, 20));
    }

    #[test]
    fn zones_alike_are_filled_alike() {
        let zones: Vec<String> = (0..10).map(|n| format!("zone-{}", n / 2)).collect();
        let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
        let views = place_in_zones(Profile::rs(3, 2).unwrap(), &nodes_in(&zones), 20).unwrap();
        let counts = crate::RoleTally::of(&views);
        assert!(counts.iter().all(|(_, counts)| (counts.data, counts.parity) == (6, 4)), "{counts:?}");
        for seats in seats(&views) {
            let mut zones: Vec<usize> = seats.iter().map(|node| node / 2).collect();
            zones.sort_unstable();
            assert_eq!(zones, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn fewer_zones_than_roles_are_as_even_as_can_be() {
        let nodes = nodes_in(&["a", "a", "a", "a", "b", "b", "c"]);
        for seats in seats(&place_in_zones(Profile::rs(3, 2).unwrap(), &nodes, 14).unwrap()) {
            let share = |zone: &str| seats.iter().filter(|&&node| nodes[node].zone == zone).count();
            assert_eq!([share("a"), share("b"), share("c")], [2, 2, 1]);
        }
    }

    #[test]
    fn too_few_nodes_in_zones_are_refused() {
        let nodes = nodes_in(&["a", "b", "c", "d"]);
        let error = place_in_zones(Profile::rs(3, 2).unwrap(), &nodes, 1).unwrap_err();
        assert!(error.to_string().contains("needs 5 nodes"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        /// Whatever the zones are, the planner finds nothing to do.
        #[test]
        fn a_fresh_placement_is_as_the_planner_wants_it(
            (k, m) in (1..4u32, 0..3u32),
            zones in proptest::collection::vec(0..4usize, 6..14),
            groups in 1..20u32,
        ) {
            let zones: Vec<&str> = zones.iter().map(|zone| ["", "a", "b", "c"][*zone]).collect();
            let profile = Profile::rs(k, m).unwrap();
            let nodes = nodes_in(&zones);
            let views = place_in_zones(profile, &nodes, groups).unwrap();
            let moves = plan_groups(&views, &Codes::of(&Catalog::first(profile, groups)), &nodes, &PlanLimits::default());
            proptest::prop_assert_eq!(moves, vec![]);
        }
    }

    #[test]
    fn each_node_has_as_many_roles_and_a_map_has_room_for_all() {
        let groups = |profile: &str, nodes, workers| groups_for(profile.parse().unwrap(), nodes, workers);
        assert_eq!([groups("rs(3+2)", 5, 1), groups("rs(3+2)", 5, 16)], [40, 130]);
        // Rounded up to a whole round over the nodes.
        assert_eq!(
            [groups("rep(3)", 5, 1), groups("none", 1, 1), groups("lrc(12,2,2)", 16, 1)],
            [70, 40, 48]
        );
        assert_eq!([groups("rs(3+2)", 1000, 1), groups("none", 1000, 256)], [3276, 16_384]);
    }
}
