//! Who learns, and when a learner counts (docs/protocol.md, "A lost parity is built anew").

use wire::message::Lesson;

use super::*;

const FIRST: RoleIndex = RoleIndex(3);

/// The first parity has died, and is being built on node 5.
fn learning() -> Stage {
    let mut stage = Stage::new(7);
    stage.dies(3);
    stage.pass(LEASE_US / 4);
    assert_eq!(stage.learners(), [(3, 5, false)]);
    stage
}

fn lesson(stage: &Stage, attempt: u32) -> Lesson {
    Lesson { since: stage.view().learner(FIRST).unwrap().since, attempt }
}

fn caught_up(stage: &mut Stage, node: u16, lesson: Lesson) -> Vec<Told> {
    let (group, role) = (GROUP, RoleIndex(node as u8));
    let term = stage.view().data[usize::from(node)].term;
    stage.hear(node, ToCoordinator::CaughtUp { group, role, term, learner: FIRST, lesson })
}

#[test]
fn a_learner_is_in_sync_once_all_primaries_have_caught_it_up() {
    let mut stage = learning();
    let lesson = lesson(&stage, 0);
    assert_eq!((caught_up(&mut stage, 0, lesson), caught_up(&mut stage, 1, lesson)), (vec![], vec![]));
    assert_eq!(caught_up(&mut stage, 1, lesson), [], "again");
    assert_eq!(stage.in_sync(), [4]);
    assert_eq!(caught_up(&mut stage, 2, lesson), [Told::View(6)]);
    assert_eq!((stage.in_sync(), stage.learners()), (vec![5, 4], vec![]));
}

#[test]
fn what_was_taught_in_an_attempt_that_broke_off_counts_for_nothing() {
    let mut stage = learning();
    let (first, second) = (lesson(&stage, 0), lesson(&stage, 1));
    caught_up(&mut stage, 0, first);
    caught_up(&mut stage, 1, second);
    caught_up(&mut stage, 2, second);
    assert_eq!(stage.in_sync(), [4]);
    caught_up(&mut stage, 0, first);
    assert_eq!(stage.in_sync(), [4], "an old word");
    caught_up(&mut stage, 0, second);
    assert_eq!(stage.in_sync(), [5, 4]);
}

#[test]
fn nobody_but_the_primary_says_that_its_lesson_has_ended_and_only_of_this_learner() {
    let mut stage = learning();
    let lesson = lesson(&stage, 0);
    caught_up(&mut stage, 0, lesson);
    caught_up(&mut stage, 1, lesson);
    let (group, learner) = (GROUP, FIRST);
    let by = |role, term, lesson| ToCoordinator::CaughtUp { group, role, term, learner, lesson };
    stage.hear(6, by(RoleIndex(2), Term(1), lesson));
    stage.hear(2, by(RoleIndex(2), Term(2), lesson));
    let another = Lesson { since: ViewVersion(1), ..lesson };
    stage.hear(2, by(RoleIndex(2), Term(1), another));
    assert_eq!(stage.in_sync(), [4]);
}

#[test]
fn what_is_lost_nobody_has_to_teach() {
    let mut stage = Stage::new(9);
    [0, 1, 3].into_iter().for_each(|node| drop(stage.dies(node)));
    assert_eq!(stage.status(0), RoleStatus::Lost);
    stage.pass(LEASE_US / 4);
    let (_, node, _) = stage.learners()[0];
    let lesson = lesson(&stage, 0);
    caught_up(&mut stage, 2, lesson);
    assert_eq!(stage.in_sync(), [node]);
}

#[test]
fn a_failure_in_the_group_cancels_its_learners_and_another_one_begins_when_it_is_over() {
    let mut stage = learning();
    stage.dies(0);
    assert_eq!(stage.learners(), []);
    stage.pass(LEASE_US / 4);
    assert_eq!(stage.learners(), [], "as long as a role has no primary");
}

#[test]
fn a_node_without_memory_for_a_learner_is_left_alone_for_ten_leases() {
    let mut stage = learning();
    let (group, learner, since) = (GROUP, FIRST, lesson(&stage, 0).since);
    assert_eq!(stage.hear(6, ToCoordinator::GaveUp { group, learner, since }), [], "that is another node");
    assert_eq!(stage.hear(5, ToCoordinator::GaveUp { group, learner, since }), [Told::View(6)]);
    stage.pass(LEASE_US / 4);
    assert_eq!(stage.learners(), [(3, 6, false)]);
    let since = lesson(&stage, 0).since;
    stage.hear(6, ToCoordinator::GaveUp { group, learner, since });
    stage.pass(9 * LEASE_US);
    assert_eq!(stage.learners(), [], "neither has any");
    stage.pass(2 * LEASE_US);
    assert_eq!(stage.learners().len(), 1);
}

