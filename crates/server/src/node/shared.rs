//! What all threads of a node know of each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use proto::{HostStats, Secret};
use rand::{TryRngCore, rngs::OsRng};
use store::{Budget, Category, ClassUse, Quotas};
use tokio::sync::{mpsc, oneshot, watch};
use types::{
    ChangeLog, ClusterId, ClusterMap, Expectations, Forming, HostId, MapNews, NodeInfo, NodeLoad, PAGE_BYTES,
    RunClass, ScrubProgress, Time,
};
use wire::frame::{Decoder, Encoder};
use wire::message::{FromCoordinator, ToCoordinator};

use crate::Coordination;
use crate::NodeConfig;
use crate::NodeExit;
use crate::clock::Clock;
use crate::coordination::elected::Election;
use crate::limits::SNAPSHOT_DEADLINE;
use crate::node::desk::Desk;
use crate::node::repair_meter::{Reading, RepairMeter, Sample};
use crate::node::snapshot::WorkerSnapshot;
use crate::places::{Place, Places};
use crate::transport::DetachedStream;
use crate::workers::bindings::Binding;
use crate::workers::counters::{CounterValues, Counters};

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: NodeConfig,
    pub host: HostId,
    /// What this process knows alone.
    pub secret: Secret,
    pub clock: Clock,
    pub budget: Budget,
    /// What namespaces with a quota may take here.
    pub quotas: Quotas,
    pub addresses: Addresses,
    pub workers: Vec<WorkerFace>,
    /// The newest map.
    pub map: watch::Sender<Option<Arc<ClusterMap>>>,
    /// What of it has changed since when, as far as this process has been told. Never behind the map.
    pub map_log: Mutex<ChangeLog>,
    /// Set once: how the node ends.
    pub exit: watch::Sender<Option<NodeExit>>,
    /// For the coordinator, from all workers.
    pub to_coordinator: mpsc::Sender<ToCoordinator>,
    pub coordinator_connected: AtomicBool,
    /// Whether a coordinator of this cluster answers at all, also one that can decide nothing now: operators may help it.
    pub coordinator_answers: AtomicBool,
    /// When the coordinator has last spoken; 0 = never.
    pub coordinator_heard: AtomicU64,
    /// Another process has this one's place in the cluster.
    pub waits_for_place: AtomicBool,
    /// Who is here, as the coordinator said last while it waited for the nodes that the cluster forms with.
    pub forming: Mutex<Option<Forming>>,
    /// `host:port` of the coordinator; none before it is known.
    pub coordinator_at: watch::Sender<Option<String>>,
    /// If the coordinator is elected.
    pub election: Option<Election>,
    /// Operators' requests that wait for the coordinator.
    pub desk: Desk,
    repair: Mutex<(RepairMeter, Reading)>,
    scrub: Mutex<(RepairMeter, Reading)>,
    /// Of client connections, open or on their way to a worker.
    pub places: Arc<Places>,
    pub rejected_connections: AtomicU64,
    /// Times that accepting clients paused for want of file descriptors or memory, each for `ACCEPT_PAUSE`.
    pub accept_pauses: AtomicU64,
    /// What `stats reset` has taken off the counters.
    reset: Mutex<(CounterValues, HostStats)>,
    /// Held by who asks the other nodes for their statistics: one at a time.
    pub survey: tokio::sync::Mutex<()>,
}

/// Bits of the system, which nobody can guess.
fn drawn_secret() -> Secret {
    let draw = || OsRng.try_next_u64().expect("the system has random bits");
    Secret::of([draw(), draw()])
}

/// Where a node can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// By memcached clients.
    pub memcached: SocketAddr,
    /// By other nodes.
    pub peer: SocketAddr,
    /// By whoever wants metrics and status.
    pub http: SocketAddr,
    /// By clients of the native protocol; none = nowhere.
    pub native: Option<SocketAddr>,
}

