//! Servers that are compared: Gestalt under several profiles, stock memcached, valkey (or redis), each on free ports of the
//! loopback and killed when dropped.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::Value;

use crate::binary::binary;
use crate::local_cluster::{LocalCluster, Options};
use crate::peers::{self, Peer};

/// Longest wait for a server's first answer.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for two replicas to follow.
const FOLLOW_LIMIT: Duration = Duration::from_secs(30);

/// A running server or set of servers.
#[derive(Debug)]
pub struct Server {
    /// For tables.
    pub name: String,
    /// What `gestalt bench` needs to reach it.
    pub flags: Vec<String>,
    /// Where clients that know no map connect.
    pub addresses: Vec<SocketAddr>,
    processes: Processes,
}

#[derive(Debug)]
enum Processes {
    Children(Children),
    Cluster(LocalCluster),
}

/// Killed when dropped.
#[derive(Debug)]
struct Children(Vec<Child>);

impl Server {
    /// A cluster of as many nodes with this profile, and its coordinator; keys go straight to their primaries.
    ///
    /// # Errors
    /// One line if it does not start.
    pub fn gestalt(profile: &str, nodes: u16, memory: &str) -> Result<Self, String> {
        let (profile, memory) = (profile.to_owned(), memory.to_owned());
        Self::gestalt_with(&Options { nodes, profile, memory, ..Options::default() })
    }

    /// The same with all options.
    ///
    /// # Errors
    /// One line if it does not start.
    pub fn gestalt_with(options: &Options) -> Result<Self, String> {
        let cluster = LocalCluster::start(options)?;
        Ok(Self {
            name: format!("gestalt {}", options.profile),
            flags: vec!["--http".to_owned(), cluster.http().to_string()],
            addresses: cluster.all_memcached(),
            processes: Processes::Cluster(cluster),
        })
    }

    /// One stock memcached with its own default settings but for the limit of memory.
    ///
    /// # Errors
    /// One line if it cannot be had or does not start.
    pub fn memcached() -> Result<Self, String> {
        Self::memcached_with(4096)
    }

    /// The same with `mib` MiB for items.
    ///
    /// # Errors
    /// One line if it cannot be had or does not start.
    pub fn memcached_with(mib: u64) -> Result<Self, String> {
        Self::memcached_for_values(mib, 1)
    }

    /// The same for items of up to `longest_mib` MiB.
    ///
    /// # Errors
    /// One line if it cannot be had or does not start.
    pub fn memcached_for_values(mib: u64, longest_mib: u64) -> Result<Self, String> {
        Self::memcacheds(1, mib, longest_mib)
    }