#[test]
fn a_silent_learner_leaves_and_its_parities_stay() {
    let mut stage = learning();
    let (view, silent) = (stage.view().version, smallvec::smallvec![(FIRST, host(5))]);
    let stalled = ToCoordinator::Stalled { group: GROUP, role: RoleIndex(0), term: Term(1), view, silent };
    assert_eq!(stage.hear(0, stalled), [Told::View(6)]);
    assert_eq!((stage.learners(), stage.in_sync()), (vec![], vec![4]));
}

#[test]
fn the_former_host_of_a_missing_parity_is_preferred() {
    let mut stage = Stage::new(7);
    let (view, silent) = (stage.view().version, smallvec::smallvec![(FIRST, host(3))]);
    stage.hear(0, ToCoordinator::Stalled { group: GROUP, role: RoleIndex(0), term: Term(1), view, silent });
    assert_eq!(stage.in_sync(), [4]);
    stage.pass(LEASE_US / 4);
    assert_eq!(stage.learners(), [(3, 3, false)], "it may have what it had");
}

/// The mirror of the first data role is whole on node 5, and the primary has been asked to make way.
fn mirrored() -> (Stage, ViewVersion) {
    let mut stage = Stage::new(7);
    assert!(stage.coordinator.appoint_learner(member(0), host(5)));
    stage.told();
    let since = stage.view().learner(RoleIndex(0)).unwrap().since;
    let (group, role, learner) = (GROUP, RoleIndex(0), RoleIndex(0));
    let lesson = Lesson { since, attempt: 0 };
    let told = stage.hear(0, ToCoordinator::CaughtUp { group, role, term: Term(1), learner, lesson });
    assert_eq!(told, [Told::HandOver(0, RoleIndex(0)), Told::View(6)], "its primary alone teaches it");
    (stage, since)
}

fn handed_over(stage: &mut Stage, since: ViewVersion, asked_at: u64) -> Vec<Told> {
    let (group, role, term, epoch) = (GROUP, RoleIndex(0), Term(1), stage.coordinator.epoch());
    let asked_at = Time(asked_at);
    stage.hear(0, ToCoordinator::HandedOver { group, role, term, since, asked_at, epoch })
}

#[test]
fn a_role_that_is_handed_over_goes_to_its_mirror_and_nobody_waits_for_a_lease() {
    let (mut stage, since) = mirrored();
    let asked_at = stage.now;
    let told = handed_over(&mut stage, since, asked_at);
    let fence = |node| Told::Fence(node, RoleIndex(0), Term(2));
    assert_eq!(told, [fence(3), fence(4), fence(5), Told::View(6)], "the mirror is asked like the parities");
    for (node, parity) in [(3, 3), (4, 4), (5, 0)] {
        let mut answer = stage.fenced_answer(node, 0, 11, 0);
        if let ToCoordinator::Fenced { parity: role, .. } = &mut answer {
            *role = RoleIndex(parity);
        }
        stage.hear(node, answer);
    }
    for (node, parity) in [(3, 3), (4, 4), (5, 0)] {
        let (group, role, term, epoch) = (GROUP, RoleIndex(0), Term(2), stage.coordinator.epoch());
        stage.hear(node, ToCoordinator::Settled { group, role, term, parity: RoleIndex(parity), epoch });
    }
    assert_eq!(stage.status(0), RoleStatus::Rebuilding { start: Seq(11), wait_us: 0 });
    assert_eq!((stage.primary(0), stage.learners()), (Some(5), vec![]));
}

#[test]
fn other_lessons_are_waited_for_and_end_where_the_primary_has_made_way_already() {
    let (mut stage, since) = mirrored();
    let asked_at = stage.now;
    stage.dies(3);
    assert!(stage.coordinator.appoint_learner(member(3), host(6)));
    assert_eq!(stage.learners(), [(0, 5, true), (3, 6, false)]);
    let told = stage.pass(LEASE_US * 3 / 4);
    assert!(!told.contains(&Told::HandOver(0, RoleIndex(0))), "its lesson would come to nothing: {told:?}");
    handed_over(&mut stage, since, asked_at);
    assert_eq!((stage.status(0), stage.learners()), (RoleStatus::Fenced, vec![(0, 5, true)]));
}

#[test]
fn an_answer_that_comes_when_the_primary_may_go_on_already_is_void() {
    let (mut stage, since) = mirrored();
    let asked_at = stage.now;
    stage.now += stage.coordinator.state.timing().held_lease_us();
    assert_eq!(handed_over(&mut stage, since, asked_at), []);
    let now = stage.now;
    assert_eq!(handed_over(&mut stage, ViewVersion(1), now), [], "of another mirror");
    assert_eq!(stage.status(0), RoleStatus::Full);
}

#[test]
fn an_answer_to_a_question_of_the_future_costs_the_connection() {
    let (mut stage, since) = mirrored();
    let (asked_at, now) = (Time(stage.now + 1), Time(stage.now));
    assert_eq!(
        handed_over(&mut stage, since, asked_at.0),
        [Told::Close(0, Impossible::AskedAt { asked_at, now })]
    );
}
