//! One node's process, as its parent sees it.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::plan::{NodePlan, Plan};

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Position of the node in the plan.
    pub index: usize,
    /// What the process was.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
}

/// A running node. It is reaped by a task of its own, which reports its end.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub pid: u32,
    reaper: JoinHandle<()>,
}

/// Where node `node` logs.
pub fn log_path(dir: &Path, node: &NodePlan) -> PathBuf {
    dir.join(format!("node-{}.log", node.node.0))
}

impl Running {
    /// Starts the node at `index`; it dies with this process, however that ends.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn start(
        plan: &Plan,
        index: usize,
        coordinator: SocketAddr,
        dir: &Path,
        ended: mpsc::UnboundedSender<Ended>,
    ) -> io::Result<Self> {
        let node = &plan.nodes[index];
        let log = OpenOptions::new().create(true).append(true).open(log_path(dir, node))?;
        let mut child = command(plan, node, coordinator, log)?.spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the process ended at once"))?;
        let reaper = tokio::spawn(async move {
            if let Ok(status) = wait(&mut child).await {
                let _ = ended.send(Ended { index, pid, status });
            }
        });
        Ok(Self { pid, reaper })
    }

    /// Whether the process still runs, or has ended and is not yet reaped (so that its pid is not another's).
    pub fn is_running(&self) -> bool {
        !self.reaper.is_finished()
    }

    /// Sends a signal, if the process still runs.
    pub fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.pid)
            && self.is_running()
        {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

async fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    child.wait().await
}

/// `gestalt serve` with a flag for everything, so that neither a file nor the environment has a say.
fn command(plan: &Plan, node: &NodePlan, coordinator: SocketAddr, log: File) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GESTALT_") && name != "GESTALT_LOG" {
            command.env_remove(name);
        }
    }
    let flags = [
        ("--node", node.node.0.to_string()),
        ("--coordinator", format!("embedded://{coordinator}")),
        ("--memcached", node.memcached.to_string()),
        ("--native", node.native.to_string()),
        // Any free port: the others hear of it from the coordinator.
        ("--peer", "127.0.0.1:0".to_owned()),
        ("--http", node.http.to_string()),
        ("--memory", format!("{}B", plan.memory.0)),
        ("--workers", plan.workers.to_string()),
        ("--evict", plan.evict.name().to_owned()),
        ("--scheduling", plan.scheduling.name().to_owned()),
        ("--coding-place", plan.coding_place.name().to_owned()),
        ("--lease", format!("{}us", plan.lease.as_micros())),
        ("--parent-pid", std::process::id().to_string()),
    ];
    command.arg("serve");
    if plan.native_scans {
        command.arg("--native-scans");
    }
    if usize::from(node.node.0) >= plan.founders() {
        command.arg("--join");
    }
    for (flag, value) in flags {
        command.arg(flag).arg(value);
    }
    for bound in &node.bound {
        command.arg("--memcached").arg(bound.to_string());
    }
    command.args(plan.clients.flags());
    let errors = log.try_clone()?;
    // A group of its own: Ctrl-C in the terminal reaches the parent only, which then stops the nodes in order.
    command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    Ok(command)
}
