//! One state, and exactly what is begun in it.

use super::world::{World, host, learn};
use crate::plan::*;
use types::{GroupId, NodeId, RoleIndex, RoleStatus};

fn texts(moves: &[Move]) -> Vec<String> {
    moves.iter().map(Move::to_string).collect()
}

fn loose() -> PlanLimits {
    PlanLimits { per_node: 100, per_source: 100, total: 100, ..PlanLimits::default() }
}

#[test]
fn an_even_cluster_is_left_alone() {
    let world = World::without_zones("rs(3+2)", 7, 7, 14);
    assert_eq!(world.next(&[]), []);
}

#[test]
fn a_missing_parity_is_rebuilt_where_the_group_has_no_role() {
    let mut world = World::without_zones("rs(3+2)", 6, 6, 6);
    world.seat(0, 3, None);
    world.nodes[3].can_host = false;
    assert_eq!(texts(&world.next(&[])), ["rebuild group-0/role-3 to node-5"]);
    world.nodes[3].can_host = true;
    assert_eq!(texts(&world.next(&[])), ["rebuild group-0/role-3 to node-3"], "it has the fewest parities");
}

#[test]
fn the_group_that_can_bear_least_comes_first() {
    let mut world = World::without_zones("rs(3+2)", 8, 8, 8);
    world.seat(0, 3, None);
    world.seat(5, 3, None);
    world.seat(5, 4, None);
    let moves = world.next(&[]);
    assert_eq!(moves[0].group, GroupId(5));
    let limits = PlanLimits { total: 1, ..loose() };
    let first = next_moves(&world.map, &world.nodes, &[], &limits);
    assert_eq!(first, moves[..1]);
}

#[test]
fn missing_parities_of_a_group_are_built_side_by_side() {
    let mut world = World::without_zones("rs(3+2)", 8, 8, 1);
    world.seat(0, 3, None);
    world.seat(0, 4, None);
    let moves = world.next(&[]);
    assert_eq!(moves.iter().map(|step| step.role).collect::<Vec<_>>(), [RoleIndex(3), RoleIndex(4)]);
    assert_ne!(moves[0].to, moves[1].to);
}

#[test]
fn a_missing_parity_returns_to_its_former_host_if_that_is_able() {
    let mut world = World::without_zones("rs(3+2)", 8, 8, 1);
    world.seat(0, 3, None);
    world.seat(0, 4, None);
    world.nodes[6].former = vec![(GroupId(0), RoleIndex(4))];
    let moves = texts(&world.next(&[]));
    assert_eq!(moves[0], "rebuild group-0/role-4 to node-6");
    assert!(moves[1].starts_with("rebuild group-0/role-3"), "{moves:?}");
    world.nodes[6].can_host = false;
    assert!(texts(&world.next(&[])).iter().all(|step| !step.ends_with("node-6")));
    // It has another role of the group by now.
    world.nodes[6].can_host = true;
    world.seat(0, 0, Some(host(6)));
    assert!(texts(&world.next(&[]))[0].starts_with("rebuild group-0/role-3"));
}

#[test]
fn a_group_with_a_lost_data_role_waits_and_so_does_balance() {
    let mut world = World::without_zones("rs(3+2)", 8, 6, 30);
    world.fence(0, 0);
    world.seat(0, 4, None);
    world.seat(1, 4, None);
    let moves = next_moves(&world.map, &world.nodes, &[], &loose());
    assert_eq!(moves.len(), 1, "the joiners stay empty meanwhile: {moves:?}");
    assert_eq!(moves[0].group, GroupId(1));
}

#[test]
fn what_is_left_beside_lost_data_is_protected_again_and_what_is_lost_is_not_built() {
    let mut world = World::without_zones("rs(3+2)", 7, 5, 1);
    world.fence(0, 0);
    world.map.groups[0].data[0].status = RoleStatus::Lost;
    world.seat(0, 3, None);
    world.seat(0, 4, None);
    let moves = texts(&next_moves(&world.map, &world.nodes, &[], &loose()));
    assert_eq!(moves.len(), 2, "{moves:?}");
    assert!(moves[0].starts_with("rebuild group-0/role-3"), "{moves:?}");
    assert!(moves[1].starts_with("rebuild group-0/role-4"), "{moves:?}");
}

