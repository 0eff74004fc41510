//! A coordinator that starts with nothing, and what its nodes know.

use std::collections::BTreeMap;

use types::{
    AdminCommand, AdminRequest, ClusterId, Entry, Expectations, HostId, Incarnation, MemberId, NodeId,
    NodeInfo, NodeLoad, OnLoss, Profile, RoleIndex, Time, UnixSeconds,
};
use wire::message::{FromCoordinator, ToCoordinator};

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping};
use crate::{Entrance, Now, Rules, Timing, Verdict};

const LEASE_US: u64 = 1_000_000;
const TICK_US: u64 = LEASE_US / 20;

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(3, 2).unwrap(),
        nodes: 5,
        shards: 1,
        groups: 1,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: RecordKeeping::Kept,
        on_loss: types::LossPolicy::Error,
    }
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn info(host: HostId) -> NodeInfo {
    let nowhere: std::net::SocketAddr = "127.0.0.1:1".parse().unwrap();
    let (memcached, http) = (nowhere, nowhere);
    let peer = ([127, 0, host.incarnation.0 as u8, host.node.0 as u8], 1).into();
    NodeInfo { host, peer, memcached, http, native: None, zone: String::new(), alive: true }
}

/// Processes at their doors, of which some reach the coordinator.
struct Story {
    coordinator: Coordinator,
    now: u64,
    nodes: BTreeMap<HostId, Entrance>,
    reached: Vec<HostId>,
    /// One that stands still, and what it will read when it goes on.
    asleep: Option<(HostId, Vec<FromCoordinator>)>,
    /// What came out of the doors for the workers.
    delivered: Vec<(HostId, FromCoordinator)>,
}

impl Story {
    fn new(coordinator: Coordinator, now: u64) -> Self {
        let (nodes, reached, delivered) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { coordinator, now, nodes, reached, asleep: None, delivered }
    }

    /// A cluster of five that has formed.
    fn formed() -> Self {
        let mut story = Self::new(Coordinator::new(config()), 0);
        (0..5).for_each(|node| story.start(host(node), Entry::Founder));
        story.run(LEASE_US);
        assert!(story.coordinator.map().is_some());
        story
    }

    fn now(&self) -> Now {
        Now { time: Time(self.now), unix: UnixSeconds(1) }
    }

    /// A process comes for the first time.
    fn start(&mut self, host: HostId, entry: Entry) {
        let expect = Expectations { entry, ..Expectations::default() };
        self.nodes.insert(host, Entrance::new(expect, Rules::all()));
        self.reach(host);
    }

    /// From now on `host` reaches the coordinator.
    fn reach(&mut self, host: HostId) {
        let Some(entrance) = self.nodes.get_mut(&host) else { return };
        let registration = ToCoordinator::Register(entrance.knock(info(host), 0));
        self.reached.retain(|known| *known != host);
        self.reached.push(host);
        self.tell(host, registration);
    }

    fn tell(&mut self, host: HostId, message: ToCoordinator) {
        let now = self.now();
        self.coordinator.handle(now, host, message);
        self.carry();
    }

