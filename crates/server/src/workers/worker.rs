//! A worker: one thread, one runtime, one `Host`, and the connections and links that belong to it. Nothing is shared
//! with other workers but queues and counters.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use proto::{Host, HostConfig, Now, Place, Submitted, Token};
use store::StoreConfig;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::Receiver;
use types::op::{Failure, Outcome, Request};
use types::{GroupId, MemberId, RoleIndex};
use wire::message::FromCoordinator;

use crate::NodeExit;
use crate::clients::connection::{self, Connection, Overdue};
use crate::clients::gate::Gate;
use crate::clients::latency::Stopwatch;
use crate::clock::Clock;
use crate::limits::{BUFFER_SHARE_OF_MEMORY, SWEEP_INTERVAL};
use crate::node::memory::WorkerMemory;
use crate::node::shared::{AcceptedLink, ClientSocket, Errand, Shared, WorkerFace, WorkerSnapshot};
use crate::peers::guess::Guess;
use crate::peers::handshake::Opened;
use crate::peers::link;
use crate::peers::links::Links;
use crate::workers::buffers::Pool;
use crate::workers::counters::Counters;
use crate::workers::crossings::{Asking, Batch, Crossing, Crossings};
use crate::workers::pump::{self, Pump};
use crate::workers::slab::Slab;

/// See the module.
pub(crate) struct Worker {
    pub shard: u16,
    pub shared: Arc<Shared>,
    pub clock: Clock,
    pub host: RefCell<Host>,
    pub counters: Arc<Counters>,
    pub connections: RefCell<Slab<Rc<Connection>>>,
    pub links: Links,
    pub gate: Gate,
    pub pool: Pool,
    pub pump: Pump,
    pub crossings: Crossings,
    pub stopwatch: Stopwatch,
    /// Who waits for which request.
    waiters: RefCell<Slab<Waiter>>,
    /// Connections that have answers to print.
    answered: RefCell<Vec<Rc<Connection>>>,
    last_connection: Cell<u64>,
    /// How long the value of a read will be, going by those before it.
    pub reply_guess: Guess,
}

/// Who gets an answer.
pub(crate) enum Waiter {
    /// A connection of this worker.
    Slot {
        /// Which.
        connection: Rc<Connection>,
        /// Which of its replies.
        slot: u64,
    },
    /// Another worker.
    Crossing {
        /// Which.
        shard: u16,
        /// Its name for the request.
        ticket: u64,
    },
}

/// What a worker's thread gets from those who start it.
pub(crate) struct Inbox {
    pub errands: Receiver<Errand>,
    pub coordinator: Receiver<FromCoordinator>,
    pub crossings: (Crossings, Receiver<Batch>),
}

/// The runtime of a worker, on the thread that calls.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Runs a worker on this thread until the node ends.
pub(crate) fn run(runtime: &LocalRuntime, shard: u16, shared: Arc<Shared>, inbox: Inbox) {
    shared.config.scheduling.apply();
    let (crossings, batches) = inbox.crossings;
    let worker = Rc::new(Worker::new(shard, shared, crossings));
    runtime.block_on(async {
        tokio::task::spawn_local(pump::run(Rc::clone(&worker)));
        tokio::task::spawn_local(sweep(Rc::clone(&worker)));
        tokio::task::spawn_local(report_repair(Rc::clone(&worker)));
        tokio::task::spawn_local(take_batches(Rc::clone(&worker), batches));
        tokio::task::spawn_local(take_coordinator(Rc::clone(&worker), inbox.coordinator));
        tokio::task::spawn_local(take_errands(Rc::clone(&worker), inbox.errands));
        worker.shared.ended().await;
    });
    worker.clear();
}

