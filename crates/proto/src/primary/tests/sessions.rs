//! Writes that are done once.

use types::op::{Arith, Delete, Failure};
use types::{ClientSession, GroupId, Once};

use super::*;

/// Of the record that begins it, behind the one of the stage's item.
fn session() -> ClientSession {
    let member = MemberId { group: GroupId(0), role: RoleIndex(0) };
    crate::Secret::known_to_all().session(member, Term(1), Seq(2))
}

fn once(sequence: u32, again: bool) -> Once {
    Once { session: session(), sequence, behind: 0, again }
}

fn up() -> Op {
    Op::Arith(Arith { delta: 1, ..Arith::default() })
}

impl Stage {
    fn submit_once(&mut self, token: u64, op: Op, once: Once) -> Option<Outcome> {
        let request = Request::on(Key::new(Bytes::from_static(b"k")).unwrap(), op).once(Some(once));
        let hash = KeyHash::of(ClusterId(1), b"k");
        let deadline = Time(self.now + self.timing.request_deadline_us);
        let pending =
            Pending { reply: ReplyTo::Local(Token([token, 0])), hash, request: request.into(), deadline };
        self.act(|primary, context| primary.submit(context, &pending)).0
    }

    /// Both parities have all records; what is answered then.
    fn commit_all(&mut self) -> Vec<(u64, Outcome)> {
        self.flush();
        let last = self.primary().stream.last().0;
        let done = PARITIES.map(|role| self.ack(role, last));
        let replies = done.into_iter().flatten().filter_map(|done| match done {
            Done::Replies(token, outcome) => Some((token, outcome)),
            _ => None,
        });
        replies.collect()
    }

    fn with_number(value: &'static [u8]) -> Self {
        let mut stage = Self::with_item();
        assert_eq!(stage.submit(2, Op::Session).0, None);
        assert_eq!(stage.commit_all(), [(2, Outcome::Session(session()))]);
        let store = Store {
            mode: StoreMode::Set,
            value: Bytes::from_static(value),
            flags: 0,
            expiry: Expiry::Never,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        stage.submit(3, Op::Store(store));
        stage.commit_all();
        stage
    }

    fn sessions(&self) -> &store::Sessions {
        self.primary().store().unwrap().replica().sessions()
    }
}

fn number(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Number(number, _) => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_done_is_said_again_and_not_done_again() {
    let mut stage = Stage::with_number(b"5");
    assert_eq!(stage.submit_once(10, up(), once(1, false)), None);
    let first = stage.commit_all();
    assert_eq!(number(&first[0].1), 6);
    let again = stage.submit_once(11, up(), once(1, true)).expect("it is known at once");
    assert_eq!(number(&again), 6);
    assert_eq!(stage.submit_once(12, up(), once(2, false)), None, "the next one is another");
    assert_eq!(number(&stage.commit_all()[0].1), 7);
    assert_eq!(
        stage.submit_once(13, up(), once(1, true)),
        Some(Outcome::Failed(Failure::Unknown)),
        "the client has said that it waits for it no more"
    );
}

#[test]
fn what_is_on_its_way_is_answered_once_it_is_committed() {
    let mut stage = Stage::with_number(b"5");
    assert_eq!(stage.submit_once(10, up(), once(1, false)), None);
    let last = stage.primary().stream.last();
    assert_eq!(stage.submit_once(11, up(), once(1, true)), None);
    assert_eq!(stage.primary().stream.last(), last, "no second record");
    let replies = stage.commit_all();
    assert_eq!(
        replies.iter().map(|(token, outcome)| (*token, number(outcome))).collect::<Vec<_>>(),
        [(10, 6), (11, 6)]
    );
}

#[test]
fn a_refusal_leaves_a_record_only_where_the_write_may_have_come_before() {
    let mut stage = Stage::with_number(b"x");
    let refused = Outcome::Failed(Failure::NotANumber);
    assert_eq!(stage.submit_once(10, up(), once(1, false)), Some(refused.clone()));
    assert_eq!(stage.submit_once(11, up(), once(1, true)), None, "this is to be known");
    assert_eq!(stage.commit_all(), [(11, refused.clone())]);
    // By now it could be done; but it has been answered.
    let deleted = stage.submit(12, Op::Delete(Delete::default()));
    assert_eq!(deleted.0, None);
    stage.commit_all();
    assert_eq!(stage.submit_once(13, up(), once(1, false)), Some(refused));
}

#[test]
fn a_write_of_no_session_is_never_done() {
    let mut stage = Stage::with_number(b"5");
    let of_nobody = |again| Once { session: ClientSession(99), sequence: 1, behind: 0, again };
    let said = |again, stage: &mut Stage| stage.submit_once(10, up(), of_nobody(again));
    assert_eq!(said(false, &mut stage), Some(Outcome::Failed(Failure::NoSession)));
    assert_eq!(said(true, &mut stage), Some(Outcome::Failed(Failure::Expired)));
}

#[test]
fn whoever_guesses_a_session_changes_nothing_of_it() {
    let mut stage = Stage::with_number(b"5");
    assert_eq!(stage.submit_once(10, up(), once(1, false)), None);
    stage.commit_all();
    // The number of its record, the next one, one bit of it: the floor of none of them is this session's.
    let guesses = [2, session().0 + 1, session().0 ^ 1 << 40].map(ClientSession);
    for (guess, again) in guesses.into_iter().flat_map(|guess| [(guess, false), (guess, true)]) {
        let refused = if again { Failure::Expired } else { Failure::NoSession };
        let name = Once { session: guess, sequence: 9, behind: 0, again };
        assert_eq!(stage.submit_once(11, up(), name), Some(Outcome::Failed(refused)));
    }
    assert_eq!((stage.sessions().len(), stage.sessions().result_count()), (1, 1));
    assert_eq!(number(&stage.submit_once(12, up(), once(1, true)).expect("it is known")), 6);
}

#[test]
fn a_session_ends_by_a_record_when_nothing_is_heard_of_it() {
    let mut stage = Stage::with_number(b"5");
    stage.timing.session_lease_us = LEASE_US / 2;
    stage.submit_once(10, up(), once(1, false));
    stage.commit_all();
    let pass = |stage: &mut Stage| {
        stage.now += LEASE_US / 4;
        stage.flush();
        stage.commit_all();
        stage.tick();
        stage.commit_all();
    };
    pass(&mut stage);
    assert_eq!(number(&stage.submit_once(11, up(), once(1, true)).unwrap()), 6, "it is heard of");
    pass(&mut stage);
    assert_eq!((stage.sessions().len(), stage.sessions().result_count()), (1, 1));
    (0..4).for_each(|_| pass(&mut stage));
    assert_eq!((stage.sessions().len(), stage.sessions().result_count()), (0, 0));
    assert_eq!(stage.submit_once(12, up(), once(1, true)), Some(Outcome::Failed(Failure::Expired)));
}

#[test]
fn sessions_and_results_have_bounds() {
    let mut stage = Stage::with_number(b"5");
    stage.limits.client_sessions = 1;
    assert_eq!(stage.submit(10, Op::Session).0, Some(Outcome::Failed(Failure::Busy)));
    stage.limits.write_results = 1;
    assert_eq!(stage.submit_once(11, up(), once(1, false)), None);
    assert_eq!(stage.submit_once(12, up(), once(2, false)), Some(Outcome::Failed(Failure::Busy)));
    assert_eq!(
        stage.submit_once(13, up(), once(2, true)),
        Some(Outcome::Failed(Failure::Unknown)),
        "it may have been done before"
    );
}
