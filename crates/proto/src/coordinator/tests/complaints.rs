//! Primaries that wait in vain for their parities (docs/protocol.md, "A takeover").

use super::*;

fn stalled(stage: &Stage, role: u8, silent: &[u16]) -> ToCoordinator {
    let data = stage.view().data[usize::from(role)];
    let silent = silent.iter().map(|node| (RoleIndex(*node as u8), host(*node))).collect();
    let (term, view) = (data.term, stage.view().version);
    ToCoordinator::Stalled { group: GROUP, role: RoleIndex(role), term, view, silent }
}

fn complain(stage: &mut Stage, role: u8, silent: &[u16]) -> Vec<Told> {
    let (from, message) = (stage.primary(role).unwrap(), stalled(stage, role, silent));
    stage.hear(from, message)
}

/// The primary of the first role finds all its parities silent, and goes on for half a lease: they are asked.
fn asked() -> Stage {
    let mut stage = Stage::new(6);
    assert_eq!(complain(&mut stage, 0, &[3, 4]), [], "if it goes on");
    stage.pass(LEASE_US / 2);
    assert_eq!(complain(&mut stage, 0, &[3, 4]), fences(0, 1), "of the term that is: that changes nothing");
    stage
}

#[test]
fn a_full_primary_that_is_left_enough_parities_is_obeyed() {
    let mut stage = Stage::new(6);
    assert_eq!(complain(&mut stage, 0, &[3]), [Told::View(5)]);
    assert_eq!(stage.in_sync(), [4]);
}

#[test]
fn who_complains_of_an_older_view_or_is_not_the_primary_gets_the_view() {
    let mut stage = Stage::new(6);
    let early = stalled(&stage, 0, &[3]);
    complain(&mut stage, 0, &[4]);
    assert_eq!(stage.hear(5, early.clone()), [Told::View(5)], "the primary is on another node");
    assert_eq!(stage.hear(0, early), []);
    assert_eq!(stage.in_sync(), [3]);
}

#[test]
fn a_primary_whose_parities_all_answer_is_cut_off_itself_and_another_node_goes_on() {
    let mut stage = asked();
    assert_eq!(stage.fenced(3, 0, (11, 0)), [], "one of them is no proof");
    let told = stage.fenced(4, 0, (11, 0));
    assert_eq!(told.last(), Some(&Told::View(5)));
    assert_eq!((stage.status(0), stage.view().data[0].term), (RoleStatus::Fenced, Term(2)));
    for (_, node) in PARITIES {
        stage.fenced(node, 0, (11, 0));
    }
    for (_, node) in PARITIES {
        stage.settled(node, 0);
    }
    assert_eq!(stage.primary(0), Some(5), "not the one that was deposed, although it lives");
}

#[test]
fn an_answer_from_before_the_question_proves_nothing() {
    let mut stage = Stage::new(6);
    complain(&mut stage, 0, &[3, 4]);
    stage.fenced(3, 0, (11, 0));
    stage.pass(LEASE_US / 2);
    complain(&mut stage, 0, &[3, 4]);
    stage.fenced(4, 0, (11, 0));
    assert_eq!(stage.status(0), RoleStatus::Full, "the first one may have died since");
    stage.fenced(3, 0, (11, 0));
    assert_eq!(stage.status(0), RoleStatus::Fenced);
}

#[test]
fn a_primary_that_has_company_in_its_complaint_is_not_the_one_that_is_cut_off() {
    let mut stage = Stage::new(6);
    for role in [0, 1] {
        complain(&mut stage, role, &[3, 4]);
    }
    stage.pass(LEASE_US / 2);
    for role in [0, 1] {
        assert_eq!(complain(&mut stage, role, &[3, 4]), [], "nobody is asked");
    }
}

#[test]
fn a_stand_in_that_lacks_pages_is_rather_deposed_than_a_parity_removed() {
    let mut stage = Stage::new(7);
    stage.taken_over(0);
    assert_eq!(complain(&mut stage, 0, &[3]), []);
    stage.pass(LEASE_US / 2);
    assert_eq!(complain(&mut stage, 0, &[3]), [Told::Fence(3, RoleIndex(0), Term(2))]);
    stage.fenced(3, 0, (11, 0));
    assert_eq!((stage.status(0), stage.in_sync()), (RoleStatus::Fenced, vec![3, 4]));
}

#[test]
fn if_the_next_stand_in_complains_too_it_is_the_parity() {
    let mut stage = Stage::new(8);
    stage.taken_over(0);
    complain(&mut stage, 0, &[3]);
    stage.pass(LEASE_US / 2);
    complain(&mut stage, 0, &[3]);
    stage.fenced(3, 0, (11, 0));
    for (_, node) in PARITIES {
        stage.fenced(node, 0, (11, 0));
    }
    for (_, node) in PARITIES {
        stage.settled(node, 0);
    }
    assert!(matches!(stage.status(0), RoleStatus::Rebuilding { .. }));
    complain(&mut stage, 0, &[3]);
    assert_eq!(stage.in_sync(), [4]);
}

#[test]
fn a_stand_in_whose_parity_gives_no_proof_for_a_lease_is_believed() {
    let mut stage = Stage::new(6);
    stage.taken_over(0);
    complain(&mut stage, 0, &[3]);
    stage.pass(LEASE_US / 2);
    complain(&mut stage, 0, &[3]);
    stage.pass(LEASE_US / 2);
    complain(&mut stage, 0, &[3]);
    assert_eq!(stage.in_sync(), [4]);
}

/// Two nodes with data roles end, and before their leases have told so a slow parity is complained of: whether anything is lost in the end.
fn loses_by_a_complaint(rules: Rules) -> bool {
    let mut stage = Stage::by(6, rules);
    for node in [1, 2] {
        stage.silent.push(node);
        stage.coordinator.parted(host(node));
    }
    stage.pass(LEASE_US * 6 / 10);
    complain(&mut stage, 0, &[3]);
    stage.pass(8 * LEASE_US);
    stage.view().data.iter().any(|role| role.status == RoleStatus::Lost)
}

#[test]
fn a_slow_parity_stays_while_it_is_not_known_whether_others_have_ended() {
    assert!(!loses_by_a_complaint(Rules::all()));
}

#[test]
#[cfg(feature = "planted-bugs")]
fn what_two_have_who_have_just_ended_is_lost_where_a_slow_parity_is_taken_out() {
    assert!(loses_by_a_complaint(Rules::without(crate::Bug::QuietCountedOn)));
}
