//! A small cluster without a network, in one queue: messages arrive in the order of sending, when somebody says so.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proto::{
    Action, Coordinator, CoordinatorAction, CoordinatorConfig, Host, HostConfig, Limits, Now, Place, Rules,
    Timing, Token, WriteNews,
};
use store::{Budget, Eviction, StoreConfig};
use types::op::{Expiry, Failure, Flush, FlushAt, Get, Key, Op, Outcome, Request, Store, StoreMode};
use types::{
    ClusterId, GroupId, HostId, Incarnation, MemberId, NamespaceId, NodeId, NodeInfo, NodeLoad, Profile,
    RoleIndex, Time, UnixSeconds,
};
use wire::frame::Message;
use wire::message::{FromCoordinator, GroupBody, PeerMessage, ToCoordinator};
use wire::record::Record;

use super::seal;

const NODES: u16 = 4;
const MEMORY_BYTES: u64 = 24 << 20;
const AREA_BYTES: usize = 4 << 20;
/// When everything begins.
pub(super) const FIRST: Now = Now { time: Time(1_000_000), unix: UnixSeconds(1_000_000) };

/// What a run has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Messages that arrived as they were sent.
    pub delivered: usize,
    /// Messages that arrived otherwise, and were messages all the same.
    pub changed: usize,
    /// Those that were none any more: each has cost a link.
    pub malformed: usize,
    /// Messages that a member found impossible: each has cost a link.
    pub impossible: usize,
    /// Requests that were answered.
    pub answered: usize,
    /// Which kinds of messages have arrived otherwise than they were sent, bit by bit.
    pub kinds: u128,
}

/// A message under way.
enum Mail {
    Peer { from: HostId, to: NodeId, message: PeerMessage },
    Up { from: HostId, message: ToCoordinator },
    Down { to: HostId, message: FromCoordinator },
}

/// See the module.
pub(super) struct World {
    hosts: BTreeMap<NodeId, Host>,
    coordinator: Coordinator,
    mail: VecDeque<Mail>,
    records: BTreeMap<String, Record>,
    now: Now,
    next_token: u64,
    toll: Toll,
}