impl Worker {
    pub(crate) fn new(shard: u16, shared: Arc<Shared>, crossings: Crossings) -> Self {
        let config = &shared.config;
        let host = Host::new(HostConfig {
            host: shared.host,
            shard,
            timing: config.timing,
            limits: config.protocol,
            store: StoreConfig {
                // The map says which; the host fills it in.
                cluster: config.cluster.unwrap_or_default(),
                area_limit_bytes: config.area_limit(),
                eviction: config.eviction,
            },
            budget: shared.budget.clone(),
        });
        let buffers = config.memory_bytes / BUFFER_SHARE_OF_MEMORY / usize::from(config.workers);
        Self {
            shard,
            clock: shared.clock,
            host: RefCell::new(host),
            counters: Arc::clone(&shared.workers[usize::from(shard)].counters),
            connections: RefCell::default(),
            links: Links::default(),
            gate: Gate::new(shared.budget.clone(), buffers),
            pool: Pool::default(),
            pump: Pump::default(),
            crossings,
            stopwatch: Stopwatch::default(),
            waiters: RefCell::default(),
            answered: RefCell::default(),
            last_connection: Cell::new(0),
            reply_guess: Guess::default(),
            shared,
        }
    }

    /// What other threads see of this worker.
    pub(crate) fn face(&self) -> &WorkerFace {
        &self.shared.workers[usize::from(self.shard)]
    }

    /// A number for a new connection.
    pub(crate) fn next_connection_id(&self) -> u64 {
        self.last_connection.set(self.last_connection.get() + 1);
        self.last_connection.get()
    }

    /// A request for what is at `place`, by the worker that has its group; its answer, if it is known at once.
    pub(crate) fn submit(&self, now: Now, waiter: Waiter, place: Place, request: Request) -> Option<Outcome> {
        let workers = u32::from(self.shared.config.workers);
        let shard = match place.member {
            _ if workers == 1 => self.shard,
            Some(member) => (member.group.0 % workers) as u16,
            None => return Some(Outcome::Failed(Failure::Unavailable)),
        };
        if shard == self.shard {
            return self.submit_here(now, waiter, place, request);
        }
        if !self.crossings.may_ask(shard) {
            return Some(Outcome::Failed(Failure::Busy));
        }
        let ticket = self.waiters.borrow_mut().insert(waiter);
        self.crossings.ask(shard, Asking { ticket, place, asked: now.time, request });
        self.counters.crossings.inc();
        self.pump.request();
        None
    }

    fn submit_here(&self, now: Now, waiter: Waiter, place: Place, request: Request) -> Option<Outcome> {
        let token = self.waiters.borrow_mut().insert(waiter);
        let submitted = self.host.borrow_mut().submit(now, Token(token), place, request);
        self.pump.request();
        match submitted {
            Submitted::Pending => None,
            Submitted::Done(outcome) => {
                self.waiters.borrow_mut().take(token);
                Some(outcome)
            }
        }
    }

    /// The host has an answer.
    pub(crate) fn reply(&self, now: Now, token: Token, outcome: Outcome) {
        if let Some(waiter) = self.waiters.borrow_mut().take(token.0) {
            self.pass_on(now, waiter, outcome);
        }
    }

    fn pass_on(&self, now: Now, waiter: Waiter, outcome: Outcome) {
        match waiter {
            Waiter::Crossing { shard, ticket } => self.crossings.answer(shard, ticket, outcome),
            Waiter::Slot { connection, slot } => {
                connection.answer(self, now.time, slot, outcome);
                if !connection.answered.replace(true) {
                    self.answered.borrow_mut().push(connection);
                }
            }
        }
    }

    /// Prints and sends the answers of this cycle.
    pub(crate) fn deliver(&self) {
        let mut answered = self.answered.take();
        for connection in answered.drain(..) {
            connection.answered.set(false);
            connection.deliver(self);
        }
        // Keeps the list's memory; nothing has been answered meanwhile.
        self.answered.replace(answered);
    }

