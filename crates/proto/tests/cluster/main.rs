//! Stories of a small cluster without a network: messages are delivered at once, time moves when the story says so.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

mod allocations;
mod clocks;
mod degraded;
mod departed;
mod flushed;
mod graphs;
mod impossible;
mod layouts;
mod lessons;
mod moving;
mod objects;
mod paced;
mod probe;
mod quick;
mod room;
mod schedules;
mod scrub;
mod starved;
mod summed;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proto::{
    Action, Coordinator, CoordinatorAction, CoordinatorConfig, GraphSettings, Host, HostConfig, Impossible,
    Limits, Now, Place, RecordKeeping, Rules, Submitted, Timing, Token, UploadId, WriteNews, WriteStep,
};
use store::{Budget, Eviction, StoreConfig};
use types::op::{Expiry, Failure, Get, Key, Op, Outcome, Request, Store, StoreMode};
use types::{
    ClusterId, HostId, Incarnation, NodeId, NodeInfo, NodeLoad, Profile, RoleStatus, Time, UnixSeconds,
};
use wire::message::{FromCoordinator, GroupBody, PeerMessage, ToCoordinator};

/// Tokens of what hosts ask have this in them, and no others.
const ONWARD: u64 = 1 << 63;
/// And this those of values that they have written.
const WRITTEN: u64 = 1 << 62;

struct Cluster {
    hosts: BTreeMap<NodeId, Host>,
    coordinator: Coordinator,
    now: Now,
    /// By how many seconds a node's wall clock is ahead.
    ahead: BTreeMap<NodeId, u32>,
    answers: BTreeMap<Token, Outcome>,
    /// What has come of values that are read in parts, and whether that is all.
    parts: BTreeMap<Token, (Vec<u8>, bool)>,
    next_token: u64,
    /// Of so many values that hosts write into another pool the answer is lost.
    lost_answers: usize,
    /// Values that hosts have written into another pool.
    written: BTreeMap<Token, UploadId>,
    /// How bytes of values in chunks are dealt.
    layout: types::ObjectLayout,
    /// Whether who reads wants graphs for what is lost, whatever nodes do by themselves.
    by_graph: bool,
    /// Falsifies the first message that it is about.
    lie: Option<Lie>,
    /// What came of it.
    verdict: Option<Impossible>,
    /// What happens to slices of graphs on their way.
    wires: graphs::Wires,
    /// What this node says comes later than what others do: the cells that it has been asked for.
    slow: Option<NodeId>,
    /// To this node alone, if it is one.
    slow_to: Option<NodeId>,
    /// Slices, too.
    slow_slices: bool,
    late: Vec<(NodeId, PeerMessage)>,
    /// What the coordinator says to others than this node comes later than to it.
    told_first: Option<NodeId>,
    late_words: Vec<(HostId, FromCoordinator)>,
    /// Bytes of all that this node sends to others.
    metered: Option<(NodeId, usize)>,
    /// Of every node.
    budgets: BTreeMap<NodeId, Budget>,
}

/// What may be chosen of a cluster.
struct Setup {
    limits: Limits,
    graphs: GraphSettings,
    rules: Rules,
    /// Who computes codes at a node.
    coder: fn(u16) -> codec::Coder,
    /// Where a node is.
    zone: fn(u16) -> &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            graphs: GraphSettings::default(),
            rules: Rules::all(),
            coder: |_| codec::Coder::default(),
            zone: |_| "",
        }
    }
}

/// Makes of a message what nobody who keeps the rules sends; false if the message is none of those it is about.
type Lie = fn(&mut GroupBody) -> bool;

