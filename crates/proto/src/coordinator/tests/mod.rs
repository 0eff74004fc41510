//! Stories of one coordinator: a state, one event, the exact list of what it sends.

mod complaints;
mod conversions;
mod learners;
mod quotas;
mod recovery;
mod repairs;

use types::{
    ClusterId, Entry, Epoch, Expectations, GroupId, GroupView, Incarnation, LossPolicy, NodeInfo, NodeLoad,
    Profile, RoleIndex, RoleStatus, Seq, Term, Time, UnixSeconds, ViewVersion,
};
use wire::message::Registration;

use super::*;
use crate::{Rules, Timing};

const LEASE_US: u64 = 1_000_000;
const GROUP: GroupId = GroupId(0);
const PARITIES: [(RoleIndex, u16); 2] = [(RoleIndex(3), 3), (RoleIndex(4), 4)];

/// So many nodes, and one group of `rs(3+2)` on the first five: data on 0, 1 and 2, parities on 3 and 4.
struct Stage {
    coordinator: Coordinator,
    now: u64,
    nodes: u16,
    /// Whose heartbeats do not come.
    silent: Vec<u16>,
}

/// What a node is told that follows from a decision.
#[derive(Debug, PartialEq)]
enum Told {
    View(u16),
    Fence(u16, RoleIndex, Term),
    Settle(u16, RoleIndex, Seq),
    HandOver(u16, RoleIndex),
    Close(u16, Impossible),
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn member(role: u8) -> MemberId {
    MemberId { group: GROUP, role: RoleIndex(role) }
}

impl Stage {
    fn new(nodes: u16) -> Self {
        Self::by(nodes, Rules::all())
    }

    fn by(nodes: u16, rules: Rules) -> Self {
        let coordinator = Coordinator::new(CoordinatorConfig {
            cluster: ClusterId(7),
            profile: Profile::rs(3, 2).unwrap(),
            nodes,
            shards: 1,
            groups: 1,
            timing: Timing::from_lease(LEASE_US),
            rules,
            records: RecordKeeping::Stored,
            on_loss: LossPolicy::Error,
        });
        let mut stage = Self { coordinator, now: 0, nodes, silent: Vec::new() };
        (0..nodes).for_each(|node| stage.register(node));
        stage.told();
        // Complaints from before it was awake for a while say nothing.
        stage.pass(LEASE_US);
        stage
    }

    fn register(&mut self, node: u16) {
        let address = ([127, 0, 0, 1], 1000 + node).into();
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
        let registration = Registration { info, expect, holds: None, promised: Epoch(0), map: 0 };
        self.coordinator.handle(self.at(), host, ToCoordinator::Register(registration));
    }

    fn at(&self) -> Now {
        Now { time: Time(self.now), unix: UnixSeconds(1) }
    }

    /// What is told by now, but for maps, answers to heartbeats, and views to other nodes than the last one.
    fn told(&mut self) -> Vec<Told> {
        let last = self.nodes - 1;
        let actions = std::iter::from_fn(|| self.coordinator.poll_action());
        let told = actions.filter_map(|action| match action {
            CoordinatorAction::Send { to, message } => match message {
                FromCoordinator::View(_) => (to.node.0 == last).then_some(Told::View(last)),
                FromCoordinator::Fence { role, term, .. } => Some(Told::Fence(to.node.0, role, term)),
                FromCoordinator::Settle { role, upto, .. } => Some(Told::Settle(to.node.0, role, upto)),
                FromCoordinator::HandOver { role, .. } => Some(Told::HandOver(to.node.0, role)),
                FromCoordinator::Changes(changes) if !changes.views.is_empty() => {
                    (to.node.0 == last).then_some(Told::View(last))
                }
                FromCoordinator::Map(_) | FromCoordinator::Changes(_) | FromCoordinator::Alive => None,
                other => panic!("not expected here: {other:?}"),
            },
            CoordinatorAction::Close { peer, why } => Some(Told::Close(peer.node.0, why)),
            CoordinatorAction::Record(_) => None,
            CoordinatorAction::Resign => panic!("not expected here"),
        });
        told.collect()
    }

