//! A node: its listeners, its threads, its end.

pub(crate) mod accept;
pub(crate) mod advertise;
pub(crate) mod config;
pub(crate) mod desk;
pub(crate) mod error;
pub(crate) mod knowledge;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod repair_meter;
pub(crate) mod shared;
pub(crate) mod snapshot;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use types::HostId;
use wire::message::ToCoordinator;

use crate::Coordination;
use crate::ElectedConfig;
use crate::NodeConfig;
use crate::NodeExit;
use crate::StartError;
use crate::coordination::client;
use crate::coordination::elected;
use crate::http;
use crate::limits::{COORDINATOR_IN_QUEUE, COORDINATOR_OUT_QUEUE, ERRAND_QUEUE};
use crate::node::advertise::Listening;
use crate::node::shared::{Addresses, Door, Shared, WorkerFace};
use crate::transport::{DetachedListener, listen};
use crate::workers::bindings::Binding;
use crate::workers::crossings::Crossings;
use crate::workers::run::{self, Inbox, ThreadGuard};

/// A node: one thread a worker, and one for everything that is not on the data path.
pub struct Node;

/// A running node. Dropping it stops it.
#[derive(Debug)]
pub struct NodeHandle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Stops a node from anywhere.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
}

struct Listeners {
    memcached: DetachedListener,
    /// Those that are bound to one namespace each, in the order of the configuration.
    bound: Vec<DetachedListener>,
    /// For clients of the native protocol.
    native: Option<DetachedListener>,
    peer: DetachedListener,
    http: DetachedListener,
    /// For nodes, while this one has the coordinator; and where they find it.
    coordinator: Option<(DetachedListener, SocketAddr)>,
}

impl Node {
    /// Starts a node. It listens when this returns, and serves once the cluster has formed.
    ///
    /// # Errors
    /// If the configuration is out of bounds, an address is not to be had, or the system refuses a thread.
    pub fn start(mut config: NodeConfig) -> Result<NodeHandle, StartError> {
        config.check()?;
        let (mut listeners, addresses) = Listeners::open(&config)?;
        // From here on it says where they are: a free port is known now.
        for (bound, listener) in config.bound.iter_mut().zip(&listeners.bound) {
            bound.addr = listener.addr()?;
        }
        let coordinator = listeners.coordinator.take();
        let workers = config.workers;
        let (faces, inboxes): (Vec<_>, Vec<_>) =
            Crossings::mesh(workers).into_iter().map(worker_ends).unzip();
        let (to_coordinator, outgoing) = mpsc::channel(COORDINATOR_OUT_QUEUE);
        let shared = Shared::new(config, addresses, faces, to_coordinator);
        // From here on a failure drops the handle, which ends the threads that run already.
        let mut handle = NodeHandle { shared, threads: Vec::new() };
        for (shard, inbox) in (0..workers).zip(inboxes) {
            handle.start_worker(shard, inbox)?;
        }
        handle.start_control(listeners, outgoing)?;
        if let Some((listener, address)) = coordinator {
            handle.start_candidate(listener, address)?;
        }
        let Addresses { memcached, peer, http, native } = handle.addresses();
        let bound = handle.shared.config.bound.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        tracing::info!(node = %handle.host(), %memcached, bound, ?native, %peer, %http, workers, "node started");
        Ok(handle)
    }
}

/// The two ends of a worker's queues.
pub(crate) fn worker_ends(
    crossings: (Crossings, mpsc::Receiver<crate::workers::crossings::Batch>),
) -> (WorkerFace, Inbox) {
    let (errands, errand_inbox) = mpsc::channel(ERRAND_QUEUE);
    let (coordinator, coordinator_inbox) = mpsc::channel(COORDINATOR_IN_QUEUE);
    let face = WorkerFace {
        errands,
        coordinator,
        counters: Arc::default(),
        pulse: Default::default(),
        map_version: Default::default(),
        rebuilt_bytes: Default::default(),
        to_rebuild_bytes: Default::default(),
        evicted_at: Default::default(),
        refused_at: Default::default(),
        served_at: Default::default(),
        scrub: Default::default(),
    };
    (face, Inbox { errands: errand_inbox, coordinator: coordinator_inbox, crossings })
}

impl Listeners {
    fn open(config: &NodeConfig) -> Result<(Self, Addresses), StartError> {
        let memcached = listen("memcached", config.memcached)?;
        let bound = config.bound.iter().map(|bound| listen("memcached", bound.addr));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        let native = config.native.map(|addr| listen("native", addr)).transpose()?;
        let peer = listen("peer", config.peer)?;
        let http = listen("http", config.http)?;
        let advertise = &config.advertise;
        let reached = advertise.peer(peer.addr()?)?;
        let beside = |what, listener: &DetachedListener, told| {
            advertise.beside(reached, Listening { what, addr: listener.addr()?, told })
        };
        let addresses = Addresses {
            memcached: beside("memcached", &memcached, advertise.memcached)?,
            peer: reached,
            http: beside("http", &http, advertise.http)?,
            native: native
                .as_ref()
                .map(|listener| beside("native", listener, advertise.native))
                .transpose()?,
        };
        let coordinator = match &config.coordinator {
            Coordination::Embedded(_) => None,
            Coordination::Elected(elected) => {
                let listener = listen("coordinator", elected.listen)?;
                let address = beside("listen", &listener, advertise.listen)?;
                Some((listener, address))
            }
        };
        Ok((Self { memcached, bound, native, peer, http, coordinator }, addresses))
    }
}

