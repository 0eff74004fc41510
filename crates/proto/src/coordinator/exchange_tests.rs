//! A data role and a parity change places, as the coordinator sees it: one state, one event, and what follows.

use types::{
    AdminCommand, AdminRequest, ClusterId, Entry, Expectations, GroupId, GroupView, HostId, Incarnation,
    LossPolicy, MemberId, NodeId, NodeInfo, NodeLayout, NodeLoad, NodeState, Profile, RoleIndex, RoleStatus,
    Term, Time, UnixSeconds,
};
use wire::message::{FromCoordinator, Lesson, Registration, ToCoordinator};

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping};
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;
const NODES: u16 = 6;
const DATA: RoleIndex = RoleIndex(0);
const PARITY: RoleIndex = RoleIndex(3);

/// Six nodes, one group of `rs(3+2)` on the first five: data on 0, 1 and 2, parities on 3 and 4. Data role 0 and the parity on 3 are
/// to change places.
struct Story {
    coordinator: Coordinator,
    now: u64,
    gone: Vec<u16>,
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn member(role: RoleIndex) -> MemberId {
    MemberId { group: GroupId(0), role }
}

impl Story {
    fn new() -> Self {
        let coordinator = Coordinator::new(CoordinatorConfig {
            cluster: ClusterId(7),
            profile: Profile::rs(3, 2).unwrap(),
            nodes: NODES,
            shards: 1,
            groups: 1,
            timing: Timing::from_lease(LEASE_US),
            rules: Rules::all(),
            records: RecordKeeping::Stored,
            on_loss: LossPolicy::Error,
        });
        let mut story = Self { coordinator, now: 0, gone: Vec::new() };
        (0..NODES).for_each(|node| story.register(node));
        story.messages();
        story
    }

    /// The mirror is being built.
    fn begun() -> Self {
        let mut story = Self::new();
        assert!(story.coordinator.appoint_learner(member(DATA), host(3)));
        story.messages();
        story
    }

    /// The mirror is whole.
    fn mirrored() -> Self {
        let mut story = Self::begun();
        story.caught_up(0, DATA);
        story.messages();
        story
    }

    /// The mirror is whole, and the parity is being built beside the primary.
    fn completing() -> Self {
        let mut story = Self::mirrored();
        story.pass();
        assert_eq!(story.learners(), [(0, 3, true), (3, 0, false)]);
        story
    }

    /// The primary's node has the parity, too; the mirror waits alone.
    fn beside() -> Self {
        let mut story = Self::completing();
        (0..3).for_each(|node| story.caught_up(node, PARITY));
        assert_eq!((story.parities(), story.learners()), (vec![0, 4], vec![(0, 3, true)]));
        story.messages();
        story
    }

    fn at(&self) -> Now {
        Now { time: Time(self.now), unix: UnixSeconds(1) }
    }

    fn register(&mut self, node: u16) {
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
        self.coordinator.handle(self.at(), host, ToCoordinator::Register(registration));
    }

    fn messages(&mut self) -> Vec<(HostId, FromCoordinator)> {
        let actions = std::iter::from_fn(|| self.coordinator.poll_action());
        let sent = actions.filter_map(|action| match action {
            CoordinatorAction::Send { to, message } => Some((to, message)),
            _ => None,
        });
        sent.filter(|(_, message)| *message != FromCoordinator::Alive).collect()
    }

    /// One round of heartbeats and a tick, and what was sent.
    fn pass(&mut self) -> Vec<(HostId, FromCoordinator)> {
        self.now += LEASE_US / 20;
        for node in (0..NODES).filter(|node| !self.gone.contains(node)).collect::<Vec<_>>() {
            let map = self.coordinator.map().unwrap().version;
            let beat = ToCoordinator::Heartbeat { host: host(node), map, load: NodeLoad::default() };
            self.coordinator.handle(self.at(), host(node), beat);
        }
        self.coordinator.tick(self.at());
        self.messages()
    }

    /// The primary on `node` has taught the learner of `learner` everything.
    fn caught_up(&mut self, node: u16, learner: RoleIndex) {
        let since = self.view().learner(learner).unwrap().since;
        let lesson = Lesson { since, attempt: 0 };
        let (group, role) = (GroupId(0), RoleIndex(node as u8));
        let told = ToCoordinator::CaughtUp { group, role, term: Term(1), learner, lesson };
        self.coordinator.handle(self.at(), host(node), told);
    }

