//! A worker: one thread, one runtime, one `Host`, and the connections and links that belong to it. Nothing is shared
//! with other workers but queues and counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use faces::ValueLimits;
use native::RouteMap;
use proto::{Host, HostConfig, Limits, Now, Place, Rules, Submitted};
use store::StoreConfig;
use tokio::sync::Notify;
use tokio::time::timeout;
use types::op::{Failure, Outcome, Request};
use types::{GroupId, MemberId, NamespaceId, ObjectPolicy, RoleIndex};

use crate::clients::client::Client;
use crate::clients::gate::Gate;
use crate::clients::latency::Stopwatch;
use crate::clock::Clock;
use crate::limits::BUFFER_SHARE_OF_MEMORY;
use crate::node::shared::{Shared, WorkerFace};
use crate::node::snapshot::{WorkerMemory, WorkerSnapshot};
use crate::peers::guess::Guess;
use crate::peers::links::Links;
use crate::workers::asker::{Asker, Awaits};
use crate::workers::bindings::{Binding, Bindings};
use crate::workers::buffers::Pool;
use crate::workers::counters::Counters;
use crate::workers::crossings::{Asking, Crossings};
use crate::workers::pump::Pump;
use crate::workers::slab::Slab;
use crate::workers::streams::Streams;

/// See the module.
pub(crate) struct Worker {
    pub shard: u16,
    pub shared: Arc<Shared>,
    pub clock: Clock,
    pub host: RefCell<Host>,
    pub counters: Arc<Counters>,
    pub connections: RefCell<Slab<Rc<dyn Client>>>,
    pub links: Links,
    pub gate: Gate,
    pub pool: Pool,
    pub pump: Pump,
    pub crossings: Crossings,
    pub streams: Streams,
    pub stopwatch: Stopwatch,
    /// The namespaces of the listeners that are bound to one.
    bindings: Bindings,
    /// Told of every map.
    pub map_came: Notify,
    /// Connections that have been answered in this cycle.
    answered: RefCell<Vec<Rc<dyn Client>>>,
    route_map: RefCell<Option<Arc<RouteMap>>>,
    /// How long the value of a read will be, going by those before it.
    pub reply_guess: Guess,
}

impl Worker {
    pub(crate) fn new(shard: u16, shared: Arc<Shared>, crossings: Crossings) -> Self {
        let config = &shared.config;
        let host = Host::new(HostConfig {
            host: shared.host,
            shard,
            secret: shared.secret,
            timing: config.timing,
            rules: Rules::all(),
            limits: Limits { value_bytes: config.limits.max_value_bytes, ..config.protocol },
            graphs: config.graphs,
            coder: config.coder.clone(),
            store: StoreConfig {
                // The map says which; the host fills it in.
                cluster: config.cluster.unwrap_or_default(),
                area_limit_bytes: config.area_limit(),
                eviction: config.eviction,
            },
            budget: shared.budget.clone(),
            quotas: shared.quotas.clone(),
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
            streams: Streams::default(),
            stopwatch: Stopwatch::default(),
            bindings: Bindings::of(config.bound.iter().map(|bound| bound.namespace.clone())),
            map_came: Notify::new(),
            answered: RefCell::default(),
            route_map: RefCell::default(),
            reply_guess: Guess::default(),
            shared,
        }
    }

    /// What other threads see of this worker.
    pub(crate) fn face(&self) -> &WorkerFace {
        &self.shared.workers[usize::from(self.shard)]
    }

    /// Keeps the connection that `make` makes of its number, until it is taken.
    pub(crate) fn connect<C: Client + 'static>(&self, make: impl FnOnce(u64) -> Rc<C>) -> Rc<C> {
        let mut made = None;
        let keep = |id| -> Rc<dyn Client> { made.insert(make(id)).clone() };
        self.connections.borrow_mut().insert_with(keep);
        made.expect("it is made by then")
    }

