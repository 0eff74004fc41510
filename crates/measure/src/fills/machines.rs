//! A cluster of real processes, each in a network of its own behind a link of limited bandwidth.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use processes::binary::{binary, forget_settings};
use processes::namespaces::{Machines, Process};
use processes::pages::{metric, page};

use super::rows::Trouble;

const COORDINATOR_PORT: u16 = 9179;
const HTTP_PORT: u16 = 9180;
const MEMCACHED_PORT: u16 = 11211;
const NATIVE_PORT: u16 = 11311;
const PEER_PORT: u16 = 9000;
/// How long anything may take before it is given up, if little is stored.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many times less a slow link carries.
const SLOWER: u32 = 4;
/// A busy process stands still for so long, and runs for as long.
const STANDSTILL: Duration = Duration::from_millis(10);

/// A process that stands still for half of the time, until this is dropped.
pub(super) struct Busy {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    fn start(pid: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let pid = Pid::from_raw(pid.cast_signed());
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                for signal in [Signal::SIGSTOP, Signal::SIGCONT] {
                    let _ = kill(pid, signal);
                    sleep(STANDSTILL);
                }
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How a cluster is made.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub profile: String,
    pub nodes: u16,
    /// Bandwidth of each node's link, in each direction.
    pub mbit: u32,
    /// What is wrong with one of them.
    pub trouble: Trouble,
    /// Longest chunk, as operators write it.
    pub chunk: String,
    /// What all of its nodes are told beside, as flags.
    pub flags: Vec<String>,
    /// Bytes of chunks that each node is to hold.
    pub stored: usize,
}

impl Plan {
    /// Nothing is wrong, nodes are told nothing, and hold little; longest chunk in KiB.
    pub(super) fn new(profile: &str, nodes: u16, mbit: u32, chunk: u32) -> Self {
        let (profile, chunk) = (profile.to_owned(), format!("{chunk}KiB"));
        Self { profile, nodes, mbit, trouble: Trouble::None, chunk, flags: Vec::new(), stored: 0 }
    }

    /// Of each node, in MiB.
    fn memory_mib(&self) -> usize {
        1024 + self.stored / (1 << 20) * 5 / 4
    }

    /// How long anything may take before it is given up.
    fn patience(&self) -> Duration {
        // As long as a star of eight would.
        PATIENCE + Duration::from_secs_f64(self.stored as f64 * 64e-6 / f64::from(self.mbit))
    }
}

/// A running one. Dropping it ends its processes.
pub(super) struct Cluster {
    plan: Plan,
    program: PathBuf,
    machines: Machines,
    coordinator: Process,
    nodes: Vec<Process>,
}

/// Where the coordinator is, and who stores values, behind a link without a limit.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// Where a client is whose link may have one.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

fn address(node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, 1, node as u8 + 1)
}

impl Cluster {
    /// Starts one, and waits until it serves. Its links have no limit yet.
    pub(super) fn start(plan: &Plan, dir: &Path) -> Result<Self, String> {
        let addresses: Vec<Ipv4Addr> =
            [OUTSIDE, CLIENT].into_iter().chain((0..plan.nodes).map(address)).collect();
        let machines = Machines::build(&addresses)?;
        let nodes = (0..plan.nodes).map(|node| Process::new(format!("node {node}"), dir)).collect();
        let coordinator = Process::new("coordinator".to_owned(), dir);
        let mut cluster = Self { plan: plan.clone(), program: binary()?, machines, coordinator, nodes };
        cluster.start_coordinator()?;
        (0..plan.nodes).try_for_each(|node| cluster.start_node(node))?;
        cluster.wait_for("nodes that serve", |cluster| {
            (0..cluster.plan.nodes).all(|node| cluster.page(node, "/readyz").is_ok())
        })?;
        cluster.order(&[
            "namespace",
            "set",
            "default",
            "--striped-above",
            "64KiB",
            "--chunk",
            &plan.chunk,
        ])?;
        Ok(cluster)
    }

    /// From now on the link of each node carries no more than is planned.
    pub(super) fn shape_nodes(&self) -> Result<(), String> {
        (0..self.plan.nodes).try_for_each(|node| self.machines.shape(address(node), self.plan.mbit))
    }

    fn start_coordinator(&mut self) -> Result<(), String> {
        let args = [
            "coordinator".to_owned(),
            format!("--listen={OUTSIDE}:{COORDINATOR_PORT}"),
            format!("--http={OUTSIDE}:{HTTP_PORT}"),
            format!("--nodes={}", self.plan.nodes),
            format!("--profile={}", self.plan.profile),
            "--workers=1".to_owned(),
            // All chunks of a node are of one role: with little data in many groups each would have one or two.
            "--groups=1".to_owned(),
            "--new-cluster".to_owned(),
            format!("--parent-pid={}", std::process::id()),
        ];
        self.coordinator.start(self.machines.at(OUTSIDE), &self.program, &args)
    }