impl NodeHandle {
    /// Which process this is in the cluster.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.shared.host
    }

    /// Where it can be reached.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.shared.addresses
    }

    /// Something that stops the node from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared) }
    }

    /// Stops the node and waits until all its threads have ended.
    pub fn stop(self) -> NodeExit {
        self.shared.end(NodeExit::Stopped);
        self.wait()
    }

    /// Waits until the node has ended, however it does.
    pub fn wait(mut self) -> NodeExit {
        self.join();
        self.shared.exit.borrow().clone().unwrap_or(NodeExit::Stopped)
    }

    /// How the node has ended, if it has. May be awaited on any runtime.
    pub async fn ended(&self) -> NodeExit {
        self.shared.ended().await
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A panic has been noted by the thread's guard.
            let _ = thread.join();
        }
    }

    fn start_worker(&mut self, shard: u16, inbox: Inbox) -> Result<(), StartError> {
        self.start_thread(format!("worker-{shard}"), "a worker", move |shared| match run::runtime() {
            Ok(runtime) => run::run(&runtime, shard, shared, inbox),
            Err(error) => tracing::error!(%error, shard, "no runtime"),
        })
    }

    fn start_control(
        &mut self,
        listeners: Listeners,
        outgoing: mpsc::Receiver<ToCoordinator>,
    ) -> Result<(), StartError> {
        self.start_thread("control".to_owned(), "the control thread", move |shared| match run::runtime() {
            Ok(runtime) => runtime.block_on(control(shared, listeners, outgoing)),
            Err(error) => tracing::error!(%error, "no runtime"),
        })
    }

    fn start_candidate(&mut self, listener: DetachedListener, address: SocketAddr) -> Result<(), StartError> {
        let Coordination::Elected(elected) = &self.shared.config.coordinator else { return Ok(()) };
        let config = ElectedConfig::clone(elected);
        self.start_thread(
            "candidate".to_owned(),
            "the candidate's thread",
            move |shared| match run::runtime() {
                Ok(runtime) => elected::run(&runtime, &shared, config, listener, address),
                Err(error) => tracing::error!(%error, "no runtime"),
            },
        )
    }

    fn start_thread(
        &mut self,
        name: String,
        what: &'static str,
        run: impl FnOnce(Arc<Shared>) + Send + 'static,
    ) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        let guarded = move || {
            let guard = ThreadGuard { shared: Arc::clone(&shared), what };
            run(shared);
            drop(guard);
        };
        let spawned = std::thread::Builder::new().name(name).spawn(guarded);
        self.threads.push(spawned.map_err(|source| StartError::System { what, source })?);
        Ok(())
    }
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        self.shared.end(NodeExit::Stopped);
        self.join();
    }
}

impl Stopper {
    /// Tells the node to end; `NodeHandle::wait` returns when it has.
    pub fn stop(&self) {
        self.shared.end(NodeExit::Stopped);
    }
}

/// Everything that is not on the data path, until the node ends.
async fn control(shared: Arc<Shared>, listeners: Listeners, outgoing: mpsc::Receiver<ToCoordinator>) {
    let listening = (listeners.memcached.attach(), listeners.peer.attach());
    // To return ends the thread, and so the node (`ThreadGuard`).
    let (Ok(memcached), Ok(peer)) = listening else { return tracing::error!("cannot listen") };
    tokio::spawn(client::run(Arc::clone(&shared), outgoing));
    tokio::spawn(accept::clients(Arc::clone(&shared), memcached, Door::Memcached(None)));
    if let Some(native) = listeners.native {
        let Ok(native) = native.attach() else { return tracing::error!("cannot listen") };
        tokio::spawn(accept::clients(Arc::clone(&shared), native, Door::Native));
    }
    for (at, listener) in (0..).zip(listeners.bound) {
        let Ok(listener) = listener.attach() else { return tracing::error!("cannot listen") };
        tokio::spawn(accept::clients(Arc::clone(&shared), listener, Door::Memcached(Some(Binding(at)))));
    }
    tokio::spawn(accept::peers(Arc::clone(&shared), peer));
    tokio::spawn(http::serve_node(listeners.http, Arc::clone(&shared)));
    let exit = shared.ended().await;
    tracing::info!(node = %shared.host, reason = exit.reason(), "node ends");
}
