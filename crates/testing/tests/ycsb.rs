//! YCSB against Gestalt, stock memcached and redis: every operation succeeds, and every value read is the one written.
#![allow(clippy::disallowed_methods)]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testing::local_cluster::{LocalCluster, Options};
use testing::others::ensure_program;
use testing::ycsb::{self, Distribution, Extent, Mix, Protocol, Spread, Target, Workload};

const RECORDS: u32 = 500;
const OPERATIONS: u32 = 4000;
const WORKLOAD: Workload = Workload {
    mix: Mix::A,
    distribution: Distribution::Zipfian,
    records: RECORDS,
    value_bytes: 1000,
    threads: 4,
    verify: true,
};

/// A server that ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command, address: SocketAddr) -> Server {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(quiet.spawn().expect("the server starts"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "{address} does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

fn memcached() -> (Server, SocketAddr) {
    ensure_program("memcached", "memcached").unwrap();
    let address = free_address();
    let port = address.port().to_string();
    (
        start(Command::new("memcached").args(["-u", "nobody", "-l", "127.0.0.1", "-p", &port]), address),
        address,
    )
}

fn redis(replica_of: Option<SocketAddr>) -> (Server, SocketAddr) {
    ensure_program("redis-server", "redis-server").unwrap();
    let address = free_address();
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"]);
    command.current_dir(std::env::temp_dir());
    if let Some(primary) = replica_of {
        command.args(["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    }
    (start(&mut command, address), address)
}

/// Loads, updates and reads; everything must succeed.
fn serves(target: &Target) {
    let loaded = ycsb::load(target, &WORKLOAD).unwrap();
    let inserts = &loaded.operations["INSERT"];
    assert_eq!((inserts.count(), loaded.failed()), (RECORDS.into(), 0), "{loaded:?}");

    let run = ycsb::run(target, &WORKLOAD, Extent::Operations(OPERATIONS)).unwrap();
    let (reads, updates) = (&run.operations["READ"], &run.operations["UPDATE"]);
    assert_eq!((reads.count() + updates.count(), run.failed()), (OPERATIONS.into(), 0), "{run:?}");
    assert_eq!(run.operations["VERIFY"].count(), reads.count(), "every read is compared");
    assert!(run.ops_per_second > 0.0 && reads.p50_us > 0.0 && updates.p999_us >= updates.p50_us, "{run:?}");
}

#[test]
fn ycsb_finds_its_records_in_gestalt_through_any_node() {
    let cluster = LocalCluster::start(&Options::default()).expect("a cluster starts");
    let hosts = cluster.all_memcached();
    let target = Target { protocol: Protocol::Memcached, hosts, spread: Spread::Any };
    serves(&target);
    let writes = Workload { mix: Mix::Writes, distribution: Distribution::Uniform, ..WORKLOAD };
    let report = ycsb::run(&target, &writes, Extent::Time(Duration::from_secs(1))).unwrap();
    assert!(report.failed() == 0 && !report.operations.contains_key("READ"), "{report:?}");
}

#[test]
fn ycsb_finds_its_records_in_sharded_memcacheds() {
    let servers = [memcached(), memcached()];
    let hosts = servers.iter().map(|(_, address)| *address).collect();
    serves(&Target { protocol: Protocol::Memcached, hosts, spread: Spread::Sharded });
}

#[test]
fn ycsb_waits_for_rediss_replicas() {
    let (_primary, address) = redis(None);
    let target =
        |wait| Target { protocol: Protocol::Redis { wait }, hosts: vec![address], spread: Spread::Sharded };
    serves(&target(0));
    let (_replica, _) = redis(Some(address));
    serves(&target(1));
}

#[test]
fn values_that_are_wrong_and_keys_that_are_missing_are_counted() {
    let (_server, address) = memcached();
    let target = Target { protocol: Protocol::Memcached, hosts: vec![address], spread: Spread::Any };
    let reads = Workload { mix: Mix::C, records: 100, ..WORKLOAD };
    let missing = ycsb::run(&target, &reads, Extent::Operations(200)).unwrap();
    assert_eq!(missing.operations["READ"].returned.get("NOT_FOUND"), Some(&200), "{missing:?}");
    // Random bytes where bytes that follow from the key are expected.
    ycsb::load(&target, &Workload { verify: false, ..reads }).unwrap();
    let wrong = ycsb::run(&target, &reads, Extent::Operations(200)).unwrap();
    assert_eq!((wrong.operations["READ"].failed(), wrong.failed()), (0, 200), "{wrong:?}");
}
