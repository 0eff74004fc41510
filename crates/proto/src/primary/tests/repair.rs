//! A stand-in: its index, its sessions (docs/protocol.md, "A takeover" and "A page repair"), and what a primary does for those of
//! others.

use std::sync::Arc;

use smallvec::smallvec;
use types::{PageRange, RoleStatus};
use wire::message::{Abort, IndexPart, Opened, Page, Read, Residual, SessionId};

use super::*;

/// The node of the stand-in.
const HERE: u16 = 9;

const PAGE: PageRange = PageRange { first: 0, count: 1 };

/// The index of a role with one item, and its page.
fn remains() -> (Bytes, Bytes) {
    let stage = Stage::with_item();
    let store = stage.primary().store().unwrap();
    let (index, last) = store.replica().encode_part(0, 1 << 20);
    assert!(last && store.replica().touched().count() == 1);
    (index, Bytes::copy_from_slice(store.page_bytes(PAGE)))
}

/// A stand-in of term 2, whose role was settled at record 1, in a view changed like this.
fn appointed(wait_us: u64, change: impl FnOnce(&mut GroupView)) -> Stage {
    let mut stage = Stage::empty();
    let data = &mut stage.view.data[0];
    (data.primary, data.term) = (Some(host(HERE)), Term(2));
    data.status = RoleStatus::Rebuilding { start: Seq(1), wait_us };
    stage.view.version = ViewVersion(3);
    change(&mut stage.view);
    let (view, budget, config) = (stage.view.clone(), stage.budget.clone(), config());
    let protection = Arc::clone(&stage.protection);
    let member = MemberId { group: view.group, role: RoleIndex(0) };
    let mut context = stage.context();
    let means = means(&context, &config, &budget, &protection);
    let primary = Primary::stand_in(&mut context, member, host(HERE), &view, None, means);
    stage.primary = primary;
    stage
}

/// It has its lease.
fn leased(mut stage: Stage) -> Stage {
    stage.done();
    let welcome = Welcome { term: Term(2), received: Seq(1), wall: UnixSeconds(0) };
    PARITIES.iter().for_each(|role| drop(stage.hear(*role, GroupBody::Welcome(welcome.clone()))));
    stage.flush();
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, 1)));
    stage
}

fn index_part(bytes: Bytes) -> GroupBody {
    GroupBody::IndexPart(IndexPart { term: Term(2), part: 0, last: true, bytes })
}

/// It has its lease and its index, and lacks its only page: the sweep has opened a session for it.
pub(super) fn taken_over() -> Stage {
    let mut stage = leased(appointed(0, |_| {}));
    assert_eq!(stage.hear(PARITIES[0], index_part(remains().0)), [Done::Sends(PARITIES[0], "Open")]);
    stage
}

/// The session that was opened last.
fn session(stage: &Stage) -> SessionId {
    let opened = stage.sent.iter().filter_map(|(_, body)| match body {
        GroupBody::Open(open) => Some(open.session),
        _ => None,
    });
    opened.last().unwrap()
}

fn residual(session: SessionId, lost: u8, bytes: Bytes) -> GroupBody {
    GroupBody::Residual(Residual { session, lost: smallvec![RoleIndex(lost)], bytes }.into())
}

#[test]
fn a_stand_in_greets_its_parities_and_asks_one_of_them_for_its_index() {
    let mut stage = appointed(0, |_| {});
    let expected = [
        Done::Sends(PARITIES[0], "Hello"),
        Done::Sends(PARITIES[1], "Hello"),
        Done::Sends(PARITIES[0], "FetchIndex"),
    ];
    assert_eq!(stage.done(), expected);
    assert_eq!(stage.hear(PARITIES[1], index_part(remains().0)), [], "that one was not asked");
    stage.now += stage.timing.retry_us;
    assert!(stage.tick().contains(&Done::Sends(PARITIES[1], "FetchIndex")), "the other one, then");
}

#[test]
fn what_is_no_index_costs_the_parity_its_link_and_another_one_is_asked() {
    let mut stage = appointed(0, |_| {});
    stage.done();
    let node = stage.parity_host(PARITIES[0]).node;
    let garbage = index_part(Bytes::from_static(b"no index"));
    assert_eq!(stage.hear(PARITIES[0], garbage), [Done::Accuses(node, Impossible::Index)]);
    assert!(stage.tick().contains(&Done::Sends(PARITIES[1], "FetchIndex")));
}

#[test]
fn it_serves_nobody_before_the_lease_of_its_predecessor_has_surely_ended() {
    let mut stage = leased(appointed(LEASE_US / 2, |_| {}));
    stage.hear(PARITIES[0], index_part(remains().0));
    assert!(!stage.may_serve());
    stage.now += LEASE_US / 2;
    assert!(stage.may_serve());
}

