//! Any placement, any nodes: every move helps, the plan ends, and what can be had is had.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::world::{World, host};
use crate::plan::*;
use types::{GroupId, RoleStatus};

/// A cluster in any state: roles anywhere, parities missing, data lost or on its way back, nodes in all conditions.
fn any_world() -> impl Strategy<Value = World> {
    (1..=4usize, 0..=3usize, 1..=12usize, 0..=5usize, 1..=14usize).prop_flat_map(
        |(k, m, nodes, zones, groups)| {
            let node = (0..=zones, any::<[u8; 2]>(), 0..1000u64);
            let seat = (0..nodes, any::<u8>());
            (
                Just((k, m)),
                prop::collection::vec(node, nodes),
                prop::collection::vec(prop::collection::vec(seat, k + m), groups),
            )
                .prop_map(|((k, m), nodes, groups)| build(k, m, &nodes, &groups))
        },
    )
}

type AnyNode = (usize, [u8; 2], u64);

fn build(k: usize, m: usize, nodes: &[AnyNode], groups: &[Vec<(usize, u8)>]) -> World {
    let names: Vec<String> = nodes.iter().map(|(zone, ..)| zone_name(*zone)).collect();
    let zones: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&format!("rs({k}+{m})"), &zones, (k + m) as u16, groups.len() as u32);
    for (node, (_, [draining, able], bytes)) in world.nodes.iter_mut().zip(nodes) {
        (node.draining, node.can_host, node.bytes) = (*draining < 40, *able >= 25, *bytes);
    }
    for (group, seats) in groups.iter().enumerate() {
        for (role, (at, missing)) in seats.iter().enumerate() {
            let is_missing = role >= k && *missing < 50;
            world.seat(group, role as u8, (!is_missing).then(|| host(*at as u16)));
            if role < k && *missing < 8 {
                world.fence(group, role);
            }
            if role < k && *missing < 6 {
                world.map.groups[group].data[role].status = RoleStatus::Lost;
            }
        }
    }
    world
}

fn zone_name(zone: usize) -> String {
    if zone == 0 { String::new() } else { format!("zone-{zone}") }
}

/// What no move may make larger, the most important first; see the module's documentation.
fn badness(world: &World, slack: usize) -> Vec<u64> {
    let (world, exchanges) = &world.with_exchanges_done();
    let all = |of: &dyn Fn(&types::GroupView) -> usize| world.map.groups.iter().map(of).sum::<usize>() as u64;
    let draining = |host: HostId| world.nodes.iter().any(|node| node.host == host && node.draining);
    let counts = world.counts();
    let differences = |count: &dyn Fn(&RoleCounts) -> usize| {
        let sources = world.nodes.iter().zip(&counts).filter(|(node, _)| !node.draining);
        let targets: Vec<_> = sources.clone().filter(|(node, _)| node.can_host).collect();
        let excess = |from: &RoleCounts, to: &RoleCounts| count(from).saturating_sub(count(to) + slack);
        sources.flat_map(|(_, from)| targets.iter().map(|(_, to)| excess(from, to))).sum::<usize>() as u64
    };
    let bytes = world.nodes.iter().map(|node| node.bytes * node.bytes).sum();
    vec![
        all(&|view| view.m() - view.in_sync().count()),
        all(&|view| world.pairs(view, |host| host)),
        all(&|view| World::seats(view).iter().filter(|(_, host)| draining(*host)).count()),
        all(&|view| world.pairs(view, |host| world.zone_of(host))),
        differences(&|counts| counts.data),
        differences(&|counts| counts.parity),
        differences(&|counts| counts.total()),
        bytes,
        *exchanges,
    ]
}

fn limits() -> impl Strategy<Value = PlanLimits> {
    (1..3usize, 1..4usize, 1..6usize, 0..4usize, 0..50u8).prop_map(
        |(per_node, per_source, total, balance_slack, bytes_slack_percent)| PlanLimits {
            per_node,
            per_source,
            total,
            balance_slack,
            bytes_slack_percent,
        },
    )
}

