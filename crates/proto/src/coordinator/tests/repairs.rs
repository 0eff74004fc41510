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
fn after_five_leases_nobody_waits_any_more() {
    let mut stage = Stage::new(7);
    stage.dies(3);
    stage.dies(4);
    stage.silent.push(0);
    stage.pass(6 * LEASE_US);
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