    /// Carries all that the coordinator says, and the answers of the doors.
    fn carry(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            let CoordinatorAction::Send { to, message } = action else { continue };
            match &mut self.asleep {
                Some((host, inbox)) if *host == to => inbox.push(message),
                _ if self.reached.contains(&to) => self.receive(to, message),
                _ => {}
            }
        }
    }

    fn receive(&mut self, to: HostId, message: FromCoordinator) {
        let (now, Some(entrance)) = (self.now(), self.nodes.get_mut(&to)) else { return };
        match entrance.receive(now.time, message) {
            Verdict::Answer(answer) => self.coordinator.handle(now, to, answer),
            Verdict::Deliver(message) => self.delivered.push((to, message)),
            _ => {}
        }
    }

    fn fall_asleep(&mut self, host: HostId) {
        self.asleep = Some((host, Vec::new()));
    }

    fn wake_up(&mut self) {
        let Some((host, inbox)) = self.asleep.take() else { return };
        inbox.into_iter().for_each(|message| self.receive(host, message));
        self.carry();
    }

    /// Lets time pass, in which those who reach the coordinator are heard.
    fn run(&mut self, us: u64) {
        let end = self.now + us;
        while self.now < end {
            self.now += TICK_US;
            let asleep = self.asleep.as_ref().map(|(host, _)| *host);
            for host in self.reached.clone().into_iter().filter(|host| Some(*host) != asleep) {
                let load = NodeLoad::default();
                self.tell(host, ToCoordinator::Heartbeat { host, map: u64::MAX, load });
            }
            let now = self.now();
            self.coordinator.tick(now);
            self.carry();
        }
    }

    /// The coordinator ends, and another one starts with nothing; nobody has reached it yet.
    fn restart(&mut self) {
        self.reached.clear();
        self.coordinator = Coordinator::gather(config(), self.now(), false);
    }

    /// The view of the only group, as the coordinator knows it.
    fn view(&self) -> &types::GroupView {
        &self.coordinator.map().expect("it has gone on").groups[0]
    }

    fn has_gone_on(&self) -> bool {
        self.coordinator.map().is_some()
    }

    /// The primary of role 0 complains of parity `row`, and the coordinator removes it.
    fn remove_parity(&mut self, row: u8) {
        let view = self.view().clone();
        let (primary, term) = (view.data[0].primary.unwrap(), view.data[0].term);
        let role = RoleIndex(row);
        let silent = [(role, view.parity_host(role).unwrap())].into_iter().collect();
        let MemberId { group, role } = MemberId { group: view.group, role: RoleIndex(0) };
        self.tell(primary, ToCoordinator::Stalled { group, role, term, view: view.version, silent });
    }

    fn told_of(&self, host: HostId) -> u64 {
        let views = self.delivered.iter().filter(|(to, _)| *to == host);
        let versions = views.filter_map(|(_, message)| match message {
            FromCoordinator::Changes(changes) => changes.views.first().map(|view| view.version.0),
            FromCoordinator::Map(map) => Some(map.groups[0].version.0),
            _ => None,
        });
        versions.max().unwrap_or(0)
    }
}

#[test]
fn a_restarted_coordinator_goes_on_at_once_when_all_have_answered() {
    let mut story = Story::formed();
    let before = story.coordinator.map().unwrap().clone();
    story.restart();
    (0..4).for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    assert!(!story.has_gone_on(), "the fifth may know more");
    assert_eq!(story.coordinator.gathered().unwrap().missing, [NodeId(4)]);
    story.reach(host(4));
    assert!(story.has_gone_on());
    let map = story.coordinator.map().unwrap();
    assert_eq!((map.cluster, &map.groups), (before.cluster, &before.groups));
    assert_eq!(story.coordinator.epoch().0, 2);
}

#[test]
fn most_are_enough_after_two_leases_and_fewer_never_are() {
    let mut story = Story::formed();
    story.restart();
    [0, 1].into_iter().for_each(|node| story.reach(host(node)));
    story.run(20 * LEASE_US);
    assert!(!story.has_gone_on());
    story.reach(host(2));
    assert!(story.has_gone_on(), "it has been waiting for long enough");
}

#[test]
fn what_the_former_coordinator_told_nobody_alive_is_not_needed() {
    let mut story = Story::formed();
    // Parity 3 is slow: it reaches nobody any more.
    let slow = story.view().parity_host(RoleIndex(3)).unwrap();
    story.reached.retain(|host| *host != slow);
    story.remove_parity(3);
    let (view, primary) = (story.view().clone(), story.view().data[0].primary.unwrap());
    assert_eq!(story.told_of(primary), view.version.0, "the primary commits without parity 3 from now on");
    // The coordinator and the primary die. The slow parity comes first, and says what it knows.
    story.nodes.remove(&primary);
    story.restart();
    let others: Vec<HostId> = story.nodes.keys().copied().filter(|host| *host != slow).collect();
    story.reach(slow);
    others.into_iter().for_each(|host| story.reach(host));
    story.run(3 * LEASE_US);
    assert_eq!(story.view().parity_host(RoleIndex(3)), None, "nobody recovers from it");
}