/// A worker, as the other threads see it.
#[derive(Debug)]
pub(crate) struct WorkerFace {
    pub errands: mpsc::Sender<Errand>,
    pub coordinator: mpsc::Sender<FromCoordinator>,
    pub counters: Arc<Counters>,
    /// When its loop last ran.
    pub pulse: AtomicU64,
    /// Version of the map that its host has.
    pub map_version: AtomicU64,
    /// Bytes that its members have rebuilt, and have still to rebuild.
    pub rebuilt_bytes: AtomicU64,
    pub to_rebuild_bytes: AtomicU64,
    /// When its primaries last evicted, and last refused a write for want of room; as often as a heartbeat looks, 0 = never.
    pub evicted_at: AtomicU64,
    pub refused_at: AtomicU64,
    /// As [`WorkerFace::served_at`] tells it; 0 = none.
    pub served_at: AtomicU64,
    /// How far its parities are compared, and the pages of all scrubs.
    pub scrub: Mutex<(ScrubProgress, u64)>,
}

impl WorkerFace {
    /// Whether its primaries serve something now; none if there are none.
    pub fn note_service(&self, serves_some: Option<bool>, now: Time) {
        let before = self.served_at.load(Ordering::Relaxed);
        let served_at = match serves_some {
            None => 0,
            // The first one here has not served yet, and begins to be waited for.
            Some(false) if before != 0 => before,
            Some(_) => now.0,
        };
        self.served_at.store(served_at, Ordering::Relaxed);
    }

    /// When its primaries last served something, or began to be waited for; none while there are none.
    pub fn served_at(&self) -> Option<Time> {
        Some(Time(self.served_at.load(Ordering::Relaxed))).filter(|at| at.0 != 0)
    }
}

/// What other threads ask of a worker.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Serve this client.
    Client(ClientSocket),
    /// Run this link.
    Link(Box<AcceptedLink>),
    /// Say how you are.
    Snapshot(oneshot::Sender<WorkerSnapshot>),
    /// Say what your primaries hold of each class of slots.
    Classes(oneshot::Sender<Vec<ClassUse>>),
    /// Measure the links to all other nodes by so many bytes; say whether that has begun.
    Probe(u64, oneshot::Sender<bool>),
}

/// A client's socket and its place.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    pub stream: DetachedStream,
    pub place: Place,
    pub door: Door,
}

/// By which of a node's listeners a client has come, and so what it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// memcached's protocols. The namespace that the listener is bound to; none = the default one.
    Memcached(Option<Binding>),
    /// The native protocol, whose requests name their namespaces.
    Native,
}

/// A link that a peer has opened, on its way between two threads.
#[derive(Debug)]
pub(crate) struct AcceptedLink {
    pub peer: HostId,
    pub stream: DetachedStream,
    pub encoder: Encoder,
    pub decoder: Decoder,
    pub input: bytes::BytesMut,
}

impl Shared {
    pub(crate) fn new(
        config: NodeConfig,
        addresses: Addresses,
        workers: Vec<WorkerFace>,
        to_coordinator: mpsc::Sender<ToCoordinator>,
    ) -> Arc<Self> {
        let host = HostId { node: config.node, incarnation: crate::clock::new_incarnation() };
        let clock = Clock::start();
        // They begin now: who never runs is stuck a lease from here.
        workers.iter().for_each(|worker| worker.pulse.store(clock.time().0, Ordering::Relaxed));
        let (coordinator_at, election) = match &config.coordinator {
            Coordination::Embedded(address) => (watch::Sender::new(Some(address.authority.clone())), None),
            Coordination::Elected(elected) => {
                let election = Election::new(&elected.name, &elected.etcd.endpoints);
                (watch::Sender::new(None), Some(election))
            }
        };
        Arc::new(Self {
            host,
            secret: drawn_secret(),
            clock,
            budget: Budget::new(config.memory_bytes as u64),
            quotas: Quotas::new(workers.len()),
            addresses,
            workers,
            map: watch::Sender::new(None),
            map_log: Mutex::default(),
            exit: watch::Sender::new(None),
            to_coordinator,
            coordinator_connected: AtomicBool::new(false),
            coordinator_answers: AtomicBool::new(false),
            coordinator_heard: AtomicU64::new(0),
            waits_for_place: AtomicBool::new(false),
            forming: Mutex::default(),
            coordinator_at,
            election,
            desk: Desk::default(),
            repair: Mutex::default(),
            scrub: Mutex::default(),
            places: Places::new(config.limits.max_connections),
            rejected_connections: AtomicU64::new(0),
            accept_pauses: AtomicU64::new(0),
            reset: Mutex::default(),
            survey: tokio::sync::Mutex::default(),
            config,
        })
    }

