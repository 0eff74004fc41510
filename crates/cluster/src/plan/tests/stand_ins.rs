//! Where a stand-in goes.

use super::world::{World, host};
use crate::plan::*;
use types::{NodeId, RoleIndex};

/// `rs(3+2)` over nodes 0 to 4; role 0 has lost its primary, whose node is gone.
fn world(zones: &[&str]) -> World {
    let mut world = World::new("rs(3+2)", zones, 5, 1);
    world.fence(0, 0);
    world.nodes.remove(0);
    world
}

fn choice(world: &World) -> Option<NodeId> {
    let load = RoleTally::of(&world.map.groups);
    choose_stand_in(&world.map.groups[0], &world.nodes, &load).map(|host| host.node)
}

#[test]
fn a_node_without_a_role_is_preferred() {
    assert_eq!(choice(&world(&[""; 6])), Some(NodeId(5)));
}

#[test]
fn without_one_it_goes_to_the_least_loaded_parity() {
    let world = world(&[""; 5]);
    let counts = |data, parity| RoleCounts { data, parity };
    let load = RoleTally::from_iter([(NodeId(3), counts(3, 0)), (NodeId(4), counts(2, 9))]);
    let choice = |load| choose_stand_in(&world.map.groups[0], &world.nodes, &load);
    assert_eq!(choice(load), Some(host(4)), "data roles weigh more");
    assert_eq!(choice(RoleTally::default()), Some(host(3)));
}

#[test]
fn the_next_one_goes_to_another_parity() {
    let mut world = world(&[""; 5]);
    world.seat(0, 0, Some(host(3)));
    world.fence(0, 1);
    world.nodes.remove(0);
    world.nodes[2].draining = true;
    assert_eq!(choice(&world), Some(NodeId(4)), "rather than a third role on node 3");
}

#[test]
fn not_to_a_node_that_has_only_data_roles_of_the_group() {
    let mut world = world(&[""; 5]);
    world.nodes.truncate(2);
    assert_eq!(choice(&world), None);
}

#[test]
fn a_zone_without_a_role_of_the_group_is_preferred() {
    let mut world = world(&["a", "b", "c", "d", "e", "e", "a"]);
    assert_eq!(choice(&world), Some(NodeId(6)));
    world.nodes.pop();
    assert_eq!(choice(&world), Some(NodeId(5)), "two in a zone is better than two on a node");
}

#[test]
fn a_draining_node_is_better_than_two_roles_on_a_node() {
    let mut world = world(&[""; 7]);
    world.nodes[4].draining = true;
    assert_eq!(choice(&world), Some(NodeId(6)), "node 5 drains");
    world.nodes.pop();
    assert_eq!(choice(&world), Some(NodeId(5)));
}

#[test]
fn a_node_without_memory_comes_last() {
    let mut world = world(&[""; 6]);
    world.nodes[4].can_host = false;
    assert_eq!(choice(&world), Some(NodeId(3)));
    for node in &mut world.nodes {
        node.can_host = false;
    }
    assert_eq!(choice(&world), Some(NodeId(5)), "better than nobody");
}

#[test]
fn data_roles_parities_and_learners_are_counted() {
    let mut world = World::without_zones("rs(3+2)", 7, 5, 5);
    let group = &mut world.map.groups[0];
    super::world::seat(group, RoleIndex(3), None);
    super::world::learn(group, RoleIndex(3), host(6));
    let load = RoleTally::of(&world.map.groups);
    assert_eq!(load.get(NodeId(3)), RoleCounts { data: 3, parity: 1 });
    assert_eq!(load.get(NodeId(6)), RoleCounts { data: 0, parity: 1 });
}
