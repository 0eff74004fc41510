//! Processes: nodes with their hosts, and the coordinator, with what happens to processes.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use proto::{
    Coordinator, CoordinatorAction, CoordinatorConfig, Entrance, Host, HostConfig, RecordKeeping,
    ResumeError, Secret, Token,
};
use rng::scatter;
use store::{Budget, Eviction, Quotas, StoreConfig};
use types::op::Request;
use types::{ClusterId, EXTENT_BYTES, Expectations, HostId, Incarnation, MemberId, NodeId, NodeInfo};
use wire::message::{FromCoordinator, PeerMessage, ToCoordinator};
use wire::record::Record;

use crate::options::Options;
use crate::stage::clock::{Clock, now_at};

/// The cluster of every simulation; also the seed of its key hash.
pub(crate) const CLUSTER: ClusterId = ClusterId(0x6765_7374);

/// The port of node 0 for native clients.
pub(crate) const NATIVE_PORT: u16 = 11_300;

/// Where a node takes the native protocol.
pub(crate) fn native_address(node: usize) -> SocketAddr {
    ([127, 0, 0, 1], NATIVE_PORT + node as u16).into()
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Up,
    /// It stands still; its inputs wait.
    Paused,
    /// It has ended.
    Down,
}

/// What a host can be given.
#[derive(Debug)]
pub(crate) enum Input {
    /// A connection stands.
    LinkUp { host: usize, wire: usize, peer: HostId },
    /// A connection broke.
    LinkDown { host: usize, wire: usize },
    /// A peer's message.
    Peer { host: usize, from: HostId, message: PeerMessage },
    /// The coordinator's message.
    Coordinator(FromCoordinator),
    /// One of a former coordinator's, which has waited in the queues of the workers.
    Late(FromCoordinator),
    /// A client's request.
    Submit { host: usize, submission: Submission },
    /// Bytes of a native client's connection.
    Native { link: u32, bytes: Bytes },
}

/// A client's request: of one key, or of all keys of a data role.
#[derive(Debug)]
pub(crate) struct Submission {
    pub token: Token,
    pub member: Option<MemberId>,
    pub request: Request,
}

/// What the coordinator can be given.
#[derive(Debug)]
pub(crate) enum CoordinatorInput {
    Message(HostId, Box<ToCoordinator>),
    Exited(NodeId),
    /// The other end of a connection has closed it.
    Parted(HostId),
    /// The records that were being written are, or are not, because another coordinator has been elected.
    Written(bool),
}

/// A node.
pub(crate) struct Node {
    pub id: HostId,
    /// How often it was started.
    pub life: u32,
    pub state: Life,
    /// When its process ended, if it has.
    pub ended_at: u64,
    pub clock: Clock,
    /// What came while it was paused.
    pub backlog: VecDeque<Input>,
    pub budget: Budget,
    pub quotas: Quotas,
    pub entrance: Entrance,
    /// Where it says that it is.
    zone: &'static str,
}

/// One shard of a node.
pub(crate) struct Shard {
    /// None while the node is down.
    pub host: Option<Host>,
    /// When its tick is due; `u64::MAX` = none is in the queue.
    pub tick_at: u64,
    /// Whether a flush is in the queue.
    pub flush_pending: bool,
    /// Ticks in a row without any other input or passing of time.
    pub idle_ticks: u32,
}

/// A coordinator's process.
pub(crate) struct CoordinatorProcess {
    /// Which one; each that is elected has the next number.
    pub number: u32,
    pub coordinator: Coordinator,
    pub paused: bool,
    pub clock: Clock,
    pub backlog: VecDeque<CoordinatorInput>,
    pub tick_at: u64,
    /// What is to be done once the records before it are written.
    pub waiting: VecDeque<CoordinatorAction>,
    /// Records that are being written.
    pub writing: Vec<Record>,
    /// Whether it waits to hear that they are.
    pub awaits_store: bool,
    /// It ends after so many actions more.
    pub ends_after: Option<u32>,
    /// No node reaches it.
    pub isolated: bool,
    /// Which processes it was told that the store shows as alive, if it was.
    pub shown: Option<BTreeSet<HostId>>,
}

