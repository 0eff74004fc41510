//! One run of `gestalt bench`, and of what processes it is run on.

use std::ffi::OsStr;

use processes::servers::Server;
use serde_json::Value;

/// Nodes of the cluster, and processes of memcached.
pub(super) const PROCESSES: u16 = 5;
pub(super) const NODE_MEMORY: &str = "1GiB";
pub(super) const MEMCACHED_MIB: u64 = 1024;

/// How often a run is tried that cannot be done.
const TRIES: u32 = 3;

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub kops: f64,
    pub rate: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub server_us: f64,
    pub client_us: f64,
    pub failed: u64,
}

/// Runs `gestalt bench` on a workload.
pub(super) fn bench<S: AsRef<OsStr>>(server: &Server, workload: &str, flags: &[S]) -> Result<Run, String> {
    let mut tries = 1;
    let report = loop {
        match server.bench(workload, flags) {
            Ok(report) => break report,
            // Where a machine is shared a short run may get no time at all.
            Err(_) if tries < TRIES => tries += 1,
            Err(reason) => return Err(reason),
        }
    };
    // What is missing must not look like a figure.
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let failed =
        report["errors"].as_object().map_or(0, |errors| errors.values().filter_map(Value::as_u64).sum());
    Ok(Run {
        kops: number("/operations_per_second") / 1000.0,
        rate: number("/megabytes_per_second"),
        p50_us: number("/latency_us/p50"),
        p99_us: number("/latency_us/p99"),
        server_us: number("/server_cpu_us_per_operation"),
        client_us: number("/client_cpu_us_per_operation"),
        failed: failed + report["misses"].as_u64().unwrap_or(0),
    })
}
