//! A cluster and its queue of events. Moves when told to; knows nothing of what is right.

pub(crate) mod clients;
mod coordinators;
mod drive;
mod links;
mod processes;

use proto::Host;
use types::{ClusterMap, GroupId, HostId, MemberId, ViewVersion};

use super::calls::{Client, Key, Running};
use super::clock::Clock;
use super::faults::Nemesis;
use super::network::Wires;
use super::options::Options;
use super::oracle::Oracle;
use super::process::{CoordinatorProcess, Life, Node, Shard};
use super::queue::Event;
use super::report::Failure;
use super::rng::Rng;
use super::stage::Stage;
use super::store::RecordStore;
use super::stream::Stream;
use super::trace::Trace;
use coordinators::Stray;

/// Ticks of one host without progress that count as a timer that never comes to rest.
const MAX_IDLE_TICKS: u32 = 2_000;

/// What the simulator remembers of the records of every data role.
pub(crate) struct Shadow {
    /// By group and data role.
    pub streams: Vec<Stream>,
    /// Newest version of each group's view.
    pub versions: Vec<ViewVersion>,
}

/// A whole cluster in virtual time.
pub struct World {
    pub(crate) stage: Stage,
    pub(crate) wires: Wires,
    pub(crate) nodes: Vec<Node>,
    pub(crate) shards: Vec<Shard>,
    /// Those that live: the elected one, and former ones that have not noticed.
    pub(crate) coordinators: Vec<CoordinatorProcess>,
    /// The number of the elected one.
    pub(crate) leader: Option<u32>,
    pub(crate) elected: u32,
    /// Whether the coordinator started with nothing and has not heard enough yet.
    pub(crate) gathering: bool,
    pub(crate) store: RecordStore,
    /// Messages of former coordinators under way: to which life of which node.
    pub(crate) strays: Vec<Option<Stray>>,
    pub(crate) keys: Vec<Key>,
    pub(crate) oracles: Vec<Oracle>,
    pub(crate) clients: Vec<Client>,
    pub(crate) running: Vec<Running>,
    pub(crate) flushes: Vec<Vec<(u16, u32)>>,
    pub(crate) clients_stop: bool,
    pub(crate) calls_begun: u32,
    pub(crate) answers: Vec<Option<types::op::Outcome>>,
    pub(crate) shadow: Shadow,
    pub(crate) nemesis: Nemesis,
    pub(crate) next_check: u64,
    /// A story has damaged memory: what a scrub finds is no broken rule, and the expensive checks would say the same.
    pub(crate) damaged: bool,
}

impl World {
    /// A cluster about to start: nothing has happened yet.
    #[must_use]
    pub fn new(options: Options, trace: Trace) -> Self {
        let mut stage = Stage::new(options, trace);
        let (options, rng) = (&stage.options, &mut stage.rng);
        let wires = Wires::new(options.nodes, options.shards, &options.network, &mut rng.network);
        let clock = |rng: &mut Rng| {
            let drift = rng.below(2 * options.drift_ppm as u64 + 1) as i64 - options.drift_ppm;
            Clock::new(rng.below(1 << 40), drift)
        };
        let mut nodes: Vec<Node> =
            (0..options.nodes).map(|n| Node::new(n, clock(&mut rng.processes), options)).collect();
        for node in &mut nodes {
            let line =
                |rng: &mut Rng| if rng.percent(70) { 100 } else { rng.range(100, options.network.line_us) };
            node.line.delay_us = (line(&mut rng.network), line(&mut rng.network));
        }
        let shards = (0..options.nodes * options.shards).map(|_| Shard::empty()).collect();
        let coordinator = CoordinatorProcess::new(options, clock(&mut rng.processes));
        let streams = (0..options.groups * options.k).map(|_| Stream::new(options.m)).collect();
        let versions = vec![ViewVersion(0); options.groups];
        let next_check = if options.check_every == 0 { u64::MAX } else { options.check_every };
        let mut world = Self {
            stage,
            wires,
            nodes,
            shards,
            coordinators: vec![coordinator],
            leader: Some(0),
            elected: 0,
            gathering: false,
            store: RecordStore::default(),
            strays: Vec::new(),
            keys: Vec::new(),
            oracles: Vec::new(),
            clients: Vec::new(),
            running: Vec::new(),
            flushes: Vec::new(),
            clients_stop: false,
            calls_begun: 0,
            answers: Vec::new(),
            shadow: Shadow { streams, versions },
            nemesis: Nemesis::default(),
            next_check,
            damaged: false,
        };
        for node in 0..world.stage.options.nodes {
            world.start(node);
        }
        world.arm_coordinator(0);
        world
    }

