//! When a coordinator wants to be asked: when there is something to do, and not to see whether there is.

use types::{
    ClusterId, Entry, Expectations, HostId, Incarnation, NodeId, NodeInfo, NodeLoad, Profile, RoleStatus,
    Time, UnixSeconds,
};
use wire::message::{Registration, ToCoordinator};

use super::look::Look;
use super::state::ClusterState;
use super::{Coordinator, CoordinatorConfig, RecordKeeping};
use crate::timers::TimerTable;
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;
const BEAT_US: u64 = LEASE_US / 5;

fn at(us: u64) -> Now {
    Now { time: Time(us), unix: UnixSeconds(1) }
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(1, 1).unwrap(),
        nodes: 3,
        shards: 1,
        groups: 1,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    }
}

/// A coordinator that is asked at its deadlines and never else, and nodes of which some speak every [`BEAT_US`].
struct Story {
    coordinator: Coordinator,
    now: u64,
    /// How often it was asked.
    ticks: usize,
}

impl Story {
    /// Three nodes have formed a cluster, and all that there is to do is done.
    fn formed() -> Self {
        Self::with(3)
    }

    /// So many of the three nodes have come.
    fn with(nodes: u16) -> Self {
        let mut story = Self { coordinator: Coordinator::new(config()), now: 0, ticks: 0 };
        for node in 0..nodes {
            let address = "127.0.0.1:1".parse().unwrap();
            let (host, zone) = (host(node), String::new());
            let info = NodeInfo {
                host,
                peer: address,
                memcached: address,
                http: address,
                native: None,
                zone,
                alive: true,
            };
            let expect = Expectations { entry: Entry::Founder, ..Expectations::default() };
            let registration = Registration { info, expect, holds: None, promised: types::Epoch(0), map: 0 };
            story.coordinator.handle(at(0), host, ToCoordinator::Register(registration));
        }
        story.tick_while_due();
        story.ticks = 0;
        story
    }

    fn tick_while_due(&mut self) {
        while self.coordinator.next_deadline() <= Time(self.now) {
            self.coordinator.tick(at(self.now));
            self.ticks += 1;
            assert!(self.ticks < 1_000, "it always wants to be asked");
        }
        while self.coordinator.poll_action().is_some() {}
    }

    /// Time passes until then, in which these nodes speak.
    fn pass(&mut self, until: u64, speaking: &[u16]) {
        while self.now < until {
            let beat = (self.now / BEAT_US + 1) * BEAT_US;
            let Time(deadline) = self.coordinator.next_deadline();
            self.now = beat.min(deadline).min(until);
            if self.now == beat {
                for node in speaking {
                    let beat =
                        ToCoordinator::Heartbeat { host: host(*node), map: 1, load: NodeLoad::default() };
                    self.coordinator.handle(at(self.now), host(*node), beat);
                }
            }
            self.tick_while_due();
        }
    }

    fn status(&self) -> RoleStatus {
        self.coordinator.map().unwrap().groups[0].data[0].status
    }
}

#[test]
fn while_all_speak_it_hardly_ever_wants_to_be_asked() {
    let mut story = Story::formed();
    story.pass(100 * LEASE_US, &[0, 1, 2]);
    // Whoever speaks puts off when a lease runs out; that is only looked up when it would have.
    assert!(story.ticks <= 134, "{} times in 100 leases", story.ticks);
}

#[test]
fn a_lease_runs_out_to_the_microsecond_and_what_follows_does_so_at_once() {
    let mut story = Story::formed();
    let primary = story.coordinator.map().unwrap().groups[0].data[0].primary.unwrap().node.0;
    let others: Vec<u16> = (0..3).filter(|node| *node != primary).collect();
    story.pass(10 * LEASE_US, &[0, 1, 2]);
    story.pass(11 * LEASE_US - 1, &others);
    assert_eq!(story.status(), RoleStatus::Full);
    story.pass(11 * LEASE_US, &others);
    assert_eq!(story.status(), RoleStatus::Fenced);
}

#[test]
fn where_nobody_speaks_it_only_makes_sure_that_its_own_absence_would_show() {
    let mut story = Story::with(2);
    story.pass(10 * LEASE_US, &[]);
    assert_eq!(story.coordinator.registered().count(), 0, "there is no cluster that they would belong to");
    story.ticks = 0;
    story.pass(110 * LEASE_US, &[]);
    assert_eq!(story.ticks, 500, "once a heartbeat");
}

#[test]
#[should_panic(expected = "is late")]
fn a_timer_that_is_later_than_its_part_waits_for_is_noticed() {
    let mut story = Story::formed();
    story.coordinator.timers = TimerTable::default();
    story.coordinator.check_timers();
}

#[test]
fn a_part_looks_again_at_its_next_time_or_when_somebody_has_come() {
    let mut state = ClusterState::new(config());
    let times = || [5, 10, 12, 20].map(Time);
    assert_eq!(Look::default().next(&state, times()), Time(0), "it has not looked yet");
    let looked = Look::at(Time(10), &state);
    assert_eq!(looked.next(&state, times()), Time(12));
    assert_eq!(Look::at(Time(20), &state).next(&state, times()), Time::NEVER);
    let address = "127.0.0.1:1".parse().unwrap();
    let zone = String::new();
    let info = NodeInfo {
        host: host(0),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone,
        alive: true,
    };
    state.nodes_mut().insert(super::nodes::NodeState::registered(
        info,
        Entry::Founder,
        super::nodes::Told::registered(0),
        Time(11),
    ));
    assert_eq!(looked.next(&state, times()), Time(0));
}
