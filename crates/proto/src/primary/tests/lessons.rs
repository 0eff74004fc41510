//! Learners of a primary (docs/protocol.md, "A lost parity is built anew").

use store::INDEX_SEGMENTS;
use types::Learner;
use wire::message::{LearnHello, Learned, Lesson};

use super::*;

const LEARNER: Peer =
    Peer { role: RoleIndex(3), host: HostId { node: NodeId(9), incarnation: Incarnation(1) } };

/// The second parity has gone, and another one is being built.
fn appoint(stage: &mut Stage) -> Lesson {
    let since = stage.view.version.next();
    stage.adopt(|view| {
        view.parity[1] = None;
        view.learners.push(Learner { role: LEARNER.role, host: LEARNER.host, since, whole: false });
    });
    Lesson { since, attempt: 0 }
}

fn ask(stage: &mut Stage, lesson: Lesson, applied: Option<u64>) -> Vec<Done> {
    stage.hear_of(LEARNER, GroupBody::LearnHello(LearnHello { lesson, applied: applied.map(Seq) }))
}

fn understood(stage: &mut Stage, lesson: Lesson, number: u32) -> Vec<Done> {
    stage.hear_of(LEARNER, GroupBody::Learned(Learned { lesson, term: Term(1), number }))
}

fn to_learner(what: &'static str) -> Done {
    Done::Sends(LEARNER.role, what)
}

/// The number of the part that was sent last, if one was.
fn last_part(stage: &Stage) -> Option<u32> {
    let parts = stage.sent.iter().filter_map(|(_, body)| match body {
        GroupBody::Learn(learn) => Some(learn.number),
        _ => None,
    });
    parts.max()
}

/// All parts but the answer to the last one; its number.
fn teach_all(stage: &mut Stage, lesson: Lesson) -> u32 {
    let mut last = 0;
    loop {
        let done = stage.flush();
        last = last_part(stage).unwrap_or(last);
        if done.contains(&to_learner("End")) {
            return last;
        }
        assert_eq!(understood(stage, lesson, last), []);
    }
}

#[test]
fn a_lesson_from_nothing_has_the_pages_the_index_and_the_runs_two_parts_at_a_time() {
    let mut stage = Stage::with_item();
    let lesson = appoint(&mut stage);
    assert_eq!(ask(&mut stage, lesson, None), [to_learner("Begin")]);
    assert_eq!(stage.flush(), [to_learner("Run")], "two are under way");
    assert_eq!(stage.flush(), []);
    for part in 0..=INDEX_SEGMENTS as u32 {
        assert_eq!(understood(&mut stage, lesson, part), []);
        let next = if part < INDEX_SEGMENTS as u32 { "Segment" } else { "End" };
        assert_eq!(stage.flush(), [to_learner(next)], "after part {part}");
    }
}

#[test]
fn a_learner_is_waited_for_from_the_end_of_its_lesson_on_and_not_before() {
    let mut stage = Stage::with_item();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    stage.set(2);
    let done = stage.flush();
    assert_eq!(done[0], to_learner("records"), "they are on their way before they can commit");
    assert!(matches!(&stage.ack(PARITIES[0], 2)[..], [Done::Replies(2, _)]), "nobody counts on it");
    let last = teach_all(&mut stage, lesson);
    assert_eq!(understood(&mut stage, lesson, last), [], "it has not got what is committed");
    assert_eq!(stage.ack_of(LEARNER, 2), [Done::Reports("CaughtUp")]);
    stage.set(3);
    stage.flush();
    assert_eq!(stage.ack(PARITIES[0], 3), []);
    assert!(matches!(&stage.ack_of(LEARNER, 3)[..], [Done::Replies(3, _)]));
}

#[test]
fn reads_wait_for_a_learner_that_is_waited_for_no_longer_than_it_takes_to_answer() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    let last = teach_all(&mut stage, lesson);
    assert!(stage.may_serve());
    understood(&mut stage, lesson, last);
    assert!(!stage.may_serve(), "it has allowed no read");
    assert_eq!(stage.flush(), [to_learner("Frame")]);
    stage.ack_of(LEARNER, 0);
    assert!(stage.may_serve());
}

