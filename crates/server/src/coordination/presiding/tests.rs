//! What waits for records, and what does not.

use std::time::Duration;

use proto::{CoordinatorConfig, RecordKeeping, Rules};
use tokio::io::AsyncWriteExt;
use types::{ClusterId, Entry, Expectations, NodeInfo, Profile};
use wire::message::{Registration, ToCoordinator};

use super::*;
use crate::clock::tests::suspend;
use crate::limits::HANDSHAKES_AT_ONCE;
use crate::transport::{self, Stream};

const MINUTE_US: u64 = 60_000_000;
const HOST: HostId = HostId { node: NodeId(0), incarnation: Incarnation(1) };

fn presiding(records: impl FnOnce(&Clock) -> Records) -> (Rc<Presiding>, Rc<NodeConnection>) {
    presiding_with(Timing::default(), records)
}

fn presiding_with(
    timing: Timing,
    records: impl FnOnce(&Clock) -> Records,
) -> (Rc<Presiding>, Rc<NodeConnection>) {
    let config = CoordinatorConfig {
        cluster: ClusterId(1),
        profile: Profile::rs(1, 0).unwrap(),
        nodes: 1,
        shards: 1,
        groups: 1,
        timing,
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    };
    let coordinator = Coordinator::new(config);
    let clock = Clock::suspendable();
    let records = records(&clock);
    let presiding = Presiding::new(coordinator, timing, clock, records, watch::Sender::default());
    let connection =
        Rc::new(NodeConnection { out: RefCell::new(FrameBuffer::new(COORDINATOR)), wake: Notify::new() });
    presiding.connections.borrow_mut().insert(HOST, Rc::clone(&connection));
    (presiding, connection)
}

fn registration_of(host: HostId) -> ToCoordinator {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let (peer, memcached, http) = (nowhere, nowhere, nowhere);
    let info = NodeInfo { host, peer, memcached, http, native: None, zone: String::new(), alive: true };
    let expect = Expectations { cluster: None, profile: None, shards: 1, entry: Entry::Founder, lease_us: 0 };
    ToCoordinator::Register(Registration { info, expect, holds: None, promised: types::Epoch(0), map: 0 })
}

fn register(presiding: &Presiding) -> Option<()> {
    presiding.drive(|coordinator, now| coordinator.handle(now, HOST, registration_of(HOST)))
}

fn written(valid_for_us: u64) -> impl FnOnce(&Clock) -> Records {
    move |clock| Records::Written { due: Notify::new(), valid_until: Cell::new(clock.time() + valid_for_us) }
}

fn due(presiding: &Presiding) -> Vec<String> {
    let mut keys = Vec::new();
    presiding.look_at_records(|record| {
        keys.push(record.key());
        true
    });
    keys
}

#[test]
fn nobody_is_told_before_the_records_are_written() {
    let (presiding, connection) = presiding(written(MINUTE_US));
    register(&presiding).unwrap();
    let unsent = || connection.out.borrow().bytes.is_empty();
    // The second one of the view says who keeps its chunks.
    assert_eq!(due(&presiding), ["view/00000000", "node/00000", "map", "view/00000000"]);
    assert!(unsent());
    presiding.written(1);
    assert!(unsent() && due(&presiding) == ["node/00000", "map", "view/00000000"]);
    presiding.written(3);
    assert!(!unsent() && due(&presiding).is_empty());
}

#[test]
fn a_coordinator_without_successors_tells_at_once() {
    let (presiding, connection) = presiding(|_| Records::Kept);
    register(&presiding).unwrap();
    assert!(!connection.out.borrow().bytes.is_empty());
}

#[test]
fn who_sends_what_cannot_be_loses_its_connection_and_is_counted() {
    let (presiding, _connection) = presiding(|_| Records::Kept);
    register(&presiding).unwrap();
    let epoch = presiding.coordinator.borrow().epoch();
    let impossible = ToCoordinator::Kept { epoch, position: 99 };
    presiding.drive(|coordinator, now| coordinator.handle(now, HOST, impossible));
    assert!(presiding.connections.borrow().is_empty());
    assert_eq!(presiding.status.borrow().impossible_messages, 1);
}

#[test]
fn who_may_have_been_succeeded_decides_nothing() {
    let (presiding, connection) = presiding(written(0));
    assert_eq!(register(&presiding), None);
    assert!(presiding.is_over() && due(&presiding).is_empty() && connection.out.borrow().bytes.is_empty());
    presiding.extend(presiding.clock.time() + MINUTE_US);
    assert_eq!(register(&presiding), None, "what is over stays over");
}

#[test]
fn a_crowd_that_does_not_register_keeps_no_node_out() {
    crowd(presiding(|_| Records::Kept).0);
    crowd(presiding(written(10 * MINUTE_US)).0);
}

/// A crowd comes to `presiding` and says nothing; then a node comes.
fn crowd(presiding: Rc<Presiding>) {
    const OTHER: HostId = HostId { node: NodeId(1), incarnation: Incarnation(1) };
    crate::workers::run::runtime().unwrap().block_on(async {
        let (listener, addr) = transport::on_loopback();
        let accepting = Rc::clone(&presiding);
        tokio::task::spawn_local(async move {
            while let Ok(stream) = listener.accept().await {
                accepting.take(stream);
            }
        });
        let mut crowd = Vec::new();
        for _ in 0..2 * HANDSHAKES_AT_ONCE {
            crowd.push(Stream::connect(addr).await.unwrap());
        }
        let mut node = Stream::connect(addr).await.unwrap();
        let mut hello = FrameBuffer::new(OTHER);
        hello.push(&registration_of(OTHER));
        node.write_all(&hello.bytes).await.unwrap();
        let registered = async {
            while !presiding.connections.borrow().contains_key(&OTHER) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), registered).await.expect("registered");
    });
}

#[test]
fn who_was_suspended_for_longer_than_its_lease_decides_nothing() {
    let (presiding, connection) = presiding(written(MINUTE_US));
    suspend(Duration::from_secs(61));
    assert_eq!(register(&presiding), None);
    assert!(presiding.is_over() && due(&presiding).is_empty() && connection.out.borrow().bytes.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn the_first_reason_for_an_end_is_the_one_that_is_told() {
    let (presiding, _) = presiding(written(MINUTE_US));
    presiding.end("another one leads");
    presiding.end("nobody is here to be told");
    assert_eq!(presiding.ended().await, "another one leads");
}

#[test]
fn who_sleeps_until_the_next_deadline_wakes_up_when_it_comes_nearer_and_when_all_is_over() {
    // So that nothing is due by itself for the time of a test.
    let (presiding, _connection) = presiding_with(Timing::from_lease(60 * MINUTE_US), |_| Records::Kept);
    crate::workers::run::runtime().unwrap().block_on(async {
        let ticking = tokio::task::spawn_local(Rc::clone(&presiding).tick());
        let is_asleep = || presiding.deadline.get() > presiding.clock.time() + MINUTE_US;
        let asleep = async || {
            while !is_asleep() {
                tokio::task::yield_now().await;
            }
        };
        let patience = Duration::from_secs(60);
        tokio::time::timeout(patience, asleep()).await.expect("there is nothing to do");
        register(&presiding).unwrap();
        assert!(!is_asleep(), "a cluster has formed, and is to be looked at");
        tokio::time::timeout(patience, asleep()).await.expect("it was looked at");
        presiding.end("the test is over");
        tokio::time::timeout(patience, ticking).await.expect("it ends").unwrap();
    });
}