#[test]
fn a_page_that_a_read_waits_for_is_decoded_from_what_a_parity_has_left_of_it() {
    let mut stage = taken_over();
    let session = session(&stage);
    let (read, done) = stage.submit(9, Op::Get(Get::default()));
    assert_eq!((read, done), (None, vec![]), "the page is under repair already");
    let opened = GroupBody::Opened(Opened { session });
    assert_eq!(stage.hear(PARITIES[0], opened.clone()), [Done::Sends(RoleIndex(1), "Read")]);
    assert_eq!(stage.hear(PARITIES[0], opened), [], "once");
    let done = stage.hear(PARITIES[0], residual(session, 0, remains().1));
    let [Done::Reports("Repaired"), Done::Replies(9, Outcome::Hit(item))] = &done[..] else {
        panic!("{done:?}")
    };
    assert_eq!(item.value, "value");
}

#[test]
fn an_answer_that_no_parity_can_have_left_costs_its_link_and_fills_nothing() {
    let mut stage = taken_over();
    let session = session(&stage);
    let node = stage.parity_host(PARITIES[0]).node;
    let (_, page) = remains();
    for bad in [residual(session, 1, page.clone()), residual(session, 0, page.slice(1..))] {
        assert_eq!(stage.hear(PARITIES[0], bad), [Done::Accuses(node, Impossible::Pages)]);
    }
    assert_eq!(stage.primary().store().unwrap().absent_count(), 1);
}

#[test]
fn a_session_that_a_parity_cannot_take_part_in_is_opened_anew_after_a_pause() {
    let mut stage = taken_over();
    let session = session(&stage);
    let aborted = stage.hear(PARITIES[0], GroupBody::Abort(Abort { session }));
    assert_eq!(aborted, [Done::Sends(PARITIES[0], "Abort")]);
    assert_eq!(stage.hear(PARITIES[0], GroupBody::Opened(Opened { session })), [], "it is over");
    stage.now += stage.timing.retry_us / 8;
    assert!(stage.tick().contains(&Done::Sends(PARITIES[0], "Open")));
    assert_ne!(self::session(&stage), session);
}

#[test]
fn no_session_is_opened_while_a_role_of_the_group_is_fenced() {
    let mut stage = leased(appointed(0, |view| {
        view.data[1].primary = None;
        view.data[1].status = RoleStatus::Fenced;
    }));
    assert_eq!(stage.hear(PARITIES[0], index_part(remains().0)), []);
    let settled = stage.adopt(|view| {
        view.data[1].primary = Some(host(8));
        view.data[1].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    });
    assert_eq!(settled, to_both("Open"), "as many parities as roles are lost");
}

#[test]
fn a_new_view_ends_all_sessions_and_what_comes_of_them_is_moot() {
    let mut stage = taken_over();
    let before = session(&stage);
    assert_eq!(stage.adopt(|_| {}), [Done::Sends(PARITIES[0], "Open")]);
    assert_eq!(stage.hear(PARITIES[0], residual(before, 0, remains().1)), []);
    assert_eq!(stage.primary().store().unwrap().absent_count(), 1);
}

#[test]
fn a_page_for_the_session_of_another_is_what_is_committed_and_goes_to_its_parities() {
    let mut stage = Stage::with_item();
    let committed = Bytes::copy_from_slice(stage.primary().store().unwrap().page_bytes(PAGE));
    stage.set(2);
    let session = SessionId { role: RoleIndex(1), term: Term(2), number: 1 };
    let read = Read { session, pages: PAGE, parities: smallvec![PARITIES[1]] };
    let stand_in = Peer { role: RoleIndex(1), host: host(8) };
    assert_eq!(stage.hear_of(stand_in, GroupBody::Read(read)), [Done::Sends(PARITIES[1], "Page")]);
    let page = Page { session, term: Term(1), committed: Seq(1), bytes: Some(committed), wrong: smallvec![] };
    assert_eq!(stage.sent, [(PARITIES[1], GroupBody::Page(page.into()))]);
}

#[test]
fn a_stand_in_says_of_a_page_that_it_lacks_that_it_is_absent() {
    let mut stage = taken_over();
    let session = SessionId { role: RoleIndex(1), term: Term(2), number: 1 };
    let read = Read { session, pages: PAGE, parities: smallvec![PARITIES[0]] };
    stage.hear_of(Peer { role: RoleIndex(1), host: host(8) }, GroupBody::Read(read));
    let page = Page { session, term: Term(2), committed: Seq(1), bytes: None, wrong: smallvec![] };
    assert_eq!(stage.sent, [(PARITIES[0], GroupBody::Page(page.into()))]);
}
