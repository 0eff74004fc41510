//! A cluster of `gestalt serve` processes on this machine whose coordinator is elected over etcd.
//!
//! The binary has to be built before, as for [`crate::local_cluster`]. Dropping a [`ServedCluster`] ends all its nodes.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::binary;
use crate::ports::free_run;

/// How to start one.
#[derive(Clone, Debug)]
pub struct Served {
    /// Nodes.
    pub nodes: u16,
    /// With how many of them the cluster forms: `--nodes`.
    pub founders: u16,
    /// Protection.
    pub profile: String,
    /// `--coordinator`.
    pub coordinator: String,
    /// Further flags of all nodes.
    pub flags: Vec<String>,
}

/// Its processes.
#[derive(Debug)]
pub struct ServedCluster {
    options: Served,
    nodes: Vec<Option<Child>>,
    base_port: u16,
    logs: TempDir,
}

impl ServedCluster {
    /// Starts all nodes, and waits for nothing.
    ///
    /// # Errors
    /// One line if the binary is not there.
    pub fn start(options: Served) -> Result<Self, String> {
        let logs = tempfile::tempdir().map_err(|error| error.to_string())?;
        let base_port = free_run(2 * options.nodes)?;
        let nodes = (0..options.nodes).map(|_| None).collect();
        let mut cluster = Self { options, nodes, base_port, logs };
        for node in 0..cluster.options.nodes {
            cluster.start_node(node, &[])?;
        }
        Ok(cluster)
    }

    /// Starts `node`, with further flags.
    ///
    /// # Errors
    /// One line if the binary is not there.
    pub fn start_node(&mut self, node: u16, flags: &[&str]) -> Result<(), String> {
        let log = File::options().create(true).append(true).open(self.log_path(node));
        let log = log.map_err(|error| error.to_string())?;
        let process = Command::new(binary()?)
            .args(["serve", "--node", &node.to_string(), "--coordinator", &self.options.coordinator])
            .args(["--nodes", &self.options.founders.to_string(), "--profile", &self.options.profile])
            .args(["--workers", "1", "--memory", "64MiB", "--evict", "none"])
            .args(["--memcached", &self.memcached(node).to_string(), "--http", &self.http(node).to_string()])
            .args(&self.options.flags)
            .args(flags)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.nodes[usize::from(node)] =
            Some(process.map_err(|error| format!("cannot start gestalt: {error}"))?);
        Ok(())
    }

    fn log_path(&self, node: u16) -> std::path::PathBuf {
        self.logs.path().join(format!("node-{node}.log"))
    }

    /// What `node` has logged.
    #[must_use]
    pub fn log(&self, node: u16) -> String {
        fs::read_to_string(self.log_path(node)).unwrap_or_default()
    }

    /// Where `node` listens for memcached clients.
    #[must_use]
    pub fn memcached(&self, node: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.base_port + node))
    }

    /// All of these.
    #[must_use]
    pub fn all_memcached(&self) -> Vec<SocketAddr> {
        (0..self.options.nodes).map(|node| self.memcached(node)).collect()
    }

    /// Where `node` has its status.
    #[must_use]
    pub fn http(&self, node: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.base_port + self.options.nodes + node))
    }

    /// Nodes whose process has been started and not been killed.
    #[must_use]
    pub fn running(&self) -> Vec<u16> {
        (0..self.options.nodes).filter(|node| self.nodes[usize::from(*node)].is_some()).collect()
    }

    /// What `node` says of itself; null if it does not answer.
    #[must_use]
    pub fn status(&self, node: u16) -> Value {
        let page = format!("http://{}/status", self.http(node));
        let answer = ureq::get(&page).call().ok().and_then(|mut answer| answer.body_mut().read_json().ok());
        answer.unwrap_or(Value::Null)
    }

    /// What all running nodes say of themselves.
    #[must_use]
    pub fn statuses(&self) -> Vec<Value> {
        self.running().into_iter().map(|node| self.status(node)).collect()
    }

    /// The node that presides, if exactly one says so.
    #[must_use]
    pub fn leader(&self) -> Option<u16> {
        let presides = |node: &u16| self.status(*node)["etcd"]["presides"] == true;
        let mut leaders = self.running().into_iter().filter(presides);
        let first = leaders.next();
        if leaders.next().is_some() { None } else { first }
    }

    /// Sends `signal` to `node`.
    pub fn signal(&self, node: u16, signal: Signal) {
        let process = self.nodes[usize::from(node)].as_ref();
        if let Some(pid) = process.and_then(|process| i32::try_from(process.id()).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Ends `node`, with SIGKILL.
    pub fn kill_node(&mut self, node: u16) {
        if let Some(mut process) = self.nodes[usize::from(node)].take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// How `node` has ended by itself; none if it has not within `limit`.
    pub fn ended(&mut self, node: u16, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        let process = self.nodes[usize::from(node)].as_mut()?;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = process.try_wait() {
                self.nodes[usize::from(node)] = None;
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Runs `gestalt` with `args` and `node`'s `--http`; exit code, standard output and standard error.
    ///
    /// # Errors
    /// One line if the binary cannot be run.
    pub fn gestalt(&self, node: u16, args: &[&str]) -> Result<(i32, String, String), String> {
        let http = self.http(node).to_string();
        let output = Command::new(binary()?).args(args).args(["--http", &http]).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
    }
}

impl Drop for ServedCluster {
    fn drop(&mut self) {
        (0..self.options.nodes).for_each(|node| self.kill_node(node));
    }
}
