//! The embedded coordinator as a service: a thread that drives `proto::Coordinator` from sockets and a timer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use cluster::{AdminReply, AdminRequest, ClusterMap, HostId, Incarnation, NodeId, NodeLoad};
use proto::{Coordinator, CoordinatorAction};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use wire::frame::{FrameError, Message};
use wire::message::{FromCoordinator, ToCoordinator};

use crate::clock::Clock;
use crate::frames::{FrameBuffer, FrameReader, StreamError};
use crate::limits::{
    ACCEPT_PAUSE, COORDINATOR_CONNECTIONS, COORDINATOR_LINK_BYTES, COORDINATOR_TICKS_PER_LEASE,
    HANDSHAKE_DEADLINE,
};
use crate::{CoordinatorAddress, CoordinatorServerConfig, StartError, http, net, worker};

/// What a coordinator says of itself and of its cluster.
#[derive(Clone, Debug, Default)]
pub struct CoordinatorStatus {
    /// The map, once the cluster has formed.
    pub map: Option<Arc<ClusterMap>>,
    /// Nodes that have registered.
    pub registered: Vec<NodeId>,
    /// Nodes that are connected.
    pub connected: Vec<HostId>,
    /// Nodes that the cluster waits for before it forms.
    pub expected: u16,
    /// What the nodes said of themselves last.
    pub loads: BTreeMap<NodeId, NodeLoad>,
}

/// The embedded coordinator.
pub struct CoordinatorServer;

impl CoordinatorServer {
    /// Starts a coordinator in a thread of its own.
    ///
    /// # Errors
    /// If its addresses are not to be had, or the system refuses a thread.
    pub fn start(config: CoordinatorServerConfig) -> Result<CoordinatorHandle, StartError> {
        let nodes = net::listen("coordinator", config.listen)?;
        let http = config.http.map(|addr| net::listen("http", addr)).transpose()?;
        let addr = net::local_addr(&nodes)?;
        let http_addr = http.as_ref().map(net::local_addr).transpose()?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let status =
            watch::Sender::new(CoordinatorStatus { expected: config.cluster.nodes, ..Default::default() });
        let published = status.subscribe();
        let orders = commands.clone();
        let run = move || serve(config, nodes, http, (orders, inbox), status);
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(run)
            .map_err(|source| StartError::System { what: "the coordinator's thread", source })?;
        Ok(CoordinatorHandle { addr, http_addr, commands, status: published, thread: Some(thread) })
    }
}

/// A running coordinator. Dropping it stops it.
#[derive(Debug)]
pub struct CoordinatorHandle {
    addr: SocketAddr,
    http_addr: Option<SocketAddr>,
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<CoordinatorStatus>,
    thread: Option<JoinHandle<()>>,
}

/// What the owner says, and what operators ask.
#[derive(Debug)]
pub(crate) enum Command {
    Exited(NodeId),
    Admin(AdminRequest, oneshot::Sender<AdminReply>),
    Stop,
}

impl CoordinatorHandle {
    /// Where nodes connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same, as nodes are told.
    #[must_use]
    pub fn address(&self) -> CoordinatorAddress {
        self.addr.into()
    }

    /// Where metrics and status are.
    #[must_use]
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http_addr
    }

    /// The process of `node` has ended: its parent has seen it.
    pub fn exited(&self, node: NodeId) {
        let _ = self.commands.send(Command::Exited(node));
    }

    /// The newest status.
    #[must_use]
    pub fn status(&self) -> CoordinatorStatus {
        self.status.borrow().clone()
    }

    /// Changes of the status, for those who wait for one.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<CoordinatorStatus> {
        self.status.clone()
    }

    /// Stops the coordinator. The nodes go on without, for as long as nothing has to be reconfigured.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.commands.send(Command::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the coordinator's thread has panicked");
        }
    }
}

