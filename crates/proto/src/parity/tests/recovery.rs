//! Fence and Settle at a parity (docs/protocol.md, "A takeover").

use wire::message::FetchIndex;

use super::*;

const LOST: RoleIndex = PRIMARIES[0];

/// It has received three records of the role and applied one, and is fenced for the next term.
fn fenced() -> Stage {
    let mut stage = Stage::new();
    stage.frame(LOST, 1, vec![record(1, 1), record(2, 2), record(3, 4)]);
    stage.parity.fence(Time(stage.now), LOST, Term(2), Epoch(1));
    stage
}

fn settle(stage: &mut Stage, upto: u64) -> bool {
    stage.act(|parity, context| parity.settle(context, LOST, Term(2), Seq(upto))).0
}

#[test]
fn an_answer_to_a_fence_says_what_is_here_and_how_long_it_has_been_quiet() {
    let mut stage = fenced();
    let (now, group) = (Time(stage.now + 7), stage.view.group);
    let answer = stage.parity.fence(now, LOST, Term(2), Epoch(5));
    let expected = ToCoordinator::Fenced {
        group,
        role: LOST,
        term: Term(2),
        parity: RoleIndex(2),
        received: Seq(3),
        applied: Seq(1),
        quiet_us: 7,
        epoch: Epoch(5),
    };
    assert_eq!(answer, Some(expected));
    assert_eq!(stage.parity.fence(now, LOST, Term(1), Epoch(5)), None, "a term that is over");
    assert_eq!(stage.parity.fence(now, RoleIndex(9), Term(2), Epoch(5)), None, "no such role");
}

#[test]
fn a_settle_applies_up_to_the_end_and_drops_the_rest() {
    let mut stage = fenced();
    assert!(settle(&mut stage, 2));
    assert_eq!((stage.received(LOST), stage.byte()), ((2, 2), 1 ^ 2));
}

#[test]
fn a_settle_that_comes_again_takes_nothing_back_of_what_the_stand_in_has_sent() {
    let mut stage = fenced();
    settle(&mut stage, 2);
    let (sent_at, wall, records) = (Time(77), UnixSeconds(1000), vec![record(3, 8)]);
    let frame = Frame { term: Term(2), sent_at, wall, committed: Seq(2), records };
    assert_eq!(acked(&stage.hear(LOST, GroupBody::Frame(frame))), Some(3));
    assert!(settle(&mut stage, 2), "it is done");
    assert_eq!(stage.received(LOST), (3, 2));
}

#[test]
fn an_end_beyond_what_was_received_or_before_what_was_applied_is_refused() {
    for upto in [0, 4] {
        let mut stage = fenced();
        assert!(!settle(&mut stage, upto));
        assert_eq!((stage.received(LOST), stage.byte()), ((3, 1), 1), "nothing has changed");
    }
}

#[test]
fn only_what_the_fence_was_raised_to_is_settled() {
    let mut stage = fenced();
    let other = stage.act(|parity, context| parity.settle(context, LOST, Term(3), Seq(2))).0;
    assert!(!other);
    assert_eq!(stage.received(LOST), (3, 1));
}

#[test]
fn a_stand_in_gets_the_index_once_its_stream_is_settled() {
    let mut stage = fenced();
    let fetch = GroupBody::FetchIndex(FetchIndex { term: Term(2), part: 0 });
    assert_eq!(stage.hear(LOST, fetch.clone()), []);
    settle(&mut stage, 2);
    let answers = stage.hear(LOST, fetch);
    assert!(matches!(&answers[..], [GroupBody::IndexPart(part)] if part.last), "{answers:?}");
    let older = GroupBody::FetchIndex(FetchIndex { term: Term(1), part: 0 });
    assert_eq!(stage.hear(LOST, older), []);
}
