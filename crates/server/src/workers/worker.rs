//! A worker: one thread, one runtime, one `Host`, and the connections and links that belong to it. Nothing is shared
//! with other workers but queues and counters.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use proto::{Host, HostConfig, Now, Place, Rules, Submitted, Token};
use store::StoreConfig;
use types::op::{Failure, Outcome, Request};
use types::{GroupId, MemberId, RoleIndex};

use crate::clients::connection::Connection;
use crate::clients::gate::Gate;
use crate::clients::latency::Stopwatch;
use crate::clock::Clock;
use crate::limits::BUFFER_SHARE_OF_MEMORY;
use crate::node::shared::{Shared, WorkerFace};
use crate::node::snapshot::{WorkerMemory, WorkerSnapshot};
use crate::peers::guess::Guess;
use crate::peers::links::Links;
use crate::workers::buffers::Pool;
use crate::workers::counters::Counters;
use crate::workers::crossings::{Asking, Crossings};
use crate::workers::pump::Pump;
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

impl Worker {
    pub(crate) fn new(shard: u16, shared: Arc<Shared>, crossings: Crossings) -> Self {
        let config = &shared.config;
        let host = Host::new(HostConfig {
            host: shared.host,
            shard,
            timing: config.timing,
            rules: Rules::all(),
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
        let workers = self.shared.config.workers;
        let shard = match place.member {
            _ if workers == 1 => self.shard,
            Some(member) => member.group.shard(workers),
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

    pub(super) fn submit_here(
        &self,
        now: Now,
        waiter: Waiter,
        place: Place,
        request: Request,
    ) -> Option<Outcome> {
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

    pub(super) fn snapshot(&self) -> WorkerSnapshot {
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
    pub(super) fn clear(&self) {
        self.waiters.borrow_mut().clear();
        self.connections.borrow_mut().clear();
        self.answered.take();
        self.gate.clear();
        self.links.clear();
    }
}