#[test]
fn a_view_that_a_living_node_does_not_keep_is_not_in_force() {
    let mut story = Story::formed();
    let version = story.view().version.0;
    // Node 1 has neither to do with it nor answers.
    let primary = story.view().data[0].primary.unwrap();
    let witness = (0..5)
        .map(host)
        .find(|host| *host != primary && story.view().parity_host(RoleIndex(3)) != Some(*host));
    let witness = witness.unwrap();
    story.reached.retain(|host| *host != witness);
    story.remove_parity(3);
    assert_eq!(story.told_of(primary), version, "the primary waits");
    story.reach(witness);
    assert!(story.told_of(primary) > version);
}

#[test]
fn a_cluster_forms_only_over_nodes_that_keep_nothing() {
    let mut story = Story::new(Coordinator::gather(config(), Now::default(), false), 0);
    (0..5).for_each(|node| story.start(host(node), Entry::Founder));
    assert!(!story.has_gone_on(), "others may be on their way");
    story.run(2 * LEASE_US);
    assert!(story.has_gone_on());

    let serving = Story::formed();
    let mut story = Story::new(Coordinator::gather(config(), Now::default(), false), 0);
    story.nodes = serving.nodes;
    story.reach(host(0));
    (10..15).for_each(|node| story.start(host(node), Entry::Founder));
    story.run(20 * LEASE_US);
    assert!(!story.has_gone_on(), "one of five has answered");
}

#[test]
fn a_node_that_promised_a_later_coordinator_is_not_taken_from_it() {
    let mut story = Story::formed();
    let second = Coordinator::gather(config(), story.now(), false);
    let mut first = std::mem::replace(&mut story.coordinator, second);
    story.reached.clear();
    (0..5).for_each(|node| story.reach(host(node)));
    assert_eq!(story.coordinator.epoch().0, 2);
    // The first one lives after all, and node 0 comes back to it.
    let registration = story.nodes.get_mut(&host(0)).unwrap().knock(info(host(0)), 0);
    first.handle(story.now(), host(0), ToCoordinator::Register(registration));
    assert!(first.has_resigned());
}

#[test]
fn two_restarts_in_a_row_lose_nothing() {
    let mut story = Story::formed();
    story.remove_parity(4);
    let view = story.view().clone();
    story.restart();
    // The second one ends before it has heard enough.
    [0, 1, 2].into_iter().for_each(|node| story.reach(host(node)));
    story.restart();
    (0..5).for_each(|node| story.reach(host(node)));
    story.run(LEASE_US / 4);
    assert!(story.view().version >= view.version);
    assert_eq!(story.view().parity_host(RoleIndex(4)), None);
    assert_eq!(story.coordinator.epoch().0, 3);
}

#[test]
fn when_most_come_back_the_first_one_does_not_cost_the_others_their_data() {
    let mut story = Story::formed();
    story.reached.truncate(2);
    story.run(8 * LEASE_US);
    story.reach(host(2));
    story.run(LEASE_US);
    (3..5).for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    let lost = story.view().data.iter().filter(|role| role.status == types::RoleStatus::Lost).count();
    assert_eq!(lost, 0);
}

#[test]
fn a_head_that_was_never_in_force_does_not_say_who_has_to_answer() {
    let mut story = Story::formed();
    // The first coordinator hears two of five, and a process that has taken the name of a third. That one lives. The head with
    // the new process is kept by these three, which are most of those in it, and is not in force.
    story.reached.retain(|host| host.node.0 >= 3);
    story.run(2 * LEASE_US);
    let namesake = HostId { incarnation: Incarnation(2), ..host(0) };
    story.start(namesake, Entry::Founder);
    story.run(LEASE_US);
    // The second one goes on with the three that are most of the five, and tells them of a view.
    story.restart();
    (0..3).for_each(|node| story.reach(host(node)));
    story.run(4 * LEASE_US);
    let version = story.view().version;
    assert!((0..3).any(|node| story.told_of(host(node)) > 1));
    // The third one hears those of the first.
    story.restart();
    [host(3), host(4), namesake].into_iter().for_each(|host| story.reach(host));
    story.run(20 * LEASE_US);
    assert!(!story.has_gone_on(), "the others may know more, and do");
    // The second one has put a head in force with the three: most of these have to answer now.
    story.reach(host(0));
    story.run(4 * LEASE_US);
    assert!(!story.has_gone_on());
    story.reach(host(1));
    story.run(LEASE_US);
    assert!(story.view().version >= version);
}

