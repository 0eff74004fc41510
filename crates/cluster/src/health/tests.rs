//! Every state, and which of two is told.

use super::*;
use crate::place;
use types::{ClusterId, GroupId, Incarnation, NodeInfo, PoolSlots, Profile, RoleIndex, RoleStatus, Seq};

const LEASE_US: u64 = 1_000_000;
const FRESH: Age = Age { coordinator_us: Some(LEASE_US / 5), lease_us: LEASE_US };
const STALE: Age = Age { coordinator_us: Some(3 * LEASE_US + 1), lease_us: LEASE_US };

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn info(node: u16) -> NodeInfo {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let (peer, memcached, http) = (nowhere, nowhere, nowhere);
    NodeInfo { host: host(node), peer, memcached, http, native: None, zone: String::new(), alive: true }
}

/// Five nodes, rs(3+2), five groups.
fn map() -> ClusterMap {
    let hosts: Vec<_> = (0..5).map(host).collect();
    let profile = Profile::rs(3, 2).unwrap();
    let groups = place(profile, &hosts, 5).unwrap();
    let nodes = (0..5).map(info).collect();
    ClusterMap {
        cluster: ClusterId(1),
        version: 1,
        catalog: types::Catalog::first(profile, 5),
        shards: 1,
        layout: Default::default(),
        nodes,
        groups,
    }
}

/// What all nodes say that serve what they have by `map`.
fn words(map: &ClusterMap) -> BTreeMap<NodeId, Word> {
    let serves = |node: NodeId| -> BTreeSet<MemberId> {
        let members = map.groups.iter().flat_map(|view| {
            let here =
                view.data_roles().filter(move |(_, role)| role.primary.is_some_and(|p| p.node == node));
            here.map(|(role, _)| MemberId { group: view.group, role })
        });
        members.collect()
    };
    let word = |info: &NodeInfo| Word::Answered { serves: serves(info.host.node), fullness: Fullness::Room };
    map.nodes.iter().map(|info| (info.host.node, word(info))).collect()
}

fn assess(map: &ClusterMap, age: Age, nodes: &BTreeMap<NodeId, Word>) -> Assessment {
    Knowledge { map, age, nodes }.assess()
}

/// All nodes answer but these.
fn without(map: &ClusterMap, silent: &[u16]) -> BTreeMap<NodeId, Word> {
    let mut words = words(map);
    words.extend(silent.iter().map(|node| (NodeId(*node), Word::Silent)));
    words
}

fn slots_of(map: &ClusterMap, member: MemberId) -> Vec<PoolSlots> {
    map.slots_of_all([member].into_iter())
}

fn data_slots(map: &ClusterMap, nodes: &[u16]) -> Vec<PoolSlots> {
    let members = map.groups.iter().flat_map(|view| {
        let here =
            view.data_roles().filter(|(_, role)| role.primary.is_some_and(|p| nodes.contains(&p.node.0)));
        here.map(|(role, _)| MemberId { group: view.group, role }).collect::<Vec<_>>()
    });
    map.slots_of_all(members)
}

#[test]
fn a_cluster_that_was_heard_of_and_answers_is_ok() {
    let map = map();
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.protection_achieved, found.states.len()), (Health::Ok, 2, 0));
    assert!(
        found.unavailable_slots.is_empty() && found.at_risk_by.is_empty() && found.beyond_repair.is_none()
    );
}

#[test]
fn without_word_of_a_coordinator_for_three_leases_nothing_is_ok() {
    let map = map();
    let health = |coordinator_us| assess(&map, Age { coordinator_us, ..FRESH }, &words(&map)).health;
    assert_eq!(health(Some(3 * LEASE_US)), Health::Ok);
    assert_eq!(health(STALE.coordinator_us), Health::Unknown);
    assert_eq!(health(None), Health::Unknown);
}

#[test]
fn a_missing_parity_degrades_and_two_put_data_at_risk() {
    let mut map = map();
    let group = map.groups[2].group;
    map.groups[2].parity[0] = None;
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.protection_achieved), (Health::Degraded, 1));
    assert!(found.at_risk_by.is_empty());
    map.groups[2].parity[1] = None;
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!(found.health, Health::AtRisk);
    // Each of its primaries has what nobody else has, and nothing else is at risk.
    let expected: Vec<Loss> = {
        let primaries = map.groups[2].data_roles().map(|(role, known)| {
            let slots = slots_of(&map, MemberId { group, role });
            Loss { nodes: vec![known.primary.unwrap().node], groups: vec![group], slots }
        });
        let mut losses: Vec<Loss> = primaries.collect();
        losses.sort_by_key(|loss| loss.nodes[0]);
        losses
    };
    assert_eq!(found.at_risk_by, expected);
}

#[test]
fn a_stand_in_beside_a_parity_makes_its_node_count_twice() {
    let mut map = map();
    map.groups[0].data[0].primary = map.groups[0].parity[0];
    map.groups[0].data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.protection_achieved), (Health::Degraded, 1));
}