impl Drop for CoordinatorHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread.
fn serve(
    config: CoordinatorServerConfig,
    nodes: StdListener,
    http: Option<StdListener>,
    (orders, inbox): (mpsc::UnboundedSender<Command>, mpsc::UnboundedReceiver<Command>),
    status: watch::Sender<CoordinatorStatus>,
) {
    let runtime = match worker::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "the coordinator has no runtime"),
    };
    runtime.block_on(async move {
        let published = status.subscribe();
        let server = Rc::new(Server::new(config, status));
        tokio::task::spawn_local(accept(Rc::clone(&server), nodes));
        tokio::task::spawn_local(tick(Rc::clone(&server)));
        if let Some(http) = http {
            tokio::task::spawn(http::serve_coordinator(http, published, orders, server.clock));
        }
        obey(&server, inbox).await;
        server.connections.take();
    });
}

/// The state machine and the connections of its nodes.
struct Server {
    config: CoordinatorServerConfig,
    clock: Clock,
    coordinator: RefCell<Coordinator>,
    connections: RefCell<BTreeMap<HostId, Rc<NodeConnection>>>,
    status: watch::Sender<CoordinatorStatus>,
    /// Connections, registered or not.
    open: Cell<usize>,
}

/// The sending side of one node's connection.
struct NodeConnection {
    out: RefCell<FrameBuffer>,
    wake: Notify,
}

/// Who the coordinator is in the headers of its frames.
const COORDINATOR: HostId = HostId { node: NodeId(u16::MAX), incarnation: Incarnation(0) };

impl Server {
    fn new(config: CoordinatorServerConfig, status: watch::Sender<CoordinatorStatus>) -> Self {
        let coordinator = RefCell::new(Coordinator::new(config.cluster.clone()));
        let (clock, connections) = (Clock::start(), RefCell::default());
        Self { config, clock, coordinator, connections, status, open: Cell::new(0) }
    }

    /// Lets the state machine act, then does what it wants.
    fn drive(&self, act: impl FnOnce(&mut Coordinator, proto::Now)) {
        let mut coordinator = self.coordinator.borrow_mut();
        act(&mut coordinator, self.clock.now());
        while let Some(action) = coordinator.poll_action() {
            match action {
                CoordinatorAction::Send { to, message } => self.send(to, &message),
                // Nobody succeeds it: its memory is the record.
                CoordinatorAction::Record(_) | CoordinatorAction::Resign => (),
            }
        }
        self.publish(&coordinator);
    }

    fn send(&self, to: HostId, message: &FromCoordinator) {
        let mut connections = self.connections.borrow_mut();
        let Some(connection) = connections.get(&to) else { return };
        let mut out = connection.out.borrow_mut();
        out.push(message);
        connection.wake.notify_one();
        if out.bytes.len() > COORDINATOR_LINK_BYTES {
            drop(out);
            tracing::warn!(%to, "node does not read: connection dropped");
            connections.remove(&to);
        }
    }

    fn publish(&self, coordinator: &Coordinator) {
        self.status.send_if_modified(|status| {
            let version = |map: Option<&ClusterMap>| map.map(|map| map.version);
            let map_changed = version(status.map.as_deref()) != version(coordinator.map());
            if map_changed {
                status.map = coordinator.map().cloned().map(Arc::new);
            }
            let registered: Vec<NodeId> = coordinator.registered().map(|info| info.host.node).collect();
            let connected: Vec<HostId> = self.connections.borrow().keys().copied().collect();
            let changed = map_changed || registered != status.registered || connected != status.connected;
            status.loads = coordinator.loads().collect();
            (status.registered, status.connected) = (registered, connected);
            changed
        });
    }

    /// One connection of a node, until it ends.
    async fn serve_node(self: Rc<Self>, stream: TcpStream) -> Result<(), StreamError> {
        net::tune_peer(&stream, net::silence(&self.config.cluster.timing));
        let (read, mut writer) = stream.into_split();
        let mut reader = FrameReader::new(read);
        let first = tokio::time::timeout(HANDSHAKE_DEADLINE, reader.next());
        let first = first.await.map_err(|_| StreamError::Silent)?;
        if let Err(StreamError::Frame(FrameError::WrongVersion { .. })) = first {
            say_version(&mut writer).await?;
        }
        let Message::ToCoordinator(ToCoordinator::Register(registration)) = first? else {
            return Err(StreamError::Unexpected);
        };
        let host = registration.info.host;
        let out = RefCell::new(FrameBuffer::new(COORDINATOR));
        let connection = Rc::new(NodeConnection { out, wake: Notify::new() });
        let before = self.connections.borrow_mut().insert(host, Rc::clone(&connection));
        if let Some(before) = before {
            before.wake.notify_one();
        }
        self.drive(|coordinator, now| coordinator.handle(now, host, ToCoordinator::Register(registration)));
        let ended = tokio::select! {
            ended = self.listen(host, &connection, &mut reader) => ended,
            ended = self.talk(host, &connection, writer) => ended,
        };
        if self.is_current(host, &connection) {
            self.connections.borrow_mut().remove(&host);
            self.drive(|coordinator, now| coordinator.connection_lost(now, host));
        }
        ended
    }