/// What must hold at the end, whatever was in the way before.
fn assert_all_is_done(world: &World) {
    let roles = world.map.default_pool().profile.n();
    if world.targets().count() < roles {
        return;
    }
    let zones: BTreeSet<String> = world.targets().map(|node| world.zone_of(node.host)).collect();
    for view in world.map.groups.iter().filter(|view| view.is_steady()) {
        assert_eq!(view.in_sync().count(), view.m(), "a parity is missing: {view:?}");
        assert_eq!(world.pairs(view, |host| host), 0, "two roles on a node: {view:?}");
        let drained = World::seats(view)
            .iter()
            .all(|(_, host)| world.nodes.iter().all(|node| node.host != *host || !node.draining));
        assert!(drained, "a draining node has a role: {view:?}");
        if zones.len() >= roles {
            assert_eq!(world.pairs(view, |host| world.zone_of(host)), 0, "two roles in a zone: {view:?}");
        }
        let share =
            |zone: &str| World::seats(view).iter().filter(|(_, host)| world.zone_of(*host) == zone).count();
        for full in &zones {
            for other in &zones {
                let room = world.targets().filter(|node| world.zone_of(node.host) == *other).count();
                let is_even = share(full) <= share(other) + 1 || share(other) >= room;
                assert!(is_even, "{full} has {}, {other} has {}: {view:?}", share(full), share(other));
            }
        }
    }
}

