//! Repair sessions at a parity (docs/protocol.md, "A page repair").

use wire::message::Abort;

use super::*;

const PAGE: PageRange = PageRange { first: 0, count: 1 };
const SESSION: SessionId = SessionId { role: PRIMARIES[0], term: Term(1), number: 1 };

/// Both roles have applied one record, of a 5 and of a 9.
fn filled() -> Stage {
    let mut stage = Stage::new();
    for (role, byte) in PRIMARIES.into_iter().zip([5, 9]) {
        stage.frame(role, 0, vec![record(1, byte)]);
        stage.frame(role, 1, vec![]);
    }
    stage
}

/// The first role's stand-in has opened a session.
fn opened() -> Stage {
    let mut stage = filled();
    let answers = stage.hear(PRIMARIES[0], open(PAGE, 1));
    assert!(matches!(&answers[..], [GroupBody::Opened(_)]), "{answers:?}");
    stage
}

fn open(pages: PageRange, committed: u64) -> GroupBody {
    GroupBody::Open(Open { session: SESSION, pages, committed: Seq(committed) })
}

/// The second role's page, all of `byte`.
fn page(committed: u64, byte: Option<u8>) -> GroupBody {
    let bytes = byte.map(|byte| {
        let mut bytes = vec![0; PAGE.len_bytes()];
        bytes[..64].fill(byte);
        bytes.into()
    });
    let (session, term, wrong) = (SESSION, Term(1), smallvec![]);
    GroupBody::Page(Page { session, term, committed: Seq(committed), bytes, wrong }.into())
}

fn is_abort(answers: &[GroupBody]) -> bool {
    matches!(answers, [GroupBody::Abort(abort)] if abort.session == SESSION)
}

/// The first byte that is left, and the roles that it is of.
fn residual(answers: &[GroupBody]) -> (u8, Vec<RoleIndex>) {
    let [GroupBody::Residual(residual)] = answers else { panic!("{answers:?}") };
    (residual.bytes[0], residual.lost.to_vec())
}

#[test]
fn records_of_a_role_that_has_left_the_sum_do_not_change_it_and_those_of_others_do() {
    let mut stage = opened();
    stage.frame(PRIMARIES[0], 1, vec![record(2, 64)]);
    stage.frame(PRIMARIES[0], 2, vec![]);
    stage.frame(PRIMARIES[1], 1, vec![record(2, 32)]);
    stage.frame(PRIMARIES[1], 2, vec![]);
    let answers = stage.hear(PRIMARIES[1], page(2, Some(9 ^ 32)));
    assert_eq!(residual(&answers), (5, vec![PRIMARIES[0]]), "its own as of when the copy was taken");
}

#[test]
fn the_records_that_a_page_contains_are_in_the_sum_before_it_leaves() {
    let mut stage = opened();
    stage.frame(PRIMARIES[1], 1, vec![record(2, 32)]);
    let answers = stage.hear(PRIMARIES[1], page(2, Some(9 ^ 32)));
    assert_eq!(residual(&answers), (5, vec![PRIMARIES[0]]));
    assert_eq!(stage.received(PRIMARIES[1]), (2, 2));
}

#[test]
fn what_the_stand_in_has_committed_is_in_the_copy() {
    let mut stage = filled();
    stage.frame(PRIMARIES[0], 1, vec![record(2, 64)]);
    stage.hear(PRIMARIES[0], open(PAGE, 2));
    let answers = stage.hear(PRIMARIES[1], page(1, Some(9)));
    assert_eq!(residual(&answers), (5 ^ 64, vec![PRIMARIES[0]]));
}

#[test]
fn a_role_that_lacks_the_page_too_stays_in_what_is_left() {
    let mut stage = opened();
    let answers = stage.hear(PRIMARIES[1], page(1, None));
    assert_eq!(residual(&answers).1, PRIMARIES);
}

#[test]
fn of_a_role_without_a_primary_nobody_is_waited_for_and_one_that_is_lost_is_in_no_sum() {
    for (status, lost) in [(RoleStatus::Fenced, PRIMARIES.to_vec()), (RoleStatus::Lost, vec![PRIMARIES[0]])] {
        let mut stage = filled();
        stage.adopt(|view| {
            view.data[1].primary = None;
            view.data[1].status = status;
        });
        let answers = stage.hear(PRIMARIES[0], open(PAGE, 1));
        let [GroupBody::Opened(_), GroupBody::Residual(residual)] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(residual.lost.to_vec(), lost, "{status:?}");
    }
}

#[test]
fn a_session_that_no_stand_in_can_ask_for_costs_the_link() {
    let mut stage = filled();
    assert_eq!(stage.hear(PRIMARIES[0], open(PAGE, 2)), []);
    assert_eq!(stage.accused(), Some(Impossible::Committed { committed: Seq(2), received: Seq(1) }));
    let outside = PageRange { first: 4 * 256, count: 1 };
    assert_eq!(stage.hear(PRIMARIES[0], open(outside, 1)), []);
    assert_eq!(stage.accused(), Some(Impossible::Pages));
}

#[test]
fn whoever_is_not_the_primary_of_the_role_gets_no_session() {
    let mut stage = filled();
    let stranger = Peer { role: PRIMARIES[0], host: host(9) };
    assert!(is_abort(&stage.hear_of(stranger, open(PAGE, 1))));
    assert_eq!(stage.parity.session_bytes(), 0);
}

#[test]
fn where_there_is_no_place_for_one_more_the_stand_in_tries_again() {
    let mut stage = filled();
    stage.limits.parity_sessions = 0;
    assert!(is_abort(&stage.hear(PRIMARIES[0], open(PAGE, 1))));
}

#[test]
fn a_page_of_another_length_calls_the_session_off() {
    let mut stage = opened();
    let GroupBody::Page(mut short) = page(1, Some(9)) else { unreachable!("it is a page") };
    short.bytes = short.bytes.map(|bytes| bytes.slice(1..));
    assert!(is_abort(&stage.hear(PRIMARIES[1], GroupBody::Page(short))));
    assert_eq!((stage.accused(), stage.parity.session_bytes()), (Some(Impossible::Pages), 0));
}

#[test]
fn a_stand_in_gives_its_own_session_up_and_nobody_elses() {
    let mut stage = opened();
    let abort = GroupBody::Abort(Abort { session: SESSION });
    stage.hear_of(Peer { role: PRIMARIES[0], host: host(9) }, abort.clone());
    assert_ne!(stage.parity.session_bytes(), 0);
    stage.hear(PRIMARIES[0], abort);
    assert_eq!(stage.parity.session_bytes(), 0);
}

#[test]
fn a_new_view_ends_all_sessions() {
    let mut stage = opened();
    stage.adopt(|_| {});
    assert_eq!(stage.parity.session_bytes(), 0);
    assert_eq!(stage.hear(PRIMARIES[1], page(1, Some(9))), [], "its page is moot");
}
