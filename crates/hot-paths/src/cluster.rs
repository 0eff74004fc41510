//! Five nodes with rs(3+2) in one thread, as `gestalt local` has them: workers without sockets, and the coordinator.
//! What they send each other passes as bytes.

use proto::{Coordinator, CoordinatorAction, CoordinatorConfig, Now, RecordKeeping, Rules, Timing};
use server::{Bare, CoordinatorAddress, NodeConfig};
use types::{
    ClusterId, ClusterMap, GroupId, KeyHash, MemberId, NodeId, Profile, RoleIndex, Time, UnixSeconds,
};
use wire::message::ToCoordinator;

use crate::data;

const NODES: u16 = 5;
const CLUSTER: ClusterId = ClusterId(0x6765_7374);
/// The data role whose keys are used.
const MEMBER: MemberId = MemberId { group: GroupId(0), role: RoleIndex(0) };
/// Time between two steps of the formation, and most steps of it.
const STEP_US: u64 = 1_000;
const MOST_STEPS: u32 = 500;

/// See the module. Once it has formed, time stands still.
pub struct Cluster {
    pub nodes: Vec<Bare>,
    coordinator: Coordinator,
    pub now: Now,
    frames: Vec<u8>,
}

/// The primary of the member whose keys are used, and the nodes of its parities.
pub struct Places {
    pub primary: NodeId,
    pub parities: Vec<NodeId>,
}

impl Cluster {
    /// A healthy cluster of so many groups, whose nodes have so much memory each.
    pub fn form(groups: u32, node_memory_bytes: usize) -> Self {
        let timing = Timing::default();
        let coordinator = Coordinator::new(CoordinatorConfig {
            cluster: CLUSTER,
            profile: Profile::rs(3, 2).expect("a valid profile"),
            nodes: NODES,
            shards: 1,
            groups,
            timing,
            rules: Rules::all(),
            records: RecordKeeping::Stored,
            on_loss: types::LossPolicy::Error,
        });
        let now = Now { time: Time(1_000_000_000), unix: UnixSeconds(1_000_000) };
        let nodes = (0..NODES).map(|number| node(number, node_memory_bytes)).collect();
        let mut cluster = Self { nodes, coordinator, now, frames: Vec::new() };
        cluster.register();
        // Always as many, whether it has formed before or not: time then stands still
        // at the same moment in every run.
        for _ in 0..MOST_STEPS {
            cluster.now.time = cluster.now.time + STEP_US;
            cluster.coordinator.tick(cluster.now);
            cluster.come_to_rest();
        }
        cluster
    }

    fn register(&mut self) {
        for node in &self.nodes {
            let registration = ToCoordinator::Register(node.registration());
            self.coordinator.handle(self.now, node.id(), registration);
        }
        self.obey();
        // Nobody dials anybody here: all are told that they are connected.
        for (one, other) in self.nodes.iter().flat_map(|one| self.nodes.iter().map(move |other| (one, other)))
        {
            if one.id() != other.id() {
                one.link_up(self.now, CLUSTER, other.id());
            }
        }
    }

    /// Does what the coordinator wants done.
    fn obey(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            if let CoordinatorAction::Send { to, message } = action {
                self.node(to.node).handle_coordinator(self.now, message);
            }
        }
    }

    pub fn node(&self, node: NodeId) -> &Bare {
        &self.nodes[usize::from(node.0)]
    }

    /// Passes on what nodes and coordinator have to say until they are silent.
    pub fn come_to_rest(&mut self) {
        loop {
            self.nodes.iter().for_each(|node| node.tick(self.now));
            let mut silent = true;
            for node in &self.nodes {
                while let Some(message) = node.to_coordinator() {
                    self.coordinator.handle(self.now, node.id(), message);
                    silent = false;
                }
            }
            self.obey();
            for (from, to) in pairs() {
                silent &= !self.pass(from, to);
            }
            if silent {
                return;
            }
        }
    }

    /// Time stands still, and what nodes have to tell each other passes until they are silent.
    pub fn settle(&mut self) {
        loop {
            self.nodes.iter().for_each(|node| node.pump(self.now));
            let mut silent = true;
            for (from, to) in pairs() {
                silent &= !self.pass(from, to);
            }
            if silent {
                return;
            }
        }
    }

    /// Passes frames on; whether there were any.
    fn pass(&mut self, from: usize, to: usize) -> bool {
        let id = |node: usize| NodeId(node as u16);
        self.nodes[from].take_frames(id(to), &mut self.frames);
        if self.frames.is_empty() {
            return false;
        }
        self.nodes[to].peer_reads(self.now, id(from), &self.frames).expect("nodes send frames");
        true
    }

    fn map(&self) -> &ClusterMap {
        self.coordinator.map().expect("the cluster has formed")
    }

    pub fn places(&self) -> Places {
        let view = self.map().group(MEMBER.group).expect("the first group");
        let primary = view.data_role(MEMBER.role).and_then(|role| role.primary).expect("it is served");
        Places { primary: primary.node, parities: view.in_sync().map(|(_, host)| host.node).collect() }
    }

    /// The node that serves `key`.
    pub fn server_of(&self, key: &str) -> NodeId {
        let member = self.map().default_pool().member_of(KeyHash::of(CLUSTER, key.as_bytes()));
        self.map().primary_of(member).expect("it is served").node
    }

    /// The first `count` keys of the member.
    pub fn keys(&self, count: usize) -> Vec<String> {
        let is_ours = |key: &String| {
            self.map().default_pool().member_of(KeyHash::of(CLUSTER, key.as_bytes())) == MEMBER
        };
        (0..).map(data::key).filter(is_ours).take(count).collect()
    }
}

/// All links, each in its direction.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    let nodes = usize::from(NODES);
    (0..nodes).flat_map(move |from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

fn node(number: u16, memory_bytes: usize) -> Bare {
    let nowhere = CoordinatorAddress { authority: String::new() };
    let mut config = NodeConfig::local(NodeId(number), nowhere);
    config.memory_bytes = memory_bytes;
    Bare::new(config)
}