fn host_id(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn info(node: u16) -> NodeInfo {
    let address = ([127, 0, 0, 1], 1).into();
    NodeInfo {
        host: host_id(node),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    }
}

fn host(node: u16) -> Host {
    let store =
        StoreConfig { cluster: ClusterId(7), area_limit_bytes: AREA_BYTES, eviction: Eviction::Clock };
    Host::new(HostConfig {
        host: host_id(node),
        shard: 0,
        secret: proto::Secret::known_to_all(),
        timing: Timing::default(),
        rules: Rules::all(),
        limits: Limits { index_part_bytes: 512, ..Limits::default() },
        graphs: proto::GraphSettings::default(),
        coder: codec::Coder::default(),
        store,
        budget: Budget::new(MEMORY_BYTES),
        quotas: store::Quotas::new(1),
    })
}

impl World {
    /// A cluster of 2+1 with a few items.
    pub(super) fn new() -> Self {
        let config = CoordinatorConfig {
            cluster: ClusterId(7),
            profile: Profile::rs(2, 1).expect("2+1 is a profile"),
            nodes: NODES,
            shards: 1,
            groups: u32::from(NODES),
            timing: Timing::default(),
            rules: Rules::all(),
            records: proto::RecordKeeping::Stored,
            on_loss: types::LossPolicy::Error,
        };
        let mut world = Self {
            hosts: (0..NODES).map(|node| (NodeId(node), host(node))).collect(),
            coordinator: Coordinator::new(config),
            mail: VecDeque::new(),
            records: BTreeMap::new(),
            now: FIRST,
            next_token: 0,
            toll: Toll::default(),
        };
        for node in 0..NODES {
            world.coordinator.handle(FIRST, host_id(node), ToCoordinator::Register(info(node).into()));
        }
        world.deliver_all();
        for (a, b) in (0..NODES).flat_map(|a| (0..NODES).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            world.on(NodeId(a), |host, now| host.link_up(now, host_id(b)));
        }
        world.deliver_all();
        for key in 0..24 {
            world.write(key, key, usize::from(key) * 150);
            world.deliver_all();
        }
        world
    }

    /// What the coordinator has written down.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + use<> {
        self.records.clone().into_values()
    }

    /// Looks at everything once more.
    pub(super) fn end(mut self) -> Toll {
        for host in self.hosts.values() {
            let _ = (host.stats(), host.memory(), host.role_bytes(FIRST.time).count());
        }
        self.toll.impossible =
            self.hosts.values().map(|host| host.stats().impossible_messages as usize).sum();
        self.toll
    }

    fn on(&mut self, node: NodeId, act: impl FnOnce(&mut Host, Now)) {
        let now = self.now;
        if let Some(host) = self.hosts.get_mut(&node) {
            act(host, now);
            host.flush(now);
        }
        self.collect(node);
    }

    /// Takes what a host wants done.
    fn collect(&mut self, node: NodeId) {
        while let Some(action) = self.hosts.get_mut(&node).and_then(Host::poll_action) {
            let from = host_id(node.0);
            match action {
                Action::Send { to, message } => self.mail.push_back(Mail::Peer { from, to, message }),
                Action::Coordinator(message) => self.mail.push_back(Mail::Up { from, message: *message }),
                Action::Close { peer, .. } => self.cut(node, peer.node),
                Action::Reply { .. } => self.toll.answered += 1,
                // Nobody waits for what becomes of it for ever.
                Action::Ask { number, .. } => {
                    let (now, outcome) = (self.now, Outcome::Failed(Failure::Unavailable));
                    if let Some(host) = self.hosts.get_mut(&node) {
                        host.following(now).hear(number, outcome);
                    }
                }
                Action::Write { number, .. } => {
                    let news = WriteNews::Ended(Outcome::Failed(Failure::Unavailable));
                    let now = self.now;
                    if let Some(host) = self.hosts.get_mut(&node) {
                        host.streams(now).hear_written(number, news);
                    }
                }
                Action::Room { .. } | Action::Part { .. } | Action::Whole { .. } => {}
            }
        }
        while let Some(action) = self.coordinator.poll_action() {
            match action {
                CoordinatorAction::Send { to, message } => self.mail.push_back(Mail::Down { to, message }),
                CoordinatorAction::Record(record) => _ = self.records.insert(record.key(), record),
                CoordinatorAction::Close { .. } | CoordinatorAction::Resign => {}
            }
        }
    }

    /// The link between two nodes breaks, and there is another one.
    fn cut(&mut self, a: NodeId, b: NodeId) {
        if a == b {
            return;
        }
        let between = |mail: &Mail| match mail {
            Mail::Peer { from, to, .. } => (from.node, *to) == (a, b) || (from.node, *to) == (b, a),
            _ => false,
        };
        self.mail.retain(|mail| !between(mail));
        for (here, there) in [(a, b), (b, a)] {
            if self.hosts.contains_key(&there) {
                self.on(here, |host, now| {
                    host.link_down(now, host_id(there.0));
                    host.link_up(now, host_id(there.0));
                });
            }
        }
    }

    pub(super) fn cut_and_join(&mut self, a: u8, b: u8) {
        self.cut(NodeId(u16::from(a) % NODES), NodeId(u16::from(b) % NODES));
    }

    /// The next message arrives.
    pub(super) fn deliver(&mut self) {
        if let Some(mail) = self.mail.pop_front() {
            self.toll.delivered += 1;
            self.hand_over(mail);
        }
    }

    /// Whether the next message to arrive is a parity's refusal of a term.
    pub(super) fn next_is_reject(&self) -> bool {
        let Some(Mail::Peer { message: PeerMessage::Group(message), .. }) = self.mail.front() else {
            return false;
        };
        matches!(message.body, GroupBody::Reject(_))
    }

    fn deliver_all(&mut self) {
        while !self.mail.is_empty() {
            self.deliver();
        }
    }

    fn hand_over(&mut self, mail: Mail) {
        match mail {
            Mail::Peer { from, to, message } => {
                self.on(to, |host, now| host.handle_peer(now, from, message));
            }
            Mail::Down { to, message } => {
                self.on(to.node, |host, now| host.handle_coordinator(now, message));
            }
            Mail::Up { from, message } => {
                self.coordinator.handle(self.now, from, message);
                self.collect(from.node);
            }
        }
    }

    /// The next message arrives after `change` has had its way with its body.
    pub(super) fn deliver_changed(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(mail) = self.mail.pop_front() else { return };
        let (from, message) = match mail {
            Mail::Peer { from, ref message, .. } => (from, Message::Peer(message.clone())),
            Mail::Up { from, ref message } => (from, Message::from(message.clone())),
            // A coordinator may be believed.
            Mail::Down { .. } => return self.hand_over(mail),
        };
        let Some((kind, mut body)) = seal::encode(from, &message) else { return };
        change(&mut body);
        self.toll.kinds |= 1 << (kind & 0x7f);
        match (seal::decode(from, kind, &body), mail) {
            (Ok(Message::Peer(message)), Mail::Peer { from, to, .. }) => {
                self.toll.changed += 1;
                self.hand_over(Mail::Peer { from, to, message });
            }
            (Ok(Message::ToCoordinator(message)), Mail::Up { from, .. }) => {
                self.toll.changed += 1;
                self.hand_over(Mail::Up { from, message: *message });
            }
            (_, Mail::Peer { from, to, .. }) => {
                self.toll.malformed += 1;
                self.cut(from.node, to);
            }
            (_, Mail::Up { .. } | Mail::Down { .. }) => self.toll.malformed += 1,
        }
    }

    /// A frame arrives at a node that nobody has sent.
    pub(super) fn inject(&mut self, from: u8, to: u8, kind: u8, body: &[u8]) {
        let (from, to) = (host_id(u16::from(from) % NODES), NodeId(u16::from(to) % NODES));
        match seal::decode(from, kind, body) {
            Ok(Message::Peer(message)) => {
                self.toll.changed += 1;
                self.hand_over(Mail::Peer { from, to, message });
            }
            Ok(_) | Err(_) => {
                self.toll.malformed += 1;
                self.cut(from.node, to);
            }
        }
    }

    /// As above, at the coordinator.
    pub(super) fn inject_up(&mut self, from: u8, kind: u8, body: &[u8]) {
        let from = host_id(u16::from(from) % NODES);
        match seal::decode(from, kind, body) {
            Ok(Message::ToCoordinator(message)) => {
                self.toll.changed += 1;
                self.hand_over(Mail::Up { from, message: *message });
            }
            Ok(_) | Err(_) => self.toll.malformed += 1,
        }
    }

    /// Time passes, and messages arrive meanwhile.
    pub(super) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(50) {
            self.tick();
            (0..64).for_each(|_| self.deliver());
        }
    }

    /// The next timers are due.
    pub(super) fn tick(&mut self) {
        self.now.time = self.now.time + 50_000;
        let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
        for node in nodes {
            let map = self.hosts.get(&node).and_then(Host::map).map_or(0, |map| map.version);
            let (host, load) = (host_id(node.0), NodeLoad::default());
            self.mail
                .push_back(Mail::Up { from: host, message: ToCoordinator::Heartbeat { host, map, load } });
            self.on(node, |host, now| host.tick(now));
        }
        self.coordinator.tick(self.now);
    }

    fn submit(&mut self, node: u8, request: Request) {
        let token = Token([self.next_token, 0]);
        self.next_token += 1;
        let node = NodeId(u16::from(node) % NODES);
        self.on(node, |host, now| {
            let place = host.locate(request.key_bytes());
            drop(host.submit(now, token, place, request));
        });
    }

    /// A client writes.
    pub(super) fn write(&mut self, node: u8, key: u8, len: usize) {
        let store = Store {
            mode: StoreMode::Set,
            value: vec![key; len].into(),
            flags: 0,
            expiry: Expiry::Never,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        self.submit(node, Request::on(key_of(key), Op::Store(store)));
    }

    /// A client reads.
    pub(super) fn read(&mut self, node: u8, key: u8) {
        self.submit(node, Request::on(key_of(key), Op::Get(Get::default())));
    }

    /// All keys of a role go.
    pub(super) fn flush(&mut self) {
        let member =
            MemberId { group: GroupId(self.next_token as u32 % u32::from(NODES)), role: RoleIndex(1) };
        let token = Token([self.next_token, 0]);
        self.next_token += 1;
        self.on(NodeId(0), |host, now| {
            drop(host.submit(
                now,
                token,
                Place::of(member),
                Request::flush(Flush { namespace: NamespaceId::DEFAULT, at: FlushAt::Now }),
            ));
        });
    }

    /// A node dies, unless too few would be left.
    pub(super) fn kill(&mut self, node: u8) {
        let node = NodeId(u16::from(node) % NODES);
        if self.hosts.len() <= 3 || self.hosts.remove(&node).is_none() {
            return;
        }
        let left: Vec<NodeId> = self.hosts.keys().copied().collect();
        for other in left {
            self.on(other, |host, now| host.link_down(now, host_id(node.0)));
        }
    }
}

fn key_of(key: u8) -> Key {
    Key::new(Bytes::from(format!("key-{key}"))).expect("a short key")
}
