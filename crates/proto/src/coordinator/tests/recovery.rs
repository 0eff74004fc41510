//! From a lost primary to a stand-in (docs/protocol.md, "A takeover").

use std::collections::BTreeMap;

use super::*;
use crate::coordinator::recovery::lease_left_us;

/// The primary of the first role has died, and both parities are being fenced.
fn fencing() -> Stage {
    let mut stage = Stage::new(6);
    let mut expected = fences(0, 2);
    expected.push(Told::View(5));
    assert_eq!(stage.dies(0), expected);
    assert_eq!((stage.status(0), stage.primary(0)), (RoleStatus::Fenced, None));
    stage
}

/// Both have answered, with 12 and 11 records.
fn settling() -> Stage {
    let mut stage = fencing();
    assert_eq!(stage.fenced(3, 0, (12, 0)), [], "the other one may have fewer");
    assert_eq!(stage.fenced(4, 0, (11, 0)), settles(0, 11));
    stage
}

#[test]
fn a_stream_ends_at_what_all_its_parities_have_and_a_stand_in_goes_on_there() {
    let mut stage = settling();
    assert_eq!(stage.settled(3, 0), []);
    assert_eq!(stage.status(0), RoleStatus::Fenced, "the other one may have applied less");
    assert_eq!(stage.settled(4, 0), [Told::View(5)]);
    assert_eq!(stage.status(0), RoleStatus::Rebuilding { start: Seq(11), wait_us: 0 });
    assert_eq!(stage.primary(0), Some(5), "a node without a role here");
}

#[test]
fn each_is_told_once_of_all_that_an_event_has_changed_and_before_it_is_asked_anything() {
    let mut stage = Stage::new(6);
    stage.coordinator.exited(stage.at(), NodeId(0));
    let mut said: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    while let Some(action) = stage.coordinator.poll_action() {
        let CoordinatorAction::Send { to, message } = action else { continue };
        said.entry(to.node.0).or_default().push(match message {
            FromCoordinator::Changes(_) => "changes",
            FromCoordinator::Fence { .. } => "fence",
            other => panic!("not expected here: {other:?}"),
        });
    }
    let (told, asked) = (vec!["changes"], vec!["changes", "fence", "changes"]);
    assert!([1, 2, 5].iter().all(|node| said[node] == told), "{said:?}");
    assert!([3, 4].iter().all(|node| said[node] == asked), "{said:?}");
}

#[test]
fn of_a_process_that_may_live_the_lease_of_its_quietest_parity_is_waited_for() {
    let mut stage = Stage::new(6);
    stage.silent.push(0);
    stage.pass(2 * LEASE_US);
    assert_eq!(stage.status(0), RoleStatus::Fenced);
    stage.fenced(3, 0, (11, 100_000));
    stage.fenced(4, 0, (11, 300_000));
    stage.settled(3, 0);
    stage.settled(4, 0);
    let wait_us = lease_left_us(LEASE_US, 300_000);
    assert_eq!(stage.status(0), RoleStatus::Rebuilding { start: Seq(11), wait_us });
}

#[test]
fn a_lease_is_counted_longer_and_a_silence_shorter_than_they_are_said_to_be() {
    assert_eq!(lease_left_us(1_000_000, 0), 1_020_000);
    assert_eq!(lease_left_us(1_000_000, 1_000_000), 40_000, "two clocks may drift against each other");
    assert_eq!(lease_left_us(1_000_000, u64::MAX), 0);
}

#[test]
fn who_does_not_answer_is_asked_again_after_a_retry_time_out_and_nobody_else() {
    let mut stage = fencing();
    stage.fenced(3, 0, (12, 0));
    let retry_us = stage.coordinator.state.timing().retry_us;
    let again = stage.pass(retry_us + LEASE_US / 20);
    assert_eq!(again, [Told::Fence(4, RoleIndex(0), Term(2))]);
    let mut stage = settling();
    stage.settled(3, 0);
    let again = stage.pass(retry_us + LEASE_US / 20);
    assert_eq!(again, [Told::Settle(4, RoleIndex(0), Seq(11))]);
}

#[test]
fn an_answer_to_another_term_another_coordinator_or_of_another_host_counts_for_nothing() {
    let mut stage = fencing();
    stage.fenced(3, 0, (12, 0));
    let ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch } =
        stage.fenced_answer(4, 0, 11, 0)
    else {
        unreachable!("it is one")
    };
    let with =
        |term, epoch| ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch };
    assert_eq!(stage.hear(4, with(Term(1), epoch)), []);
    assert_eq!(stage.hear(4, with(term, epoch.next())), []);
    assert_eq!(stage.hear(5, with(term, epoch)), [], "that node does not have this parity");
    assert_eq!(stage.hear(4, with(term, epoch)), settles(0, 11));
}

#[test]
fn a_parity_that_has_applied_more_than_it_has_is_not_believed() {
    let mut stage = fencing();
    let ToCoordinator::Fenced { group, role, term, parity, received, quiet_us, epoch, .. } =
        stage.fenced_answer(4, 0, 11, 0)
    else {
        unreachable!("it is one")
    };
    let applied = Seq(12);
    let lie = ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch };
    assert_eq!(stage.hear(4, lie), [Told::Close(4, Impossible::Fenced { applied, received })]);
}

#[test]
fn a_parity_that_dies_before_the_end_is_found_does_not_count_any_more() {
    let mut stage = fencing();
    stage.fenced(3, 0, (12, 0));
    let told = stage.dies(4);
    assert!(told.contains(&Told::Settle(3, RoleIndex(0), Seq(12))), "{told:?}");
}

#[test]
fn an_end_that_was_found_stays_the_end_whoever_dies() {
    let mut stage = settling();
    stage.settled(3, 0);
    let told = stage.dies(4);
    assert!(told.contains(&Told::Settle(3, RoleIndex(0), Seq(11))), "it is asked once more: {told:?}");
    stage.settled(3, 0);
    assert!(matches!(stage.status(0), RoleStatus::Rebuilding { start: Seq(11), .. }));
}

#[test]
fn a_role_for_which_there_is_no_node_waits_with_its_end() {
    let mut stage = Stage::new(5);
    stage.dies(0);
    for (_, node) in PARITIES {
        stage.fenced(node, 0, (11, 0));
    }
    // Where every node has a role of the group, one of its parities' takes the role.
    for (_, node) in PARITIES {
        stage.settled(node, 0);
    }
    assert!(PARITIES.iter().any(|(_, node)| stage.primary(0) == Some(*node)), "{:?}", stage.primary(0));
}

#[test]
fn the_stand_in_of_the_term_that_is_becomes_full_and_no_other() {
    let mut stage = Stage::new(6);
    stage.taken_over(0);
    let repaired = |term| ToCoordinator::Repaired { group: GROUP, role: RoleIndex(0), term: Term(term) };
    assert_eq!(stage.hear(5, repaired(1)), []);
    assert_eq!(stage.hear(1, repaired(2)), []);
    assert_eq!(stage.hear(5, repaired(2)), [Told::View(5)]);
    assert_eq!(stage.status(0), RoleStatus::Full);
}