#[test]
fn lost_roles_are_named_by_their_slots() {
    let mut map = map();
    // Accepted or not: it is lost until somebody can serve it again.
    for status in [RoleStatus::Lost, RoleStatus::Accepted] {
        map.groups[1].data[2].status = status;
        map.groups[1].data[2].primary = None;
        let found = assess(&map, STALE, &words(&map));
        assert_eq!((found.health, found.states.contains(&Health::Unknown)), (Health::Lost, true));
        let member = MemberId { group: GroupId(1), role: RoleIndex(2) };
        assert_eq!(found.lost_slots, slots_of(&map, member));
        assert!(found.unavailable_slots.is_empty(), "what is lost is not counted twice");
        assert!(found.at_risk_by.iter().all(|loss| !loss.slots.contains(&slots_of(&map, member)[0])));
    }
}

#[test]
fn neighbouring_lost_roles_are_one_range() {
    let mut map = map();
    for group in [0, 1] {
        map.groups[group].data[0].status = RoleStatus::Lost;
    }
    let of = |group| map.slots_of(MemberId { group: GroupId(group), role: RoleIndex(0) }).unwrap();
    let slots = types::SlotRange { first: of(0).first, last: of(1).last };
    assert_eq!(map.lost_slots(), [PoolSlots { pool: types::Name::default_name(), slots }]);
}

#[test]
fn a_role_without_a_primary_is_unavailable() {
    let mut map = map();
    let words = words(&map);
    map.groups[1].data[2].primary = None;
    map.groups[1].data[2].status = RoleStatus::Fenced;
    // Its former primary does not serve it any more.
    let mut words = words;
    let member = MemberId { group: GroupId(1), role: RoleIndex(2) };
    for word in words.values_mut() {
        if let Word::Answered { serves, .. } = word {
            serves.remove(&member);
        }
    }
    let found = assess(&map, FRESH, &words);
    assert_eq!(
        (found.health, &found.unavailable_slots[..]),
        (Health::Unavailable, &slots_of(&map, member)[..])
    );
}

#[test]
fn a_primary_without_a_read_lease_is_unavailable() {
    let map = map();
    let mut words = words(&map);
    let Some(Word::Answered { serves, .. }) = words.get_mut(&NodeId(3)) else { panic!("it has answered") };
    serves.clear();
    let found = assess(&map, FRESH, &words);
    assert_eq!((found.health, found.unavailable_slots), (Health::Unavailable, data_slots(&map, &[3])));
}

#[test]
fn a_role_that_has_just_moved_is_served() {
    let map = map();
    let mut words = words(&map);
    words.retain(|node, _| node.0 < 2);
    let Some(Word::Answered { serves: old, .. }) = words.get_mut(&NodeId(0)) else {
        panic!("it has answered")
    };
    let moved = old.pop_first().unwrap();
    let Some(Word::Answered { serves: new, .. }) = words.get_mut(&NodeId(1)) else {
        panic!("it has answered")
    };
    new.insert(moved);
    assert_eq!(assess(&map, FRESH, &words).health, Health::Ok);
}

#[test]
fn a_silent_node_is_doubted_while_a_coordinator_vouches_for_it_and_missed_when_none_does() {
    let map = map();
    let words = without(&map, &[3]);
    let found = assess(&map, FRESH, &words);
    assert_eq!((found.health, &found.silent_nodes[..]), (Health::Unknown, &[NodeId(3)][..]));
    assert_eq!((found.protection_achieved, found.unavailable_slots.len()), (2, 0));
    let age = Age { coordinator_us: Some(LEASE_US + 1), ..FRESH };
    let found = assess(&map, age, &words);
    assert_eq!((found.health, &found.unavailable_slots), (Health::Unavailable, &data_slots(&map, &[3])));
    assert_eq!(found.protection_achieved, 1);
    assert_eq!(found.states, [Health::Unavailable, Health::Unknown, Health::Degraded]);
}

#[test]
fn more_missing_than_the_code_can_make_up_for_is_said_with_names() {
    let mut map = map();
    for info in &mut map.nodes[..3] {
        info.alive = false;
    }
    let found = assess(&map, FRESH, &without(&map, &[0, 1, 2]));
    assert_eq!((found.health, found.protection_achieved), (Health::Unavailable, 0));
    assert!(found.states.contains(&Health::AtRisk));
    let beyond = found.beyond_repair.unwrap();
    assert_eq!(beyond.nodes, [NodeId(0), NodeId(1), NodeId(2)]);
    assert_eq!(found.missing_nodes, beyond.nodes);
    assert_eq!((beyond.groups.len(), beyond.slots), (5, data_slots(&map, &[0, 1, 2])));
    assert!(found.lost_slots.is_empty());
    // Two are what the profile makes up for.
    map.nodes[0].alive = true;
    let found = assess(&map, FRESH, &without(&map, &[1, 2]));
    assert_eq!((found.beyond_repair, found.protection_achieved), (None, 0));
    assert!(found.states.contains(&Health::AtRisk) && found.at_risk_by.len() == 3);
}