    /// A request for what is at `place`, by the worker that has its group; its answer, if it is known at once.
    #[inline]
    pub(crate) fn submit(
        &self,
        now: Now,
        asker: Asker,
        place: Place,
        request: impl Into<Box<Request>>,
    ) -> Option<Outcome> {
        let request = request.into();
        // Before there is a map nobody knows which worker will have the key, and could let it wait.
        let Some(shard) = self.shard_of(place) else { return Some(Outcome::Failed(Failure::Unavailable)) };
        if shard == self.shard {
            return self.submit_here(now, asker, place, request);
        }
        self.submit_elsewhere(now, (asker, shard), place, request)
    }

    #[inline(never)]
    fn submit_elsewhere(
        &self,
        now: Now,
        (asker, shard): (Asker, u16),
        place: Place,
        request: Box<Request>,
    ) -> Option<Outcome> {
        if !self.crossings.may_ask(shard) {
            return Some(Outcome::Failed(Failure::Busy));
        }
        self.crossings.ask(shard, Asking { asker, place, asked: now.time, request });
        self.counters.crossings.inc();
        self.pump.request();
        None
    }

    /// The worker that has the group of what is at `place`.
    #[inline]
    pub(crate) fn shard_of(&self, place: Place) -> Option<u16> {
        match self.shared.config.workers {
            // Also without a map: the host lets requests wait for it.
            1 => Some(self.shard),
            workers => place.member.map(|member| member.group.shard(workers)),
        }
    }

    pub(super) fn submit_here(
        &self,
        now: Now,
        asker: Asker,
        place: Place,
        request: Box<Request>,
    ) -> Option<Outcome> {
        let submitted = self.host.borrow_mut().submit(now, asker.into(), place, request);
        self.pump.request();
        match submitted {
            Submitted::Pending => None,
            Submitted::Done(outcome) => Some(outcome),
        }
    }

    /// The host wants to know something of whoever has that group.
    pub(super) fn ask_onward(&self, now: Now, number: u64, place: Place, request: Box<Request>) {
        let asker = Asker { shard: self.shard, connection: 0, slot: number, awaits: Awaits::HostAnswer };
        if let Some(outcome) = self.submit(now, asker, place, request) {
            self.reply_elsewhere(now, asker, outcome);
        }
    }

    /// There is an answer, for a connection of this worker or for another worker.
    #[inline]
    pub(crate) fn reply(&self, now: Now, asker: Asker, outcome: Outcome) {
        if asker.shard == self.shard && asker.awaits != Awaits::HostAnswer {
            self.with_asker(asker, |connection| connection.answer(self, now.time, asker.slot, outcome));
        } else {
            self.reply_elsewhere(now, asker, outcome);
        }
    }

    /// For another worker, or for the host of this one.
    #[inline(never)]
    pub(super) fn reply_elsewhere(&self, now: Now, asker: Asker, outcome: Outcome) {
        if asker.shard != self.shard {
            return self.crossings.answer(asker, outcome);
        }
        self.pump.request();
        self.host.borrow_mut().following(now).hear(asker.slot, outcome);
    }

    /// Tells a connection something, after which it is asked what it has to send.
    pub(super) fn with_asker(&self, asker: Asker, tell: impl FnOnce(&dyn Client)) {
        let connections = self.connections.borrow();
        let Some(connection) = connections.get(asker.connection) else { return };
        tell(connection.as_ref());
        if !connection.answered().replace(true) {
            self.answered.borrow_mut().push(Rc::clone(connection));
        }
    }

    /// Prints what was answered before its turn in this cycle, and sends all of it.
    pub(crate) fn deliver(&self) {
        let mut answered = self.answered.take();
        for connection in answered.drain(..) {
            connection.answered().set(false);
            connection.deliver(self);
        }
        // Keeps the list's memory; nothing has been answered meanwhile.
        self.answered.replace(answered);
    }

    /// Makes a refusal of an outcome whose value is not to be kept: if far too much waits to be sent already, or too much does and
    /// this connection, which holds `held` bytes, has more than its share.
    pub(crate) fn spare_memory(&self, outcome: &mut Outcome, held: usize) {
        // From a value that is refused, too: the guess is what makes the next requests wait in time.
        self.reply_guess.learn(outcome);
        let Outcome::Hit(item) = outcome else { return };
        let greedy = || held > self.shared.config.limits.outstanding_bytes && !self.gate.is_open();
        if !item.value.is_empty() && (self.gate.is_flooded() || greedy()) {
            *outcome = Outcome::Failed(Failure::OutOfMemory);
        }
    }