#[test]
fn who_hears_too_few_for_anything_to_be_in_force_decides_nothing() {
    let mut story = Story::formed();
    let before = story.coordinator.map().unwrap().clone();
    // It loses them within a heartbeat or two of each other.
    for left in [4, 3, 2] {
        story.reached.truncate(left);
        story.run(LEASE_US / 10);
    }
    story.run(20 * LEASE_US);
    assert_eq!(*story.coordinator.map().unwrap(), before, "or whoever follows would go on from that");
    // One more, and half of the electors are heard. The last two have a lease to come back.
    story.reach(host(2));
    story.run(LEASE_US / 2);
    assert_eq!(story.coordinator.map().unwrap().groups, before.groups);
    story.run(LEASE_US);
    assert!(story.coordinator.map().unwrap().groups != before.groups);
}

#[test]
fn an_operator_says_that_those_who_answer_are_all_there_are() {
    let mut story = Story::formed();
    story.restart();
    story.coordinator = Coordinator::gather(config(), story.now(), true);
    [0, 1].into_iter().for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    assert!(!story.has_gone_on(), "others may be on their way");
    story.run(5_000_000 + LEASE_US);
    let told = story.delivered.iter().any(|(to, message)| {
        *to == host(0) && matches!(message, FromCoordinator::Map(map) if map.nodes.iter().filter(|node| node.alive).count() == 2)
    });
    assert!(story.has_gone_on() && told, "and they are told what it decides");
    story.reach(host(4));
    assert!(!story.coordinator.map().unwrap().nodes[4].alive, "who has not answered may not come back");
}

#[test]
fn who_was_not_heard_for_a_while_is_admitted_when_the_coordinator_goes_on() {
    let mut story = Story::formed();
    story.restart();
    (0..4).for_each(|node| story.reach(host(node)));
    // Its connection does not end.
    story.fall_asleep(host(3));
    story.run(3 * LEASE_US);
    assert!(story.has_gone_on());
    story.delivered.clear();
    story.wake_up();
    story.run(2 * LEASE_US);
    let (made, in_force) = story.coordinator.kept();
    assert_eq!(made, in_force, "it keeps the records, too");
    assert!(story.told_of(host(3)) > 0, "and has the map");
}

#[test]
fn an_operator_gets_a_cluster_out_of_which_most_are_gone() {
    for command in [AdminCommand::Reset, AdminCommand::Fence { node: NodeId(2), loss: OnLoss::Accept }] {
        let mut story = Story::formed();
        story.reached.truncate(2);
        story.run(20 * LEASE_US);
        let (now, request) = (story.now(), AdminRequest { expect: None, command });
        story.coordinator.administer(now, &request).unwrap();
        story.run(3 * LEASE_US);
        let (made, in_force) = story.coordinator.kept();
        assert_eq!(made, in_force, "{request:?}");
        assert!(story.coordinator.map().unwrap().nodes.iter().skip(2).all(|node| !node.alive), "{request:?}");
    }
}

#[test]
fn a_cluster_goes_on_whose_nodes_have_all_been_started_again() {
    let mut story = Story::formed();
    story.reached.clear();
    story.run(2 * LEASE_US);
    // At the addresses that they had.
    for node in 0..3 {
        let again = HostId { incarnation: Incarnation(1 + 256), ..host(node) };
        story.start(again, Entry::Founder);
    }
    story.run(2 * LEASE_US);
    let (made, in_force) = story.coordinator.kept();
    assert_eq!(made, in_force, "three of them, and the other two are m");
}

#[test]
fn a_coordinator_resigns_when_more_waits_than_a_message_can_name() {
    let mut story = Story::formed();
    story.reached.truncate(2);
    // Processes come and go under one name, and nothing of that comes into force.
    for incarnation in 2..800 {
        if story.coordinator.has_resigned() {
            break;
        }
        story.reached.truncate(1);
        story.start(HostId { incarnation: Incarnation(incarnation), ..host(4) }, Entry::Founder);
        story.run(2 * LEASE_US);
    }
    let (made, in_force) = story.coordinator.kept();
    assert!(story.coordinator.has_resigned() && in_force < made, "{made} {in_force}");
}