    fn hear(&mut self, node: u16, message: ToCoordinator) -> Vec<Told> {
        self.coordinator.handle(self.at(), host(node), message);
        self.told()
    }

    /// The process of `node` is seen to end.
    fn dies(&mut self, node: u16) -> Vec<Told> {
        self.silent.push(node);
        self.coordinator.exited(self.at(), NodeId(node));
        self.told()
    }

    /// Time passes, with the heartbeats of all that are not silent.
    fn pass(&mut self, us: u64) -> Vec<Told> {
        let until = self.now + us;
        let mut told = Vec::new();
        while self.now < until {
            self.now += (LEASE_US / 20).min(until - self.now);
            for node in (0..self.nodes).filter(|node| !self.silent.contains(node)).collect::<Vec<_>>() {
                let map = self.coordinator.map().map_or(0, |map| map.version);
                let beat = ToCoordinator::Heartbeat { host: host(node), map, load: NodeLoad::default() };
                self.coordinator.handle(self.at(), host(node), beat);
            }
            self.coordinator.tick(self.at());
            told.extend(self.told());
        }
        told
    }

    fn view(&self) -> &GroupView {
        self.coordinator.map().unwrap().group(GROUP).unwrap()
    }

    fn status(&self, role: u8) -> RoleStatus {
        self.view().data[usize::from(role)].status
    }

    fn primary(&self, role: u8) -> Option<u16> {
        self.view().data[usize::from(role)].primary.map(|host| host.node.0)
    }

    fn in_sync(&self) -> Vec<u16> {
        self.view().in_sync().map(|(_, host)| host.node.0).collect()
    }

    /// Role, node, and whether it is whole.
    fn learners(&self) -> Vec<(u8, u16, bool)> {
        let learners = self.view().learners.iter();
        learners.map(|learner| (learner.role.0, learner.host.node.0, learner.whole)).collect()
    }

    /// The parity on `node` answers a Fence: it has received so much, and has been quiet for so long.
    fn fenced(&mut self, node: u16, role: u8, (received, quiet_us): (u64, u64)) -> Vec<Told> {
        let fenced = self.fenced_answer(node, role, received, quiet_us);
        self.hear(node, fenced)
    }

    fn fenced_answer(&self, node: u16, role: u8, received: u64, quiet_us: u64) -> ToCoordinator {
        ToCoordinator::Fenced {
            group: GROUP,
            role: RoleIndex(role),
            term: self.view().data[usize::from(role)].term,
            parity: RoleIndex(node as u8),
            received: Seq(received),
            applied: Seq(0),
            quiet_us,
            epoch: self.coordinator.epoch(),
        }
    }

    fn settled(&mut self, node: u16, role: u8) -> Vec<Told> {
        let (term, epoch) = (self.view().data[usize::from(role)].term, self.coordinator.epoch());
        let (group, role, parity) = (GROUP, RoleIndex(role), RoleIndex(node as u8));
        self.hear(node, ToCoordinator::Settled { group, role, term, parity, epoch })
    }

    /// A stand-in serves the role whose primary has died.
    fn taken_over(&mut self, role: u8) {
        self.dies(u16::from(role));
        for (_, node) in PARITIES {
            self.fenced(node, role, (11, 0));
        }
        for (_, node) in PARITIES {
            self.settled(node, role);
        }
        assert!(matches!(self.status(role), RoleStatus::Rebuilding { .. }));
    }
}

fn fences(role: u8, term: u32) -> Vec<Told> {
    PARITIES.iter().map(|(_, node)| Told::Fence(*node, RoleIndex(role), Term(term))).collect()
}

fn settles(role: u8, upto: u64) -> Vec<Told> {
    PARITIES.iter().map(|(_, node)| Told::Settle(*node, RoleIndex(role), Seq(upto))).collect()
}