    /// Who is missing, while the coordinator waits for the nodes that the cluster forms with.
    pub(crate) fn forming(&self) -> Option<Forming> {
        let waits = self.map().is_none() && self.coordinator_answers.load(Ordering::Relaxed);
        waits.then(|| self.forming.lock().unwrap_or_else(PoisonError::into_inner).clone()).flatten()
    }

    /// The coordinator is there now.
    pub(crate) fn coordinator_is_at(&self, authority: String) {
        // The same address is told again and again; who waits for another one must not be woken by it.
        self.coordinator_at.send_if_modified(|known| known.replace(authority.clone()) != Some(authority));
    }

    /// Ends the node, unless its end has been decided already.
    pub(crate) fn end(&self, exit: NodeExit) {
        self.exit.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(exit);
            first
        });
    }

    /// Returns at the end of the node.
    pub(crate) async fn ended(&self) -> NodeExit {
        let mut exit = self.exit.subscribe();
        let known = exit.wait_for(Option::is_some).await;
        known.ok().and_then(|exit| exit.clone()).unwrap_or(NodeExit::Stopped)
    }

    /// A place for one more client; none while all are taken by clients that have sent commands.
    pub(crate) fn admit_connection(&self) -> Option<Place> {
        let place = self.places.take();
        if place.is_none() {
            self.rejected_connections.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Accepting clients has paused.
    pub(crate) fn note_accept_pause(&self) {
        self.accept_pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// The newest map.
    pub(crate) fn map(&self) -> Option<Arc<ClusterMap>> {
        self.map.borrow().clone()
    }

    /// What has become of version `since` of the map of `cluster`, if there is a map.
    pub(crate) fn map_since(&self, cluster: ClusterId, since: u64) -> Option<MapNews> {
        // The map first: parts that it does not have yet are told of as they are.
        let map = self.map()?;
        let log = self.map_log.lock().unwrap_or_else(PoisonError::into_inner);
        Some(MapNews::since(&map, &log, cluster, since))
    }

    /// The oldest map version of any worker.
    pub(crate) fn map_version(&self) -> u64 {
        self.workers.iter().map(|worker| worker.map_version.load(Ordering::Relaxed)).min().unwrap_or(0)
    }

    /// How long ago the worker that has been silent for longest last ran, in microseconds.
    pub(crate) fn longest_silence_us(&self) -> u64 {
        let now = self.clock.time();
        self.workers.iter().map(|worker| worker.silence_us(now)).max().unwrap_or(0)
    }

    /// What the coordinator is told at registration.
    pub(crate) fn info(&self) -> NodeInfo {
        NodeInfo {
            host: self.host,
            peer: self.addresses.peer,
            memcached: self.addresses.memcached,
            http: self.addresses.http,
            native: self.addresses.native,
            zone: self.config.zone.clone(),
            alive: true,
        }
    }

    /// What this process expects of its cluster.
    pub(crate) fn expectations(&self) -> Expectations {
        let config = &self.config;
        Expectations {
            cluster: config.cluster,
            profile: config.profile,
            shards: config.workers,
            entry: config.entry,
            lease_us: config.timing.node_lease_us,
        }
    }

    /// What the coordinator is told with every heartbeat.
    pub(crate) fn load(&self) -> NodeLoad {
        let repair = self.sample_repair();
        let members = [Category::Area, Category::Parity, Category::Index, Category::Chunks];
        NodeLoad {
            used_bytes: self.budget.total_used(),
            limit_bytes: self.budget.limit(),
            member_bytes: members.into_iter().map(|category| self.budget.used(category)).sum(),
            repair_done_bytes: repair.done_bytes,
            repair_left_bytes: repair.left_bytes,
            repair_bytes_per_second: repair.bytes_per_second,
            scrub: self.sample_scrub(),
        }
    }

    /// How repair goes on, as of the last heartbeat.
    pub(crate) fn repair(&self) -> Reading {
        self.repair.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn sample_repair(&self) -> Reading {
        let sum = |of: fn(&WorkerFace) -> &AtomicU64| -> u64 {
            self.workers.iter().map(|worker| of(worker).load(Ordering::Relaxed)).sum()
        };
        let sample = Sample {
            done_bytes: sum(|face| &face.rebuilt_bytes),
            left_bytes: sum(|face| &face.to_rebuild_bytes),
        };
        let mut repair = self.repair.lock().unwrap_or_else(PoisonError::into_inner);
        repair.1 = repair.0.read(self.clock.time(), sample);
        repair.1
    }

    /// How far this node's scrub has come, and how many bytes a second it compares, as of the last heartbeat.
    pub(crate) fn scrub(&self) -> (ScrubProgress, u64) {
        let rate = self.scrub.lock().unwrap_or_else(PoisonError::into_inner).1.bytes_per_second;
        (self.scrub_of_workers().0, rate)
    }

    fn scrub_of_workers(&self) -> (ScrubProgress, u64) {
        let known = |face: &WorkerFace| *face.scrub.lock().unwrap_or_else(PoisonError::into_inner);
        let faces = self.workers.iter().map(known);
        let add = |(sum, pages): (ScrubProgress, u64), (one, more)| (sum.plus(one), pages + more);
        faces.reduce(add).unwrap_or_default()
    }

    fn sample_scrub(&self) -> ScrubProgress {
        let (progress, pages) = self.scrub_of_workers();
        let bytes = |pages: u64| pages * PAGE_BYTES as u64;
        let sample = Sample { done_bytes: bytes(pages), left_bytes: bytes(progress.left_pages) };
        let mut scrub = self.scrub.lock().unwrap_or_else(PoisonError::into_inner);
        scrub.1 = scrub.0.read(self.clock.time(), sample);
        progress
    }

    /// Sum of all workers' counters since the last reset.
    pub(crate) fn counters(&self) -> CounterValues {
        // The base first: one that a reset makes in between would be newer than the sum.
        let base = self.reset.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        self.all_counters().since(&base)
    }

    /// What the members had counted at the last reset.
    pub(crate) fn host_base(&self) -> HostStats {
        self.reset.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// `stats reset`; the members have counted so much.
    pub(crate) fn reset_counters(&self, members: HostStats) {
        let now = self.all_counters();
        *self.reset.lock().unwrap_or_else(PoisonError::into_inner) = (now, members);
    }

    /// Sum of all workers' counters since the start.
    pub(crate) fn all_counters(&self) -> CounterValues {
        let zero = CounterValues::default();
        self.workers.iter().fold(zero, |sum, worker| sum.plus(&worker.counters.values()))
    }

    /// What every worker knows now; those that do not answer in time are missing.
    pub(crate) async fn snapshots(&self) -> Vec<WorkerSnapshot> {
        self.ask_workers(Errand::Snapshot).await
    }

    /// What the primaries of this node hold of each class of slots.
    pub(crate) async fn classes(&self) -> BTreeMap<RunClass, ClassUse> {
        let mut classes: BTreeMap<RunClass, ClassUse> = BTreeMap::new();
        for one in self.ask_workers(Errand::Classes).await.into_iter().flatten() {
            classes.entry(one.class).and_modify(|sum| sum.add(&one)).or_insert(one);
        }
        classes
    }

    /// How many workers this node has.
    pub(crate) fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// A worker measures its links to all other nodes, by so many bytes of each; false if that is under way, none if it does not answer.
    pub(crate) async fn probe_links(&self, worker: u16, bytes: u64) -> Option<bool> {
        let (sender, receiver) = oneshot::channel();
        self.workers.get(usize::from(worker))?.errands.try_send(Errand::Probe(bytes, sender)).ok()?;
        tokio::time::timeout(SNAPSHOT_DEADLINE, receiver).await.ok()?.ok()
    }

    async fn ask_workers<T>(&self, question: fn(oneshot::Sender<T>) -> Errand) -> Vec<T> {
        let mut asked = Vec::new();
        for worker in &self.workers {
            let (sender, receiver) = oneshot::channel();
            if worker.errands.try_send(question(sender)).is_ok() {
                asked.push(receiver);
            }
        }
        let deadline = tokio::time::Instant::now() + SNAPSHOT_DEADLINE;
        let mut answers = Vec::new();
        for receiver in asked {
            if let Ok(Ok(snapshot)) = tokio::time::timeout_at(deadline, receiver).await {
                answers.push(snapshot);
            }
        }
        answers
    }
}

impl WorkerFace {
    /// How long ago it last ran.
    pub(crate) fn silence_us(&self, now: Time) -> u64 {
        now.since(Time(self.pulse.load(Ordering::Relaxed)))
    }
}
