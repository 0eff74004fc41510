//! Which nodes may be hurt now without asking for more than was promised.
//!
//! A group bears as many losses as it has in-sync parities, less the data roles that are not full. What is hurt now, or was
//! until a moment ago, counts as lost already, whether or not the coordinator has noticed. A primary that is hurt and not dead
//! may cost more than itself: it complains of parities, and they are removed. Of chunks a group bears as many losses as its code, less the
//! roles without a whole holder.

use std::collections::BTreeSet;

use types::{ClusterMap, GroupView, NodeId, Profile, RoleStatus};

/// How badly a node is hurt, from what it can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hurt {
    /// Its process is dead: its members are lost, and nothing else is.
    Dead,
    /// It stands still, or is cut off from all others alike: each of its members may be lost, and a stand-in at work, which
    /// counts as lost already, may have a parity removed.
    Away,
    /// With others of its kind it is cut off from the rest, and the coordinator hears both sides: each side may have the other's
    /// parities removed, down to what the group needs; where the coordinator is on one side, the other one may count as lost.
    Torn,
    /// Some of what it sends arrives, or arrives late: its primaries may have parities removed, and be deposed in the end.
    Sick,
}

/// Nodes that are hurt, and how: one may be hurt in several ways.
pub type HurtNodes = BTreeSet<(u16, Hurt)>;

/// Why hurting nodes so that these are hurt in all would take away too much; none if it would not.
#[must_use]
pub fn objection(map: &ClusterMap, hurt: &HurtNodes) -> Option<String> {
    let nodes = || hurt.iter().map(|(node, _)| *node).collect::<BTreeSet<u16>>();
    let objection = |view: &GroupView| {
        let (group, members, chunks) = (view.group, margin(map, view), margin_of_chunks(map, view));
        let (cost, chunks_cost) = (cost(view, members, hurt), cost_in_chunks(view, &nodes()));
        if cost > members {
            return Some(format!(
                "{group} can lose {members} more, and nodes {:?} may cost it {cost}",
                nodes()
            ));
        }
        (chunks_cost > chunks).then(|| {
            format!("chunks of {group} can lose {chunks} more, and nodes {:?} have {chunks_cost}", nodes())
        })
    };
    map.groups.iter().find_map(objection)
}

/// Whole holders that a group with chunks can lose.
fn margin_of_chunks(map: &ClusterMap, view: &GroupView) -> usize {
    let Some(profile) = map.profile_of(view.group) else { return 0 };
    profile.tolerance().saturating_sub(roles_without_chunks(view))
}

/// Roles whose chunks nobody has all of.
fn roles_without_chunks(view: &GroupView) -> usize {
    view.holders.iter().filter(|holders| holders.whole.is_none()).count()
}

/// Whole holders on these nodes: what is hurt there may be lost.
fn cost_in_chunks(view: &GroupView, nodes: &BTreeSet<u16>) -> usize {
    let whole = view.holders.iter().filter_map(|holders| holders.whole);
    whole.filter(|holder| nodes.contains(&holder.host.node.0)).count()
}

/// Why a pool of this code may not be made while these nodes are hurt: nobody may have noticed, so its groups may begin with members
/// on any of them.
#[must_use]
pub fn pool_objection(profile: Profile, hurt: &HurtNodes) -> Option<String> {
    let most = profile.tolerance();
    let nodes = |how: Hurt| -> BTreeSet<u16> {
        hurt.iter().filter(|(_, is)| *is == how).map(|(node, _)| *node).collect()
    };
    let (sick, torn) = (nodes(Hurt::Sick), nodes(Hurt::Torn));
    let lost = nodes(Hurt::Dead).union(&nodes(Hurt::Away)).filter(|node| !torn.contains(node)).count();
    // A primary on one may cost all, parities on the others themselves.
    let all = |of: usize| if of > 0 { most.max(1) } else { 0 };
    let cost = lost + all(sick.len()) + sick.len().saturating_sub(1) + torn.len().max(all(torn.len()));
    (cost > most)
        .then(|| format!("a pool of {profile} bears {most}, and nodes that are hurt may cost it {cost}"))
}