    /// Whether `connection` is the node's newest.
    fn is_current(&self, host: HostId, connection: &Rc<NodeConnection>) -> bool {
        self.connections.borrow().get(&host).is_some_and(|known| Rc::ptr_eq(known, connection))
    }

    async fn listen(
        &self,
        host: HostId,
        connection: &Rc<NodeConnection>,
        reader: &mut FrameReader,
    ) -> Result<(), StreamError> {
        loop {
            let Message::ToCoordinator(message) = reader.next().await? else {
                return Err(StreamError::Unexpected);
            };
            let is_of_another = match &message {
                ToCoordinator::Register(registration) => registration.info.host != host,
                ToCoordinator::Heartbeat { host: from, .. } => *from != host,
                _ => false,
            };
            if is_of_another || !self.is_current(host, connection) {
                return Err(StreamError::Unexpected);
            }
            self.drive(|coordinator, now| coordinator.handle(now, host, message));
        }
    }

    async fn talk(
        &self,
        host: HostId,
        connection: &Rc<NodeConnection>,
        mut writer: OwnedWriteHalf,
    ) -> Result<(), StreamError> {
        let lease = Duration::from_micros(self.config.cluster.timing.node_lease_us);
        loop {
            connection.wake.notified().await;
            if !self.is_current(host, connection) {
                return Err(StreamError::Closed);
            }
            let bytes = std::mem::take(&mut connection.out.borrow_mut().bytes);
            let writing = tokio::time::timeout(lease * 2, writer.write_all(&bytes));
            writing.await.map_err(|_| StreamError::Stalled)??;
        }
    }
}

/// A node of another format cannot read an answer, but any frame says which format this is.
async fn say_version(writer: &mut OwnedWriteHalf) -> Result<(), StreamError> {
    let mut out = FrameBuffer::new(COORDINATOR);
    out.push(&FromCoordinator::Refused("the coordinator is of another version".to_owned()));
    Ok(writer.write_all(&out.bytes).await?)
}

async fn accept(server: Rc<Server>, listener: StdListener) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the coordinator cannot listen"),
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) if server.open.get() < COORDINATOR_CONNECTIONS => {
                let server = Rc::clone(&server);
                tokio::task::spawn_local(async move {
                    server.open.set(server.open.get() + 1);
                    if let Err(error) = Rc::clone(&server).serve_node(stream).await {
                        tracing::debug!(%error, "node connection ended");
                    }
                    server.open.set(server.open.get() - 1);
                });
            }
            Ok(_) => (),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Ticks at every deadline, and often enough in between that an absence of this very process shows.
async fn tick(server: Rc<Server>) {
    let most = server.config.cluster.timing.node_lease_us / COORDINATOR_TICKS_PER_LEASE;
    loop {
        server.drive(|coordinator, now| coordinator.tick(now));
        let now = server.clock.time();
        let next = server.coordinator.borrow().next_deadline().min(now + most).max(now + 1_000);
        if let Some(instant) = server.clock.instant(next) {
            tokio::time::sleep_until(instant).await;
        }
    }
}

async fn obey(server: &Server, mut inbox: mpsc::UnboundedReceiver<Command>) {
    while let Some(command) = inbox.recv().await {
        match command {
            Command::Exited(node) => server.drive(|coordinator, now| coordinator.exited(now, node)),
            Command::Admin(request, asker) => server.drive(|coordinator, now| {
                // Who has gone away can look at the layout.
                let _ = asker.send(coordinator.administer(now, &request));
            }),
            Command::Stop => return,
        }
    }
}