    /// `outcome`, or a refusal to keep its value: if far too much waits to be sent already, or too much does and
    /// this connection, which holds `held` bytes, has more than its share.
    pub(crate) fn spare_memory(&self, outcome: Outcome, held: usize) -> Outcome {
        self.reply_guess.learn(&outcome);
        let Outcome::Hit(item) = &outcome else { return outcome };
        let greedy = || held > self.shared.config.limits.outstanding_bytes && !self.gate.is_open();
        if !item.value.is_empty() && (self.gate.is_flooded() || greedy()) {
            return Outcome::Failed(Failure::OutOfMemory);
        }
        outcome
    }

    /// Every data role of the map.
    pub(crate) fn data_roles(&self) -> Vec<MemberId> {
        let host = self.host.borrow();
        let Some(map) = host.map() else { return Vec::new() };
        let roles = |group: GroupId| {
            (0..map.profile.k()).map(move |role| MemberId { group, role: RoleIndex(role as u8) })
        };
        map.groups.iter().flat_map(|view| roles(view.group)).collect()
    }

    fn snapshot(&self) -> WorkerSnapshot {
        WorkerSnapshot {
            shard: self.shard,
            host: self.host.borrow().stats(),
            roles: self.host.borrow().role_bytes(self.clock.now().time).collect(),
            scrub_findings: self.host.borrow().scrub_findings().cloned().collect(),
            open_requests: self.waiters.borrow().len(),
            buffer_bytes: self.gate.held(),
            memory: self.memory(),
            links: self.links.snapshot(),
            requests: Box::new(self.stopwatch.read()),
            waits: Box::new(self.host.borrow().latencies().clone()),
        }
    }

    fn memory(&self) -> WorkerMemory {
        let connections = self.connections.borrow();
        let clients: usize = connections.iter().map(|connection| connection.memory_bytes()).sum();
        WorkerMemory {
            host: self.host.borrow().memory(),
            client_bytes: clients + connections.memory_bytes() + self.pool.memory_bytes(),
            link_bytes: self.links.memory_bytes(),
            waiter_bytes: self.waiters.borrow().memory_bytes(),
        }
    }

    /// Breaks the circles of references, so that everything is given back when the tasks are gone.
    fn clear(&self) {
        self.waiters.borrow_mut().clear();
        self.connections.borrow_mut().clear();
        self.answered.take();
        self.gate.clear();
        self.links.clear();
    }
}

/// Takes what the threads that accept connections, or ask questions, have for this worker.
async fn take_errands(worker: Rc<Worker>, mut errands: Receiver<Errand>) {
    while let Some(errand) = errands.recv().await {
        match errand {
            Errand::Client(socket) => {
                drop(tokio::task::spawn_local(serve_client(Rc::clone(&worker), socket)))
            }
            Errand::Link(link) => drop(tokio::task::spawn_local(serve_link(Rc::clone(&worker), link))),
            Errand::Snapshot(asker) => drop(asker.send(worker.snapshot())),
            Errand::Classes(asker) => drop(asker.send(worker.host.borrow().classes())),
        }
    }
}

async fn serve_client(worker: Rc<Worker>, socket: ClientSocket) {
    let ClientSocket { stream, place } = socket;
    match TcpStream::from_std(stream) {
        Ok(stream) => connection::serve(worker, stream, place).await,
        Err(error) => tracing::debug!(%error, "client not served"),
    }
}

async fn serve_link(worker: Rc<Worker>, link: Box<AcceptedLink>) {
    let AcceptedLink { peer, stream, encoder, decoder, input } = *link;
    match TcpStream::from_std(stream) {
        Ok(stream) => {
            link::run(&worker, Opened { peer, stream, encoder, decoder, input }).await;
        }
        Err(error) => tracing::debug!(%error, %peer, "link not opened"),
    }
}

async fn take_coordinator(worker: Rc<Worker>, mut messages: Receiver<FromCoordinator>) {
    while let Some(message) = messages.recv().await {
        let nodes_changed = matches!(message, FromCoordinator::Map(_));
        worker.host.borrow_mut().handle_coordinator(worker.clock.now(), message);
        if nodes_changed {
            worker.reconcile_links();
        }
        let version = worker.host.borrow().map().map_or(0, |map| map.version);
        worker.face().map_version.store(version, Ordering::Relaxed);
        worker.pump.request();
    }
}