/// Further members that a group can lose, whichever they are: what its code always bears, less what is missing already. With an LRC
/// the pattern of what is missing may allow more.
fn margin(map: &ClusterMap, view: &GroupView) -> usize {
    let Some(profile) = map.profile_of(view.group) else { return 0 };
    view.spare_parities().saturating_sub(profile.m() - profile.tolerance())
}

/// What the nodes may cost `view`, in members of its `margin`. Sick primaries together cost all of it, whatever they are, and so
/// do torn ones, if they do not cost more as members.
fn cost(view: &GroupView, margin: usize, hurt: &HurtNodes) -> usize {
    let is_torn = |node: u16| hurt.contains(&(node, Hurt::Torn));
    let nodes: BTreeSet<u16> = hurt.iter().map(|(node, _)| *node).collect();
    let members = |torn: bool| -> usize {
        let side = nodes.iter().filter(|node| is_torn(**node) == torn);
        side.map(|node| members_lost(view, *node, hurt)).sum()
    };
    let has_primary = |node: u16| primaries_on(view, NodeId(node)) != (0, 0);
    let any = |kind: Hurt| hurt.iter().any(|(node, how)| *how == kind && has_primary(*node));
    // At least one, so that they are refused where there is no margin at all.
    let all = |is_so: bool| if is_so { margin.max(1) } else { 0 };
    members(false) + all(any(Hurt::Sick)) + members(true).max(all(any(Hurt::Torn)))
}

/// Members that `node` itself may lose. Those of a sick primary's node are in what sick primaries cost.
fn members_lost(view: &GroupView, node: u16, hurt: &HurtNodes) -> usize {
    let (full, at_work) = primaries_on(view, NodeId(node));
    let parities = view.in_sync().filter(|(_, host)| host.node.0 == node).count();
    let is = |how: Hurt| hurt.contains(&(node, how));
    match (is(Hurt::Away) || is(Hurt::Torn), is(Hurt::Dead)) {
        (true, _) => full + at_work + parities,
        (false, true) => full + parities,
        (false, false) if full + at_work > 0 => 0,
        (false, false) => parities,
    }
}

/// Primaries on `node`: those that are full, and the others.
fn primaries_on(view: &GroupView, node: NodeId) -> (usize, usize) {
    let here = || view.data.iter().filter(|role| role.primary.is_some_and(|host| host.node == node));
    let full = here().filter(|role| role.status == RoleStatus::Full).count();
    (full, here().count() - full)
}

/// Why redundancy is not back; none if it is: all data roles full, all parities in sync that have a node to be on.
#[must_use]
pub fn missing(map: &ClusterMap) -> Option<String> {
    map.groups.iter().find_map(|view| {
        let group = view.group;
        if let Some((role, data)) = view.data_roles().find(|(_, data)| data.status != RoleStatus::Full) {
            return Some(format!("data role {} of {group} is {:?}", role.0, data.status));
        }
        let lacking = view.m() - view.in_sync().count();
        let mut living = map.nodes.iter().filter(|info| info.alive).map(|info| info.host.node);
        if lacking > 0 && living.any(|node| !serves(view, node)) {
            return Some(format!("{group} lacks {lacking} parities"));
        }
        let without = roles_without_chunks(view);
        (lacking == 0 && without > 0).then(|| format!("{without} roles of {group} lack chunks"))
    })
}

/// Whether `node` hosts a primary or an in-sync parity of `view`.
fn serves(view: &GroupView, node: NodeId) -> bool {
    primaries_on(view, node) != (0, 0) || view.in_sync().any(|(_, host)| host.node == node)
}

