//! Requests between their client and their primary.

use types::op::{Failure, Flush, FlushAt};
use types::{RoleStatus, Seq};
use wire::message::{Answer, Forward};

use super::*;

/// A key of the second data role, which node 1 serves.
fn key() -> &'static str {
    let stage = Stage::with(|_| {});
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let is_there = |key: &&&str| stage.host.locate(key.as_bytes()).member == Some(member(1));
    keys.iter().find(is_there).expect("one of eight keys is there")
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed(failure)
}

/// A read of the second data role is at node 1, by number 0.
fn forwarded() -> Stage {
    let mut stage = Stage::with(|_| {});
    assert_eq!(stage.submit(7, 1, get(key())), (Submitted::Pending, vec![Done::Forward(1, 0)]));
    stage
}

fn answer(stage: &mut Stage, node: u16, id: u64, outcome: Outcome) -> Vec<Done> {
    stage.peer(node, PeerMessage::Answer(Answer { id, outcome }))
}

fn flush() -> Request {
    Request::flush(Flush { namespace: types::NamespaceId::DEFAULT, at: FlushAt::Now })
}

#[test]
fn a_request_goes_to_the_primarys_node_and_its_answer_to_the_client_once() {
    let mut stage = forwarded();
    assert_eq!(answer(&mut stage, 1, 0, Outcome::Miss), [Done::Reply(7, Outcome::Miss)]);
    assert_eq!(answer(&mut stage, 1, 0, Outcome::Miss), [], "late");
    assert_eq!(stage.host.routed_requests(), 0);
}

#[test]
fn who_was_not_asked_has_no_answer() {
    let mut stage = forwarded();
    assert_eq!(answer(&mut stage, 2, 0, Outcome::Miss), [Done::Close(2, Impossible::Answer { id: 0 })]);
    assert_eq!(answer(&mut stage, 1, 1, Outcome::Miss), [Done::Close(1, Impossible::Answer { id: 1 })]);
}

#[test]
fn who_is_not_the_primary_any_more_makes_the_request_wait_for_a_newer_view() {
    let mut stage = forwarded();
    let done = answer(&mut stage, 1, 0, failed(Failure::WrongPrimary));
    assert_eq!(done, [Done::Coordinator(ToCoordinator::FetchView { group: GROUP })]);
    let moved = |view: &mut GroupView| {
        (view.data[1].primary, view.data[1].term) = (Some(host(4)), Term(2));
        view.data[1].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    };
    assert_eq!(stage.adopt(moved), [Done::Forward(4, 1)]);
}

#[test]
fn without_a_newer_view_a_waiting_request_is_tried_again_soon() {
    let mut stage = forwarded();
    answer(&mut stage, 1, 0, failed(Failure::WrongPrimary));
    assert_eq!(stage.pass(stage.timing.heartbeat_us / 4), [Done::Forward(1, 1)]);
}

#[test]
fn when_the_link_breaks_a_read_is_sent_again_and_nobody_knows_of_a_write() {
    let mut stage = forwarded();
    assert_eq!(stage.submit(8, 1, flush()).1, [Done::Forward(1, 1)]);
    stage.host.link_down(stage.at(), host(1));
    assert_eq!(stage.done(), [Done::Reply(8, failed(Failure::Unknown))]);
    stage.host.link_up(stage.at(), host(1));
    assert_eq!(stage.done()[..1], [Done::Forward(1, 2)]);
}

#[test]
fn what_is_lost_is_answered_at_once_and_what_has_no_primary_waits() {
    let status = |status| {
        move |view: &mut GroupView| {
            view.data[1].primary = None;
            view.data[1].status = status;
        }
    };
    let mut stage = Stage::with(status(RoleStatus::Lost));
    assert_eq!(stage.submit(7, 1, get(key())).0, Submitted::Done(failed(Failure::Lost)));
    for waits in [RoleStatus::Fenced, RoleStatus::Orphan(Seq(0)), RoleStatus::Accepted] {
        let mut stage = Stage::with(status(waits));
        assert_eq!(stage.submit(7, 1, get(key())), (Submitted::Pending, vec![]), "{waits:?}");
    }
}

#[test]
fn whose_time_is_up_is_told_whether_anything_may_have_been_done() {
    let mut stage = forwarded();
    stage.submit(8, 1, flush());
    stage.host.link_down(stage.at(), host(2));
    let mut done = stage.pass(stage.timing.request_deadline_us);
    done.retain(|done| matches!(done, Done::Reply(..)));
    assert_eq!(
        done,
        [Done::Reply(7, failed(Failure::Unavailable)), Done::Reply(8, failed(Failure::Unknown))]
    );
    assert_eq!(answer(&mut stage, 1, 0, Outcome::Miss), [], "late");
}

#[test]
fn before_there_is_a_map_requests_wait_for_it() {
    let mut stage = Stage::empty();
    let place = stage.host.locate(key().as_bytes());
    assert_eq!(place.member, None);
    assert_eq!(stage.host.submit(stage.at(), Token([7, 0]), place, get(key())), Submitted::Pending);
    let done = stage.hear(FromCoordinator::Map(map().into()));
    assert!(done.contains(&Done::Forward(1, 0)), "{done:?}");
}

#[test]
fn a_request_of_another_node_goes_no_further_than_here() {
    let mut stage = Stage::with(|_| {});
    let forward = |role, request: types::op::Request| {
        PeerMessage::Forward(Forward { id: 5, group: GROUP, role: RoleIndex(role), request: request.into() })
    };
    let wrong = || Done::Answer(2, 5, failed(Failure::WrongPrimary));
    assert_eq!(stage.peer(2, forward(1, get(key()))), [wrong()], "that role is elsewhere");
    assert_eq!(stage.peer(2, forward(0, get(key()))), [wrong()], "the key is of another role");
    assert_eq!(stage.peer(2, forward(0, flush())), [], "it waits for the lease of the primary here");
}

#[test]
fn a_living_primary_that_made_way_answers_itself_and_a_dead_one_does_not() {
    let moved = |view: &mut GroupView| {
        (view.data[1].primary, view.data[1].term) = (Some(host(4)), Term(2));
        view.data[1].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    };
    let mut stage = forwarded();
    assert_eq!(stage.adopt(moved), [], "it is linked, and lives by the map");
    stage.map.version += 1;
    stage.map.nodes[1].alive = false;
    let map = FromCoordinator::Map(stage.map.clone().into());
    assert_eq!(stage.hear(map), [Done::Forward(4, 1)]);
}

#[test]
fn of_a_name_that_no_map_has_said_the_number_of_nothing_is_known_yet() {
    let mut stage = Stage::empty();
    let of = |namespace| Key::new(Bytes::from_static(b"k")).unwrap().moved_to(namespace);
    let refusal = |stage: &Stage, namespace| stage.host.locate(&of(namespace)).refusal;
    assert_eq!(refusal(&stage, types::NamespaceId::MAX), Some(Failure::Unavailable));
    assert_eq!(refusal(&stage, types::NamespaceId::DEFAULT), None, "it waits for the map");
    stage.hear(FromCoordinator::Map(map().into()));
    assert_eq!(refusal(&stage, types::NamespaceId::MAX), Some(Failure::NoNamespace));
}