    fn dies(&mut self, node: u16) {
        self.gone.push(node);
        self.coordinator.exited(self.at(), NodeId(node));
    }

    fn drain(&mut self, node: u16) {
        let mut layout = self.coordinator.map().unwrap().layout.clone();
        layout.nodes.insert(NodeId(node), NodeLayout { state: NodeState::Draining, zone: None });
        let request = AdminRequest { expect: None, command: AdminCommand::Apply { layout } };
        self.coordinator.administer(self.at(), &request).unwrap();
    }

    fn losses_survived(&self) -> usize {
        self.coordinator.state.protection(self.view().group).losses_survived(self.view())
    }

    fn view(&self) -> &GroupView {
        self.coordinator.map().unwrap().group(GroupId(0)).unwrap()
    }

    /// Role, node, and whether it is whole.
    fn learners(&self) -> Vec<(u8, u16, bool)> {
        let learners = self.view().learners.iter();
        learners.map(|learner| (learner.role.0, learner.host.node.0, learner.whole)).collect()
    }

    fn parities(&self) -> Vec<u16> {
        self.view().in_sync().map(|(_, host)| host.node.0).collect()
    }

    fn is_mirrored_on_3(&self) -> bool {
        self.view().mirror(DATA) == Some(host(3))
    }
}

/// Whom `messages` ask to hand a role over.
fn asked(messages: &[(HostId, FromCoordinator)]) -> Vec<HostId> {
    let asks = |message: &FromCoordinator| matches!(message, FromCoordinator::HandOver { .. });
    messages.iter().filter(|(_, message)| asks(message)).map(|(to, _)| *to).collect()
}

/// Who is told of which view by `messages`, which tell of nothing else.
fn views(messages: &[(HostId, FromCoordinator)]) -> Vec<(HostId, GroupView)> {
    let view = |message: &FromCoordinator| match message {
        FromCoordinator::Changes(changes) => changes.views.first().expect("a view has changed").clone(),
        other => panic!("not expected here: {other:?}"),
    };
    messages.iter().map(|(to, message)| (*to, view(message))).collect()
}

#[test]
fn a_mirror_beside_a_parity_becomes_whole_and_nobody_is_asked_to_make_way() {
    let mut story = Story::begun();
    assert_eq!(story.learners(), [(0, 3, false)]);
    story.caught_up(0, DATA);
    let told: Vec<_> = (0..NODES).map(|node| (host(node), story.view().clone())).collect();
    assert_eq!(views(&story.messages()), told);
    assert_eq!(story.learners(), [(0, 3, true)]);
}

#[test]
fn once_the_mirror_is_whole_the_parity_is_built_beside_the_primary() {
    let mut story = Story::mirrored();
    let sent = story.pass();
    assert_eq!(views(&sent), (0..NODES).map(|node| (host(node), story.view().clone())).collect::<Vec<_>>());
    assert_eq!((story.parities(), story.learners()), (vec![3, 4], vec![(0, 3, true), (3, 0, false)]));
    (0..4).for_each(|_| assert_eq!(asked(&story.pass()), []));
}

#[test]
fn when_the_parity_has_come_the_primary_is_asked_to_make_way() {
    let mut story = Story::beside();
    let since = story.view().learner(DATA).unwrap().since;
    let sent = story.pass();
    let (asked_at, epoch) = (Time(story.now), story.coordinator.epoch());
    let hand_over =
        FromCoordinator::HandOver { group: GroupId(0), role: DATA, term: Term(1), since, asked_at, epoch };
    assert_eq!(sent, [(host(0), hand_over)]);
    let handed_over =
        ToCoordinator::HandedOver { group: GroupId(0), role: DATA, term: Term(1), since, asked_at, epoch };
    story.coordinator.handle(story.at(), host(0), handed_over);
    assert_eq!(story.view().data[0].status, RoleStatus::Fenced);
    assert!(story.is_mirrored_on_3());
}

#[test]
fn without_the_whole_mirror_no_parity_is_built_beside_a_primary() {
    let mut story = Story::new();
    assert!(!story.coordinator.appoint_learner(member(PARITY), host(0)));
    let mut story = Story::begun();
    assert!(!story.coordinator.appoint_learner(member(PARITY), host(0)));
    assert!(!Story::mirrored().coordinator.appoint_learner(member(RoleIndex(4)), host(0)), "another parity");
    assert!(!Story::mirrored().coordinator.appoint_learner(member(PARITY), host(1)), "another primary");
}

#[test]
fn no_exchange_begins_while_a_parity_is_missing() {
    let mut story = Story::new();
    story.dies(4);
    assert!(!story.coordinator.appoint_learner(member(DATA), host(3)));
}

#[test]
fn a_drain_of_either_node_calls_it_off() {
    for stage in [Story::begun, Story::mirrored, Story::completing] {
        for node in [0, 3] {
            let mut story = stage();
            story.drain(node);
            story.pass();
            // On the spare node the role of the drained one is built.
            let left: Vec<_> = story.learners().into_iter().filter(|(_, to, _)| *to != 5).collect();
            assert_eq!((left, story.parities()), (vec![], vec![3, 4]), "node {node} drains");
        }
    }
}

#[test]
fn a_primary_s_node_without_memory_for_the_parity_calls_it_off() {
    let mut story = Story::completing();
    let since = story.view().learner(PARITY).unwrap().since;
    let told = ToCoordinator::GaveUp { group: GroupId(0), learner: PARITY, since };
    story.coordinator.handle(story.at(), host(0), told);
    assert_eq!(story.learners(), [(0, 3, true)]);
    story.pass();
    assert_eq!(story.learners(), []);
}

#[test]
fn a_missing_parity_is_more_important() {
    let mut story = Story::mirrored();
    story.dies(4);
    story.pass();
    assert_eq!(story.learners(), [(4, 5, false)]);
}

#[test]
fn the_loss_of_the_mirror_takes_the_learner_of_the_parity_with_it() {
    let mut story = Story::completing();
    story.dies(3);
    assert_eq!((story.parities(), story.learners()), (vec![4], vec![]));
    assert_eq!(story.view().data[0].primary, Some(host(0)));
}

#[test]
fn a_mirror_that_is_silent_takes_the_learner_of_the_parity_with_it() {
    let mut story = Story::completing();
    (0..20).for_each(|_| _ = story.pass());
    let version = story.view().version;
    let silent = smallvec::smallvec![(DATA, host(3))];
    let told = ToCoordinator::Stalled { group: GroupId(0), role: DATA, term: Term(1), view: version, silent };
    story.coordinator.handle(story.at(), host(0), told);
    assert_eq!((story.parities(), story.learners()), (vec![3, 4], vec![]));
}

#[test]
fn the_loss_of_another_data_role_calls_it_off_until_the_parity_has_come() {
    let mut story = Story::completing();
    story.dies(1);
    assert_eq!(story.learners(), []);
    let mut story = Story::beside();
    story.dies(1);
    assert_eq!(story.learners(), [(0, 3, true)], "the loss of node 0 would cost two members without it");
    assert_eq!(story.losses_survived(), 1);
    assert_eq!(asked(&story.pass()), [], "the group is not steady");
}

#[test]
fn the_loss_of_the_primary_leaves_the_role_to_the_mirror() {
    for stage in [Story::mirrored, Story::completing, Story::beside] {
        let mut story = stage();
        story.dies(0);
        assert_eq!(story.learners(), [(0, 3, true)]);
        assert_eq!(story.view().roles_in_play(), 0, "nothing is missing");
        story.pass();
        assert!(story.view().data[0].status != RoleStatus::Full);
        assert!(story.is_mirrored_on_3() || story.view().data[0].primary == Some(host(3)));
    }
}

#[test]
fn while_repair_is_paused_no_step_begins() {
    let mut story = Story::mirrored();
    let mut layout = story.coordinator.map().unwrap().layout.clone();
    layout.repair.paused = true;
    let request = AdminRequest { expect: None, command: AdminCommand::Apply { layout } };
    story.coordinator.administer(story.at(), &request).unwrap();
    (0..30).for_each(|_| _ = story.pass());
    assert_eq!(story.learners(), [(0, 3, true)]);
}
