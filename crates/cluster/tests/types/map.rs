//! A map whose groups are placed, and maps that no cluster can have.

use cluster::place;
use types::{
    Catalog, ClusterId, ClusterMap, GroupId, HostId, ImpossibleMap, ImpossibleView, Incarnation, Layout,
    Learner, NodeId, Profile, RoleIndex, ViewVersion,
};

fn placed() -> ClusterMap {
    let profile = Profile::rs(3, 2).unwrap();
    let hosts: Vec<_> = (0..5).map(|n| HostId { node: NodeId(n), incarnation: Incarnation(1) }).collect();
    ClusterMap {
        cluster: ClusterId(1),
        version: 0,
        catalog: Catalog::first(profile, 5),
        shards: 1,
        layout: Layout::default(),
        nodes: vec![],
        groups: place(profile, &hosts, 5).unwrap(),
    }
}

#[test]
fn place_fills_the_views_of_a_map() {
    let map = placed();
    assert_eq!(map.groups.len(), 5);
    assert_eq!(map.check(), Ok(()));
}

#[test]
fn what_no_cluster_can_have_is_named() {
    type Change = fn(&mut ClusterMap);
    let learner = |map: &mut ClusterMap, role, since| {
        let (host, since) = (map.groups[0].data[0].primary.unwrap(), ViewVersion(since));
        map.groups[0].learners.push(Learner { role: RoleIndex(role), host, since, whole: false });
    };
    let cases: [(Change, ImpossibleMap); 6] = [
        (|map| map.groups.clear(), ImpossibleMap::NoGroups),
        (|map| map.shards = 0, ImpossibleMap::NoShards),
        (|map| map.version = u64::MAX, ImpossibleMap::Version(u64::MAX)),
        (|map| map.catalog.pools[0].profile = Profile::rs(4, 2).unwrap(), ImpossibleMap::Profile(GroupId(0))),
        (|map| drop(map.groups.pop()), ImpossibleMap::Views { views: 4, groups: 5 }),
        (|map| map.groups.swap(1, 2), ImpossibleMap::Order { expected: GroupId(1), got: GroupId(2) }),
    ];
    for (change, why) in cases {
        let mut map = placed();
        change(&mut map);
        assert_eq!(map.check(), Err(why));
    }
    for (role, since) in [(5, 1), (3, 99)] {
        let mut map = placed();
        learner(&mut map, role, since);
        assert!(matches!(map.check(), Err(ImpossibleMap::View(GroupId(0), _))));
    }
    let mut map = placed();
    map.groups[3].data[1].primary = None;
    let status = ImpossibleView::Status(RoleIndex(1));
    assert_eq!(map.check(), Err(ImpossibleMap::View(GroupId(3), status)));
}

#[test]
fn a_map_of_no_groups_is_refused_by_who_reads_its_json() {
    let map = placed();
    let json = serde_json::to_string(&map).unwrap();
    assert_eq!(serde_json::from_str::<ClusterMap>(&json).unwrap(), map);
    let empty = serde_json::to_string(&ClusterMap { groups: vec![], ..map }).unwrap();
    let error = serde_json::from_str::<ClusterMap>(&empty).unwrap_err();
    assert!(error.to_string().contains("no groups"), "{error}");
}

#[test]
fn a_view_of_another_shape_takes_nobodys_place() {
    let mut map = placed();
    let mut view = map.groups[1].clone();
    view.version = ViewVersion(9);
    view.parity.pop();
    assert!(!map.adopt(view));
    assert_eq!(map.check(), Ok(()));
}
