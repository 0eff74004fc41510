//! `gestalt local`: the parent of a whole cluster on this machine.
//!
//! The coordinator runs in this process; every node is a process of its own, so that `kill -9` of a node is what it
//! would be elsewhere. The parent sees a node end at once and tells the coordinator, which need not wait for a lease.

mod args;
mod child;
mod plan;

use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use args::LocalArgs;
use args::Restart;
use child::{Ended, Running, log_path};
use client::{fetch, fetch_json};
use nix::sys::signal::Signal;
pub use plan::Plan;
use serde::Serialize;
use server::{
    BoundListener, ProcessAction, ProcessDone, ProcessError, ProcessOrder, ProcessReply, ProcessRequest,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use types::ClusterMap;

use crate::coordinator::Coordinator;
use crate::exit::Exit;
use crate::listeners;
use crate::log;
use crate::output::{self, Format, Table};
use crate::process::told_to_stop;
use crate::progress::Progress;

/// How long all nodes may take to be ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long nodes may take to stop before they are killed.
const STOP_LIMIT: Duration = Duration::from_secs(3);
/// How long a node may take to answer a question.
const ASK_LIMIT: Duration = Duration::from_secs(1);
/// How often readiness is asked for.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Orders of operators that may wait.
const ORDERS: usize = 16;
/// Pause before a node is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// A running cluster.
struct Cluster {
    plan: Plan,
    coordinator: Coordinator,
    nodes: Vec<Running>,
    ended: mpsc::UnboundedReceiver<Ended>,
    ended_sender: mpsc::UnboundedSender<Ended>,
    /// What operators want of the nodes' processes.
    orders: mpsc::Receiver<ProcessOrder>,
    /// Nodes that operators have stopped: they are not started again by themselves.
    held: BTreeSet<usize>,
    logs: Logs,
}

/// Where logs go; a temporary directory goes away with a cluster that ended well.
enum Logs {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Logs {
    fn open(dir: Option<&Path>) -> std::io::Result<Self> {
        match dir {
            Some(dir) => std::fs::create_dir_all(dir).map(|()| Self::Given(dir.to_owned())),
            None => tempfile::Builder::new().prefix("gestalt-").tempdir().map(Self::Temporary),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(dir) => dir,
            Self::Temporary(dir) => dir.path(),
        }
    }

    fn keep(self) {
        if let Self::Temporary(dir) = self {
            let _ = dir.keep();
        }
    }
}

/// Starts a cluster and looks after it until it is told to stop.
///
/// # Errors
/// `Usage` if it cannot be started, `AtRisk` if every node has ended.
pub async fn run(args: &LocalArgs) -> Result<(), Exit> {
    let told = told_to_stop()?;
    let mut cluster = Cluster::start(args)?;
    let result = tokio::select! {
        result = cluster.live(args) => result,
        () = told => Ok(()),
    };
    cluster.stop().await;
    if result.is_err() {
        cluster.logs.keep();
    }
    result
}

impl Cluster {
    fn start(args: &LocalArgs) -> Result<Self, Exit> {
        let plan = Plan::new(args)?;
        let logs = Logs::open(args.dir.as_deref())
            .and_then(|logs| File::create(logs.path().join("coordinator.log")).map(|file| (logs, file)));
        let (logs, coordinator_log) =
            logs.map_err(|error| Exit::Usage(format!("cannot write logs: {error}: choose another --dir")))?;
        log::to_file(coordinator_log);
        let (processes, orders) = mpsc::channel(ORDERS);
        let coordinator = Coordinator::start(&plan, processes)?;
        let (ended_sender, ended) = mpsc::unbounded_channel();
        let (nodes, held) = (Vec::new(), BTreeSet::new());
        let mut cluster = Self { plan, coordinator, nodes, ended, ended_sender, orders, held, logs };
        for index in 0..cluster.plan.nodes.len() {
            let node = cluster.spawn(index)?;
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    fn spawn(&self, index: usize) -> Result<Running, Exit> {
        let coordinator = self.coordinator.address();
        Running::start(&self.plan, index, coordinator, self.logs.path(), self.ended_sender.clone())
            .map_err(|error| Exit::Usage(format!("cannot start node {index}: {error}")))
    }

    /// Until the end of the last node, or of the future.
    async fn live(&mut self, args: &LocalArgs) -> Result<(), Exit> {
        self.wait_until_ready().await?;
        let map = fetch_json(self.plan.nodes[0].http, "/map", ASK_LIMIT).await;
        self.announce(args.output, map.ok().as_ref());
        loop {
            tokio::select! {
                Some(ended) = self.ended.recv() => self.handle_end(&ended, args.restart).await?,
                Some(ProcessOrder { request, answer }) = self.orders.recv() => {
                    // Who asked may have gone.
                    let _ = answer.send(self.obey(request));
                }
                else => return Ok(()),
            }
        }
    }

    /// What an operator wants of a node's process.
    fn obey(&mut self, request: ProcessRequest) -> ProcessReply {
        let ProcessRequest { node, action } = request;
        let index = self.plan.nodes.iter().position(|plan| plan.node == node);
        let index = index.ok_or(ProcessError::UnknownNode { node })?;
        let (pid, runs) = (self.nodes[index].pid, self.nodes[index].is_running());
        match (action, runs) {
            (ProcessAction::Start, true) => Err(ProcessError::Running { node, pid }),
            (ProcessAction::Start, false) => {
                let started = self
                    .spawn(index)
                    .map_err(|exit| ProcessError::NotStarted { reason: exit.to_string() })?;
                let pid = started.pid;
                self.held.remove(&index);
                self.nodes[index] = started;
                eprintln!("node {} is started again with empty memory, pid {pid}", node.0);
                Ok(ProcessDone { node, pid })
            }
            (ProcessAction::Stop, true) => {
                // Before it ends, or it would be started again.
                self.held.insert(index);
                self.nodes[index].signal(Signal::SIGTERM);
                Ok(ProcessDone { node, pid })
            }
            (ProcessAction::Stop, false) => Err(ProcessError::NotRunning { node }),
        }
    }

    async fn wait_until_ready(&mut self) -> Result<(), Exit> {
        let deadline = Instant::now() + READY_LIMIT;
        let mut progress = Progress::start();
        let mut waiting: Vec<usize> = (0..self.nodes.len()).collect();
        while let Some(&index) = waiting.last() {
            // Else whoever starts it would wait for the whole limit.
            if let Ok(ended) = self.ended.try_recv() {
                return Err(self.failed_start(&ended));
            }
            if Instant::now() > deadline {
                let log = log_path(self.logs.path(), &self.plan.nodes[index]);
                return Err(Exit::Usage(format!(
                    "node {index} is not ready after {}s: see {}",
                    READY_LIMIT.as_secs(),
                    log.display()
                )));
            }
            if fetch(self.plan.nodes[index].http, "/readyz", ASK_LIMIT).await.is_ok() {
                waiting.pop();
                continue;
            }
            progress.show(|| match self.coordinator.forming() {
                Some(forming) => format!("waiting: {forming}"),
                None => format!("waiting for {} of {} nodes to be ready", waiting.len(), self.nodes.len()),
            });
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }

    /// The last line of the log says why.
    fn failed_start(&self, ended: &Ended) -> Exit {
        let log = log_path(self.logs.path(), &self.plan.nodes[ended.index]);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word in its log");
        Exit::Usage(format!("node {} did not start ({}): {reason}", ended.index, ended.status))
    }

    fn announce(&self, format: Format, map: Option<&ClusterMap>) {
        #[derive(Serialize)]
        struct Row {
            node: u16,
            pid: u32,
            address: String,
            native: Option<SocketAddr>,
            bound: Vec<BoundListener>,
            coordinator: String,
            logs: PathBuf,
        }
        let (coordinator, logs) = (self.plan.http.to_string(), self.logs.path().to_owned());
        let row = |(plan, node): (&plan::NodePlan, &Running)| Row {
            node: plan.node.0,
            pid: node.pid,
            address: plan.memcached.to_string(),
            native: map.and_then(|map| map.node(plan.node)?.native),
            bound: plan.bound.clone(),
            coordinator: coordinator.clone(),
            logs: logs.clone(),
        };
        let rows: Vec<Row> = self.plan.nodes.iter().zip(&self.nodes).map(row).collect();
        if format == Format::Json {
            output::print_json(&rows);
        } else {
            let mut table = Table::new(&["node", "pid", "address", "native"]);
            for (row, plan) in rows.iter().zip(&self.plan.nodes) {
                let addresses = listeners::words(plan.memcached, &plan.bound);
                let native = row.native.map_or_else(|| "-".to_owned(), |native| native.to_string());
                table.row(vec![row.node.to_string(), row.pid.to_string(), addresses, native]);
            }
            output::print(&table.render());
        }
        // In both formats: scripts wait for this line.
        output::print("ready\n");
        if format == Format::Table {
            output::print(&format!("coordinator  {coordinator}\nlogs         {}\n", logs.display()));
        }
        eprintln!(
            "the nodes end with this process, and their data with them; a cluster that outlives its coordinator is started with \
             `gestalt coordinator` and `gestalt serve`"
        );
    }

    async fn handle_end(&mut self, ended: &Ended, restart: Restart) -> Result<(), Exit> {
        let id = self.plan.nodes[ended.index].node;
        // First: requests wait for this, and not for the process that may come after it.
        self.coordinator.exited(id);
        eprintln!("node {} (pid {}) has ended: {}", id.0, ended.pid, ended.status);
        if restart == Restart::Always && !self.held.contains(&ended.index) {
            sleep(RESTART_PAUSE).await;
            self.nodes[ended.index] = self.spawn(ended.index)?;
            eprintln!(
                "node {} is started again with empty memory, pid {}",
                id.0, self.nodes[ended.index].pid
            );
            return Ok(());
        }
        if self.nodes.iter().any(Running::is_running) {
            return Ok(());
        }
        Err(Exit::AtRisk(format!("every node has ended: their logs are in {}", self.logs.path().display())))
    }

    /// Asks all nodes to stop, and kills those that do not.
    async fn stop(&mut self) {
        self.nodes.iter().for_each(|node| node.signal(Signal::SIGTERM));
        if timeout(STOP_LIMIT, self.all_ended()).await.is_err() {
            self.nodes.iter().for_each(|node| node.signal(Signal::SIGKILL));
            let _ = timeout(STOP_LIMIT, self.all_ended()).await;
        }
    }

    async fn all_ended(&mut self) {
        while self.nodes.iter().any(Running::is_running) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