fn host_id(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

impl Cluster {
    fn new(nodes: u16, profile: &str) -> Self {
        Self::of(nodes, profile, &Setup::default())
    }

    fn with_memory(nodes: u16, profile: &str, store: &StoreConfig, budget: impl Fn(u16) -> Budget) -> Self {
        Self::assemble(nodes, profile, store, &Setup::default(), budget)
    }

    /// A cluster of 3+2 with other bounds.
    fn with_limits(nodes: u16, limits: Limits) -> Self {
        Self::of(nodes, "rs(3+2)", &Setup { limits, ..Setup::default() })
    }

    /// A cluster in which chunks are made by graphs.
    fn with_graphs(nodes: u16, profile: &str, graphs: GraphSettings) -> Self {
        Self::of(nodes, profile, &Setup { graphs, ..Setup::default() })
    }

    /// A cluster with room for everything.
    fn of(nodes: u16, profile: &str, setup: &Setup) -> Self {
        let store =
            StoreConfig { cluster: ClusterId(7), area_limit_bytes: 8 << 20, eviction: Eviction::Clock };
        Self::assemble(nodes, profile, &store, setup, |_| Budget::new(256 << 20))
    }

    fn assemble(
        nodes: u16,
        profile: &str,
        store: &StoreConfig,
        setup: &Setup,
        budget: impl Fn(u16) -> Budget,
    ) -> Self {
        let Setup { limits, graphs, rules, coder, zone } = *setup;
        let profile: Profile = profile.parse().unwrap();
        let config = CoordinatorConfig {
            cluster: ClusterId(7),
            profile,
            nodes,
            shards: 1,
            groups: u32::from(nodes),
            timing: Timing::default(),
            rules,
            records: RecordKeeping::Stored,
            on_loss: types::LossPolicy::Error,
        };
        let now = Now { time: Time(1_000_000), unix: UnixSeconds(1_000_000) };
        let budgets: BTreeMap<NodeId, Budget> = (0..nodes).map(|node| (NodeId(node), budget(node))).collect();
        let mut cluster = Self {
            hosts: BTreeMap::new(),
            coordinator: Coordinator::new(config),
            now,
            ahead: BTreeMap::new(),
            answers: BTreeMap::new(),
            parts: BTreeMap::new(),
            next_token: 0,
            lost_answers: 0,
            written: BTreeMap::new(),
            layout: types::ObjectLayout::Spread,
            by_graph: false,
            lie: None,
            verdict: None,
            wires: graphs::Wires::default(),
            slow: None,
            slow_to: None,
            slow_slices: false,
            late: Vec::new(),
            told_first: None,
            late_words: Vec::new(),
            metered: None,
            budgets,
        };
        for node in 0..nodes {
            let config = HostConfig {
                host: host_id(node),
                shard: 0,
                secret: proto::Secret::known_to_all(),
                timing: Timing::default(),
                rules,
                limits,
                graphs,
                coder: coder(node),
                store: store.clone(),
                budget: cluster.budgets[&NodeId(node)].clone(),
                quotas: store::Quotas::new(1),
            };
            cluster.hosts.insert(NodeId(node), Host::new(config));
        }
        for node in 0..nodes {
            let address = "127.0.0.1:1".parse().unwrap();
            let info = NodeInfo {
                host: host_id(node),
                peer: address,
                memcached: address,
                http: address,
                native: None,
                zone: zone(node).to_owned(),
                alive: true,
            };
            cluster.coordinator.handle(now, host_id(node), ToCoordinator::Register(info.into()));
        }
        cluster.settle();
        let nodes: Vec<NodeId> = cluster.hosts.keys().copied().collect();
        for a in &nodes {
            for b in nodes.iter().filter(|b| *b != a) {
                cluster.hosts.get_mut(a).unwrap().link_up(now, host_id(b.0));
            }
        }
        cluster.settle();
        cluster
    }

    /// Both clocks of `node`.
    fn clocks(&self, node: NodeId) -> Now {
        let ahead = self.ahead.get(&node).copied().unwrap_or(0);
        Now { unix: UnixSeconds(self.now.unix.0 + ahead), ..self.now }
    }

    /// Delivers everything until nothing moves.
    fn settle(&mut self) {
        while self.deliver() {}
    }

    /// Delivers what has been said, and not yet what is said to that. Whether there was anything.
    fn deliver(&mut self) -> bool {
        let mut moved = false;
        while let Some(action) = self.coordinator.poll_action() {
            let CoordinatorAction::Send { to, message } = action else { continue };
            moved = true;
            if self.told_first.is_some_and(|first| first != to.node) {
                self.late_words.push((to, message));
            } else {
                self.tell(to, message);
            }
        }
        let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
        let mut mail = VecDeque::new();
        for node in nodes {
            let now = self.clocks(node);
            let host = self.hosts.get_mut(&node).unwrap();
            host.flush(now);
            while let Some(action) = host.poll_action() {
                mail.push_back((node, action));
            }
        }
        for (node, action) in mail {
            moved = true;
            match action {
                Action::Send { to, mut message } => {
                    self.meter(node, to, &message);
                    if self.is_late(node, to, &message) {
                        self.late.push((to, message));
                        continue;
                    }
                    self.falsify(&mut message);
                    let now = self.clocks(to);
                    if let Some(host) = self.hosts.get_mut(&to) {
                        let arrives = self.wires.carry(message).into_iter();
                        arrives.for_each(|message| host.handle_peer(now, host_id(node.0), message));
                    }
                }
                Action::Coordinator(message) => self.coordinator.handle(self.now, host_id(node.0), *message),
                Action::Close { peer, why } => self.relink(node, peer, why),
                Action::Reply { token, outcome } if token.0[0] & WRITTEN != 0 => {
                    self.written.remove(&token);
                    let is_lost = self.lost_answers > 0;
                    self.lost_answers -= usize::from(is_lost);
                    let outcome = if is_lost { Outcome::Failed(Failure::Unknown) } else { outcome };
                    self.tell_written(node, token, WriteNews::Ended(outcome));
                }
                Action::Room { token } if token.0[0] & WRITTEN != 0 => self.tell_room(node, token),
                Action::Write { number, step, .. } => self.write(node, number, step),
                Action::Reply { token: Token([asked, number]), outcome } if asked & ONWARD != 0 => {
                    let now = self.clocks(node);
                    if let Some(host) = self.hosts.get_mut(&node) {
                        host.following(now).hear(number, outcome);
                    }
                }
                Action::Reply { token, outcome } => {
                    self.answers.insert(token, outcome);
                }
                Action::Ask { number, place, request } => self.ask_onward(node, number, place, request),
                Action::Room { .. } => {}
                Action::Part { token, bytes } => {
                    self.parts.entry(token).or_default().0.extend_from_slice(&bytes);
                }
                Action::Whole { token } => self.parts.entry(token).or_default().1 = true,
            }
        }
        moved
    }

    /// A host asks its own node, which has one worker.
    fn ask_onward(&mut self, node: NodeId, number: u64, place: Place, request: Box<Request>) {
        let (now, token) = (self.clocks(node), Token([ONWARD | u64::from(node.0), number]));
        let Some(host) = self.hosts.get_mut(&node) else { return };
        if let Submitted::Done(outcome) = host.submit(now, token, place, request) {
            host.following(now).hear(number, outcome);
        }
    }

    /// A host has its own node write a value.
    fn write(&mut self, node: NodeId, number: u64, step: WriteStep) {
        let (now, token) = (self.clocks(node), Token([ONWARD | WRITTEN | u64::from(node.0), number]));
        let Some(host) = self.hosts.get_mut(&node) else { return };
        match (step, self.written.get(&token).copied()) {
            (WriteStep::Begin(place, new), _) => match host.streams(now).begin_upload(token, place, *new) {
                Ok(upload) => _ = self.written.insert(token, upload),
                Err(why) => self.tell_written(node, token, WriteNews::Ended(Outcome::Failed(why))),
            },
            (WriteStep::Feed(bytes), Some(upload)) => host.streams(now).feed(upload, bytes),
            (WriteStep::Abandon, Some(upload)) => host.streams(now).abandon_upload(upload),
            (_, None) => {}
        }
        self.tell_room(node, token);
    }

    fn tell_room(&mut self, node: NodeId, token: Token) {
        let now = self.clocks(node);
        let (host, upload) = (self.hosts.get_mut(&node), self.written.get(&token));
        if let Some((host, upload)) = host.zip(upload)
            && let room @ 1.. = host.streams(now).upload_wants(*upload)
        {
            self.tell_written(node, token, WriteNews::Room(room));
        }
    }

    fn tell_written(&mut self, node: NodeId, Token([_, number]): Token, news: WriteNews) {
        let now = self.clocks(node);
        if let Some(host) = self.hosts.get_mut(&node) {
            host.streams(now).hear_written(number, news);
        }
    }

    fn is_late(&self, from: NodeId, to: NodeId, message: &PeerMessage) -> bool {
        let is_slow = self.slow == Some(from) && self.slow_to.is_none_or(|slow| slow == to);
        is_slow
            && match message {
                PeerMessage::Object(message) => matches!(**message, wire::object::ObjectMessage::Cell(_)),
                PeerMessage::Graph(message) => {
                    self.slow_slices && matches!(**message, wire::graph::GraphMessage::Slice(_))
                }
                _ => false,
            }
    }

    fn tell(&mut self, to: HostId, message: FromCoordinator) {
        let now = self.clocks(to.node);
        if let Some(host) = self.hosts.get_mut(&to.node) {
            host.handle_coordinator(now, message);
        }
    }

    /// What was late is there.
    fn deliver_late(&mut self) {
        for (to, message) in std::mem::take(&mut self.late_words) {
            self.tell(to, message);
        }
        let Some(slow) = self.slow else { return };
        for (to, message) in std::mem::take(&mut self.late) {
            let now = self.clocks(to);
            if let Some(host) = self.hosts.get_mut(&to) {
                host.handle_peer(now, host_id(slow.0), message);
            }
        }
    }

    /// Counts what a message takes on the link of who is metered.
    fn meter(&mut self, from: NodeId, to: NodeId, message: &PeerMessage) {
        let Some((_, bytes)) = self.metered.as_mut().filter(|(node, _)| *node == from && to != from) else {
            return;
        };
        let mut out = Vec::new();
        wire::frame::Encoder::new(ClusterId(7), host_id(from.0)).encode(message, &mut out).unwrap();
        *bytes += out.len();
    }

    fn falsify(&mut self, message: &mut PeerMessage) {
        if let PeerMessage::Group(message) = message {
            self.lie.take_if(|lie| lie(&mut message.body));
        }
    }

    /// `node` closes its link with `peer`, who has lied; both make another.
    fn relink(&mut self, node: NodeId, peer: HostId, why: Impossible) {
        assert!(self.lie.is_none() && self.verdict.is_none(), "{peer} has sent what cannot be: {why}");
        self.verdict = Some(why);
        for (here, there) in [(node, peer), (peer.node, host_id(node.0))] {
            let host = self.hosts.get_mut(&here).unwrap();
            host.link_down(self.now, there);
            host.link_up(self.now, there);
        }
    }

    fn advance(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.now.time = self.now.time + 10_000;
            let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
            for node in nodes {
                let (now, load) = (self.clocks(node), self.load(node));
                let host = self.hosts.get_mut(&node).unwrap();
                let map = host.map().map_or(0, |map| map.version);
                let heartbeat = ToCoordinator::Heartbeat { host: host_id(node.0), map, load };
                self.coordinator.handle(self.now, host_id(node.0), heartbeat);
                host.tick(now);
            }
            self.coordinator.tick(self.now);
            self.deliver_late();
            self.settle();
        }
    }

    fn load(&self, node: NodeId) -> NodeLoad {
        let budget = &self.budgets[&node];
        NodeLoad { used_bytes: budget.total_used(), limit_bytes: budget.limit(), ..NodeLoad::default() }
    }

    fn kill(&mut self, node: u16) {
        self.hosts.remove(&NodeId(node));
        for host in self.hosts.values_mut() {
            host.link_down(self.now, host_id(node));
        }
        self.settle();
    }

    fn begin(&mut self, node: u16, request: Request) -> Token {
        let token = Token([self.next_token, 0]);
        self.next_token += 1;
        let now = self.clocks(NodeId(node));
        let host = self.hosts.get_mut(&NodeId(node)).unwrap();
        let place = host.locate(request.key_bytes());
        if let Submitted::Done(outcome) = host.submit(now, token, place, request) {
            self.answers.insert(token, outcome);
        }
        self.settle();
        token
    }

    fn run(&mut self, node: u16, request: Request) -> Option<Outcome> {
        let token = self.begin(node, request);
        self.answers.get(&token).cloned()
    }

    fn set(&mut self, node: u16, key: &str, value: &[u8]) -> Option<Outcome> {
        self.run(node, set(key, value))
    }

    fn get(&mut self, node: u16, key: &str) -> Option<Vec<u8>> {
        match self.run(node, get(key)) {
            Some(Outcome::Hit(view)) => Some(view.value.to_vec()),
            Some(Outcome::Miss) => None,
            other => panic!("get {key}: {other:?}"),
        }
    }
}