    /// As many processes of it, among which keys are shared out by their hashes, with `mib` MiB each.
    ///
    /// # Errors
    /// One line if it cannot be had or does not start.
    pub fn memcacheds(count: u16, mib: u64, longest_mib: u64) -> Result<Self, String> {
        let (mib, longest) = (mib.to_string(), format!("{longest_mib}m"));
        let peer = peers::memcached()?;
        let (mut addresses, mut children) = (Vec::new(), Children(Vec::new()));
        for _ in 0..count {
            let address = free_address()?;
            let port = address.port().to_string();
            // Without a user it does not start as root.
            let args = ["-u", "nobody", "-l", "127.0.0.1", "-m", &mib, "-p", &port, "-I", &longest];
            children.0.push(start(Command::new(&peer.program).args(args), address)?);
            addresses.push(address);
        }
        let list = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",");
        Ok(Self {
            name: peer.title,
            flags: vec!["--server".to_owned(), list],
            addresses,
            processes: Processes::Children(children),
        })
    }

    /// One primary of valkey or redis and as many replicas that have caught up.
    ///
    /// # Errors
    /// One line if it cannot be had, does not start, or is not followed.
    pub fn valkey(replicas: usize) -> Result<Self, String> {
        Self::replicated(peers::valkey()?, replicas)
    }

    /// The same of whatever is at hand that speaks so, for tests: nothing is measured.
    ///
    /// # Errors
    /// As [`Server::valkey`].
    pub fn redis(replicas: usize) -> Result<Self, String> {
        Self::replicated(peers::redis()?, replicas)
    }

    fn replicated(peer: Peer, replicas: usize) -> Result<Self, String> {
        let address = free_address()?;
        let mut children = Children(vec![start_valkey(&peer.program, address, None)?]);
        for _ in 0..replicas {
            children.0.push(start_valkey(&peer.program, free_address()?, Some(address))?);
        }
        wait_for_replicas(address, replicas)?;
        let flags = ["--server", &address.to_string(), "--protocol", "redis"];
        let with = if replicas == 0 { String::new() } else { format!(" 1+{replicas}") };
        Ok(Self {
            name: format!("{}{with}", peer.title),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            addresses: vec![address],
            processes: Processes::Children(children),
        })
    }

    /// All server processes.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        match &self.processes {
            Processes::Children(children) => children.0.iter().map(Child::id).collect(),
            Processes::Cluster(cluster) => [cluster.pids(), vec![cluster.parent_pid()]].concat(),
        }
    }

    /// The cluster, if it is one.
    #[must_use]
    pub fn cluster(&self) -> Option<&LocalCluster> {
        match &self.processes {
            Processes::Children(_) => None,
            Processes::Cluster(cluster) => Some(cluster),
        }
    }

    /// Resident memory of all processes together, in bytes.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.pids().into_iter().filter_map(resident_of).sum()
    }

    /// CPU time that all processes have used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        self.pids().into_iter().filter_map(cpu_time_of).sum()
    }

    /// Runs one workload of `gestalt bench` against it: its report.
    ///
    /// # Errors
    /// One line if it cannot be run or says that something is wrong.
    pub fn bench<S: AsRef<OsStr>>(
        &self,
        workload: &str,
        flags: impl IntoIterator<Item = S>,
    ) -> Result<Value, String> {
        let pids = self.pids().iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = Command::new(binary()?);
        command.args(["bench", workload, "-o", "json", "--pids", &pids]).args(&self.flags).args(flags);
        let output = command.output().map_err(|error| error.to_string())?;
        // Some operations failed: the report says which.
        let is_told = output.status.success() || output.status.code() == Some(3);
        if !is_told {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
        }
        let mut reports: Vec<Value> =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        reports.pop().ok_or_else(|| "gestalt bench printed no report".to_owned())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start_valkey(program: &Path, address: SocketAddr, primary: Option<SocketAddr>) -> Result<Child, String> {
    // Nothing of it goes to a disk, as with the others.
    let mut command = Command::new(program);
    let port = address.port().to_string();
    command.args([
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        "/tmp",
        // A full dump reaches replicas as a file; another server may have left one of the usual name.
        "--dbfilename",
        &format!("gestalt-{port}.rdb"),
    ]);
    // By default it waits some seconds for further replicas.
    command.args(["--repl-diskless-sync-delay", "0"]);
    if let Some(primary) = primary {
        command.args(["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    }
    start(&mut command, address)
}

/// Until the primary has as many replicas online.
fn wait_for_replicas(primary: SocketAddr, replicas: usize) -> Result<(), String> {
    let deadline = Instant::now() + FOLLOW_LIMIT;
    while peers::replicas_online(primary)? < replicas {
        if Instant::now() > deadline {
            return Err(format!("{primary} is not followed by {replicas} replicas after {FOLLOW_LIMIT:?}"));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn start(command: &mut Command, address: SocketAddr) -> Result<Child, String> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().map_err(|error| format!("{:?}: {error}", quiet.get_program()))?;
    let deadline = Instant::now() + START_LIMIT;
    while TcpStream::connect(address).is_err() {
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{:?} does not answer on {address}", command.get_program()));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(child)
}

fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

/// Resident memory of a process, in bytes; none if it has ended.
#[must_use]
pub fn resident_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// CPU time that all threads of a process have used; none if it has ended.
fn cpu_time_of(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}
