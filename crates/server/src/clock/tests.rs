//! What a suspended machine must not believe when it wakes up.

use std::cell::Cell;

use proto::{
    Action, Coordinator, CoordinatorAction, CoordinatorConfig, Host, HostConfig, Limits, Read, Rules,
    Submitted, Timing, Token,
};
use store::{Budget, Eviction, StoreConfig};
use types::op::{Expiry, Op, Outcome, Request, Store, StoreMode};
use types::{ClusterId, HostId, NodeId, NodeInfo, Profile};
use wire::message::ToCoordinator;

use super::*;

thread_local! {
    static SUSPENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The clock of a machine that was suspended now and then: no other clock of this process has noticed.
fn with_suspensions() -> Duration {
    since_boot() + SUSPENDED.get()
}

impl Clock {
    /// Of a machine that can be suspended.
    pub(crate) fn suspendable() -> Self {
        Self::reading(with_suspensions)
    }
}

/// The machine stands still for `lasting`, and wakes up.
pub(crate) fn suspend(lasting: Duration) {
    SUSPENDED.set(SUSPENDED.get() + lasting);
}

#[test]
fn an_instant_is_the_inverse_of_a_time() {
    let clock = Clock::start();
    let later = clock.time() + 5_000_000;
    let wait =
        clock.instant(later).expect("five seconds from now").duration_since(tokio::time::Instant::now());
    assert!((4.0..=5.0).contains(&wait.as_secs_f64()), "{wait:?}");
    assert_eq!(clock.instant(Time(u64::MAX)).map(|_| ()), clock.instant(Time(u64::MAX - 1)).map(|_| ()));
}

#[test]
fn incarnations_grow() {
    let first = new_incarnation();
    while new_incarnation() == first {}
    assert!(new_incarnation() > first);
}

#[test]
fn a_suspension_counts() {
    let clock = Clock::suspendable();
    let before = clock.time();
    suspend(Duration::from_secs(3600));
    assert!(clock.time().since(before) >= 3_600_000_000 && clock.uptime_seconds() >= 3600);
    let late = clock.instant(before + 1_000_000).expect("it has passed");
    assert!(late <= tokio::time::Instant::now(), "what was due meanwhile is due now");
}

#[cfg(target_os = "linux")]
#[test]
fn leases_are_counted_by_the_clock_that_goes_on_while_the_machine_is_suspended() {
    let [before, after] = [(); 2].map(|()| {
        let read = nix::time::ClockId::CLOCK_BOOTTIME.now().map(Duration::from);
        (read.expect("this kernel has it"), since_boot())
    });
    assert!(before.0 <= before.1 && before.1 <= after.0 && after.0 <= after.1);
}

/// A cluster of two nodes, with one data role and one parity, on one machine's clock.
struct Pair {
    clock: Clock,
    coordinator: Coordinator,
    hosts: Vec<Host>,
    answers: Vec<Outcome>,
}

fn host_id(node: usize) -> HostId {
    HostId { node: NodeId(node as u16), incarnation: Incarnation(1) }
}

fn host(node: usize, timing: Timing) -> Host {
    let cluster = ClusterId(7);
    Host::new(HostConfig {
        host: host_id(node),
        shard: 0,
        secret: proto::Secret::known_to_all(),
        timing,
        rules: Rules::all(),
        limits: Limits::default(),
        graphs: proto::GraphSettings::default(),
        coder: codec::Coder::default(),
        store: StoreConfig { cluster, area_limit_bytes: 8 << 20, eviction: Eviction::None },
        budget: Budget::new(64 << 20),
        quotas: store::Quotas::new(1),
    })
}

impl Pair {
    fn new(timing: Timing) -> Self {
        let (cluster, profile) = (ClusterId(7), Profile::rs(1, 1).unwrap());
        let records = proto::RecordKeeping::Stored;
        let on_loss = types::LossPolicy::Error;
        let config = CoordinatorConfig {
            cluster,
            profile,
            nodes: 2,
            shards: 1,
            groups: 1,
            timing,
            rules: Rules::all(),
            records,
            on_loss,
        };
        let mut pair = Self {
            clock: Clock::suspendable(),
            coordinator: Coordinator::new(config),
            hosts: (0..2).map(|node| host(node, timing)).collect(),
            answers: Vec::new(),
        };
        let now = pair.clock.now();
        for node in 0..2 {
            let place = "127.0.0.1:1".parse().unwrap();
            let (peer, memcached, http, zone) = (place, place, place, String::new());
            let info =
                NodeInfo { host: host_id(node), peer, memcached, http, native: None, zone, alive: true };
            pair.coordinator.handle(now, host_id(node), ToCoordinator::Register(info.into()));
        }
        pair.settle();
        for (node, host) in pair.hosts.iter_mut().enumerate() {
            host.link_up(now, host_id(1 - node));
        }
        pair.settle();
        pair
    }

    /// Delivers everything until nothing moves.
    fn settle(&mut self) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            while let Some(action) = self.coordinator.poll_action() {
                let CoordinatorAction::Send { to, message } = action else { continue };
                moved = true;
                self.hosts[usize::from(to.node.0)].handle_coordinator(self.clock.now(), message);
            }
            for node in 0..2 {
                self.hosts[node].flush(self.clock.now());
                while let Some(action) = self.hosts[node].poll_action() {
                    moved = true;
                    self.carry_out(node, action);
                }
            }
        }
    }

    fn carry_out(&mut self, node: usize, action: Action) {
        let now = self.clock.now();
        match action {
            Action::Send { to, message } => {
                self.hosts[usize::from(to.0)].handle_peer(now, host_id(node), message);
            }
            Action::Coordinator(message) => self.coordinator.handle(now, host_id(node), *message),
            Action::Reply { outcome, .. } => self.answers.push(outcome),
            Action::Room { .. } | Action::Part { .. } | Action::Whole { .. } => {}
            Action::Close { peer, why } => panic!("{peer} has sent what cannot be: {why:?}"),
            Action::Write { number, .. } => {
                panic!("no namespace moves to another pool, and value {number} does")
            }
            Action::Ask { place, .. } => panic!("no namespace moves to another pool, and {place:?} is asked"),
        }
    }

    /// The node that serves the only data role.
    fn primary(&self) -> usize {
        let map = self.coordinator.map().unwrap();
        usize::from(map.groups[0].data[0].primary.unwrap().node.0)
    }

    fn submit(&mut self, op: Op) -> Submitted {
        let (now, primary) = (self.clock.now(), self.primary());
        let host = &mut self.hosts[primary];
        let request = Request { key: types::op::Key::new("key".into()).ok(), op, once: None, via: None };
        host.submit(now, Token([1, 0]), host.locate(b"key"), request)
    }

    fn read(&mut self) -> Read {
        let (now, primary) = (self.clock.now(), self.primary());
        let host = &mut self.hosts[primary];
        host.read(now, host.locate(b"key"), proto::QuickRead::plain(b"key"), |_| ())
    }
}

fn set() -> Op {
    Op::Store(Store {
        mode: StoreMode::Set,
        value: "value".into(),
        flags: 0,
        expiry: Expiry::Never,
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    })
}

#[test]
fn a_primary_whose_lease_ended_while_its_machine_was_suspended_answers_no_read() {
    // A lease that no machine is too slow for.
    let lease = Duration::from_secs(600);
    let mut pair = Pair::new(Timing::from_lease(600_000_000));
    pair.submit(set());
    pair.settle();
    assert!(matches!(pair.answers[..], [Outcome::Stored(_)]), "{:?}", pair.answers);
    assert_eq!(pair.read(), Read::Hit);
    suspend(lease);
    assert_eq!(pair.read(), Read::Submit, "somebody else may have written meanwhile");
    assert_eq!(pair.submit(Op::Get(Default::default())), Submitted::Pending);
    let primary = pair.primary();
    assert!(pair.hosts[primary].poll_action().is_none(), "there is no answer before a parity has answered");
    // Its parity still listens to it.
    let now = pair.clock.now();
    pair.hosts[primary].tick(now);
    pair.settle();
    assert!(matches!(pair.answers[..], [_, Outcome::Hit(_)]), "{:?}", pair.answers);
}
