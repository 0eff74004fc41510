//! What a node leaves free for roles that it is to get.

use types::{ClusterMap, GroupView, HostId, NodeId, RoleIndex, RoleStatus};

/// One role, in the parts that are counted with.
const ROLE: u64 = 1_000;

/// Of the `limit` of a node's memory, what members that clients write to may not grow into: as long as groups lack roles that `node` may
/// get, these would find no room where clients have taken it. 0 where no group lacks any. In bytes.
///
/// A role weighs what any other one of a full node weighs: with `here` roles that it has and `to come`, that many parts of the limit are
/// kept. Of what a group lacks each node gets its part that has no role of it. Half of the limit at most, which is a guess:
/// of what a role weighs nothing is known here, and to keep more refuses clients of stores that are mostly empty.
#[must_use]
pub fn room_for_missing(map: &ClusterMap, node: NodeId, limit: u64) -> u64 {
    let (mut here, mut to_come) = (0, 0);
    for view in &map.groups {
        if view.roles_on(node) == 0 {
            to_come += expected(map, view, node);
            continue;
        }
        let roles = members(view).filter(|(_, host)| host.node == node);
        let (pending, whole): (Vec<_>, Vec<_>) =
            roles.partition(|(role, host)| is_to_be_filled(view, *role, *host));
        let learns =
            view.learners.iter().filter(|learner| learner.host.node == node && !learner.whole).count();
        here += whole.len() as u64 * ROLE;
        to_come += (pending.len() + learns) as u64 * ROLE;
    }
    let kept = u128::from(limit) * u128::from(to_come) / u128::from((here + to_come).max(1));
    u64::try_from(kept).unwrap_or(limit).min(limit / 2)
}

/// Whether pages or chunks of `role` are still to come to its `host`.
fn is_to_be_filled(view: &GroupView, role: RoleIndex, host: HostId) -> bool {
    let lacks_pages =
        view.data_role(role).is_some_and(|data| matches!(data.status, RoleStatus::Rebuilding { .. }));
    lacks_pages || view.holders_of(role).filling.is_some_and(|filling| filling.host == host)
}

/// What of the roles that `view` lacks `node` is to expect, which has none of it.
fn expected(map: &ClusterMap, view: &GroupView, node: NodeId) -> u64 {
    let missing = missing(view);
    if missing == 0 {
        return 0;
    }
    let is_able = |info: &&types::NodeInfo| {
        let id = info.host.node;
        info.alive && !map.layout.is_draining(id) && view.roles_on(id) == 0
    };
    let able: Vec<NodeId> = map.nodes.iter().filter(is_able).map(|info| info.host.node).collect();
    if able.contains(&node) { (missing * ROLE / able.len() as u64).min(ROLE) } else { 0 }
}

/// The roles that are to be built somewhere: parities without a host, data roles that lack pages, and those of a node that has more than one.
fn missing(view: &GroupView) -> u64 {
    let parities = view.parity.iter().filter(|host| host.is_none()).count();
    let lacks_pages =
        |status| matches!(status, RoleStatus::Fenced | RoleStatus::Orphan(_) | RoleStatus::Rebuilding { .. });
    let data = view.data.iter().filter(|role| lacks_pages(role.status)).count();
    let crowded = members(view)
        .filter(|(role, host)| members(view).any(|(other, mate)| other < *role && mate.node == host.node));
    let under_way = view.learners.iter().filter(|learner| !learner.whole).count();
    (parities + data + crowded.count()).saturating_sub(under_way) as u64
}

/// The roles that are served, and by whom.
fn members(view: &GroupView) -> impl Iterator<Item = (RoleIndex, HostId)> + '_ {
    let data = view.data_roles().filter_map(|(role, data)| Some((role, data.primary?)));
    data.chain(view.in_sync())
}

#[cfg(test)]
mod tests {
    use types::{ClusterId, Holder, Holders, Incarnation, Learner, NodeInfo, Profile, ViewVersion};

    use super::*;

    const LIMIT: u64 = 1_000;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    /// Groups of `rs(3+2)` on the first five of so many nodes, one for each of the five.
    fn map(nodes: u16) -> ClusterMap {
        let address = "127.0.0.1:1".parse().unwrap();
        let info = |node| NodeInfo {
            host: host(node),
            peer: address,
            memcached: address,
            http: address,
            native: None,
            zone: String::new(),
            alive: true,
        };
        let (profile, hosts) = (Profile::rs(3, 2).unwrap(), (0..5).map(host).collect::<Vec<_>>());
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, 5),
            shards: 1,
            layout: Default::default(),
            nodes: (0..nodes).map(info).collect(),
            groups: crate::place(profile, &hosts, 5).unwrap(),
        }
    }

    fn kept(map: &ClusterMap) -> Vec<u64> {
        map.nodes.iter().map(|info| room_for_missing(map, info.host.node, LIMIT)).collect()
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_missing() {
        assert_eq!(kept(&map(6)), [0; 6]);
    }

    #[test]
    fn who_may_get_a_missing_role_keeps_its_part_of_the_room() {
        let mut map = map(7);
        map.groups[0].parity[0] = None;
        let former = usize::from(
            crate::place(Profile::rs(3, 2).unwrap(), &(0..5).map(host).collect::<Vec<_>>(), 5).unwrap()[0]
                .parity[0]
                .unwrap()
                .node
                .0,
        );
        let kept_for = kept(&map);
        // Half a role each may come to the two that have none, and a third of one to the one that has four others.
        for node in [5, 6] {
            assert_eq!(kept_for[node], LIMIT / 2, "{kept_for:?}");
        }
        assert_eq!(kept_for[former], LIMIT * 333 / 4_333, "{kept_for:?}");
        assert_eq!(kept_for.iter().filter(|kept| **kept == 0).count(), 4, "they have a role of the group");
        // Nobody is to get one who is dead or to be emptied.
        map.nodes[6].alive = false;
        assert_eq!(kept(&map)[6], 0);
        assert_eq!(kept(&map)[former], LIMIT * 500 / 4_500);
    }

    #[test]
    fn two_roles_on_a_node_are_one_too_many_and_one_under_way_is_none_any_more() {
        let mut map = map(6);
        let group = &mut map.groups[0];
        let crowded = group.data[0].primary.unwrap();
        let other = group.data[1].primary.replace(crowded).unwrap();
        let kept_for = kept(&map);
        assert_eq!((kept_for[5], kept_for[usize::from(other.node.0)]), (LIMIT / 2, LIMIT * 500 / 4_500));
        let since = ViewVersion(1);
        map.groups[0].learners = vec![Learner { role: RoleIndex(1), host: host(5), since, whole: false }];
        let kept_for = kept(&map);
        assert_eq!((kept_for[5], kept_for[usize::from(other.node.0)]), (LIMIT / 2, 0));
    }

    #[test]
    fn a_role_whose_chunks_are_still_to_come_is_to_come() {
        let mut map = map(5);
        let here = map.groups[0].data[0].primary.unwrap();
        let since = ViewVersion(1);
        let mut holders = vec![Holders::default(); 5];
        holders[0] = Holders { whole: None, filling: Some(Holder { host: here, since }) };
        map.groups[0].holders = holders;
        assert_eq!(room_for_missing(&map, here.node, LIMIT), LIMIT / 5);
    }
}
