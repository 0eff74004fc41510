//! What waits for records, and what does not.

use std::time::Duration;

use cluster::{ClusterId, Entry, Expectations, NodeInfo, Profile};
use proto::CoordinatorConfig;
use wire::message::{Registration, ToCoordinator};

use super::*;

const HOST: HostId = HostId { node: NodeId(0), incarnation: Incarnation(1) };

fn presiding(records: Records) -> (Rc<Presiding>, Rc<NodeConnection>) {
    let timing = Timing::default();
    let config = CoordinatorConfig {
        cluster: ClusterId(1),
        profile: Profile::rs(1, 0).unwrap(),
        nodes: 1,
        shards: 1,
        groups: 1,
        timing,
        on_loss: cluster::LossPolicy::Error,
    };
    let coordinator = Coordinator::new(config);
    let presiding = Presiding::new(coordinator, timing, Clock::start(), records, watch::Sender::default());
    let connection =
        Rc::new(NodeConnection { out: RefCell::new(FrameBuffer::new(COORDINATOR)), wake: Notify::new() });
    presiding.connections.borrow_mut().insert(HOST, Rc::clone(&connection));
    (presiding, connection)
}

fn register(presiding: &Presiding) -> Option<()> {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let (peer, memcached, http) = (nowhere, nowhere, nowhere);
    let info = NodeInfo { host: HOST, peer, memcached, http, zone: String::new(), alive: true };
    let expect = Expectations { cluster: None, profile: None, shards: 1, entry: Entry::Founder };
    let registration = ToCoordinator::Register(Registration { info, expect });
    presiding.drive(|coordinator, now| coordinator.handle(now, HOST, registration))
}

fn written(valid_for: Duration) -> Records {
    Records::Written { due: Notify::new(), valid_until: Cell::new(Instant::now() + valid_for) }
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
    let (presiding, connection) = presiding(written(Duration::from_secs(60)));
    register(&presiding).unwrap();
    let unsent = || connection.out.borrow().bytes.is_empty();
    assert_eq!(due(&presiding), ["view/00000000", "map"]);
    assert!(unsent());
    presiding.written(1);
    assert!(unsent() && due(&presiding) == ["map"]);
    presiding.written(1);
    assert!(!unsent() && due(&presiding).is_empty());
}

#[test]
fn a_coordinator_without_successors_tells_at_once() {
    let (presiding, connection) = presiding(Records::Kept);
    register(&presiding).unwrap();
    assert!(!connection.out.borrow().bytes.is_empty());
}

#[test]
fn who_may_have_been_succeeded_decides_nothing() {
    let (presiding, connection) = presiding(written(Duration::ZERO));
    assert_eq!(register(&presiding), None);
    assert!(presiding.is_over() && due(&presiding).is_empty() && connection.out.borrow().bytes.is_empty());
    presiding.extend(Instant::now() + Duration::from_secs(60));
    assert_eq!(register(&presiding), None, "what is over stays over");
}