    /// The namespace of a connection that came by `binding`; one that nobody has if there is none of this name.
    #[inline(always)]
    pub(crate) fn namespace(&self, binding: Option<Binding>) -> NamespaceId {
        match binding {
            None => NamespaceId::DEFAULT,
            Some(binding) => self.bound_namespace(binding),
        }
    }

    #[inline(never)]
    fn bound_namespace(&self, binding: Binding) -> NamespaceId {
        self.bindings.resolve(binding, self.host.borrow().map())
    }

    /// Returns when the host has its first map: before it nobody knows which namespace a listener is bound to. Not later than when a
    /// request would be given up that waits for the same.
    pub(crate) async fn first_map(&self) {
        let longest = Duration::from_micros(self.shared.config.timing.request_deadline_us);
        let _ = timeout(longest, async {
            while self.map_version().is_none() {
                self.map_came.notified().await;
            }
        })
        .await;
    }

    /// How long a client may be silent in the middle of what it sends. Of a long value it is as long as nobody else, who may want its
    /// memory, would wait for more of it.
    pub(crate) fn longest_silence_within(&self, long_value: bool) -> Duration {
        let config = &self.shared.config;
        let of_objects = Duration::from_micros(config.timing.object_deadline_us);
        if long_value { config.limits.half_sent.min(of_objects) } else { config.limits.half_sent }
    }

    /// The version of the map that the host has.
    #[inline]
    pub(crate) fn map_version(&self) -> Option<u64> {
        self.host.borrow().map().map(|map| map.version)
    }

    /// Which values of a namespace are cut into chunks, and how.
    pub(crate) fn object_policy(&self, namespace: NamespaceId) -> ObjectPolicy {
        let host = self.host.borrow();
        let known = host.map().and_then(|map| map.catalog.namespace(namespace));
        known.map_or_else(ObjectPolicy::default, |known| ObjectPolicy {
            striped_above: known.policy.objects.striped_above,
            ..known.policy.objects
        })
    }

    /// Which values a client that came by `binding` may send.
    pub(crate) fn value_limits(&self, binding: Option<Binding>) -> ValueLimits {
        self.value_limits_of(self.namespace(binding))
    }

    /// Which values may be stored under keys of `namespace`.
    pub(crate) fn value_limits_of(&self, namespace: NamespaceId) -> ValueLimits {
        let streamed_above = self.object_policy(namespace).striped_above;
        ValueLimits { streamed_above, longest: self.shared.config.limits.max_value_bytes }
    }

    /// The map as clients of the native protocol are told it, made once for each version.
    pub(crate) fn route_map(&self) -> Option<Arc<RouteMap>> {
        let host = self.host.borrow();
        let map = host.map()?;
        let mut made = self.route_map.borrow_mut();
        if made.as_ref().is_none_or(|made| (made.cluster, made.version) != (map.cluster, map.version)) {
            *made = Some(Arc::new(RouteMap::of(map)));
        }
        made.clone()
    }

    /// Every data role that has keys of `namespace`: one at least.
    ///
    /// # Errors
    /// If there is no such namespace, or none that is known of yet, or it moves to another pool.
    pub(crate) fn data_roles(&self, namespace: NamespaceId) -> Result<Vec<MemberId>, Failure> {
        let host = self.host.borrow();
        let map = host.map().ok_or(Failure::Unavailable)?;
        let is_gone = map.catalog.is_gone(namespace);
        let missing = if is_gone { Failure::NoNamespace } else { Failure::Unavailable };
        let pool = map.catalog.pool_of(namespace).ok_or(missing)?;
        // Its keys are at roles of either pool, and go from one to the other.
        if map.catalog.target_of(namespace).is_some() {
            return Err(Failure::Busy);
        }
        let roles = |group: GroupId| {
            (0..pool.profile.k()).map(move |role| MemberId { group, role: RoleIndex(role as u8) })
        };
        Ok(pool.group_ids().flat_map(roles).collect())
    }