impl Node {
    pub(crate) fn new(node: usize, clock: Clock, options: &Options) -> Self {
        let id = HostId { node: NodeId(node as u16), incarnation: Incarnation(1) };
        Self {
            id,
            life: 0,
            state: Life::Up,
            ended_at: 0,
            clock,
            backlog: VecDeque::new(),
            budget: Budget::new(options.memory.node_bytes),
            quotas: Quotas::new(options.shards),
            entrance: Entrance::new(Expectations::default(), options.rules),
            // Where bytes between zones cost something there are two.
            zone: if options.graphs.zone_price_us > 0 { ["a", "b"][node % 2] } else { "" },
        }
    }

    /// What it tells the coordinator first.
    pub(crate) fn info(&self) -> NodeInfo {
        let port = |base: u16| ([127, 0, 0, 1], base + self.id.node.0).into();
        NodeInfo {
            host: self.id,
            peer: port(7000),
            memcached: port(11_211),
            http: port(9180),
            native: Some(native_address(usize::from(self.id.node.0))),
            zone: self.zone.to_owned(),
            alive: true,
        }
    }

    /// Another process, with empty memory.
    pub(crate) fn begin_life(&mut self, options: &Options) {
        self.life += 1;
        // In no order: to `proto` only whether two incarnations are equal may matter.
        let number = scatter(u64::from(self.life) << 16 ^ u64::from(self.id.node.0));
        self.id = HostId { node: self.id.node, incarnation: Incarnation(number) };
        self.state = Life::Up;
        self.entrance = Entrance::new(Expectations::default(), options.rules);
        self.quotas = Quotas::new(options.shards);
    }

    /// Another one for each process, and the same for a seed.
    fn secret(&self) -> Secret {
        Secret::of([scatter(u64::from(self.id.node.0)), scatter(self.id.incarnation.0)])
    }

    /// A fresh host for one of its shards.
    pub(crate) fn host(&self, shard: usize, options: &Options) -> Host {
        Host::new(HostConfig {
            host: self.id,
            shard: shard as u16,
            secret: self.secret(),
            timing: options.timing,
            rules: options.rules,
            limits: options.limits,
            graphs: options.graphs,
            coder: codec::Coder::default(),
            store: store_config(options),
            budget: self.budget.clone(),
            quotas: self.quotas.clone(),
        })
    }
}

impl Shard {
    pub(crate) fn empty() -> Self {
        Self { host: None, tick_at: u64::MAX, flush_pending: false, idle_ticks: 0 }
    }
}

impl CoordinatorProcess {
    /// The first one.
    pub(crate) fn new(options: &Options, clock: Clock) -> Self {
        Self::of(0, Coordinator::new(Self::config(options)), clock)
    }

    /// One that goes on from what is recorded.
    pub(crate) fn resume(
        options: &Options,
        number: u32,
        clock: Clock,
        records: Vec<Record>,
        at: u64,
    ) -> Result<Self, ResumeError> {
        let now = now_at(options, &clock, at);
        Ok(Self::of(number, Coordinator::resume(Self::config(options), records, now)?, clock))
    }

    /// One that starts with nothing.
    pub(crate) fn gather(options: &Options, number: u32, clock: Clock, at: u64) -> Self {
        let now = now_at(options, &clock, at);
        Self::of(number, Coordinator::gather(Self::config(options), now, false), clock)
    }

    fn config(options: &Options) -> CoordinatorConfig {
        let records = if options.nodes_keep { RecordKeeping::Kept } else { RecordKeeping::Stored };
        CoordinatorConfig {
            cluster: CLUSTER,
            profile: options.profile(),
            nodes: options.founders as u16,
            shards: options.shards as u16,
            groups: options.groups as u32,
            timing: options.timing,
            rules: options.rules,
            records,
            on_loss: options.on_loss,
        }
    }

    fn of(number: u32, coordinator: Coordinator, clock: Clock) -> Self {
        Self {
            number,
            coordinator,
            paused: false,
            clock,
            backlog: VecDeque::new(),
            tick_at: u64::MAX,
            waiting: VecDeque::new(),
            writing: Vec::new(),
            awaits_store: false,
            ends_after: None,
            isolated: false,
            shown: None,
        }
    }
}

fn store_config(options: &Options) -> StoreConfig {
    StoreConfig {
        cluster: CLUSTER,
        area_limit_bytes: options.memory.area_extents as usize * EXTENT_BYTES,
        eviction: if options.memory.evict { Eviction::Clock } else { Eviction::None },
    }
}

/// A request for one key.
pub(crate) fn request(key: &Bytes, op: types::op::Op) -> Request {
    Request::on(types::op::Key::received(key.clone()).expect("the simulator draws keys"), op)
}