    /// Virtual time, in microseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.stage.now()
    }

    /// The first rule that was broken.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.stage.book.failure()
    }

    /// The map as it is recorded, once the cluster has formed.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.store.map()
    }

    /// The host that is shard `group % shards` of `node`; none while the node is down.
    pub(crate) fn host_of(&self, node: usize, group: GroupId) -> Option<&Host> {
        let shard = group.0 as usize % self.stage.options.shards;
        self.shards[node * self.stage.options.shards + shard].host.as_ref()
    }

    /// The running host that is process `id`, for `group`; none if that life of the node has ended.
    pub(crate) fn host_by_id(&self, id: HostId, group: GroupId) -> Option<&Host> {
        let node = usize::from(id.node.0);
        if self.nodes[node].id != id { None } else { self.host_of(node, group) }
    }

    /// Whether process `id` has not ended.
    pub(crate) fn is_alive(&self, id: HostId) -> bool {
        let node = &self.nodes[usize::from(id.node.0)];
        node.id == id && node.state != Life::Down
    }

    /// Where the shadow of a data role is.
    pub(crate) fn stream_index(&self, member: MemberId) -> usize {
        member.group.0 as usize * self.stage.options.k + usize::from(member.role.0)
    }

    /// Does the next thing; false if there is none, or a rule is broken.
    pub fn step(&mut self) -> bool {
        if self.stage.book.has_failed() {
            return false;
        }
        let Some(event) = self.stage.next_event() else { return false };
        self.handle(event);
        if self.stage.book.stats.events >= self.next_check && !self.damaged {
            self.next_check = self.stage.book.stats.events
                + 1
                + self.stage.rng.checks.below(2 * self.stage.options.check_every);
            self.check_something();
        }
        !self.stage.book.has_failed()
    }

    /// Goes on until virtual time `until`, or a broken rule; whether none was broken.
    pub fn run_until(&mut self, until: u64) -> bool {
        while self.stage.queue.next_at().is_some_and(|at| at <= until) {
            if !self.step() {
                break;
            }
        }
        if !self.stage.book.has_failed() {
            self.stage.wait(until);
        }
        !self.stage.book.has_failed()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver { wire, epoch } => self.deliver(wire as usize, epoch),
            Event::Tick { host } => self.tick(usize::from(host)),
            Event::Flush { host } => self.flush(usize::from(host)),
            Event::Heartbeat { node, life } => self.heartbeat(usize::from(node), life),
            Event::Connect { pair } => self.connect(pair as usize),
            Event::Notice { wire, epoch } => self.notice_cut(wire as usize, epoch),
            Event::Join { node, life } => self.join(usize::from(node), life),
            Event::Uplink { node, epoch } => self.uplink(usize::from(node), epoch),
            Event::Downlink { node, epoch } => self.downlink(usize::from(node), epoch),
            Event::Parted { node, epoch } => self.parted(usize::from(node), epoch),
            Event::CoordinatorTick { number } => self.coordinator_tick(number),
            Event::Write { number } => self.write_arrives(number),
            Event::Election => self.elect(),
            Event::Follow { node, life } => self.follow(usize::from(node), life),
            Event::Deposed { number } => self.notices_successor(number),
            Event::Stray { message } => self.stray_arrives(message as usize),
            Event::Exited { node, life } => self.exited(usize::from(node), life),
            Event::Client { client } => self.client_turn(usize::from(client)),
            Event::Patience { client, call } => self.patience(usize::from(client), call),
            Event::Dropped { client, call } => self.patience(usize::from(client), call),
            Event::Fault => self.next_fault(),
            Event::Aimed { fault } => self.aimed_fault(fault),
            Event::Crash { node, life } => self.crash_due(usize::from(node), life),
            Event::NextHalf { step } => self.next_half(step),
            Event::Mend { fault } => self.mend(fault as usize),
            Event::Restart { node, life } => self.restart_due(usize::from(node), life),
            Event::Resume { node, life } => self.resume_due(usize::from(node), life),
            Event::CoordinatorResume { number } => self.resume_coordinator(number),
            Event::Scrub => self.scrub_due(),
        }
    }
}