/// No role could go to a node that has so many fewer, unless its zones stood worse for it. Nothing of this holds while
/// data is on its way back.
fn assert_balanced(world: &World, slack: usize) {
    let is_recovering = |role: &types::DataRole| role.status == RoleStatus::Fenced;
    if world.map.groups.iter().flat_map(|view| &view.data).any(is_recovering) {
        return;
    }
    let counts = RoleTally::of(&world.map.groups);
    for view in world.map.groups.iter().filter(|view| view.is_steady()) {
        for (role, from) in World::seats(view) {
            for to in world.targets().filter(|to| view.roles_on(to.host.node) == 0) {
                let (has, gets) = (counts.get(from.node), counts.get(to.host.node));
                let is_data = usize::from(role.0) < view.k();
                let more =
                    if is_data { has.data > gets.data + slack } else { has.parity > gets.parity + slack };
                let mut moved = view.clone();
                super::world::seat(&mut moved, role, Some(to.host));
                let pairs = |view: &types::GroupView| world.pairs(view, |host| world.zone_of(host));
                let may_move = pairs(&moved) <= pairs(view);
                assert!(!more || !may_move, "{}/{role} could go from {from} to {}", view.group, to.host);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_move_helps_and_the_plan_ends_with_all_that_can_be_had(
        mut world in any_world(),
        limits in limits(),
    ) {
        let slack = limits.balance_slack.max(1);
        let mut before = badness(&world, slack);
        for _ in 0..20_000 {
            let moves = next_moves(&world.map, &world.nodes, &[], &limits);
            prop_assert!(moves.len() <= limits.total);
            if moves.is_empty() {
                break;
            }
            for step in moves {
                let view = &world.map.groups[step.group.0 as usize];
                prop_assert!(world.targets().any(|node| node.host == step.to), "{step}");
                prop_assert!(view.may_learn(step.role, step.to) && view.is_steady(), "{step}");
                let from = World::seats(view).into_iter().find(|(role, _)| *role == step.role);
                prop_assert_eq!(from.map(|(_, host)| host), step.from);
                world.finish(&step);
                let after = badness(&world, slack);
                prop_assert!(after < before, "{}: {:?} -> {:?}", step, before, after);
                before = after;
            }
        }
        prop_assert_eq!(next_moves(&world.map, &world.nodes, &[], &limits), vec![]);
        assert_all_is_done(&world);
        assert_balanced(&world, slack);
    }

    /// Moves end in any order, some fail; meanwhile the planner is asked again and again.
    #[test]
    fn limits_hold_while_moves_come_and_go(
        mut world in any_world(),
        limits in limits(),
        fates in prop::collection::vec((any::<prop::sample::Index>(), 0..10u8), 200),
    ) {
        let mut under_way: Vec<Move> = Vec::new();
        let mut fates = fates.into_iter();
        for _ in 0..20_000 {
            under_way.extend(next_moves(&world.map, &world.nodes, &under_way, &limits));
            check_limits(&world, &under_way, &limits);
            if under_way.is_empty() {
                break;
            }
            let (which, fate) = fates.next().map_or((0, 1), |(index, fate)| (index.index(under_way.len()), fate));
            let step = under_way.swap_remove(which);
            if fate > 0 {
                world.finish(&step);
            }
        }
        prop_assert!(under_way.is_empty());
        assert_all_is_done(&world);
    }

    #[test]
    fn the_preview_is_the_plan_that_is_carried_out(world in any_world()) {
        let limits = PlanLimits { bytes_slack_percent: 100, ..PlanLimits::default() };
        let preview = plan(&world.map, &world.nodes, &limits);
        let mut carried_out = world.clone();
        for step in &preview {
            carried_out.finish(step);
        }
        assert_all_is_done(&carried_out);
        prop_assert_eq!(&preview, &plan(&world.map, &world.nodes, &limits), "no two runs differ");
        let first = next_moves(&world.map, &world.nodes, &[], &limits);
        prop_assert_eq!(&preview[..first.len()], &first);
    }

    /// No zones, and more nodes than roles: the counts end within the slack of each other, or one above it where every role
    /// that could go has a mate on the target.
    #[test]
    fn with_room_to_move_the_nodes_end_up_alike(mut world in any_world(), extra in 1..6u16) {
        let roles = world.map.default_pool().profile.n() as u16;
        let count = (world.nodes.len() as u16).max(roles + extra);
        world.map.groups.retain(|view| view.is_steady());
        for (id, view) in world.map.groups.iter_mut().enumerate() {
            view.group = GroupId(id as u32);
        }
        world.nodes = (0..count).map(|id| super::world::node(id, "")).collect();
        let limits = PlanLimits::default();
        world.settle(&limits);
        let counts = world.counts();
        let kinds: [fn(&RoleCounts) -> usize; 3] = [|has| has.data, |has| has.parity, |has| has.total()];
        for count in kinds {
            let (least, most) = (counts.iter().map(count).min(), counts.iter().map(count).max());
            prop_assert!(most.unwrap() - least.unwrap() <= limits.balance_slack + 1, "{:?}", counts);
        }
    }
}

fn check_limits(world: &World, under_way: &[Move], limits: &PlanLimits) {
    let groups: BTreeSet<GroupId> = under_way.iter().map(|step| step.group).collect();
    for group in groups {
        let steps: Vec<&Move> = under_way.iter().filter(|step| step.group == group).collect();
        let rebuilds = steps.iter().all(|step| step.reason == Reason::Rebuild);
        assert!(steps.len() == 1 || rebuilds, "a group has one move at a time: {steps:?}");
    }
    let kinds: [fn(&Move) -> bool; 2] = [|step| step.reason.is_repair(), |step| !step.reason.is_repair()];
    for is_counted in kinds {
        let counted: Vec<&Move> = under_way.iter().filter(|step| is_counted(step)).collect();
        assert!(counted.len() <= limits.total);
        for node in &world.nodes {
            let builds = counted.iter().filter(|step| step.to == node.host).count();
            assert!(builds <= limits.per_node, "{counted:?}");
            let lessons = counted.iter().filter(|step| is_read(world, step, node.host)).count();
            assert!(lessons <= limits.per_source, "{} is read {lessons} times: {counted:?}", node.host);
        }
    }
}

/// Whether `node` is read for `step`.
fn is_read(world: &World, step: &Move, node: HostId) -> bool {
    let view = &world.map.groups[step.group.0 as usize];
    match view.data_role(step.role) {
        Some(role) => role.primary == Some(node),
        None => view.data_roles().any(|(_, role)| role.primary == Some(node)),
    }
}