#[test]
fn where_all_is_lost_there_is_nothing_to_protect() {
    let mut world = World::without_zones("rs(3+2)", 7, 5, 1);
    for role in 0..3 {
        world.fence(0, role);
        world.map.groups[0].data[role].status = RoleStatus::Lost;
    }
    world.seat(0, 4, None);
    assert_eq!(world.next(&[]), []);
}

#[test]
fn a_role_that_begins_anew_goes_to_a_free_node_and_else_to_any() {
    let mut world = World::without_zones("rs(3+2)", 6, 5, 1);
    world.fence(0, 0);
    let view = world.map.groups[0].clone();
    let load = crate::RoleTally::of(&world.map.groups);
    let free = crate::choose_successor(&view, &world.nodes, &load).unwrap();
    assert_eq!(view.roles_on(free.node), 0);
    let crowded = &world.nodes[1..3];
    assert!(view.roles_on(crowded[0].host.node) > 0 && view.roles_on(crowded[1].host.node) > 0);
    assert!(crate::choose_successor(&view, crowded, &load).is_some());
    assert_eq!(crate::choose_successor(&view, &[], &load), None);
}

#[test]
fn two_roles_on_a_node_part_as_soon_as_there_is_another() {
    let mut world = World::without_zones("rs(3+2)", 5, 5, 1);
    world.seat(0, 0, Some(host(4)));
    world.nodes[0].can_host = false;
    assert_eq!(world.next(&[]), []);
    world.nodes[0].can_host = true;
    assert_eq!(texts(&world.next(&[])), ["crowded group-0/role-4 from node-4 to node-0"]);
}

#[test]
fn the_kind_of_which_the_node_has_more_leaves() {
    let mut world = World::without_zones("rs(3+2)", 5, 5, 2);
    world.seat(0, 0, Some(host(4)));
    world.seat(1, 2, Some(host(4)));
    world.nodes[0].can_host = false;
    world.nodes[3].can_host = true;
    // Group 1 is on nodes 1, 2, 4, 4, 0: node 3 is free.
    assert_eq!(texts(&world.next(&[])), ["crowded group-1/role-2 from node-4 to node-3"]);
}

#[test]
fn repair_does_not_wait_for_balance() {
    let mut world = World::without_zones("rs(3+2)", 6, 5, 10);
    let filling = world.next(&[]);
    assert_eq!(filling.len(), 1, "one at a time on the joiner");
    assert_eq!((filling[0].reason, filling[0].to), (Reason::Balance, host(5)));
    assert_eq!(world.next(&filling), [], "the ramp goes on when this is done");
    let other = filling[0].group.0 as usize + 1;
    let parity = world.map.groups[other].in_sync().last().unwrap().1;
    world.nodes[usize::from(parity.node.0)].can_host = false;
    world.seat(other, 4, None);
    let repairs = world.next(&filling);
    assert_eq!((repairs[0].reason, repairs[0].to.node), (Reason::Rebuild, NodeId(5)));
}

#[test]
fn a_joiner_is_filled_one_role_at_a_time_and_no_further_than_the_others() {
    let mut world = World::without_zones("rs(3+2)", 6, 5, 30);
    let mut builds = 0;
    loop {
        let moves = world.next(&[]);
        let Some(step) = moves.first() else { break };
        assert_eq!(moves.len(), 1, "{moves:?}");
        assert_eq!(step.to, host(5), "nobody else needs anything");
        world.finish(step);
        builds += 1;
    }
    // 90 data roles and 60 parities over 6 nodes.
    assert_eq!(builds, 25);
    assert!(world.counts().iter().all(|counts| (counts.data, counts.parity) == (15, 10)));
}