/// Takes what other workers ask and answer.
async fn take_batches(worker: Rc<Worker>, mut batches: Receiver<Batch>) {
    while let Some((shard, batch)) = batches.recv().await {
        let now = worker.clock.now();
        for crossing in batch {
            match crossing {
                Crossing::Answer { ticket, outcome } => {
                    worker.crossings.answered(shard);
                    worker.reply(now, Token(ticket), outcome);
                }
                Crossing::Ask(Asking { ticket, place, asked, request }) => {
                    worker.stopwatch.queued(request.op.kind(), asked, now.time);
                    let waiter = Waiter::Crossing { shard, ticket };
                    if let Some(outcome) = worker.submit_here(now, waiter, place, request) {
                        worker.crossings.answer(shard, ticket, outcome);
                    }
                }
            }
        }
        worker.pump.request();
    }
}

/// Closes connections whose deadlines have passed, and gives back memory.
async fn sweep(worker: Rc<Worker>) {
    let mut ticks = tokio::time::interval(sweep_interval(&worker));
    loop {
        ticks.tick().await;
        let now = worker.clock.now();
        let pressed = !worker.gate.is_open();
        for connection in worker.connections.borrow().iter() {
            if let Some(overdue) = connection.overdue(&worker, now, pressed) {
                match overdue {
                    Overdue::Idle => worker.counters.idle_kicks.inc(),
                    Overdue::HalfSent => worker.counters.half_sent_kicks.inc(),
                    Overdue::Unread => worker.counters.unread_kicks.inc(),
                }
                connection.abort();
            }
        }
        worker.gate.trim();
    }
}

/// Says how repair goes on and whether there is room, for the next heartbeat.
async fn report_repair(worker: Rc<Worker>) {
    let heartbeat = Duration::from_micros(worker.shared.config.timing.heartbeat_us.max(1000));
    let mut ticks = tokio::time::interval(heartbeat);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut before = (0, 0);
    loop {
        ticks.tick().await;
        let stats = worker.host.borrow().stats();
        report_service(&worker, before, &stats);
        before = (stats.evictions, stats.refused_writes);
        worker.face().rebuilt_bytes.store(stats.rebuilt_bytes, Ordering::Relaxed);
        worker.face().to_rebuild_bytes.store(stats.to_rebuild_bytes, Ordering::Relaxed);
        let scrub = (stats.scrub, stats.scrubbed_pages);
        *worker.face().scrub.lock().unwrap_or_else(PoisonError::into_inner) = scrub;
    }
}

/// Says what has happened since there were so many evictions and refused writes.
fn report_service(worker: &Worker, (evictions, refused): (u64, u64), stats: &proto::HostStats) {
    let (now, face) = (worker.clock.now().time, worker.face());
    let happened =
        [(&face.evicted_at, stats.evictions > evictions), (&face.refused_at, stats.refused_writes > refused)];
    for (at, _) in happened.into_iter().filter(|(_, happened)| *happened) {
        at.store(now.0, Ordering::Relaxed);
    }
    face.note_service(worker.host.borrow().serves_some(now), now);
}

/// Often enough for the shortest of the deadlines.
fn sweep_interval(worker: &Worker) -> Duration {
    let limits = &worker.shared.config.limits;
    let shortest = limits.half_sent.min(limits.unread).min(limits.idle.unwrap_or(Duration::MAX));
    SWEEP_INTERVAL.min(shortest / 4).max(Duration::from_millis(1))
}

/// Says that a thread has ended, however it did.
pub(crate) struct ThreadGuard {
    pub shared: Arc<Shared>,
    pub what: &'static str,
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.shared.end(NodeExit::Crashed(self.what));
    }
}
