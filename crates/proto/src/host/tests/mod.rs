//! Stories of one host: a state, one input, the exact list of actions.

mod members;
mod routes;
mod views;

use bytes::Bytes;
use cluster::place;
use store::{Budget, Eviction, StoreConfig};
use types::op::{Get, Key, Op, Outcome, Request};
use types::{
    ClusterId, ClusterMap, EXTENT_BYTES, GroupView, Incarnation, Layout, NodeId, NodeInfo, Profile,
    RoleIndex, Term, Time, UnixSeconds,
};
use wire::message::{GroupBody, GroupMessage};

use super::*;
use crate::{Limits, Rules, Timing};

const GROUP: GroupId = GroupId(0);

/// The host on node 0 of five, and one group of `rs(2+2)`: data on 0 and 1, parities on 2 and 3.
struct Stage {
    host: Host,
    map: ClusterMap,
    now: u64,
    timing: Timing,
}

/// What it wants done, in short.
#[derive(Debug, PartialEq)]
enum Done {
    /// To the node, a group's message to the role.
    Group(u16, RoleIndex, &'static str),
    Forward(u16, u64),
    Answer(u16, u64, Outcome),
    Coordinator(ToCoordinator),
    Close(u16, Impossible),
    Reply(u64, Outcome),
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn member(role: u8) -> MemberId {
    MemberId { group: GROUP, role: RoleIndex(role) }
}

fn map() -> ClusterMap {
    let profile = Profile::rs(2, 2).unwrap();
    let address = ([127, 0, 0, 1], 1).into();
    let node = |node| NodeInfo {
        host: host(node),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let hosts: Vec<HostId> = (0..5).map(host).collect();
    ClusterMap {
        cluster: ClusterId(7),
        version: 1,
        catalog: types::Catalog::first(profile, 1),
        shards: 1,
        layout: Layout::default(),
        nodes: (0..5).map(node).collect(),
        groups: place(profile, &hosts, 1).unwrap(),
    }
}

fn name_of(body: &GroupBody) -> &'static str {
    match body {
        GroupBody::Hello(_) => "Hello",
        GroupBody::Welcome(_) => "Welcome",
        GroupBody::Frame(_) => "Frame",
        GroupBody::Opened(_) => "Opened",
        GroupBody::Abort(_) => "Abort",
        GroupBody::FetchIndex(_) => "FetchIndex",
        GroupBody::LearnHello(hello) if hello.applied.is_some() => "LearnHello with what it has",
        GroupBody::LearnHello(_) => "LearnHello",
        other => panic!("not expected here: {other:?}"),
    }
}

fn get(key: &'static str) -> Request {
    Request::on(Key::new(Bytes::from_static(key.as_bytes())).unwrap(), Op::Get(Get::default()))
}

impl Stage {
    /// Without a map, and linked with all others.
    fn empty() -> Self {
        Self::by(Rules::all())
    }

    fn by(rules: Rules) -> Self {
        let timing = Timing::from_lease(1_000_000);
        let store = StoreConfig {
            cluster: ClusterId(7),
            area_limit_bytes: 4 * EXTENT_BYTES,
            eviction: Eviction::None,
        };
        let config = HostConfig {
            host: host(0),
            shard: 0,
            secret: crate::Secret::known_to_all(),
            timing,
            rules,
            limits: Limits::default(),
            graphs: crate::GraphSettings::default(),
            coder: codec::Coder::default(),
            store,
            budget: Budget::new(64 << 20),
            quotas: store::Quotas::new(1),
        };
        let mut stage = Self { host: Host::new(config), map: map(), now: 5_000_000, timing };
        (1..5).for_each(|node| stage.host.link_up(stage.at(), host(node)));
        assert_eq!(stage.done(), []);
        stage
    }

    /// With a map whose view is changed like this.
    fn with(change: impl FnOnce(&mut GroupView)) -> Self {
        let mut stage = Self::empty();
        change(&mut stage.map.groups[0]);
        let map = FromCoordinator::Map(stage.map.clone().into());
        stage.hear(map);
        stage
    }

    fn at(&self) -> Now {
        Now { time: Time(self.now), unix: UnixSeconds(1_000) }
    }

    fn done(&mut self) -> Vec<Done> {
        self.host.flush(self.at());
        let actions = std::iter::from_fn(|| self.host.poll_action());
        let done = actions.map(|action| match action {
            Action::Send { to, message: PeerMessage::Group(message) } => {
                Done::Group(to.0, message.to, name_of(&message.body))
            }
            Action::Send { to, message: PeerMessage::Forward(forward) } => Done::Forward(to.0, forward.id),
            Action::Send { to, message: PeerMessage::Answer(answer) } => {
                Done::Answer(to.0, answer.id, answer.outcome)
            }
            Action::Send { message: PeerMessage::Object(_) | PeerMessage::Graph(_), .. } => {
                unreachable!("no value here is in chunks")
            }
            Action::Coordinator(message) => Done::Coordinator(*message),
            Action::Close { peer, why } => Done::Close(peer.node.0, why),
            Action::Room { .. } | Action::Part { .. } | Action::Whole { .. } => {
                unreachable!("no value here is in chunks")
            }
            Action::Reply { token, outcome } => Done::Reply(token.0[0], outcome),
            Action::Ask { .. } | Action::Write { .. } => unreachable!("no namespace moves here"),
        });
        done.collect()
    }

    fn hear(&mut self, message: FromCoordinator) -> Vec<Done> {
        self.host.handle_coordinator(self.at(), message);
        self.done()
    }

    /// The next view, changed like this.
    fn adopt(&mut self, change: impl FnOnce(&mut GroupView)) -> Vec<Done> {
        let view = self.next_view(change);
        let (cluster, since) = (self.map.cluster, self.map.version);
        self.map.version += 1;
        let changes = MapChanges { views: vec![view], ..MapChanges::none(cluster, since, self.map.version) };
        self.hear(FromCoordinator::Changes(changes.into()))
    }

    /// The same view, told alone.
    fn adopt_alone(&mut self, change: impl FnOnce(&mut GroupView)) -> Vec<Done> {
        let view = self.next_view(change);
        self.hear(FromCoordinator::View(view))
    }

    fn next_view(&mut self, change: impl FnOnce(&mut GroupView)) -> GroupView {
        let view = &mut self.map.groups[0];
        change(view);
        view.version = view.version.next();
        view.clone()
    }

    fn peer(&mut self, node: u16, message: PeerMessage) -> Vec<Done> {
        self.host.handle_peer(self.at(), host(node), message);
        self.done()
    }

    /// A message of the role on `node`, which has this view.
    fn group(&mut self, node: u16, view: ViewVersion, (from, to): (u8, u8), body: GroupBody) -> Vec<Done> {
        let (from, to) = (RoleIndex(from), RoleIndex(to));
        self.peer(node, PeerMessage::Group(GroupMessage { group: GROUP, view, from, to, body }))
    }

    fn view(&self) -> ViewVersion {
        self.map.groups[0].version
    }

    fn submit(&mut self, token: u64, role: u8, request: Request) -> (Submitted, Vec<Done>) {
        let place = Place { member: Some(member(role)), ..self.host.locate(request.key_bytes()) };
        let submitted = self.host.submit(self.at(), Token([token, 0]), place, request);
        (submitted, self.done())
    }

    /// Time passes, and the timers that are due run.
    fn pass(&mut self, us: u64) -> Vec<Done> {
        self.now += us;
        self.host.tick(self.at());
        self.done()
    }

    fn primaries(&self) -> Vec<(RoleIndex, Term)> {
        self.host.primaries().map(|primary| (primary.member.role, primary.term)).collect()
    }

    fn parities(&self) -> Vec<RoleIndex> {
        self.host.parities().map(|parity| parity.member.role).collect()
    }
}
