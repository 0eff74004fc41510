//! YCSB against Gestalt, stock memcached and valkey: every operation succeeds, and every value read is the one written.

use std::time::Duration;

use measure::ycsb::{self, Distribution, Extent, Mix, Protocol, Spread, Target, Workload};
use processes::servers::Server;

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

/// Loads, updates and reads; everything must succeed.
fn serves(target: &Target) {
    let loaded = ycsb::load(target, &WORKLOAD).expect("YCSB runs");
    let inserts = &loaded.operations["INSERT"];
    assert_eq!((inserts.count(), loaded.failed()), (RECORDS.into(), 0), "{loaded:?}");

    let run = ycsb::run(target, &WORKLOAD, Extent::Operations(OPERATIONS)).expect("YCSB runs");
    let (reads, updates) = (&run.operations["READ"], &run.operations["UPDATE"]);
    assert_eq!((reads.count() + updates.count(), run.failed()), (OPERATIONS.into(), 0), "{run:?}");
    assert_eq!(run.operations["VERIFY"].count(), reads.count(), "every read is compared");
    assert!(run.ops_per_second > 0.0 && reads.p50_us > 0.0 && updates.p999_us >= updates.p50_us, "{run:?}");
}

fn target(servers: &[&Server], protocol: Protocol, spread: Spread) -> Target {
    let hosts = servers.iter().flat_map(|server| server.addresses.clone()).collect();
    Target { protocol, hosts, spread }
}

#[test]
fn ycsb_finds_its_records_in_gestalt_through_any_node() {
    let cluster = Server::gestalt("rs(3+2)", 5, "256MiB").unwrap();
    let target = target(&[&cluster], Protocol::Memcached, Spread::Any);
    serves(&target);
    let writes = Workload { mix: Mix::Writes, distribution: Distribution::Uniform, ..WORKLOAD };
    let report = ycsb::run(&target, &writes, Extent::Time(Duration::from_secs(1))).unwrap();
    assert!(report.failed() == 0 && !report.operations.contains_key("READ"), "{report:?}");
}

#[test]
fn ycsb_finds_its_records_in_sharded_memcacheds() {
    let (one, other) = (Server::memcached().unwrap(), Server::memcached().unwrap());
    serves(&target(&[&one, &other], Protocol::Memcached, Spread::Sharded));
}

#[test]
fn ycsb_waits_for_replicas() {
    let servers = Server::redis(1).unwrap();
    for wait in [0, 1] {
        serves(&target(&[&servers], Protocol::Redis { wait }, Spread::Sharded));
    }
}

#[test]
fn values_that_are_wrong_and_keys_that_are_missing_are_counted() {
    let server = Server::memcached().unwrap();
    let target = target(&[&server], Protocol::Memcached, Spread::Any);
    let reads = Workload { mix: Mix::C, records: 100, ..WORKLOAD };
    let missing = ycsb::run(&target, &reads, Extent::Operations(200)).unwrap();
    assert_eq!(missing.operations["READ"].returned.get("NOT_FOUND"), Some(&200), "{missing:?}");
    // Random bytes where bytes that follow from the key are expected.
    ycsb::load(&target, &Workload { verify: false, ..reads }).unwrap();
    let wrong = ycsb::run(&target, &reads, Extent::Operations(200)).unwrap();
    assert_eq!((wrong.operations["READ"].failed(), wrong.failed()), (0, 200), "{wrong:?}");
}
