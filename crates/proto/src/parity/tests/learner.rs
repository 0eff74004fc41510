//! A parity that is being built, or comes back (docs/protocol.md, "A lost parity is built anew").

use types::{PAGE_BYTES, RunClass};
use wire::message::{Learn, LearnHello, LearnPart, Learned, Lesson};

use super::*;

const SINCE: ViewVersion = ViewVersion(5);
const FIRST: Lesson = Lesson { since: SINCE, attempt: 0 };

/// The view that appoints a learner in the place of the first parity.
fn appointing() -> GroupView {
    let mut view = placed();
    view.parity[0] = None;
    view.version = SINCE;
    view.learners.push(types::Learner { role: RoleIndex(2), host: host(9), since: SINCE, whole: false });
    view
}

/// A learner that has nothing, and has asked for its lessons.
fn learning() -> Stage {
    let mut stage = Stage::of(appointing());
    assert_eq!(asked(&mut stage), [(PRIMARIES[0], FIRST, None), (PRIMARIES[1], FIRST, None)]);
    stage
}

/// What it asks for when it may.
fn asked(stage: &mut Stage) -> Vec<(RoleIndex, Lesson, Option<Seq>)> {
    stage.now += stage.timing.retry_us;
    let sent = stage.act(Parity::tick).1.into_iter();
    let hellos = sent.map(|(role, body)| match body {
        GroupBody::LearnHello(LearnHello { lesson, applied }) => (role, lesson, applied),
        other => panic!("not expected here: {other:?}"),
    });
    hellos.collect()
}

/// A part of the lesson of `role` comes, as of record `tag`; whether it is taken in.
fn learn(
    stage: &mut Stage,
    role: RoleIndex,
    (lesson, number, tag): (Lesson, u32, u64),
    part: LearnPart,
) -> bool {
    let learn = Learn { lesson, term: Term(1), number, tag: Seq(tag), part };
    let answers = stage.hear(role, GroupBody::Learn(learn.into()));
    let learned = GroupBody::Learned(Learned { lesson, term: Term(1), number });
    assert!(answers.is_empty() || answers == [learned]);
    !answers.is_empty()
}

fn begin() -> LearnPart {
    LearnPart::Begin { rows: Bytes::new(), classes: Bytes::copy_from_slice(&[RunClass::FREE.0]) }
}

/// The first page of the first run, whose first bytes are `byte`.
fn run(byte: u8) -> LearnPart {
    let mut bytes = vec![0; PAGE_BYTES];
    bytes[..64].fill(byte);
    LearnPart::Run { run: 0, pages: 1, bytes: bytes.into() }
}

#[test]
fn primaries_are_asked_until_their_lessons_begin() {
    let mut stage = learning();
    assert!(learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin()));
    assert_eq!(asked(&mut stage), [(PRIMARIES[1], FIRST, None)]);
}

#[test]
fn records_mean_nothing_before_the_lesson_of_their_role_has_begun() {
    let mut stage = learning();
    assert_eq!(stage.frame(PRIMARIES[0], 0, vec![record(1, 5)]), []);
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin());
    assert_eq!(acked(&stage.frame(PRIMARIES[0], 0, vec![record(1, 5)])), Some(1));
}

#[test]
fn a_record_changes_what_has_come_and_nothing_else() {
    let mut stage = learning();
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin());
    stage.frame(PRIMARIES[0], 1, vec![record(1, 5)]);
    assert_eq!((stage.received(PRIMARIES[0]), stage.byte()), ((1, 1), 0), "the page comes as it is then");
    assert!(learn(&mut stage, PRIMARIES[0], (FIRST, 1, 1), run(5)));
    assert_eq!(stage.byte(), 5);
    stage.frame(PRIMARIES[0], 2, vec![record(2, 3)]);
    assert_eq!(stage.byte(), 5 ^ 3);
}

#[test]
fn before_a_part_is_taken_in_the_records_up_to_it_are_applied() {
    let mut stage = learning();
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin());
    stage.frame(PRIMARIES[0], 0, vec![record(1, 5)]);
    assert!(learn(&mut stage, PRIMARIES[0], (FIRST, 1, 1), run(5)));
    assert_eq!((stage.received(PRIMARIES[0]), stage.byte()), ((1, 1), 5));
}

