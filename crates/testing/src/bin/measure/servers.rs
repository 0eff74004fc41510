//! The servers that are compared, started on free ports of the loopback and killed when dropped.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use testing::local_cluster::{LocalCluster, Options};
use testing::others::ensure_program;

/// A running server or set of servers.
pub struct Server {
    /// For tables.
    pub name: &'static str,
    /// What `gestalt bench` needs to reach it.
    pub flags: Vec<String>,
    processes: Processes,
}

enum Processes {
    Children(Vec<Child>),
    Cluster(LocalCluster),
}

impl Server {
    /// Five nodes and the coordinator; keys go straight to their primaries.
    pub fn gestalt(memory: &str) -> Result<Self, String> {
        let cluster = LocalCluster::start(&Options { memory: memory.to_owned(), ..Options::default() })?;
        let flags = vec!["--http".to_owned(), cluster.http().to_string()];
        Ok(Self { name: "gestalt rs(3+2)", flags, processes: Processes::Cluster(cluster) })
    }

    /// As many stock memcacheds, sharded by the client.
    pub fn memcached(name: &'static str, count: usize) -> Result<Self, String> {
        ensure_program("memcached", "memcached")?;
        let (mut children, mut addresses) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let address = free_address()?;
            let port = address.port().to_string();
            let args = ["-u", "nobody", "-l", "127.0.0.1", "-m", "4096", "-p", &port];
            children.push(start(Command::new("memcached").args(args), address)?);
            addresses.push(address.to_string());
        }
        let flags = vec!["--server".to_owned(), addresses.join(",")];
        Ok(Self { name, flags, processes: Processes::Children(children) })
    }

    /// One redis primary with two replicas; each SET is followed by `WAIT 2`.
    pub fn redis() -> Result<Self, String> {
        ensure_program("redis-server", "redis-server")?;
        let primary = free_address()?;
        let mut children = vec![start_redis(primary, None)?];
        for _ in 0..2 {
            children.push(start_redis(free_address()?, Some(primary))?);
        }
        // The replicas' first synchronisation.
        sleep(Duration::from_secs(3));
        let flags = ["--server", &primary.to_string(), "--protocol", "redis", "--wait", "2"];
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Ok(Self { name: "redis WAIT 2", flags, processes: Processes::Children(children) })
    }

    /// All server processes.
    pub fn pids(&self) -> Vec<u32> {
        match &self.processes {
            Processes::Children(children) => children.iter().map(Child::id).collect(),
            Processes::Cluster(cluster) => [cluster.pids(), vec![cluster.parent_pid()]].concat(),
        }
    }

    /// Resident memory of all processes together, in bytes.
    pub fn resident(&self) -> u64 {
        self.pids().into_iter().filter_map(resident_of).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Processes::Children(children) = &mut self.processes {
            for child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn start_redis(address: SocketAddr, primary: Option<SocketAddr>) -> Result<Child, String> {
    let mut command = Command::new("redis-server");
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
    ]);
    command.args(["--repl-diskless-sync-delay", "0"]);
    if let Some(primary) = primary {
        command.args(["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    }
    start(&mut command, address)
}

fn start(command: &mut Command, address: SocketAddr) -> Result<Child, String> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = quiet.spawn().map_err(|error| format!("{:?}: {error}", quiet.get_program()))?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        if Instant::now() > deadline {
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

fn resident_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
