//! What becomes of a group that loses members (docs/protocol.md, "A takeover" and "Beyond m losses").

use super::*;

#[test]
fn a_lost_parity_leaves_the_view_and_nothing_is_fenced() {
    let mut stage = Stage::new(6);
    assert_eq!(stage.dies(3), [Told::View(5)]);
    assert_eq!(stage.in_sync(), [4]);
    assert!(stage.view().is_full());
}

#[test]
fn a_node_that_hosts_nothing_costs_nothing() {
    let mut stage = Stage::new(6);
    let before = stage.view().version;
    assert_eq!(stage.dies(5), []);
    assert_eq!(stage.view().version, before);
}

#[test]
fn a_silent_process_whose_loss_would_lose_data_is_waited_for() {
    let mut stage = Stage::new(7);
    stage.dies(3);
    stage.dies(4);
    stage.silent.push(0);
    stage.pass(4 * LEASE_US);
    assert_eq!((stage.status(0), stage.primary(0)), (RoleStatus::Full, Some(0)));
    stage.silent.retain(|node| *node != 0);
    stage.pass(LEASE_US);
    assert_eq!(stage.status(0), RoleStatus::Full, "it is back");
}

#[test]
fn one_that_has_closed_its_connection_is_waited_for_no_longer_than_five_leases() {
    let mut stage = Stage::new(7);
    stage.dies(3);
    stage.dies(4);
    stage.silent.push(0);
    stage.pass(6 * LEASE_US);
    assert_eq!(stage.status(0), RoleStatus::Full, "it may stand still");
    stage.coordinator.parted(host(0));
    stage.pass(LEASE_US / 10);
    assert_eq!((stage.status(0), stage.primary(0)), (RoleStatus::Lost, None));
    assert_eq!((stage.status(1), stage.status(2)), (RoleStatus::Full, RoleStatus::Full));
}

#[test]
fn a_living_stand_in_has_a_lease_to_say_that_it_is_whole_when_the_last_parity_has_died() {
    let whole = |stage: &mut Stage| {
        stage.taken_over(0);
        stage.dies(3);
        stage.dies(4);
        assert!(matches!(stage.status(0), RoleStatus::Rebuilding { .. }), "it may be whole already");
    };
    let mut stage = Stage::new(6);
    whole(&mut stage);
    stage.hear(5, ToCoordinator::Repaired { group: GROUP, role: RoleIndex(0), term: Term(2) });
    stage.pass(2 * LEASE_US);
    assert_eq!(stage.status(0), RoleStatus::Full);
    let mut stage = Stage::new(6);
    whole(&mut stage);
    stage.pass(2 * LEASE_US);
    assert_eq!(stage.status(0), RoleStatus::Lost);
}

#[test]
fn of_a_stand_in_that_dies_while_it_waits_for_a_lease_the_lease_is_waited_for() {
    let mut stage = Stage::new(7);
    stage.silent.push(0);
    stage.pass(2 * LEASE_US);
    for (_, node) in PARITIES {
        stage.fenced(node, 0, (11, 0));
    }
    for (_, node) in PARITIES {
        stage.settled(node, 0);
    }
    let RoleStatus::Rebuilding { wait_us, .. } = stage.status(0) else { panic!("{:?}", stage.status(0)) };
    assert_ne!(wait_us, 0);
    let stand_in = stage.primary(0).unwrap();
    stage.dies(stand_in);
    for (_, node) in PARITIES {
        stage.fenced(node, 0, (11, 0));
    }
    for (_, node) in PARITIES {
        stage.settled(node, 0);
    }
    let RoleStatus::Rebuilding { wait_us, .. } = stage.status(0) else { panic!("{:?}", stage.status(0)) };
    assert_ne!(wait_us, 0, "its own death says nothing of the one before it");
}

/// The stand-in of role 0 has no memory for 4 MiB; what is told then.
fn starves(stage: &mut Stage) -> Vec<Told> {
    let term = stage.view().data[0].term;
    let starved = ToCoordinator::Starved { group: GROUP, role: RoleIndex(0), term, bytes: 4 << 20 };
    let stand_in = stage.primary(0).unwrap();
    stage.hear(stand_in, starved)
}

/// All that `node` has is 64 MiB, of which so many are in use.
fn holds(stage: &mut Stage, node: u16, used_mib: u64) {
    let load = NodeLoad { used_bytes: used_mib << 20, limit_bytes: 64 << 20, ..NodeLoad::default() };
    let map = stage.coordinator.map().map_or(0, |map| map.version);
    stage.hear(node, ToCoordinator::Heartbeat { host: host(node), map, load });
}

#[test]
fn a_stand_in_without_memory_makes_way_for_a_node_that_has_it() {
    let mut stage = Stage::new(7);
    stage.taken_over(0);
    assert_eq!(stage.primary(0), Some(5));
    holds(&mut stage, 6, 58);
    let told = starves(&mut stage);
    let expected: Vec<Told> = fences(0, 3).into_iter().chain([Told::View(6)]).collect();
    assert_eq!(told, expected);
    assert_eq!((stage.status(0), stage.primary(0)), (RoleStatus::Fenced, None));
    PARITIES.iter().for_each(|(_, node)| _ = stage.fenced(*node, 0, (11, 0)));
    PARITIES.iter().for_each(|(_, node)| _ = stage.settled(*node, 0));
    assert_eq!(stage.primary(0), Some(6), "and not the one that has no memory, though it has as few roles");
    let RoleStatus::Rebuilding { wait_us, .. } = stage.status(0) else { panic!("{:?}", stage.status(0)) };
    assert_ne!(wait_us, 0, "it lives, and may read until its lease ends");
}

#[test]
fn a_stand_in_without_memory_stays_where_nobody_has_more() {
    let mut stage = Stage::new(6);
    stage.taken_over(0);
    assert_eq!(starves(&mut stage), [], "all others have roles of the group");
    // 4 MiB are free, and a 32nd of all is for nobody's pages.
    let mut stage = Stage::new(7);
    stage.taken_over(0);
    holds(&mut stage, 6, 60);
    assert_eq!(starves(&mut stage), []);
    // Who is no stand-in, any more, has nothing to say.
    let mut stage = Stage::new(7);
    stage.taken_over(0);
    let starved = |term| ToCoordinator::Starved { group: GROUP, role: RoleIndex(0), term, bytes: 1 };
    assert_eq!(stage.hear(6, starved(Term(2))), []);
    assert_eq!(stage.hear(5, starved(Term(1))), []);
    stage.hear(5, ToCoordinator::Repaired { group: GROUP, role: RoleIndex(0), term: Term(2) });
    assert_eq!(starves(&mut stage), []);
}

#[test]
fn nobody_makes_way_while_repair_is_paused_or_for_a_node_that_is_to_be_emptied() {
    let mut stage = Stage::new(7);
    stage.taken_over(0);
    let administer = |stage: &mut Stage, command| {
        let request = AdminRequest { expect: None, command };
        stage.coordinator.administer(stage.at(), &request).unwrap();
        stage.told();
    };
    administer(&mut stage, AdminCommand::PauseRepair);
    assert_eq!(starves(&mut stage), []);
    administer(&mut stage, AdminCommand::ResumeRepair);
    administer(&mut stage, AdminCommand::Drain { node: NodeId(6) });
    assert_eq!(starves(&mut stage), []);
}