#[test]
fn a_node_whose_lease_has_run_out_and_that_answers_is_not_missing() {
    let mut map = map();
    map.nodes[2].alive = false;
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.protection_achieved), (Health::Ok, 2));
    let mut unheard = words(&map);
    unheard.remove(&NodeId(2));
    assert_eq!(assess(&map, FRESH, &unheard).protection_achieved, 1);
}

#[test]
fn a_silent_node_that_is_gone_and_has_nothing_is_no_news() {
    let mut map = map();
    map.nodes.push(NodeInfo { alive: false, ..info(5) });
    let found = assess(&map, FRESH, &without(&map, &[5]));
    assert_eq!((found.health, &found.silent_nodes[..]), (Health::Ok, &[NodeId(5)][..]));
    map.layout.nodes.entry(NodeId(5)).or_default().state = types::NodeState::Draining;
    assert!(assess(&map, FRESH, &without(&map, &[5])).silent_nodes.is_empty(), "it was told to leave");
    map.nodes[5].alive = true;
    assert_eq!(assess(&map, FRESH, &without(&map, &[5])).health, Health::Unknown);
}

#[test]
fn a_node_that_judges_by_its_links_believes_those_that_are_up() {
    let map = map();
    let mut words = words(&map);
    for node in [1, 2, 3, 4] {
        words.insert(NodeId(node), Word::Reached);
    }
    assert_eq!(assess(&map, FRESH, &words).health, Health::Ok);
    words.insert(NodeId(4), Word::Silent);
    let found = assess(&map, STALE, &words);
    assert_eq!(found.unavailable_slots, data_slots(&map, &[4]));
}

#[test]
fn full_is_told_of_a_cluster_that_is_well_otherwise() {
    let mut map = map();
    let mut words = words(&map);
    for (node, full) in [(1, Fullness::Evicting), (4, Fullness::Refusing)] {
        let Some(Word::Answered { fullness, .. }) = words.get_mut(&NodeId(node)) else {
            panic!("it has answered")
        };
        *fullness = full;
    }
    let found = assess(&map, FRESH, &words);
    assert_eq!(found.health, Health::Full);
    assert_eq!((found.evicting_nodes, found.refusing_nodes), (vec![NodeId(1)], vec![NodeId(4)]));
    map.groups[0].parity[0] = None;
    let found = assess(&map, FRESH, &words);
    assert_eq!(found.states, [Health::Degraded, Health::Full]);
}

#[test]
fn a_cluster_without_protection_is_as_safe_as_asked_for() {
    let mut map = map();
    map.catalog.pools[0].profile = Profile::rs(3, 0).unwrap();
    for view in &mut map.groups {
        view.parity.clear();
    }
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.at_risk_by.len()), (Health::Ok, 5));
    map.nodes[0].alive = false;
    let found = assess(&map, FRESH, &without(&map, &[0]));
    assert_eq!((found.health, found.beyond_repair.unwrap().nodes), (Health::Unavailable, vec![NodeId(0)]));
}

#[test]
fn without_a_map_it_forms_if_there_is_a_coordinator() {
    assert_eq!((Health::without_map(FRESH), Health::without_map(STALE)), (Health::Forming, Health::Unknown));
    let ascending = [
        Health::Ok,
        Health::Full,
        Health::Degraded,
        Health::Forming,
        Health::Unknown,
        Health::AtRisk,
        Health::Unavailable,
        Health::Lost,
    ];
    assert!(ascending.is_sorted());
}

#[test]
fn chunks_that_only_a_lost_node_has_are_told_with_their_group() {
    let mut map = map();
    let view = &mut map.groups[0];
    let since = view.version;
    let member = |role: u8| view.member_host(RoleIndex(role)).map(|host| types::Holder { host, since });
    view.holders = (0..5).map(|role| types::Holders { whole: member(role), filling: None }).collect();
    assert_eq!(assess(&map, FRESH, &words(&map)).health, Health::Ok);
    // Two holders are new and have next to nothing yet.
    for role in 0..2 {
        let holders = &mut map.groups[0].holders[role];
        holders.filling = holders.whole.take();
    }
    let found = assess(&map, FRESH, &words(&map));
    assert_eq!((found.health, found.protection_achieved), (Health::AtRisk, 0));
    assert_eq!(found.at_risk_by.len(), 3, "by each of the nodes that have all of a role");
    assert!(found.at_risk_by.iter().all(|loss| loss.groups == [GroupId(0)] && loss.slots.is_empty()));
    let silent = map.groups[0].holders[4].whole.unwrap().host.node;
    map.nodes[usize::from(silent.0)].alive = false;
    let found = assess(&map, FRESH, &without(&map, &[silent.0]));
    let beyond = found.beyond_repair.expect("chunks cannot be made of two others");
    assert_eq!((beyond.nodes, beyond.groups), (vec![silent], vec![GroupId(0)]));
}
