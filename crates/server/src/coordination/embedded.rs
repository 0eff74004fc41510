//! The embedded coordinator as a service: a thread that presides for as long as its owner wants.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use proto::{Coordinator, CoordinatorConfig};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use types::{AdminReply, AdminRequest, NodeId};

use crate::CoordinatorAddress;
use crate::CoordinatorServerConfig;
use crate::CoordinatorStart;
use crate::StartError;
use crate::clock::Clock;
use crate::coordination::presiding::{Presiding, Records};
use crate::coordination::report::{Command, CoordinatorStatus};
use crate::http;
use crate::limits::{ACCEPT_PAUSE, COORDINATOR_COMMANDS};
use crate::transport::{DetachedListener, Listener, listen};
use crate::workers::run::runtime;

/// The embedded coordinator.
pub struct CoordinatorServer;

impl CoordinatorServer {
    /// Starts a coordinator in a thread of its own.
    ///
    /// # Errors
    /// If its addresses are not to be had, or the system refuses a thread.
    pub fn start(config: CoordinatorServerConfig) -> Result<CoordinatorHandle, StartError> {
        let nodes = listen("coordinator", config.listen)?;
        let http = config.http.map(|addr| listen("http", addr)).transpose()?;
        let addr = nodes.addr()?;
        let http_addr = http.as_ref().map(DetachedListener::addr).transpose()?;
        let (commands, inbox) = mpsc::channel(COORDINATOR_COMMANDS);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let status = watch::Sender::new(CoordinatorStatus {
            expected: config.cluster.nodes,
            lease_us: config.cluster.timing.node_lease_us,
            ..Default::default()
        });
        let published = status.subscribe();
        let orders = commands.clone();
        let run = move || serve(config, nodes, http, orders, inbox, status, &stopped);
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(run)
            .map_err(|source| StartError::System { what: "the coordinator's thread", source })?;
        Ok(CoordinatorHandle { addr, http_addr, commands, stop, status: published, thread: Some(thread) })
    }
}

/// A running coordinator. Dropping it stops it.
#[derive(Debug)]
pub struct CoordinatorHandle {
    addr: SocketAddr,
    http_addr: Option<SocketAddr>,
    commands: mpsc::Sender<Command>,
    stop: Arc<Notify>,
    status: watch::Receiver<CoordinatorStatus>,
    thread: Option<JoinHandle<()>>,
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

    /// The process of `node` has ended: its parent has seen it. A coordinator that is too busy to be told finds out by the node's lease.
    pub fn exited(&self, node: NodeId) {
        let _ = self.commands.try_send(Command::Exited(node));
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
        // Remembered if the thread does not listen yet.
        self.stop.notify_one();
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

/// The thread. What it is told comes in at `inbox`; `orders` is its other end, for the pages.
fn serve(
    config: CoordinatorServerConfig,
    nodes: DetachedListener,
    http: Option<DetachedListener>,
    orders: mpsc::Sender<Command>,
    mut inbox: mpsc::Receiver<Command>,
    status: watch::Sender<CoordinatorStatus>,
    stop: &Notify,
) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "the coordinator has no runtime"),
    };
    runtime.block_on(async move {
        let published = status.subscribe();
        let clock = Clock::start();
        let listener = match nodes.attach() {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the coordinator cannot listen"),
        };
        if let Some(http) = http {
            tokio::task::spawn(http::serve_coordinator(http, published, orders, config.processes, clock));
        }
        let mut start = config.start;
        let succession = async {
            while preside(&config.cluster, start, &listener, &mut inbox, clock, status.clone()).await
                == Next::Again
            {
                // Whoever has followed it knows more than it does.
                start = CoordinatorStart::Gather;
            }
        };
        tokio::select! {
            () = succession => (),
            () = stop.notified() => (),
        }
    });
}

/// What comes after a coordinator.
#[derive(PartialEq)]
enum Next {
    /// It has resigned: another one starts with nothing.
    Again,
    Nothing,
}

async fn preside(
    config: &CoordinatorConfig,
    start: CoordinatorStart,
    listener: &Listener,
    inbox: &mut mpsc::Receiver<Command>,
    clock: Clock,
    status: watch::Sender<CoordinatorStatus>,
) -> Next {
    let gather = |all| Coordinator::gather(config.clone(), clock.now(), all);
    let coordinator = match start {
        CoordinatorStart::NewCluster => Coordinator::new(config.clone()),
        CoordinatorStart::Gather => gather(false),
        CoordinatorStart::WithoutQuorum => gather(true),
    };
    let presiding = Presiding::new(coordinator, config.timing, clock, Records::Kept, status);
    tokio::task::spawn_local(Rc::clone(&presiding).tick());
    let next = tokio::select! {
        () = accept(&presiding, listener) => Next::Nothing,
        () = obey(&presiding, inbox) => Next::Nothing,
        reason = presiding.ended() => {
            tracing::error!(reason, "presides no more: asking the nodes anew");
            Next::Again
        }
    };
    // Else the task of its timer would run on, for it holds what it drives.
    presiding.end("told to stop");
    presiding.hang_up();
    next
}

async fn accept(presiding: &Rc<Presiding>, listener: &Listener) {
    loop {
        match listener.accept().await {
            Ok(stream) => presiding.take(stream),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn obey(presiding: &Rc<Presiding>, inbox: &mut mpsc::Receiver<Command>) {
    while let Some(command) = inbox.recv().await {
        match command {
            Command::Exited(node) => {
                presiding.drive(|coordinator, now| coordinator.exited(now, node));
            }
            Command::MapSince(cluster, since, asker) => {
                let news = presiding.drive(|coordinator, _| coordinator.map_since(cluster, since));
                // Who has gone away asks again.
                let _ = asker.send(news.flatten());
            }
            Command::Admin(request, asker) => {
                // In a task of its own: its answer waits until nodes keep what was decided, the next command does not.
                tokio::task::spawn_local(administer(Rc::clone(presiding), request, asker));
            }
        }
    }
}

async fn administer(presiding: Rc<Presiding>, request: AdminRequest, mut asker: oneshot::Sender<AdminReply>) {
    let reply = tokio::select! {
        reply = presiding.administer(&request) => reply,
        // Who has gone away can look at the layout.
        () = asker.closed() => None,
    };
    if let Some(reply) = reply {
        let _ = asker.send(reply);
    }
}