#[test]
fn who_keeps_records_does_not_say_by_that_that_its_workers_run() {
    let mut story = Story::formed();
    let stuck = host(4);
    story.reached.retain(|host| *host != stuck);
    let epoch = story.coordinator.epoch();
    for _ in 0..30 {
        story.run(TICK_US);
        let position = story.coordinator.kept().0;
        story.tell(stuck, ToCoordinator::Kept { epoch, position });
    }
    assert!(!story.coordinator.map().unwrap().nodes[4].alive);
}

#[test]
fn processes_that_promised_a_coordinator_that_came_to_nothing_can_form_a_cluster() {
    let mut story =
        Story::new(Coordinator::gather(config(), Now { time: Time(0), unix: UnixSeconds(1) }, false), 0);
    (0..3).for_each(|node| story.start(host(node), Entry::Founder));
    story.run(LEASE_US);
    story.restart();
    (0..3).for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    // Each has promised twice, and another coordinator begins anew.
    story.coordinator = Coordinator::new(config());
    story.reached.clear();
    (0..3).for_each(|node| story.reach(host(node)));
    (3..5).for_each(|node| story.start(host(node), Entry::Founder));
    story.run(LEASE_US);
    let (made, in_force) = story.coordinator.kept();
    assert!(story.coordinator.map().is_some() && made == in_force, "{made} {in_force}");
}

/// One node of another cluster, with a higher epoch, the rest of which is gone.
fn stranger(cluster: u64, node: u16) -> (HostId, Entrance) {
    let mut other =
        Story::new(Coordinator::new(CoordinatorConfig { cluster: ClusterId(cluster), ..config() }), 0);
    (node..node + 5).for_each(|node| other.start(host(node), Entry::Founder));
    other.run(LEASE_US);
    for _ in 0..3 {
        other.restart();
        other.nodes.keys().copied().collect::<Vec<_>>().into_iter().for_each(|host| other.reach(host));
        other.run(LEASE_US);
    }
    let host = host(node);
    (host, other.nodes.remove(&host).unwrap())
}

#[test]
fn strangers_with_newer_records_keep_nobody_from_going_on() {
    let mut story = Story::formed();
    let strangers = [stranger(8, 9), stranger(9, 20)];
    story.nodes.extend(strangers);
    story.restart();
    [9, 20, 0, 1, 2, 3, 4].into_iter().for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    assert!(!story.has_gone_on(), "the strangers' may be on their way");
    story.run(2 * LEASE_US);
    assert!(story.has_gone_on());
    assert_eq!(story.coordinator.map().unwrap().cluster, ClusterId(7));
}

#[test]
fn a_process_that_registers_with_records_and_dies_is_forgotten_when_its_node_is_started_again() {
    let mut story = Story::formed();
    story.restart();
    story.fall_asleep(host(0));
    story.reach(host(0));
    // Everybody has been started again with nothing.
    let again = |node| HostId { incarnation: Incarnation(2), ..host(node) };
    story.reached.clear();
    (1..5).for_each(|node| story.start(again(node), Entry::Founder));
    story.run(2 * LEASE_US);
    assert!(!story.has_gone_on());
    story.start(again(0), Entry::Founder);
    story.run(2 * LEASE_US);
    assert!(story.has_gone_on(), "nobody keeps anything");
}

#[test]
fn an_absence_of_the_coordinator_is_nobodys_silence_while_it_gathers() {
    let mut story = Story::formed();
    story.restart();
    story.coordinator = Coordinator::gather(config(), story.now(), true);
    [0, 1].into_iter().for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    story.now += 20 * LEASE_US;
    let now = story.now();
    story.coordinator.tick(now);
    assert!(!story.has_gone_on(), "the others are fenced only after it has waited for them");
    (2..5).for_each(|node| story.reach(host(node)));
    assert!(story.has_gone_on() && story.coordinator.map().unwrap().nodes.iter().all(|node| node.alive));
}

