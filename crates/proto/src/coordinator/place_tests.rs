//! Who has a node's place in the cluster: processes that come under a name that another one has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use types::{
    ClusterId, Entry, Expectations, HostId, Incarnation, NodeId, NodeInfo, NodeLoad, Profile, Time,
    UnixSeconds,
};
use wire::message::{FromCoordinator, Registration, ToCoordinator};
use wire::record::Record;

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping};
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;
const BEAT_US: u64 = LEASE_US / 5;

fn at(us: u64) -> Now {
    Now { time: Time(us), unix: UnixSeconds(1) }
}

fn host(node: u16, life: u64) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(life) }
}

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(1, 1).unwrap(),
        nodes: 2,
        shards: 1,
        groups: 2,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    }
}

/// What `host` is told when it registers.
fn register(coordinator: &mut Coordinator, now: u64, host: HostId) -> Vec<FromCoordinator> {
    register_for(coordinator, now, host, None)
}

fn register_for(
    coordinator: &mut Coordinator,
    now: u64,
    host: HostId,
    profile: Option<Profile>,
) -> Vec<FromCoordinator> {
    coordinator.handle(at(now), host, registration(host, profile));
    let told = |action| match action {
        CoordinatorAction::Send { to, message } if to == host => Some(message),
        _ => None,
    };
    std::iter::from_fn(|| coordinator.poll_action()).filter_map(told).collect()
}

