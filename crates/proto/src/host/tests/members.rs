//! Members come and go as views say.

use types::{Learner, RoleStatus, Seq};

use super::*;

/// The second parity is here and in sync; this host has no data role.
fn parity() -> Stage {
    let mut stage = Stage::with(|view| {
        view.data[0].primary = Some(host(3));
        view.parity[1] = Some(host(0));
    });
    stage.done();
    stage
}

/// The next view: another one is built for the second parity, here.
fn appoint(stage: &mut Stage) -> Vec<Done> {
    let since = stage.view().next();
    stage.adopt(|view| view.learners.push(Learner { role: RoleIndex(3), host: host(0), since, whole: false }))
}

fn dormant(stage: &Stage) -> usize {
    stage.host.members.dormant().count()
}

fn asks(what: &'static str) -> [Done; 2] {
    [Done::Group(3, RoleIndex(0), what), Done::Group(1, RoleIndex(1), what)]
}

#[test]
fn a_map_makes_the_members_that_it_names_here() {
    let mut stage = Stage::empty();
    let done = stage.hear(FromCoordinator::Map(map().into()));
    assert_eq!(done, [Done::Group(2, RoleIndex(2), "Hello"), Done::Group(3, RoleIndex(3), "Hello")]);
    assert_eq!((stage.primaries(), stage.parities()), (vec![(RoleIndex(0), Term(1))], vec![]));
}

#[test]
fn a_primary_that_a_view_deposes_has_its_requests_routed_anew() {
    let mut stage = Stage::with(|_| {});
    assert_eq!(stage.submit(7, 0, get("k")), (Submitted::Pending, vec![]), "it has no lease yet");
    let done = stage.adopt(|view| {
        (view.data[0].primary, view.data[0].term) = (Some(host(4)), Term(2));
        view.data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    });
    assert_eq!((done, stage.primaries()), (vec![Done::Forward(4, 0)], vec![]));
}

#[test]
fn a_stand_in_begins_with_its_term_and_a_full_role_of_a_later_term_is_not_begun_from_nothing() {
    let mut stage = Stage::with(|view| {
        view.data[0].primary = None;
        view.data[0].status = RoleStatus::Fenced;
    });
    assert_eq!(stage.primaries(), []);
    let here = |view: &mut GroupView, status| {
        (view.data[0].primary, view.data[0].term, view.data[0].status) = (Some(host(0)), Term(2), status);
    };
    stage.adopt(|view| here(view, RoleStatus::Full));
    assert_eq!(stage.primaries(), [], "this process has never had what that one has");
    stage.adopt(|view| here(view, RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 }));
    assert_eq!(stage.primaries(), [(RoleIndex(0), Term(2))]);
}

/// The primaries of a host that is told alone that it is one, and after all that has changed of the map.
fn primaries_of_a_lone_view(rules: Rules) -> [usize; 2] {
    let mut stage = Stage::by(rules);
    stage.map.groups[0].data[0].primary = None;
    stage.map.groups[0].data[0].status = RoleStatus::Fenced;
    stage.hear(FromCoordinator::Map(stage.map.clone().into()));
    stage.adopt_alone(|view| {
        let status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
        (view.data[0].primary, view.data[0].term, view.data[0].status) = (Some(host(0)), Term(2), status);
    });
    let early = stage.primaries().len();
    stage.adopt(|_| {});
    [early, stage.primaries().len()]
}

#[test]
fn nobody_becomes_a_primary_before_he_knows_what_has_changed_of_the_map_before() {
    assert_eq!(primaries_of_a_lone_view(Rules::all()), [0, 1]);
}

#[test]
#[cfg(feature = "planted-bugs")]
fn a_primary_that_does_not_know_the_map_is_found() {
    assert_eq!(primaries_of_a_lone_view(Rules::without(crate::Bug::EarlyPrimary)), [1, 1]);
}

#[test]
fn a_role_that_begins_anew_begins_from_nothing_and_is_counted() {
    let mut stage = Stage::with(|view| {
        view.data[0].primary = None;
        view.data[0].status = RoleStatus::Accepted;
    });
    stage.adopt(|view| {
        let data = &mut view.data[0];
        (data.primary, data.term, data.origin, data.status) =
            (Some(host(0)), Term(2), Term(2), RoleStatus::Full);
    });
    assert_eq!(stage.primaries(), [(RoleIndex(0), Term(2))]);
    assert_eq!(stage.host.stats().accepted_losses, 1);
}

#[test]
fn an_evicted_parity_stays_dormant_and_comes_back_with_what_it_has() {
    let mut stage = parity();
    stage.adopt(|view| view.parity[1] = None);
    assert_eq!((stage.parities(), dormant(&stage)), (vec![], 1));
    appoint(&mut stage);
    assert_eq!(dormant(&stage), 0);
    assert_eq!(stage.pass(1), asks("LearnHello with what it has"));
}

#[test]
fn a_dormant_parity_is_forgotten_when_somebody_else_has_its_row_or_too_much_time_has_passed() {
    let mut stage = parity();
    stage.adopt(|view| view.parity[1] = None);
    stage.adopt(|view| view.parity[1] = Some(host(4)));
    assert_eq!(dormant(&stage), 0);
    let mut stage = parity();
    stage.adopt(|view| view.parity[1] = None);
    stage.pass(stage.timing.rejoin_us() - 1);
    assert_eq!(dormant(&stage), 1);
    stage.pass(1);
    assert_eq!(dormant(&stage), 0);
    appoint(&mut stage);
    assert_eq!(stage.pass(1), asks("LearnHello"), "it has to learn everything");
}

#[test]
fn a_parity_that_has_left_is_not_made_of_nothing_when_an_old_name_of_it_comes_again() {
    let mut stage = parity();
    stage.adopt(|view| view.parity[1] = None);
    stage.adopt(|view| view.parity[1] = Some(host(4)));
    stage.adopt(|view| view.parity[1] = Some(host(0)));
    assert_eq!(stage.parities(), [], "it was in sync once, and is not any more");
}

#[test]
fn a_learner_that_another_view_appoints_anew_is_another_one() {
    let mut stage = parity();
    stage.adopt(|view| view.parity[1] = None);
    stage.adopt(|view| view.parity[1] = Some(host(4)));
    stage.adopt(|view| view.parity[1] = None);
    appoint(&mut stage);
    assert_eq!(stage.pass(1), asks("LearnHello"));
    assert_eq!(stage.adopt(|_| {}), [], "the same one has asked");
    stage.adopt(|view| view.learners.clear());
    appoint(&mut stage);
    assert_eq!(stage.pass(1), asks("LearnHello"));
}