    pub(super) fn snapshot(&self) -> WorkerSnapshot {
        WorkerSnapshot {
            shard: self.shard,
            host: self.host.borrow().stats(),
            graphs: Box::new(self.host.borrow().graph_stats()),
            seen_links: proto::seen_links(&self.host.borrow()),
            graph_links: Box::new(proto::graph_links(&self.host.borrow(), self.clock.now().time)),
            probe: proto::probe_report(&self.host.borrow()),
            roles: self.host.borrow().role_bytes(self.clock.now().time).collect(),
            namespaces: self.host.borrow().namespace_uses(),
            scrub_findings: self.host.borrow().scrub_findings().cloned().collect(),
            lost_keys: proto::lost_keys(&self.host.borrow()).cloned().collect(),
            wrong_keys: proto::wrong_keys(&self.host.borrow()).cloned().collect(),
            wrong_stripes: proto::wrong_stripes(&self.host.borrow()).to_vec(),
            open_requests: self.connections.borrow().iter().map(|connection| connection.waiting()).sum(),
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
        }
    }

    /// Breaks the circles of references, so that everything is given back when the tasks are gone.
    pub(super) fn clear(&self) {
        self.connections.borrow_mut().clear();
        self.answered.take();
        self.gate.clear();
        self.links.clear();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::sync::mpsc;
    use types::{NodeId, Time, UnixSeconds};

    use super::*;
    use crate::NodeConfig;
    use crate::clients::connection::Connection;
    use crate::node::shared::Addresses;
    use crate::node::worker_ends;
    use crate::workers::cycle;
    use crate::workers::run::Inbox;

    /// The only worker of a node without a cluster.
    pub(crate) fn alone() -> Rc<Worker> {
        let nowhere: std::net::SocketAddr = "127.0.0.1:1".parse().unwrap();
        let (face, inbox) = worker_ends(Crossings::mesh(1).pop().unwrap());
        let Inbox { crossings: (crossings, _), .. } = inbox;
        let config = NodeConfig { workers: 1, ..NodeConfig::local(NodeId(0), nowhere.into()) };
        let addresses = Addresses { memcached: nowhere, peer: nowhere, http: nowhere, native: None };
        let shared = Shared::new(config, addresses, vec![face], mpsc::channel(1).0);
        Rc::new(Worker::new(0, shared, crossings))
    }

    fn connect(worker: &Worker) -> Rc<Connection> {
        worker.connect(|id| Rc::new(Connection::new(id, None, None, None, Time(0))))
    }

    /// Asks for what waits for a cluster.
    fn ask(worker: &Rc<Worker>, connection: &Rc<Connection>, time: u64) {
        let state = &mut *connection.state.borrow_mut();
        state.input.extend_from_slice(b"get k\r\n");
        connection.execute(worker, state, at(time));
        assert_eq!(state.replies.waiting(), 1);
    }

    fn at(time: u64) -> Now {
        Now { time: Time(time), unix: UnixSeconds(1000) }
    }

    #[test]
    fn an_answer_for_a_connection_that_has_ended_finds_nobody() {
        let worker = alone();
        let deadline = worker.shared.config.timing.request_deadline_us;
        let ended = connect(&worker);
        ask(&worker, &ended, 1000);
        worker.connections.borrow_mut().take(ended.id).unwrap();
        let next = connect(&worker);
        assert_eq!(ended.id as u32, next.id as u32, "the same place");
        ask(&worker, &next, 2000);
        let unanswered = |time| {
            for due in [false, true] {
                cycle::ask(&worker, at(time), due, |_, _| ());
                worker.deliver();
            }
            next.waiting()
        };
        assert_eq!(unanswered(1000 + deadline), 1);
        assert!(next.state.borrow().output.len() == 0 && worker.snapshot().open_requests == 1);
        assert_eq!(unanswered(2000 + deadline), 0);
        assert!(next.state.borrow_mut().output.text().starts_with(b"SERVER_ERROR unavailable"));
        assert!(Rc::strong_count(&ended) == 1 && ended.state.borrow().output.len() == 0);
    }
}