#[test]
fn a_part_ahead_of_its_records_makes_the_learner_start_again() {
    let mut stage = learning();
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin());
    assert!(!learn(&mut stage, PRIMARIES[0], (FIRST, 1, 1), run(5)));
    let second = Lesson { attempt: 1, ..FIRST };
    assert_eq!(asked(&mut stage), [(PRIMARIES[0], second, None), (PRIMARIES[1], second, None)]);
}

#[test]
fn a_broken_link_to_a_teacher_starts_all_lessons_again() {
    let mut stage = learning();
    stage.parity.link_broken(host(0));
    assert_eq!(asked(&mut stage)[0].1, FIRST, "no lesson has begun there");
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 0), begin());
    learn(&mut stage, PRIMARIES[0], (FIRST, 1, 0), run(5));
    stage.parity.link_broken(host(0));
    let second = Lesson { attempt: 1, ..FIRST };
    assert_eq!(asked(&mut stage), [(PRIMARIES[0], second, None), (PRIMARIES[1], second, None)]);
    assert_eq!(stage.parity.area().committed_bytes(), 0, "nothing of it is left");
}

/// A parity that has received more than it has applied, was evicted, and is wanted again.
fn returning() -> Stage {
    let mut stage = Stage::new();
    stage.frame(PRIMARIES[0], 1, vec![record(1, 5), record(2, 6)]);
    stage.frame(PRIMARIES[1], 0, vec![]);
    stage.view = appointing();
    stage.view.learners[0].host = host(2);
    stage.parity.rest();
    stage.parity.rejoin(&stage.view, SINCE);
    stage
}

#[test]
fn who_comes_back_offers_what_it_has_applied_and_not_what_it_has_only_received() {
    let mut stage = returning();
    assert_eq!(stage.received(PRIMARIES[0]), (1, 1));
    assert_eq!(asked(&mut stage), [(PRIMARIES[0], FIRST, Some(Seq(1))), (PRIMARIES[1], FIRST, Some(Seq(0)))]);
    assert!(learn(&mut stage, PRIMARIES[0], (FIRST, 0, 1), LearnPart::Resume));
    assert_eq!(acked(&stage.frame(PRIMARIES[0], 2, vec![record(2, 3)])), Some(2));
    assert_eq!(stage.byte(), 5 ^ 3, "of another term, perhaps");
}

#[test]
fn if_one_primary_cannot_go_on_all_begin_from_nothing() {
    let mut stage = returning();
    asked(&mut stage);
    learn(&mut stage, PRIMARIES[0], (FIRST, 0, 1), LearnPart::Resume);
    assert!(!learn(&mut stage, PRIMARIES[1], (FIRST, 0, 0), LearnPart::Gone));
    let second = Lesson { attempt: 1, ..FIRST };
    assert_eq!(asked(&mut stage), [(PRIMARIES[0], second, None), (PRIMARIES[1], second, None)]);
    assert_eq!((stage.byte_or_none(), stage.received(PRIMARIES[0])), (None, (0, 0)));
}

#[test]
fn a_lesson_from_nothing_does_not_fit_one_that_comes_back() {
    let mut stage = returning();
    asked(&mut stage);
    assert!(!learn(&mut stage, PRIMARIES[0], (FIRST, 0, 1), begin()));
    assert_eq!(asked(&mut stage)[0], (PRIMARIES[0], Lesson { attempt: 1, ..FIRST }, None));
}

#[test]
fn once_all_lessons_have_ended_nothing_makes_it_start_again() {
    let mut stage = returning();
    asked(&mut stage);
    for (role, tag) in PRIMARIES.into_iter().zip([1, 0]) {
        learn(&mut stage, role, (FIRST, 0, tag), LearnPart::Resume);
        let end = LearnPart::End { runs: encoded_runs() };
        assert!(learn(&mut stage, role, (FIRST, 1, tag), end));
    }
    stage.parity.link_broken(host(0));
    assert_eq!((asked(&mut stage), stage.byte()), (vec![], 5));
}

fn encoded_runs() -> Bytes {
    let (mut runs, mut bytes) = (store::PageSet::new(), Vec::new());
    runs.insert(0);
    runs.encode(&mut bytes);
    bytes.into()
}