fn set(key: &str, value: &[u8]) -> Request {
    let store = Store {
        mode: StoreMode::Set,
        value: Bytes::copy_from_slice(value),
        flags: 0,
        expiry: Expiry::Never,
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    };
    Request::on(key_of(key), Op::Store(store))
}

fn key_of(key: &str) -> Key {
    Key::new(Bytes::copy_from_slice(key.as_bytes())).unwrap()
}

fn get(key: &str) -> Request {
    Request::on(key_of(key), Op::Get(Get::default()))
}

fn value_of(i: usize, round: usize) -> Vec<u8> {
    let len = 1 + (i * 37 + round * 101) % 3000;
    (0..len).map(|b| (b * 7 + i * 13 + round) as u8).collect()
}

fn load(cluster: &mut Cluster, keys: usize, round: usize, through: u16) {
    for i in 0..keys {
        let outcome = cluster.set(through, &format!("key-{i}"), &value_of(i, round));
        assert!(matches!(outcome, Some(Outcome::Stored(_))), "key-{i}: {outcome:?}");
    }
}

fn check(cluster: &mut Cluster, keys: usize, round: usize, through: u16) {
    for i in 0..keys {
        assert_eq!(cluster.get(through, &format!("key-{i}")), Some(value_of(i, round)), "key-{i}");
    }
}

#[test]
fn what_is_set_on_one_node_is_read_on_any() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    load(&mut cluster, 200, 0, 0);
    load(&mut cluster, 100, 1, 3);
    check(&mut cluster, 100, 1, 4);
    assert_eq!(cluster.get(2, "key-150"), Some(value_of(150, 0)));
    assert_eq!(cluster.get(2, "nobody"), None);
}

#[test]
fn two_nodes_killed_at_once_lose_nothing() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    load(&mut cluster, 300, 0, 0);
    cluster.kill(1);
    cluster.kill(3);
    cluster.advance(3500);
    check(&mut cluster, 300, 0, 0);
    load(&mut cluster, 300, 1, 2);
    check(&mut cluster, 300, 1, 4);
    cluster.advance(2000);
    let map = cluster.coordinator.map().unwrap();
    assert!(
        map.groups.iter().flat_map(|view| &view.data).all(|role| role.status == RoleStatus::Full),
        "{map:?}"
    );
    check(&mut cluster, 300, 1, 4);
}