#[test]
fn incarnations_of_one_name_are_bounded() {
    let mut story = Story::formed();
    let ghosts = |story: &mut Story, from: u64| {
        for incarnation in from..from + 100 {
            let host = HostId { node: NodeId(4), incarnation: Incarnation(incarnation) };
            story.tell(host, ToCoordinator::Register(wire::message::Registration::from(info(host))));
        }
    };
    ghosts(&mut story, 2);
    assert_eq!(story.coordinator.known_processes(), 5, "those that wait for a name keep nothing");
    story.restart();
    ghosts(&mut story, 200);
    assert!(story.coordinator.known_processes() <= 5, "{}", story.coordinator.known_processes());
}

#[test]
fn whoever_is_silent_counts_as_lost_when_a_node_is_to_be_stopped() {
    let mut story = Story::formed();
    let ask = |story: &mut Story| {
        let command = AdminCommand::CanStop { node: NodeId(1), heard_within_us: None };
        let now = story.now();
        match story.coordinator.administer(now, &AdminRequest { expect: None, command }) {
            Ok(types::AdminAnswer::CanStop(report)) => report.losses_survived_after,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut story), Some(1));
    story.reached.truncate(2);
    story.run(2 * LEASE_US);
    assert!(story.coordinator.map().unwrap().nodes.iter().all(|node| node.alive), "it may not decide");
    assert_eq!(ask(&mut story), None);
}

#[test]
fn more_groups_than_nodes_can_keep_the_records_of_are_refused() {
    let mut story = Story::new(Coordinator::new(CoordinatorConfig { groups: 4_000_000, ..config() }), 0);
    (0..4).for_each(|node| story.start(host(node), Entry::Founder));
    let registration = wire::message::Registration::from(info(host(4)));
    story.coordinator.handle(story.now(), host(4), ToCoordinator::Register(registration));
    assert!(story.coordinator.map().is_none());
    let refusals = std::iter::from_fn(|| story.coordinator.poll_action()).filter(|action| {
        matches!(action, CoordinatorAction::Send { message: FromCoordinator::Refused(refused), .. }
            if refused.reason.contains("--groups"))
    });
    assert_eq!(refusals.count(), 5);
}

#[test]
fn a_node_that_ends_and_comes_back_while_a_coordinator_gathers_lives() {
    let mut story = Story::formed();
    story.restart();
    let now = story.now();
    story.coordinator.exited(now, NodeId(4));
    story.start(HostId { incarnation: Incarnation(2), ..host(4) }, Entry::Founder);
    (0..4).for_each(|node| story.reach(host(node)));
    story.run(4 * LEASE_US);
    let node = &story.coordinator.map().unwrap().nodes[4];
    assert!(node.alive && node.host.incarnation == Incarnation(2), "{node:?}");
}

#[test]
fn the_answer_of_a_process_that_has_ended_since_counts_and_it_is_not_taken_for_alive() {
    let mut story = Story::formed();
    story.restart();
    (0..3).for_each(|node| story.reach(host(node)));
    story.run(LEASE_US);
    assert!(!story.has_gone_on(), "all are waited for");
    story.reached.retain(|reached| *reached != host(2));
    let now = story.now();
    story.coordinator.exited(now, NodeId(2));
    story.run(LEASE_US + 2 * TICK_US);
    assert!(
        story.has_gone_on(),
        "three of five have answered, and what has ended keeps nothing for anybody else"
    );
    let node = story.coordinator.map().unwrap().nodes.iter().find(|info| info.host == host(2));
    assert!(node.is_some_and(|info| !info.alive));
}

#[test]
fn a_higher_epoch_asks_all_anew_but_those_that_have_ended() {
    let mut story = Story::formed();
    story.restart();
    (0..3).for_each(|node| story.reach(host(node)));
    let now = story.now();
    story.coordinator.exited(now, NodeId(2));
    story.reached.retain(|reached| *reached != host(2));
    // Somebody has promised a coordinator in between.
    let between = story.coordinator.epoch().next();
    let stranger = story.nodes.get_mut(&host(3)).unwrap();
    stranger.receive(now.time, FromCoordinator::Recall { epoch: between });
    story.reach(host(3));
    assert!(story.coordinator.epoch() > between);
    story.run(2 * LEASE_US + 2 * TICK_US);
    assert!(story.has_gone_on());
}
