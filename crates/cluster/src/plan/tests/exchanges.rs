//! Where every node has a role of every group a data role can only change places with a parity.

use proptest::prelude::*;

use super::world::{World, host, learn};
use crate::plan::*;
use types::RoleIndex;

/// By how much the nodes differ in data roles, at most.
fn data_spread(world: &World) -> usize {
    let counts = world.counts();
    let data = || counts.iter().map(|has| has.data);
    data().max().unwrap_or(0) - data().min().unwrap_or(0)
}

/// Five nodes with a role of every group each; node 3 has four data roles, node 0 two.
fn uneven(rings: u32) -> World {
    let mut world = World::without_zones("rs(3+2)", 5, 5, 5 * rings);
    (0..rings as usize).for_each(|ring| swap(&mut world, 5 * ring));
    world
}

/// The data role on node 0 and the parity on node 3 have changed places.
fn swap(world: &mut World, group: usize) {
    world.seat(group, 0, Some(host(3)));
    world.seat(group, 3, Some(host(0)));
}

/// [`uneven`] with the mirror of the first exchange, whole or not.
fn mirrored(whole: bool) -> World {
    let mut world = uneven(1);
    learn(&mut world.map.groups[0], RoleIndex(0), host(0));
    world.map.groups[0].learners[0].whole = whole;
    world
}

fn texts(moves: &[Move]) -> Vec<String> {
    moves.iter().map(Move::to_string).collect()
}

/// Profiles, nodes, and how many of them may be lost at a time.
const CLUSTERS: &[(&str, u16, usize)] = &[
    ("rs(3+2)", 5, 2),
    ("rs(2+1)", 3, 1),
    ("rs(4+2)", 6, 2),
    ("rs(3+3)", 6, 3),
    ("rs(3+2)", 6, 2),
    ("rs(2+1)", 4, 1),
];

const MIRROR: &str = "balance group-0/role-0 from node-3 to node-0";
const PARITY: &str = "balance group-0/role-3 from node-0 to node-3";

#[test]
fn a_data_role_changes_places_with_a_parity_step_by_step() {
    let mut world = uneven(1);
    let first = world.next(&[]);
    assert_eq!(texts(&first), [MIRROR]);
    assert_eq!(world.next(&first), [], "it is under way");
    assert_eq!(mirrored(false).next(&[]), [], "its mirror is being built");
    world.finish(&first[0]);
    let second = world.next(&[]);
    assert_eq!(texts(&second), [PARITY]);
    assert_eq!(world.next(&second), []);
    learn(&mut world.map.groups[0], RoleIndex(3), host(3));
    assert_eq!(world.next(&[]), [], "the parity is being built");
    world.finish(&second[0]);
    assert_eq!(world.next(&[]), []);
    assert!(world.counts().iter().all(|has| (has.data, has.parity) == (3, 2)), "{:?}", world.counts());
}

#[test]
fn a_preview_lists_both_steps() {
    let limits = PlanLimits::default();
    let listed = |world: &World| texts(&plan(&world.map, &world.nodes, &limits));
    assert_eq!(listed(&uneven(1)), [MIRROR, PARITY]);
    assert_eq!(listed(&mirrored(false)), [PARITY]);
    assert_eq!(listed(&mirrored(true)), [PARITY]);
}

#[test]
fn no_exchange_begins_with_a_node_that_is_to_be_emptied_or_cannot_host() {
    for node in [0, 3] {
        let mut world = uneven(1);
        world.nodes[node].draining = true;
        assert_eq!(world.next(&[]), [], "node {node} drains");
        let mut world = uneven(1);
        world.nodes[node].can_host = false;
        assert_eq!(world.next(&[]), [], "node {node} cannot host");
    }
}

#[test]
fn no_exchange_begins_without_room_at_both_nodes() {
    for node in [0, 3] {
        let mut world = uneven(1);
        world.nodes.iter_mut().for_each(|node| node.bytes = 500);
        world.nodes[node].room = 199;
        assert_eq!(world.next(&[]), [], "node {node} has room for less than twice a role");
        world.nodes[node].room = 200;
        assert_eq!(texts(&world.next(&[])), [MIRROR]);
    }
}

#[test]
fn a_node_takes_part_in_one_exchange_at_a_time() {
    let limits = PlanLimits { per_node: 100, per_source: 100, total: 100, ..PlanLimits::default() };
    let mut world = uneven(3);
    for _ in 0..3 {
        assert_eq!(next_moves(&world.map, &world.nodes, &[], &limits).len(), 1, "the mirror");
        let moves = next_moves(&world.map, &world.nodes, &[], &limits);
        world.finish(&moves[0]);
        let moves = next_moves(&world.map, &world.nodes, &[], &limits);
        assert_eq!(moves.len(), 1, "the parity");
        world.finish(&moves[0]);
        if data_spread(&world) <= 1 {
            return;
        }
    }
    panic!("{:?}", world.counts());
}

#[test]
fn a_role_that_can_go_elsewhere_is_not_exchanged() {
    let mut world = World::without_zones("rs(3+2)", 6, 6, 6);
    swap(&mut world, 0);
    let moves = plan(&world.map, &world.nodes, &PlanLimits::default());
    let first = &moves[0];
    let view = &world.map.groups[first.group.0 as usize];
    assert_eq!(view.roles_on(first.to.node), 0, "{first}");
}

#[test]
fn what_is_lost_comes_first_and_what_has_begun_goes_on() {
    let mut world = uneven(1);
    world.fence(1, 0);
    assert_eq!(world.next(&[]), [], "balance waits");
    let mut world = mirrored(true);
    world.fence(1, 0);
    assert_eq!(texts(&world.next(&[])), [PARITY], "the mirror is there already");
    world.seat(0, 4, None);
    assert_eq!(world.next(&[]), [], "a parity of the group is missing");
}

#[test]
fn zones_stay_as_they_are() {
    let mut world = World::new("rs(3+2)", &["a", "a", "b", "b", "c"], 5, 5);
    world.settle(&PlanLimits::default());
    swap(&mut world, 0);
    let pairs = |world: &World| {
        let of = |view| world.pairs(view, |host| world.zone_of(host));
        world.map.groups.iter().map(of).sum::<usize>()
    };
    let before = pairs(&world);
    world.settle(&PlanLimits::default());
    assert!(data_spread(&world) <= 1, "{:?}", world.counts());
    assert_eq!(pairs(&world), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Nodes are lost, as many at a time as the code can make up for, and come back.
    #[test]
    fn data_roles_are_even_after_losses_and_returns(
        (profile, nodes, most) in prop::sample::select(CLUSTERS),
        rounds in prop::collection::vec((prop::collection::vec(0..6u16, 1..=3), any::<[bool; 2]>()), 1..5),
        rings in 1..4u32,
    ) {
        let mut world = World::without_zones(profile, nodes.into(), nodes, u32::from(nodes) * rings);
        let limits = PlanLimits::default();
        for (mut lost, [settles, between]) in rounds {
            lost.iter_mut().for_each(|node| *node %= nodes);
            lost.truncate(most);
            for node in &lost {
                world.lose(*node);
                if between {
                    world.settle(&limits);
                }
            }
            for node in lost {
                world.bring_back(node);
                if settles {
                    world.settle(&limits);
                }
            }
            world.settle(&limits);
        }
        prop_assert!(data_spread(&world) <= limits.balance_slack, "{:?}", world.counts());
    }
}