/// Whether every group is as protected as was asked for.
#[must_use]
pub fn is_full(map: &ClusterMap) -> bool {
    let is_full = |view: &GroupView| view.spare_parities() == view.m() && roles_without_chunks(view) == 0;
    map.groups.iter().all(is_full)
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, Holder, Holders, HostId, Incarnation, NodeInfo, RoleStatus, Seq, ViewVersion};

    use super::*;

    fn all(hurt: Hurt, nodes: &[u16]) -> HurtNodes {
        nodes.iter().map(|node| (*node, hurt)).collect()
    }

    fn lose_parity(map: &mut ClusterMap, at: usize) {
        map.groups[0].parity[at] = None;
    }

    fn map(nodes: u16) -> ClusterMap {
        map_of("rs(3+2)", nodes)
    }

    fn map_of(profile: &str, nodes: u16) -> ClusterMap {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let hosts: Vec<_> = (0..nodes).map(host).collect();
        let profile: Profile = profile.parse().unwrap();
        let groups = place(profile, &hosts, 1).unwrap();
        let addr = "127.0.0.1:1".parse().unwrap();
        let info = |host: &HostId| NodeInfo {
            host: *host,
            peer: addr,
            memcached: addr,
            http: addr,
            native: None,
            zone: String::new(),
            alive: true,
        };
        let nodes = hosts.iter().map(info).collect();
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, 1),
            shards: 1,
            layout: types::Layout::default(),
            nodes,
            groups,
        }
    }

    #[test]
    fn a_group_bears_no_more_losses_of_chunks_than_it_has_whole_holders_for() {
        let mut map = map(5);
        let hosts: Vec<HostId> = map.nodes.iter().map(|info| info.host).collect();
        let holder = |host| Holder { host, since: ViewVersion(1) };
        map.groups[0].holders =
            hosts.iter().map(|host| Holders { whole: Some(holder(*host)), filling: None }).collect();
        assert!(is_full(&map) && missing(&map).is_none());
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0, 1])), None);
        // All members are back; of one role's chunks not yet all are.
        let last = map.groups[0].holders.last_mut().unwrap();
        (last.whole, last.filling) = (None, Some(holder(hosts[4])));
        assert!(!is_full(&map) && missing(&map).is_some_and(|why| why.contains("lack chunks")));
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0])), None);
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0, 4])), None, "node 4 has nothing that counts");
        assert!(objection(&map, &all(Hurt::Dead, &[0, 1])).unwrap().contains("chunks of"));
    }

    #[test]
    fn two_of_five_may_go_and_a_third_may_not() {
        let map = map(5);
        for hurt in [Hurt::Dead, Hurt::Away] {
            assert_eq!(objection(&map, &all(hurt, &[0, 4])), None);
            let why = objection(&map, &all(hurt, &[0, 1, 4])).unwrap();
            assert!(why.contains("can lose 2 more, and nodes {0, 1, 4} may cost it 3"), "{why}");
        }
    }

    #[test]
    fn each_pool_bears_what_its_own_code_does() {
        let mut map = map(7);
        let more: Profile = "rs(2+1)".parse().unwrap();
        map.catalog.create_pool("more".parse().unwrap(), more, 1).unwrap();
        let hosts: Vec<HostId> = map.nodes.iter().map(|info| info.host).rev().collect();
        let group = map.catalog.pools[1].first_group;
        map.groups
            .extend(place(more, &hosts, 1).unwrap().into_iter().map(|view| GroupView { group, ..view }));
        // The former group is on nodes 0 to 4, the latter one on 4 to 6.
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0, 1])), None);
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0, 6])), None);
        let why = objection(&map, &all(Hurt::Dead, &[5, 6])).unwrap();
        assert!(why.contains("can lose 1 more"), "{why}");
    }

    #[test]
    fn a_pool_is_made_only_where_it_bears_what_is_hurt_already() {
        let may = |code: &str, hurt: &[(u16, Hurt)]| {
            pool_objection(code.parse().unwrap(), &hurt.iter().copied().collect()).is_none()
        };
        assert!(may("rs(2+1)", &[]) && may("rs(2+1)", &[(3, Hurt::Dead)]));
        assert!(!may("rs(2+1)", &[(3, Hurt::Dead), (4, Hurt::Away)]));
        assert!(may("rep(3)", &[(3, Hurt::Dead), (3, Hurt::Away), (4, Hurt::Away)]), "two nodes");
        assert!(may("rep(3)", &[(3, Hurt::Sick)]) && !may("rep(3)", &[(3, Hurt::Sick), (4, Hurt::Dead)]));
        assert!(!may("rep(3)", &[(3, Hurt::Sick), (4, Hurt::Sick)]));
        assert!(may("rep(3)", &[(3, Hurt::Torn), (4, Hurt::Torn)]));
        assert!(!may("rep(3)", &[(3, Hurt::Torn), (4, Hurt::Torn), (5, Hurt::Dead)]));
    }

    #[test]
    fn of_an_lrc_as_many_may_go_as_it_always_bears() {
        let mut map = map_of("lrc(4,2,1)", 7);
        assert_eq!(
            objection(&map, &all(Hurt::Dead, &[0, 1])),
            None,
            "three parities, and any two losses are borne"
        );
        assert!(objection(&map, &all(Hurt::Dead, &[0, 1, 2])).is_some());
        lose_parity(&mut map, 0);
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0])), None);
        assert!(objection(&map, &all(Hurt::Dead, &[0, 1])).is_some());
    }

    #[test]
    fn a_spare_costs_nothing_and_a_stand_in_at_work_counts_as_lost_already() {
        let mut map = map(6);
        assert_eq!(objection(&map, &all(Hurt::Away, &[0, 1, 5])), None);
        map.groups[0].data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
        assert_eq!(objection(&map, &all(Hurt::Dead, &[0, 1])), None);
        assert!(objection(&map, &all(Hurt::Dead, &[1, 2])).is_some());
        assert!(objection(&map, &all(Hurt::Away, &[0, 1])).is_some(), "it may complain");
    }

    #[test]
    fn a_sick_primary_may_cost_all_of_its_group_and_a_sick_parity_only_itself() {
        let map = map(6);
        assert_eq!(objection(&map, &all(Hurt::Sick, &[0])), None);
        assert_eq!(objection(&map, &all(Hurt::Sick, &[0, 1])), None);
        assert!(objection(&map, &BTreeSet::from([(0, Hurt::Sick), (4, Hurt::Dead)])).is_some());
        assert_eq!(objection(&map, &BTreeSet::from([(3, Hurt::Sick), (4, Hurt::Dead)])), None);
        assert_eq!(objection(&map, &BTreeSet::from([(0, Hurt::Sick), (5, Hurt::Dead)])), None);
    }

    #[test]
    fn nodes_that_are_torn_off_together_may_cost_all_of_a_group_and_not_more_than_themselves() {
        let mut map = map(7);
        // Nodes 0 to 2 have the primaries, 3 and 4 the parities, 5 and 6 nothing of the group.
        for pair in [[0, 1], [0, 3], [3, 4], [0, 5]] {
            assert_eq!(objection(&map, &all(Hurt::Torn, &pair)), None, "{pair:?}");
        }
        assert!(objection(&map, &all(Hurt::Torn, &[0, 1, 2])).is_some(), "three members");
        let with =
            |node, hurt| objection(&map, &BTreeSet::from([(0, Hurt::Torn), (5, Hurt::Torn), (node, hurt)]));
        assert!(with(3, Hurt::Dead).is_some(), "nothing is left for it");
        assert_eq!(with(6, Hurt::Dead), None);
        lose_parity(&mut map, 1);
        assert!(
            objection(&map, &all(Hurt::Torn, &[0, 3])).is_some(),
            "if the coordinator is on the other side"
        );
        assert_eq!(objection(&map, &all(Hurt::Torn, &[0, 5])), None);
    }

    #[test]
    fn a_node_that_was_sick_is_not_cheaper_to_kill() {
        let mut map = map(5);
        let beside = map.groups[0].in_sync().next().map(|(_, host)| host);
        map.groups[0].data[0].primary = beside;
        assert_eq!(objection(&map, &all(Hurt::Dead, &[3])), None, "two members, and two may go");
        lose_parity(&mut map, 1);
        assert!(objection(&map, &all(Hurt::Dead, &[3])).is_some());
        assert_eq!(objection(&map, &all(Hurt::Sick, &[3])), None);
        assert!(objection(&map, &BTreeSet::from([(3, Hurt::Sick), (3, Hurt::Dead)])).is_some());
        let twice = BTreeSet::from([(4, Hurt::Away), (4, Hurt::Dead), (1, Hurt::Dead)]);
        assert_eq!(objection(&map, &twice), None, "one node is not lost twice");
    }

    #[test]
    fn a_parity_is_missed_where_there_is_a_node_for_it() {
        let mut small = map(5);
        lose_parity(&mut small, 0);
        assert!(missing(&small).unwrap().contains("lacks 1"), "its own node has room");
        small.nodes[3].alive = false;
        assert_eq!(missing(&small), None, "no node has room");
        let mut large = map(6);
        assert!(missing(&large).is_none() && is_full(&large));
        large.groups[0].data[1].status = RoleStatus::Fenced;
        assert!(missing(&large).unwrap().starts_with("data role 1"));
    }
}