fn registration(host: HostId, profile: Option<Profile>) -> ToCoordinator {
    let address = address(host);
    let info = NodeInfo {
        host,
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let expect = Expectations { profile, entry: Entry::Founder, ..Expectations::default() };
    ToCoordinator::Register(Registration { info, expect, holds: None, promised: types::Epoch(0), map: 0 })
}

fn address(host: HostId) -> SocketAddr {
    ([10, 0, 0, host.node.0 as u8], 1).into()
}

fn heartbeat(coordinator: &mut Coordinator, now: u64, host: HostId) {
    let beat = ToCoordinator::Heartbeat { host, map: 1, load: NodeLoad::default() };
    coordinator.handle(at(now), host, beat);
    coordinator.tick(at(now));
}

/// Lets time pass, in which nobody is heard; else the coordinator would be the one that was away.
fn pass(coordinator: &mut Coordinator, from: u64, until: u64) {
    (from..=until).step_by(BEAT_US as usize / 4).for_each(|now| coordinator.tick(at(now)));
}

fn formed() -> Coordinator {
    let mut coordinator = Coordinator::new(config());
    register(&mut coordinator, 0, host(0, 1));
    register(&mut coordinator, 0, host(1, 1));
    coordinator
}

fn occupied(coordinator: &Coordinator, by: HostId) -> FromCoordinator {
    let peer = address(by);
    let (cluster, epoch) = (coordinator.map().map(|map| map.cluster), coordinator.epoch());
    FromCoordinator::Occupied { by, peer, lease_us: LEASE_US, cluster, epoch }
}

#[test]
fn a_place_is_free_one_lease_after_its_process_was_heard_and_not_before() {
    let mut coordinator = formed();
    heartbeat(&mut coordinator, 500, host(0, 1));
    pass(&mut coordinator, 500, 499 + LEASE_US);
    let told = register(&mut coordinator, 499 + LEASE_US, host(0, 2));
    assert_eq!(told, [occupied(&coordinator, host(0, 1))]);
    let told = register(&mut coordinator, 500 + LEASE_US, host(0, 2));
    assert!(
        matches!(&told[..], [.., FromCoordinator::Map(map)] if map.nodes[0].host == host(0, 2)),
        "{told:?}"
    );
    assert_eq!(
        coordinator.map().unwrap().groups[0].roles_on(NodeId(0)),
        0,
        "it has nothing of the former one"
    );
}

#[test]
fn a_process_that_is_heard_keeps_its_place_against_any_number_of_others() {
    let mut coordinator = formed();
    let views = coordinator.map().unwrap().groups.clone();
    for now in (BEAT_US..20 * LEASE_US).step_by(BEAT_US as usize) {
        let told = register(&mut coordinator, now, host(0, 2 + now));
        assert_eq!(told, [occupied(&coordinator, host(0, 1))], "at {now}");
        [0, 1].into_iter().for_each(|node| heartbeat(&mut coordinator, now, host(node, 1)));
    }
    assert_eq!(coordinator.map().unwrap().groups, views, "and nothing has happened to what it serves");
}

#[test]
fn whoever_waits_for_a_place_does_not_keep_it_from_coming_free() {
    let mut coordinator = formed();
    let asks = (BEAT_US..2 * LEASE_US).step_by(BEAT_US as usize);
    let told: Vec<_> = asks.map(|now| register(&mut coordinator, now, host(0, 2)).pop()).collect();
    let waited =
        told.iter().take_while(|told| matches!(told, Some(FromCoordinator::Occupied { .. }))).count();
    assert_eq!(waited, 4, "{told:?}");
}

#[test]
fn before_the_cluster_has_formed_a_place_comes_free_as_well() {
    let mut coordinator = Coordinator::new(config());
    register(&mut coordinator, 0, host(0, 1));
    assert_eq!(register(&mut coordinator, 1, host(0, 2)), [occupied(&coordinator, host(0, 1))]);
    pass(&mut coordinator, 0, LEASE_US);
    assert_eq!(register(&mut coordinator, LEASE_US, host(0, 2)), []);
    let told = register(&mut coordinator, LEASE_US, host(1, 1));
    assert!(matches!(&told[..], [FromCoordinator::Map(map)] if map.nodes[0].host == host(0, 2)), "{told:?}");
}

#[test]
fn a_process_for_another_cluster_does_not_wait_for_a_place_in_this_one() {
    let mut coordinator = formed();
    let told = register_for(&mut coordinator, 1, host(0, 2), Some(Profile::rs(3, 2).unwrap()));
    assert!(
        matches!(&told[..], [FromCoordinator::Refused(why)] if why.reason.contains("rs(3+2)")),
        "{told:?}"
    );
}

#[test]
fn the_dead_and_the_fenced_occupy_nothing() {
    let mut coordinator = formed();
    coordinator.exited(at(1), NodeId(0));
    let told = register(&mut coordinator, 1, host(0, 2));
    assert!(matches!(&told[..], [.., FromCoordinator::Map(_)]), "{told:?}");
    coordinator.state.nodes_mut().fence(NodeId(0));
    let told = register(&mut coordinator, 2, host(0, 3));
    assert!(matches!(&told[..], [.., FromCoordinator::Map(_)]), "{told:?}");
}

#[test]
fn a_coordinator_hears_those_who_wait_for_a_place_and_does_not_resign_for_want_of_them() {
    // Every process was killed at once and started again; a node of these has been elected.
    let mut after = Coordinator::resume(config(), formed_records(), at(0)).unwrap();
    let again = [host(0, 2), host(1, 2)];
    after.store_sees(at(0), &BTreeSet::from(again));
    for now in (0..=3 * LEASE_US).step_by(BEAT_US as usize) {
        again.into_iter().for_each(|host| drop(register(&mut after, now, host)));
        after.tick(at(now));
    }
    assert!(!after.has_resigned());
    let map = after.map().unwrap();
    assert!(map.nodes.iter().all(|info| info.alive && again.contains(&info.host)), "{:?}", map.nodes);
}

/// What a coordinator writes down when the cluster forms.
fn formed_records() -> Vec<Record> {
    let mut coordinator = Coordinator::new(config());
    for node in [0, 1] {
        coordinator.handle(at(0), host(node, 1), registration(host(node, 1), None));
    }
    let actions = std::iter::from_fn(|| coordinator.poll_action());
    let records = actions.filter_map(|action| match action {
        CoordinatorAction::Record(record) => Some((record.key(), record)),
        _ => None,
    });
    records.collect::<BTreeMap<_, _>>().into_values().collect()
}
