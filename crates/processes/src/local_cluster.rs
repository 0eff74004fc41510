//! The real `gestalt local` on free ports: started, hurt and stopped by tests.
//!
//! The binary has to be built before (`cargo build -p cli`); `cargo xtask` does. Whatever a test does, dropping a
//! [`LocalCluster`] ends every process that it started.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use types::{ClusterMap, NodeId};

use crate::binary::binary;
use crate::pages::{metric, page};
use crate::ports::free_run;

/// How to start a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes.
    pub nodes: u16,
    /// Further ones that join empty.
    pub spares: u16,
    /// Protection.
    pub profile: String,
    /// Memory of each node, as on the command line.
    pub memory: String,
    /// Silence after which a node counts as lost.
    pub lease: Duration,
    /// Further flags.
    pub flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 5,
            spares: 0,
            profile: "rs(3+2)".to_owned(),
            memory: "256MiB".to_owned(),
            lease: Duration::from_secs(1),
            flags: vec!["--evict".to_owned(), "none".to_owned()],
        }
    }
}

impl Options {
    /// The same with memcached's longest value, which suites for memcached know.
    #[must_use]
    pub fn with_memcacheds_values(mut self) -> Self {
        self.flags.push("--max-value=1MiB".to_owned());
        self
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct LocalCluster {
    parent: Child,
    base_port: u16,
    http_port: u16,
    nodes: u16,
}

const READY_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How often the map is looked at, and how long nothing has to change for the cluster to count as calm: more than a lease, at
/// which plans are made anew.
const LOOK: Duration = Duration::from_millis(20);
const STAYS_CALM: Duration = Duration::from_millis(1500);

impl LocalCluster {
    /// Starts one and waits for `ready`.
    ///
    /// # Errors
    /// One line if the binary is not there or the cluster does not get ready.
    pub fn start(options: &Options) -> Result<Self, String> {
        let nodes = options.nodes + options.spares;
        let (base_port, http_port) = free_ports(nodes)?;
        let mut command = Command::new(binary()?);
        command
            .args(["local", "--nodes", &options.nodes.to_string(), "--profile", &options.profile])
            .args(["--spares", &options.spares.to_string()])
            .args(["--memory", &options.memory, "--lease", &format!("{}us", options.lease.as_micros())])
            .args(["--port", &base_port.to_string(), "--http", &http_port.to_string()])
            .args(&options.flags)
            .stdout(Stdio::piped());
        let mut parent = command.spawn().map_err(|error| format!("cannot start gestalt: {error}"))?;
        let stdout = parent.stdout.take().expect("standard output is piped");
        let cluster = Self { parent, base_port, http_port, nodes };
        cluster.wait_until_ready(stdout)?;
        Ok(cluster)
    }

    fn wait_until_ready(&self, stdout: ChildStdout) -> Result<(), String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::spawn(move || {
            // It goes on reading after `ready`: in front of a full pipe the cluster would stop at its next line.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left) {
                Ok(line) if line == "ready" => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err("gestalt local did not get ready".to_owned()),
            }
        }
    }

    /// How many nodes there were at the start, spares included.
    #[must_use]
    pub fn node_count(&self) -> u16 {
        self.nodes
    }

    /// Where node `node` listens for memcached clients.
    #[must_use]
    pub fn memcached(&self, node: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.base_port + node))
    }

    /// All of these, in the order of the nodes.
    #[must_use]
    pub fn all_memcached(&self) -> Vec<SocketAddr> {
        (0..self.nodes).map(|node| self.memcached(node)).collect()
    }

    /// Where node `node` listens for clients of the native protocol, by the map.
    ///
    /// # Errors
    /// One line if the coordinator does not say it.
    pub fn native(&self, node: u16) -> Result<SocketAddr, String> {
        let native = self.map()?.node(NodeId(node)).and_then(|known| known.native);
        native.ok_or_else(|| format!("node {node} has no native listener"))
    }

    /// All of these, of the nodes that have one.
    ///
    /// # Errors
    /// One line if the coordinator does not say it.
    pub fn all_native(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(self.map()?.nodes.iter().filter_map(|node| node.native).collect())
    }

    /// The coordinator's HTTP address.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.http_port))
    }

    /// Where node `node` serves its pages.
    #[must_use]
    pub fn node_http(&self, node: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.http_port + 1 + node))
    }

    /// The sum of a metric's samples at all nodes that live.
    ///
    /// # Errors
    /// One line if one of them does not answer, or does not have it.
    pub fn metric(&self, name: &str) -> Result<u64, String> {
        let living = (0..self.nodes).filter(|node| self.pid(*node).is_some());
        let of = |node| {
            let found = metric(&page(self.node_http(node), "/metrics")?, name);
            found.ok_or_else(|| format!("node {node} has no {name}"))
        };
        living.map(of).sum()
    }

    /// The coordinator's map.
    ///
    /// # Errors
    /// One line if the coordinator does not give it.
    pub fn map(&self) -> Result<ClusterMap, String> {
        serde_json::from_str(&page(self.http(), "/map")?).map_err(|error| error.to_string())
    }

    /// Waits until every group survives as many losses as it is to, `holds` of the map, and nothing has changed for a while. The
    /// time until then, without the while.
    ///
    /// # Errors
    /// One line if that takes longer than `limit`.
    pub fn wait_until_calm(
        &self,
        limit: Duration,
        holds: impl Fn(&ClusterMap) -> bool,
    ) -> Result<Duration, String> {
        let begun = Instant::now();
        let (mut version, mut since) = (0, begun);
        loop {
            let map = self.map()?;
            if map.version != version {
                (version, since) = (map.version, Instant::now());
            }
            if is_whole(&map) && holds(&map) && since.elapsed() > STAYS_CALM {
                return Ok(since - begun);
            }
            if begun.elapsed() > limit {
                return Err(format!("the cluster is not calm after {limit:?}"));
            }
            thread::sleep(LOOK);
        }
    }

    /// The process that is node `node` now; none if it is dead.
    #[must_use]
    pub fn pid(&self, node: u16) -> Option<u32> {
        let wanted = format!("\0--node\0{node}\0");
        let is_node = |pid: &u32| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&read("stat")).into_owned();
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
            let parent = fields.get(1).and_then(|field| field.parse().ok());
            parent == Some(self.parent.id())
                // One that has ended and waits for its parent is still in the list.
                && fields.first() != Some(&"Z")
                && String::from_utf8_lossy(&read("cmdline")).contains(&wanted)
        };
        let entries = fs::read_dir("/proc").ok()?.flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_node)
    }

    /// Where the nodes reach the coordinator, as their `--coordinator` says.
    ///
    /// # Errors
    /// One line if no node lives that could tell.
    pub fn coordinator(&self) -> Result<String, String> {
        let pid = self.pids().first().copied().ok_or("no node lives")?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).map_err(|error| error.to_string())?;
        let mut words = line.split('\0').skip_while(|word| *word != "--coordinator");
        words.nth(1).map(str::to_owned).ok_or_else(|| "the nodes have no coordinator".to_owned())
    }

    /// Starts one more node, which joins with as much memory as given. It ends when what is returned is dropped.
    ///
    /// # Errors
    /// One line if it cannot be started.
    pub fn join(&self, node: u16, memory: &str) -> Result<Joiner, String> {
        let any = "127.0.0.1:0";
        let mut command = Command::new(binary()?);
        command
            .args(["serve", "--join", "--node", &node.to_string(), "--coordinator", &self.coordinator()?])
            .args(["--memcached", any, "--http", any, "--workers", "1", "--memory", memory])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().map(Joiner).map_err(|error| format!("cannot start gestalt: {error}"))
    }

    /// All living nodes' processes.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        (0..self.nodes).filter_map(|node| self.pid(node)).collect()
    }

    /// The parent's process: the coordinator.
    #[must_use]
    pub fn parent_pid(&self) -> u32 {
        self.parent.id()
    }

    /// Sends `signal` to node `node`, if it lives.
    pub fn signal(&self, node: u16, signal: Signal) {
        if let Some(pid) = self.pid(node).and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Kills these nodes at once: all pids are known before the first signal is sent.
    pub fn kill_nodes(&self, nodes: &[u16]) {
        let pids: Vec<i32> = nodes
            .iter()
            .filter_map(|&node| self.pid(node))
            .filter_map(|pid| i32::try_from(pid).ok())
            .collect();
        for pid in pids {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Runs `gestalt` with `args`, which may hold `{http}`; exit status, standard output and standard error.
    ///
    /// # Errors
    /// One line if the binary cannot be run.
    pub fn gestalt(&self, args: &[&str]) -> Result<(ExitStatus, String, String), String> {
        let http = self.http().to_string();
        let args = args.iter().map(|arg| arg.replace("{http}", &http));
        let output = Command::new(binary()?).args(args).output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status, text(&output.stdout), text(&output.stderr)))
    }

    /// Asks the parent to stop everything, as Ctrl-C does.
    ///
    /// # Errors
    /// One line if it has not ended in time.
    pub fn stop(mut self) -> Result<ExitStatus, String> {
        let pid = i32::try_from(self.parent.id()).map_err(|error| error.to_string())?;
        kill(Pid::from_raw(pid), Signal::SIGINT).map_err(|error| error.to_string())?;
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.parent.try_wait().map_err(|error| error.to_string())? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(format!("gestalt local did not stop within {STOP_LIMIT:?}"))
    }
}

impl Drop for LocalCluster {
    /// The nodes die with their parent.
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

/// Whether every group survives as many losses as it is to, and nobody moves.
#[must_use]
pub fn is_whole(map: &ClusterMap) -> bool {
    map.groups
        .iter()
        .all(|view| view.learners.is_empty() && view.is_full() && view.in_sync().count() == view.m())
}

/// A node that has joined later.
#[derive(Debug)]
pub struct Joiner(Child);

impl Drop for Joiner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run of free ports for the nodes, and one for the coordinator followed by the nodes' HTTP ports.
fn free_ports(nodes: u16) -> Result<(u16, u16), String> {
    let base = free_run(2 * nodes + 1)?;
    Ok((base, base + nodes))
}
