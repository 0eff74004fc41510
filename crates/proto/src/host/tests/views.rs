//! Views, and what comes before or after its view (docs/protocol.md, "Ranges").

use smallvec::smallvec;
use types::{PageRange, RoleStatus, Seq};
use wire::message::{Frame, Hello, Open, SessionId};

use super::*;
use crate::host::dispatch::check_term;

/// This host has the first parity, and no data role.
fn parity() -> Stage {
    let mut stage = Stage::with(|view| {
        view.data[0].primary = Some(host(2));
        view.parity[0] = Some(host(0));
    });
    assert_eq!((stage.primaries(), stage.parities()), (vec![], vec![RoleIndex(2)]));
    stage.done();
    stage
}

fn hello(term: u32) -> GroupBody {
    GroupBody::Hello(Hello { term: Term(term), committed: Seq(0) })
}

fn fetch_view() -> Done {
    Done::Coordinator(ToCoordinator::FetchView { group: GROUP })
}

#[test]
fn a_primary_has_the_term_of_its_view_and_one_more_at_most_for_each_view_since() {
    let view = map().groups.remove(0);
    let with = |from: u16, version: u64, term: u32| {
        let (group, view_of, body) = (GROUP, ViewVersion(version), hello(term));
        let message = GroupMessage { group, view: view_of, from: RoleIndex(1), to: RoleIndex(2), body };
        check_term(&view, host(from), &message).is_ok()
    };
    let version = view.version.0;
    assert!(with(1, version, 1));
    assert!(!with(1, version, 2), "this very view says otherwise");
    assert!(!with(2, version, 1), "it is another one's primary");
    assert!(with(2, version + 1, 2) && with(2, version + 3, 4) && !with(2, version + 1, 3));
    assert!(with(1, version - 1, 1) && !with(1, version - 1, 2), "no view takes one away");
}

#[test]
fn who_has_a_newer_view_is_heard_and_the_view_is_asked_for_once_a_heartbeat() {
    let mut stage = parity();
    let newer = stage.view().next();
    let done = stage.group(1, newer, (1, 2), hello(1));
    assert_eq!(done, [Done::Group(1, RoleIndex(1), "Welcome"), fetch_view()]);
    assert_eq!(stage.group(1, newer, (1, 2), hello(1)), [Done::Group(1, RoleIndex(1), "Welcome")]);
    stage.now += stage.timing.heartbeat_us;
    assert!(stage.group(1, newer, (1, 2), hello(1)).contains(&fetch_view()));
}

#[test]
fn a_sessions_message_waits_for_the_view_that_it_belongs_to() {
    let mut stage = parity();
    let session = SessionId { role: RoleIndex(1), term: Term(2), number: 1 };
    let open =
        || GroupBody::Open(Open { session, pages: PageRange { first: 0, count: 1 }, committed: Seq(0) });
    let (old, new) = (stage.view(), stage.view().next());
    assert_eq!(stage.group(4, new, (1, 2), open()), [fetch_view()]);
    let done = stage.adopt(|view| {
        (view.data[1].primary, view.data[1].term) = (Some(host(4)), Term(2));
        view.data[1].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    });
    assert_eq!(done, [Done::Group(4, RoleIndex(1), "Opened")]);
    assert_eq!(stage.group(4, old, (1, 2), open()), [], "of an older view it is moot");
}

#[test]
fn what_waits_for_a_view_is_of_no_use_on_another_link() {
    let mut stage = parity();
    let session = SessionId { role: RoleIndex(1), term: Term(1), number: 1 };
    let open = GroupBody::Open(Open { session, pages: PageRange { first: 0, count: 1 }, committed: Seq(0) });
    stage.group(1, stage.view().next(), (1, 2), open);
    stage.host.link_up(stage.at(), host(1));
    stage.done();
    assert_eq!(stage.adopt(|_| {}), []);
}

#[test]
fn who_sends_what_cannot_be_is_not_believed_until_there_is_another_link() {
    let mut stage = parity();
    let view = stage.view();
    let why = Impossible::Term { role: RoleIndex(1), term: Term(9), view };
    assert_eq!(stage.group(1, view, (1, 2), hello(9)), [Done::Close(1, why)]);
    assert_eq!(stage.group(1, view, (1, 2), hello(1)), []);
    assert_eq!(stage.host.stats().impossible_messages, 1);
    stage.host.link_up(stage.at(), host(1));
    assert_eq!(stage.group(1, view, (1, 2), hello(1)), [Done::Group(1, RoleIndex(1), "Welcome")]);
}

#[test]
fn what_is_for_a_member_that_is_not_here_is_passed_over() {
    let mut stage = parity();
    let view = stage.view();
    let frame =
        Frame { term: Term(1), sent_at: Time(1), wall: UnixSeconds(1), committed: Seq(0), records: vec![] };
    assert_eq!(stage.group(1, view, (1, 3), GroupBody::Frame(frame)), []);
    let read = wire::message::Read {
        session: SessionId { role: RoleIndex(1), term: Term(1), number: 1 },
        pages: PageRange { first: 0, count: 1 },
        parities: smallvec![RoleIndex(2)],
    };
    assert_eq!(stage.group(1, view, (1, 0), GroupBody::Read(read)), []);
}

#[test]
fn who_has_the_view_confirms_it_and_who_has_not_asks_for_it() {
    let mut stage = parity();
    let (view, epoch) = (stage.view(), Epoch(3));
    let confirm = |view| FromCoordinator::Confirm { group: GROUP, view, epoch };
    assert_eq!(stage.hear(confirm(view.next())), [fetch_view()]);
    let confirmed = ToCoordinator::Confirmed { group: GROUP, view, epoch };
    assert_eq!(stage.hear(confirm(view)), [Done::Coordinator(confirmed)]);
}

#[test]
fn a_fence_and_a_settle_go_to_the_parity_and_carry_the_epoch_back() {
    let mut stage = parity();
    let (group, role, term, parity, epoch) = (GROUP, RoleIndex(1), Term(2), RoleIndex(2), Epoch(3));
    let fenced = ToCoordinator::Fenced {
        group,
        role,
        term,
        parity,
        received: Seq(0),
        applied: Seq(0),
        quiet_us: u64::MAX,
        epoch,
    };
    let fence = FromCoordinator::Fence { group, role, term, parity, epoch };
    assert_eq!(stage.hear(fence), [Done::Coordinator(fenced)]);
    let settle = |upto| FromCoordinator::Settle { group, role, term, parity, upto: Seq(upto), epoch };
    assert_eq!(stage.hear(settle(1)), [], "it has not got so much");
    let settled = ToCoordinator::Settled { group, role, term, parity, epoch };
    assert_eq!(stage.hear(settle(0)), [Done::Coordinator(settled)]);
    let elsewhere = FromCoordinator::Fence { group, role, term, parity: RoleIndex(3), epoch };
    assert_eq!(stage.hear(elsewhere), []);
}

#[test]
fn a_map_of_another_cluster_or_an_older_one_changes_nothing() {
    let mut stage = parity();
    let mut foreign = stage.map.clone();
    (foreign.cluster, foreign.version) = (ClusterId(8), 9);
    foreign.groups[0].version = ViewVersion(9);
    foreign.groups[0].parity[0] = None;
    assert_eq!(stage.hear(FromCoordinator::Map(foreign.into())), []);
    assert_eq!((stage.host.map().unwrap().version, stage.parities()), (1, vec![RoleIndex(2)]));
}