    fn start_node(&mut self, node: u16) -> Result<(), String> {
        let at = address(node);
        let args = [
            "serve".to_owned(),
            format!("--node={node}"),
            format!("--coordinator=embedded://{OUTSIDE}:{COORDINATOR_PORT}"),
            format!("--memcached={at}:{MEMCACHED_PORT}"),
            format!("--native={at}:{NATIVE_PORT}"),
            format!("--peer={at}:{PEER_PORT}"),
            format!("--http={at}:{HTTP_PORT}"),
            format!("--memory={}MiB", self.plan.memory_mib()),
            "--workers=1".to_owned(),
            "--evict=none".to_owned(),
            format!("--parent-pid={}", std::process::id()),
        ];
        let args = [&args[..], &self.plan.flags[..]].concat();
        self.nodes[usize::from(node)].start(self.machines.at(at), &self.program, &args)
    }

    /// Where a client of the native protocol begins.
    pub(super) fn uri(&self) -> String {
        format!("gestalt://{}:{NATIVE_PORT}/default", address(0))
    }

    /// Does something where the client is.
    pub(super) fn as_client<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.machines.at(CLIENT).run(work)
    }

    /// Its link carries so much.
    pub(super) fn shape_client(&self, mbit: u32) -> Result<(), String> {
        self.machines.shape(CLIENT, mbit)
    }

    /// Stores values of `len` bytes, `count` of them.
    pub(super) fn store(&self, count: u32, len: usize) -> Result<(), String> {
        self.store_at(0, count, len)
    }

    /// The same at a node.
    pub(super) fn store_at(&self, node: u16, count: u32, len: usize) -> Result<(), String> {
        let to = SocketAddr::from((address(node), MEMCACHED_PORT));
        self.machines.at(OUTSIDE).run(move || store(to, count, len).map_err(|error| error.to_string()))
    }

    /// From now on something is wrong with this node, if anything is; until what is returned is dropped, if it stands still now and then.
    pub(super) fn trouble(&self, node: u16) -> Result<Option<Busy>, String> {
        match self.plan.trouble {
            Trouble::None => Ok(None),
            Trouble::Slow => {
                self.machines.shape(address(node), self.plan.mbit / SLOWER)?;
                Ok(None)
            }
            Trouble::Busy => Ok(self.nodes[usize::from(node)].pid().map(Busy::start)),
        }
    }

    /// Kills a node.
    pub(super) fn kill(&mut self, node: u16) {
        let process = &mut self.nodes[usize::from(node)];
        process.kill();
        process.reap();
    }

    /// The sum of a metric at all nodes that answer.
    pub(super) fn metric(&self, name: &str) -> u64 {
        (0..self.plan.nodes).filter_map(|node| self.metric_of(node, name)).sum()
    }

    /// A metric of one node.
    pub(super) fn metric_of(&self, node: u16, name: &str) -> Option<u64> {
        metric(&self.page(node, "/metrics").ok()?, name)
    }

    /// Seconds of processor time that all nodes have taken.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let of = |node| {
            let page = self.page(node, "/metrics").ok()?;
            let line = page.lines().find(|line| line.starts_with("process_cpu_seconds_total "))?;
            line.rsplit_once(' ')?.1.parse::<f64>().ok()
        };
        (0..self.plan.nodes).filter_map(of).sum()
    }

    /// Asked beside the node itself: over its link a question would wait behind what fills it.
    fn page(&self, node: u16, path: &'static str) -> Result<String, String> {
        let at = SocketAddr::from((address(node), HTTP_PORT));
        self.machines.at(address(node)).run(move || page(at, path))
    }

    pub(super) fn order(&self, args: &[&str]) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        forget_settings(&mut command);
        command.args(args).arg(format!("--http={OUTSIDE}:{HTTP_PORT}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = self.machines.at(OUTSIDE).run(move || command.output());
        let output = output.map_err(|error| format!("cannot run gestalt: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }

    /// Asks again and again; how long it took.
    pub(super) fn wait_for(&self, what: &str, is_there: impl Fn(&Self) -> bool) -> Result<Duration, String> {
        self.wait_looking_every(Duration::from_millis(50), what, is_there)
    }

    /// The same, so often.
    pub(super) fn wait_looking_every(
        &self,
        pause: Duration,
        what: &str,
        is_there: impl Fn(&Self) -> bool,
    ) -> Result<Duration, String> {
        let (start, patience) = (Instant::now(), self.plan.patience());
        while !is_there(self) {
            if start.elapsed() > patience {
                let words: Vec<String> = self.nodes.iter().map(Process::last_line).collect();
                return Err(format!("no {what} within {patience:?}: {}", words.join(" | ")));
            }
            sleep(pause);
        }
        Ok(start.elapsed())
    }
}

/// Over memcached's text protocol, one after the other.
fn store(to: SocketAddr, count: u32, len: usize) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    for key in 0..count {
        let mut command = String::new();
        let _ = write!(command, "set key-{key} 0 0 {len}\r\n");
        let value: Vec<u8> = (0..len as u64).map(|at| noise(u64::from(key), at)).collect();
        stream.write_all(command.as_bytes())?;
        stream.write_all(&value)?;
        stream.write_all(b"\r\n")?;
        let mut answer = String::new();
        answers.read_line(&mut answer)?;
        if answer != "STORED\r\n" {
            return Err(std::io::Error::other(format!("key-{key}: {}", answer.trim())));
        }
    }
    Ok(())
}

fn noise(key: u64, at: u64) -> u8 {
    (((key << 32) ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * (at % 8))) as u8
}
