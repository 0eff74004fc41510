//! What cannot be had is said, with what to do.

use super::world::{World, host};
use crate::plan::*;
use types::{NodeId, RoleStatus};

fn texts(world: &World) -> Vec<String> {
    warnings(&world.map, &world.nodes).iter().map(PlacementWarning::to_string).collect()
}

#[test]
fn a_cluster_with_all_it_needs_gets_no_warning() {
    assert_eq!(texts(&World::without_zones("rs(3+2)", 5, 5, 5)), [""; 0]);
    assert_eq!(texts(&World::new("rs(2+1)", &["a", "b", "c", "c"], 3, 5)), [""; 0]);
}

#[test]
fn what_moves_can_put_right_is_no_warning() {
    let mut world = World::without_zones("rs(3+2)", 6, 5, 5);
    world.seat(0, 0, Some(host(4)));
    world.seat(1, 4, None);
    world.nodes[2].draining = true;
    assert_eq!(texts(&world), [""; 0]);
}

#[test]
fn too_few_nodes() {
    let mut world = World::without_zones("rs(3+2)", 5, 5, 5);
    world.nodes[0].can_host = false;
    // Group 0 lost a data role, whose stand-in is on a parity's node; group 1 lost a parity.
    world.seat(0, 0, Some(host(4)));
    world.seat(1, 4, None);
    let expected = PlacementWarning::TooFewNodes { roles: 5, nodes: 4, crowded: 1, incomplete: 1 };
    assert_eq!(warnings(&world.map, &world.nodes), [expected]);
    assert_eq!(
        texts(&world),
        [
            "a group has 5 roles, and 4 nodes can host one (alive, with memory, not draining): 1 group with two roles on \
             one node, 1 group without a parity; start 1 more node"
        ]
    );
}

#[test]
fn too_few_zones() {
    let world = World::new("rs(3+2)", &["a", "a", "b", "b", "c", "c"], 5, 1);
    let expected = PlacementWarning::TooFewZones { roles: 5, zones: 3, most: 2, survived: 1 };
    assert_eq!(warnings(&world.map, &world.nodes), [expected]);
    assert_eq!(
        texts(&world),
        [
            "a group has 5 roles, and there are 3 zones for them: one has up to 2, so the data survives the loss of \
             1 zone; start nodes in further zones, or in the small ones"
        ]
    );
}

#[test]
fn zones_enough_in_number_but_one_too_large_for_the_others() {
    let world = World::new("rs(3+2)", &["a", "a", "a", "b", "c"], 5, 1);
    let expected = PlacementWarning::TooFewZones { roles: 5, zones: 3, most: 3, survived: 0 };
    assert_eq!(warnings(&world.map, &world.nodes), [expected]);
}

#[test]
fn the_pool_that_survives_fewest_zones_is_named_though_another_one_is_wider() {
    let mut world = World::new("rs(3+2)", &["a", "a", "b", "b", "c", "c"], 5, 1);
    let profile = "rs(3+1)".parse().unwrap();
    world.map.catalog.create_pool("p".parse().unwrap(), profile, 1).unwrap();
    let expected = PlacementWarning::TooFewZones { roles: 4, zones: 3, most: 2, survived: 0 };
    assert_eq!(warnings(&world.map, &world.nodes), [expected]);
}

#[test]
fn nodes_without_a_zone_among_others() {
    let world = World::new("rs(2+1)", &["a", "", "b", ""], 3, 1);
    assert_eq!(
        texts(&world),
        ["nodes without a zone count as zones of their own: start node-1, node-3 with --zone, as the others"]
    );
}

#[test]
fn a_drain_that_cannot_end() {
    let mut world = World::without_zones("rs(3+2)", 5, 5, 4);
    world.nodes[1].draining = true;
    assert_eq!(
        warnings(&world.map, &world.nodes)[1],
        PlacementWarning::DrainBlocked { node: NodeId(1), without_target: 4 }
    );
    let text = &texts(&world)[1];
    assert_eq!(
        text,
        "node-1 cannot be emptied: 4 roles would have to share a node with another of the group; start another node"
    );
}

#[test]
fn a_drain_of_a_node_with_a_rest_of_lost_data_ends_like_any_other() {
    let mut world = World::without_zones("rs(3+2)", 7, 5, 1);
    world.fence(0, 0);
    world.nodes[1].draining = true;
    assert_eq!(texts(&world), [""; 0], "the role may come back");
    world.map.groups[0].data[0].status = RoleStatus::Lost;
    assert_eq!(texts(&world), [""; 0]);
    world.settle(&PlanLimits::default());
    assert_eq!(world.map.groups[0].roles_on(NodeId(1)), 0);
}
