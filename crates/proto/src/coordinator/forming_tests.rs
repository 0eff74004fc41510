//! A cluster that forms: who is told what, and what becomes of those who are too many.

use types::{
    AdminCommand, AdminRequest, ClusterId, Entry, Expectations, HostId, Incarnation, NodeId, NodeInfo,
    NodeLoad, Profile, Time, UnixSeconds,
};
use wire::message::{FromCoordinator, Registration, ToCoordinator};

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping};
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;

fn at(us: u64) -> Now {
    Now { time: Time(us), unix: UnixSeconds(1) }
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn config(nodes: u16) -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(1, 1).unwrap(),
        nodes,
        shards: 1,
        groups: 2,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    }
}

fn coordinator(nodes: u16) -> Coordinator {
    Coordinator::new(config(nodes))
}

/// What `node` is told of its message.
fn told(coordinator: &mut Coordinator, now: u64, node: u16, message: ToCoordinator) -> Vec<FromCoordinator> {
    coordinator.handle(at(now), host(node), message);
    let to_node = |action| match action {
        CoordinatorAction::Send { to, message } if to == host(node) => Some(message),
        _ => None,
    };
    std::iter::from_fn(|| coordinator.poll_action()).filter_map(to_node).collect()
}

fn register(coordinator: &mut Coordinator, now: u64, node: u16, entry: Entry) -> Vec<FromCoordinator> {
    let address = ([127, 0, 0, 1], 1000 + node).into();
    let info = NodeInfo {
        host: host(node),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let expect = Expectations { entry, ..Expectations::default() };
    let registration = Registration { info, expect, holds: None, promised: Default::default(), map: 0 };
    told(coordinator, now, node, ToCoordinator::Register(registration))
}

fn beat(coordinator: &mut Coordinator, now: u64, node: u16) -> Vec<FromCoordinator> {
    let load = NodeLoad::default();
    told(coordinator, now, node, ToCoordinator::Heartbeat { host: host(node), map: 0, load })
}

fn is_refused(answer: &[FromCoordinator]) -> bool {
    answer.iter().any(|message| matches!(message, FromCoordinator::Refused(_)))
}

fn nodes_of(answer: &[FromCoordinator]) -> Vec<u16> {
    let map = answer.iter().find_map(|message| match message {
        FromCoordinator::Map(map) => Some(map),
        _ => None,
    });
    map.map(|map| map.nodes.iter().map(|info| info.host.node.0).collect()).unwrap_or_default()
}

#[test]
fn every_heartbeat_is_told_who_is_here_until_all_are() {
    let mut coordinator = coordinator(3);
    register(&mut coordinator, 0, 2, Entry::Founder);
    register(&mut coordinator, 1, 9, Entry::Joiner);
    let [FromCoordinator::Forming(forming)] = &beat(&mut coordinator, 2, 2)[..] else { panic!("not told") };
    assert_eq!(
        (forming.expected, forming.here.as_slice()),
        (3, &[NodeId(2)][..]),
        "a joiner is not waited for"
    );
    assert!(matches!(&beat(&mut coordinator, 2, 9)[..], [FromCoordinator::Forming(_)]), "joiners wait, too");
    register(&mut coordinator, 3, 0, Entry::Founder);
    let [FromCoordinator::Forming(forming)] = &beat(&mut coordinator, 4, 2)[..] else { panic!("not told") };
    assert_eq!(forming.missing(), [NodeId(1)]);
    assert_eq!(nodes_of(&register(&mut coordinator, 5, 1, Entry::Founder)), [0, 1, 2, 9]);
    assert!(coordinator.forming().is_none());
    assert!(beat(&mut coordinator, 6, 2).contains(&FromCoordinator::Alive));
}

#[test]
fn a_coordinator_that_starts_with_nothing_says_so_once_those_that_are_here_keep_nothing() {
    let mut coordinator = Coordinator::gather(config(3), at(0), false);
    assert_eq!(coordinator.forming().unwrap().here, []);
    for node in [0, 2] {
        register(&mut coordinator, 1, node, Entry::Founder);
        assert!(!coordinator.forming().unwrap().here.contains(&NodeId(node)), "it may keep something");
        assert!(matches!(&beat(&mut coordinator, 2, node)[..], [FromCoordinator::Recall { .. }]));
        let epoch = coordinator.epoch();
        told(&mut coordinator, 2, node, ToCoordinator::Recalled { epoch, kept: None });
    }
    let [FromCoordinator::Forming(forming)] = &beat(&mut coordinator, 3, 2)[..] else { panic!("not told") };
    assert_eq!((forming.here.as_slice(), forming.missing()), (&[NodeId(0), NodeId(2)][..], vec![NodeId(1)]));
}

#[test]
fn who_was_started_together_with_the_nodes_that_formed_joins() {
    let mut coordinator = coordinator(2);
    for node in 0..2 {
        assert!(!is_refused(&register(&mut coordinator, 0, node, Entry::Founder)));
    }
    let answer = register(&mut coordinator, 10 * LEASE_US, 2, Entry::Founder);
    assert_eq!(nodes_of(&answer), [0, 1, 2]);
    let again = register(&mut coordinator, 100 * LEASE_US, 2, Entry::Founder);
    assert_eq!(nodes_of(&again), [0, 1, 2], "it is one of the nodes from then on");
}

#[test]
fn who_comes_later_has_to_say_that_it_is_to_join() {
    let mut coordinator = coordinator(2);
    (0..2).for_each(|node| drop(register(&mut coordinator, 0, node, Entry::Founder)));
    assert!(is_refused(&register(&mut coordinator, 60 * LEASE_US, 2, Entry::Founder)));
    assert!(!is_refused(&register(&mut coordinator, 60 * LEASE_US, 2, Entry::Joiner)));
}

#[test]
fn who_was_removed_is_none_of_those_who_were_started_together() {
    let mut coordinator = coordinator(2);
    (0..3).for_each(|node| drop(register(&mut coordinator, 0, node, Entry::Founder)));
    coordinator.exited(at(1), NodeId(2));
    let remove = AdminRequest { expect: None, command: AdminCommand::Remove { node: NodeId(2) } };
    assert!(coordinator.administer(at(2), &remove).is_ok());
    assert!(is_refused(&register(&mut coordinator, 3, 2, Entry::Founder)));
}