#[test]
fn wherever_nodes_join_the_end_is_even() {
    for (profile, nodes) in [("rs(3+2)", 5), ("rs(2+1)", 3), ("rs(4+2)", 8), ("rs(8+3)", 11)] {
        for joiners in 1..4 {
            for groups in [nodes, 3 * nodes + 1, 64] {
                let mut world =
                    World::without_zones(profile, (nodes + joiners) as usize, nodes as u16, groups);
                world.settle(&PlanLimits::default());
                let counts = world.counts();
                let kinds: [fn(&RoleCounts) -> usize; 3] =
                    [|has| has.data, |has| has.parity, |has| has.total()];
                for count in kinds {
                    let spread =
                        counts.iter().map(count).max().unwrap() - counts.iter().map(count).min().unwrap();
                    assert!(spread <= 1, "{profile}, {nodes} + {joiners} nodes, {groups} groups: {counts:?}");
                }
            }
        }
    }
}

#[test]
fn a_drained_node_is_emptied_and_gets_nothing() {
    let mut world = World::without_zones("rs(3+2)", 7, 7, 14);
    world.nodes[2].draining = true;
    let moves = world.next(&[]);
    assert!(!moves.is_empty());
    assert!(moves.iter().all(|step| step.reason == Reason::Drain && step.from == Some(host(2))));
    let data = moves.iter().filter(|step| step.role.0 < 3).count();
    assert!(data <= 2, "it is read for two builds at a time: {moves:?}");
    world.settle(&PlanLimits::default());
    assert_eq!(world.counts()[2], RoleCounts::default());
}

#[test]
fn a_drain_begins_with_missing_parities() {
    let mut world = World::without_zones("rs(3+2)", 7, 7, 7);
    world.nodes[2].draining = true;
    world.seat(2, 4, None);
    let moves = world.next(&[]);
    assert_eq!((moves[0].reason, moves[0].group), (Reason::Rebuild, GroupId(2)));
    assert!(moves[1..].iter().all(|step| step.group != GroupId(2)), "one thing after the other: {moves:?}");
}

#[test]
fn roles_leave_a_zone_that_has_two_for_one_that_has_none() {
    let world = World::new("rs(2+1)", &["a", "b", "b", "c"], 3, 1);
    assert_eq!(texts(&world.next(&[])), ["zone group-0/role-2 from node-2 to node-3"]);
}

#[test]
fn balance_does_not_put_two_roles_into_one_zone() {
    // Node 3 is empty; only what is on node 2, in the same zone, may go there.
    let mut world = World::new("rs(2+1)", &["a", "b", "c", "c"], 3, 6);
    while let Some(step) = world.next(&[]).first() {
        assert_eq!((step.reason, step.from), (Reason::Balance, Some(host(2))));
        world.finish(step);
    }
    let totals: Vec<usize> = world.counts().iter().map(|counts| counts.total()).collect();
    assert_eq!(totals, [6, 6, 3, 3]);
}

#[test]
fn a_move_waits_for_a_node_in_the_right_zone_unless_the_next_loss_is_the_end() {
    let mut world = World::new("rs(2+2)", &["a", "b", "c", "d", "a"], 4, 2);
    for group in [0, 1] {
        for role in 0..4 {
            world.seat(group, role, Some(host(u16::from(role))));
        }
        world.seat(group, 3, None);
    }
    let limits = PlanLimits { per_node: 1, ..loose() };
    let begun = next_moves(&world.map, &world.nodes, &[], &limits);
    assert_eq!(texts(&begun), ["rebuild group-0/role-3 to node-3"], "zone d has one node");
    world.seat(1, 2, None);
    let moves = next_moves(&world.map, &world.nodes, &begun, &limits);
    let expected = ["rebuild group-1/role-2 to node-2", "rebuild group-1/role-3 to node-4"];
    assert_eq!(texts(&moves), expected, "better there than nowhere");
}