#[test]
fn that_a_learner_has_caught_up_is_said_again_until_the_view_says_so() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    let last = teach_all(&mut stage, lesson);
    assert_eq!(understood(&mut stage, lesson, last), [Done::Reports("CaughtUp")]);
    stage.now += stage.timing.retry_us;
    assert!(stage.tick().contains(&Done::Reports("CaughtUp")));
    stage.adopt(|view| {
        view.learners.clear();
        view.parity[1] = Some(LEARNER.host);
    });
    stage.now += stage.timing.retry_us;
    assert!(!stage.tick().contains(&Done::Reports("CaughtUp")));
}

#[test]
fn a_part_that_was_never_sent_is_understood_by_nobody() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    let part = Impossible::Part { number: 1, sent: 1 };
    assert_eq!(understood(&mut stage, lesson, 1), [Done::Accuses(LEARNER.host.node, part)]);
    let another = Lesson { attempt: 1, ..lesson };
    assert_eq!(understood(&mut stage, another, 1), [], "of a lesson that is none any more");
}

#[test]
fn a_lesson_begins_once_for_each_attempt_of_the_learner_that_the_view_names() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    let older = Lesson { since: ViewVersion(1), attempt: 7 };
    assert_eq!(ask(&mut stage, older, None), [], "another learner's");
    assert_eq!(ask(&mut stage, lesson, None), [to_learner("Begin")]);
    assert_eq!(ask(&mut stage, lesson, None), []);
    assert_eq!(ask(&mut stage, Lesson { attempt: 1, ..lesson }, None), [to_learner("Begin")]);
    assert_eq!(ask(&mut stage, lesson, None), [], "an older one");
}

#[test]
fn a_former_parity_goes_on_with_what_it_lacks_as_far_as_the_log_reaches_back() {
    let mut stage = Stage::with_item();
    // Both have applied the first record, so nobody lacks it any more.
    stage.now += stage.timing.commit_delay_us;
    stage.tick();
    stage.flush();
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, 1)));
    stage.flush();
    let lesson = appoint(&mut stage);
    stage.set(2);
    stage.flush();
    stage.ack(PARITIES[0], 2);
    assert_eq!(ask(&mut stage, lesson, Some(0)), [to_learner("Gone")]);
    let again = Lesson { attempt: 1, ..lesson };
    assert_eq!(ask(&mut stage, again, Some(1)), [to_learner("Resume")]);
    let done = stage.flush();
    assert_eq!(done[..2], [to_learner("records"), to_learner("End")], "{done:?}");
    let Some((_, GroupBody::Frame(frame))) = stage.sent.first() else { panic!("{:?}", stage.sent) };
    assert_eq!(frame.records.iter().map(|record| record.seq).collect::<Vec<_>>(), [Seq(2)]);
}

#[test]
fn a_former_parity_with_more_than_is_committed_is_believed_by_nobody() {
    let mut stage = Stage::with_item();
    let lesson = appoint(&mut stage);
    let applied = Impossible::Applied { applied: Seq(2), committed: Seq(1) };
    assert_eq!(ask(&mut stage, lesson, Some(2)), [Done::Accuses(LEARNER.host.node, applied)]);
}

#[test]
fn a_broken_link_ends_a_lesson_under_way_and_not_one_that_has_ended() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    stage.act(|primary, context| primary.link_down(context, LEARNER.host));
    assert_eq!(stage.flush(), [], "nothing more of it");
    let again = Lesson { attempt: 1, ..lesson };
    assert_eq!(ask(&mut stage, again, None), [to_learner("Begin")]);
    let last = teach_all(&mut stage, again);
    understood(&mut stage, again, last);
    let linked = stage.act(|primary, context| primary.link_up(context, LEARNER.host)).1;
    assert_eq!(linked, [to_learner("Hello")], "it is a parity like any other");
}

#[test]
fn a_learner_that_does_not_move_for_two_leases_is_complained_of() {
    let mut stage = Stage::leased();
    let lesson = appoint(&mut stage);
    ask(&mut stage, lesson, None);
    stage.flush();
    stage.now += 2 * LEASE_US;
    stage.tick();
    let learner = (LEARNER.role, LEARNER.host);
    let complaints = stage.reported.iter().filter_map(|message| match message {
        ToCoordinator::Stalled { silent, .. } => Some(silent),
        _ => None,
    });
    assert_eq!(complaints.filter(|silent| silent.contains(&learner)).count(), 1);
}

#[test]
fn a_stand_in_that_lacks_pages_teaches_nobody() {
    let mut stage = super::repair::taken_over();
    let lesson = appoint(&mut stage);
    assert_eq!(ask(&mut stage, lesson, None), []);
}