#[test]
fn builds_go_on_side_by_side_on_different_nodes() {
    let mut world = World::without_zones("rs(2+1)", 12, 12, 12);
    for group in 0..12 {
        world.seat(group, 2, None);
    }
    let moves = world.next(&[]);
    let mut targets: Vec<HostId> = moves.iter().map(|step| step.to).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!((moves.len(), targets.len()), (12, 12), "each is read twice, each builds one: {moves:?}");
    let limits = PlanLimits { per_source: 1, ..PlanLimits::default() };
    let moves = next_moves(&world.map, &world.nodes, &[], &limits);
    assert_eq!(moves.len(), 6, "each is read once: {moves:?}");
}

#[test]
fn a_learner_in_the_map_is_under_way_whether_it_is_named_or_not() {
    let mut world = World::without_zones("rs(3+2)", 6, 6, 1);
    world.seat(0, 3, None);
    let begun = world.next(&[]);
    assert_eq!(world.next(&begun), [], "decided, and not in the map yet");
    learn(&mut world.map.groups[0], begun[0].role, begun[0].to);
    assert_eq!(world.next(&begun), []);
    assert_eq!(world.next(&[]), []);
    assert_eq!(plan(&world.map, &world.nodes, &PlanLimits::default()), []);
}

#[test]
fn the_fuller_of_two_nodes_gives_its_odd_role_away() {
    let mut world = World::without_zones("rs(2+1)", 6, 6, 5);
    assert_eq!(world.next(&[]), [], "5 groups over 6 nodes: no two differ by more than one");
    for node in &mut world.nodes {
        node.bytes = 1000;
    }
    world.nodes[2].bytes = 9000;
    let moves = world.next(&[]);
    assert_eq!((moves[0].reason, moves[0].from), (Reason::Balance, Some(host(2))));
    world.settle(&PlanLimits::default());
    let limits = PlanLimits { bytes_slack_percent: 255, ..PlanLimits::default() };
    world.nodes[2].bytes = 4000;
    assert_eq!(next_moves(&world.map, &world.nodes, &[], &limits), [], "no more than the slack");
}

#[test]
fn limits_of_nothing_begin_nothing() {
    let mut world = World::without_zones("rs(3+2)", 7, 5, 5);
    world.seat(0, 3, None);
    for limits in [
        PlanLimits { per_node: 0, ..loose() },
        PlanLimits { per_source: 0, ..loose() },
        PlanLimits { total: 0, ..loose() },
    ] {
        assert_eq!(next_moves(&world.map, &world.nodes, &[], &limits), []);
        assert_eq!(plan(&world.map, &world.nodes, &limits), []);
    }
}

#[test]
fn what_names_nothing_is_passed_over() {
    let mut world = World::without_zones("rs(3+2)", 6, 6, 2);
    world.seat(0, 3, None);
    let sound = Move {
        group: GroupId(1),
        role: RoleIndex(0),
        from: Some(host(1)),
        to: host(0),
        reason: Reason::Drain,
    };
    let strange = [
        Move { group: GroupId(9), ..sound },
        Move { role: RoleIndex(77), ..sound },
        Move { to: host(99), ..sound },
        Move { to: host(1), ..sound },
    ];
    assert_eq!(texts(&world.next(&strange)), ["rebuild group-0/role-3 to node-3"]);
    world.nodes.push(world.nodes[0].clone());
    assert_eq!(world.next(&strange).len(), 1, "a node listed twice counts once");
    assert_eq!(next_moves(&world.map, &[], &[], &PlanLimits::default()), [], "nobody to give it to");
}

#[test]
fn moves_read_well() {
    let mut world = World::without_zones("rs(3+2)", 6, 6, 1);
    world.nodes[1].draining = true;
    let step = world.next(&[])[0];
    assert_eq!(step.to_string(), "drain group-0/role-1 from node-1 to node-5");
    let json = serde_json::to_string(&step).unwrap();
    assert!(json.contains(r#""reason":"drain""#), "{json}");
    assert_eq!(serde_json::from_str::<Move>(&json).unwrap(), step);
}
