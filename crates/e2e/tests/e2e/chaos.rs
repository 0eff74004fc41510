//! Real processes killed, stopped and restarted while clients write down what they see.
//!
//! Every other client asks by the native protocol. Every test ends with the same questions: is the history linearizable,
//! did the clients go on, and are the processes that should live alive?

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use history::recorder::{Recorder, Seen, Workload};
use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options};
use processes::others::{python_with, read};

use crate::support::{PATIENCE, is_linearizable};

const LEASE: Duration = Duration::from_secs(1);
/// Bytes held for a byte of value at most, with rs(3+2) and values of 1 KiB: 5/3 for the code, the rest for keys, headers,
/// index and slack.
const MOST_MEMORY: f64 = 2.2;
/// Of a client, after a loss: a few leases, and as much for a machine that others use, too.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Answers that show that a cluster goes on.
const PROGRESS: u64 = 2000;

fn start(flags: &[&str]) -> LocalCluster {
    let mut options = Options { lease: LEASE, ..Options::default() };
    options.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    LocalCluster::start(&options).expect("a cluster starts")
}

fn record(cluster: &LocalCluster) -> Recorder {
    let native = cluster.all_native().expect("the coordinator says it");
    let workload = Workload { native, ..Workload::default() };
    let recorder = Recorder::start(&workload, &cluster.all_memcached());
    recorder.wait_for(PROGRESS, PATIENCE).expect("a healthy cluster answers");
    recorder
}

/// Stops the clients and judges what they saw.
fn judge(recorder: Recorder) -> Seen {
    let seen = recorder.finish();
    is_linearizable(&seen);
    seen
}

/// Waits until `gestalt status` exits with `code`.
fn wait_for_status(cluster: &LocalCluster, code: i32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, out, error) = cluster.gestalt(&["status", "--http", "{http}"]).expect("status runs");
        if status.code() == Some(code) {
            return;
        }
        assert!(Instant::now() < deadline, "status is {status}, not {code}:\n{out}{error}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_killed_node_costs_a_pause_and_no_write() {
    let cluster = start(&[]);
    let recorder = record(&cluster);
    cluster.kill_nodes(&[2]);
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on");
    wait_for_status(&cluster, 3);
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on after the repair");
    judge(recorder);
    assert_eq!(cluster.pids().len(), 4);
}

#[test]
fn two_nodes_killed_at_once_cost_a_pause_and_no_write() {
    for pair in [[0, 1], [1, 3], [4, 2]] {
        let cluster = start(&[]);
        let recorder = record(&cluster);
        cluster.kill_nodes(&pair);
        recorder.wait_for(2 * PROGRESS, PATIENCE).expect("the cluster goes on");
        judge(recorder);
        assert_eq!(cluster.pids().len(), 3);
    }
}

#[test]
fn nodes_killed_one_after_the_other_cost_no_write() {
    let cluster = start(&[]);
    let recorder = record(&cluster);
    cluster.kill_nodes(&[0]);
    wait_for_status(&cluster, 3);
    cluster.kill_nodes(&[3]);
    recorder.wait_for(2 * PROGRESS, PATIENCE).expect("the cluster goes on");
    judge(recorder);
}

#[test]
fn a_node_stopped_past_every_time_out_wakes_up_fenced() {
    let cluster = start(&[]);
    let recorder = record(&cluster);
    cluster.signal(1, Signal::SIGSTOP);
    sleep(3 * LEASE);
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on without the stopped node");
    cluster.signal(1, Signal::SIGCONT);
    sleep(2 * LEASE);
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on with the woken node");
    judge(recorder);
}

#[test]
fn short_stops_fence_nobody_wrongly() {
    let cluster = start(&[]);
    let recorder = record(&cluster);
    for round in 0..10 {
        let node = round % cluster.node_count();
        cluster.signal(node, Signal::SIGSTOP);
        sleep(LEASE / 4);
        cluster.signal(node, Signal::SIGCONT);
        sleep(LEASE / 10);
    }
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on");
    judge(recorder);
}

#[test]
fn a_stopped_and_a_killed_node_together_cost_no_write() {
    let cluster = start(&[]);
    let recorder = record(&cluster);
    cluster.signal(4, Signal::SIGSTOP);
    cluster.kill_nodes(&[0]);
    sleep(3 * LEASE);
    cluster.signal(4, Signal::SIGCONT);
    recorder.wait_for(PROGRESS, PATIENCE).expect("the cluster goes on");
    judge(recorder);
}

#[test]
fn a_node_that_restarts_with_empty_memory_owns_nothing_of_its_former_self() {
    let cluster = start(&["--restart", "always"]);
    let recorder = record(&cluster);
    let former = cluster.pid(2);
    cluster.kill_nodes(&[2]);
    let deadline = Instant::now() + PATIENCE;
    while cluster.pid(2).is_none() || cluster.pid(2) == former {
        assert!(Instant::now() < deadline, "node 2 did not start again");
        sleep(Duration::from_millis(20));
    }
    recorder.wait_for(2 * PROGRESS, PATIENCE).expect("the cluster goes on");
    cluster.kill_nodes(&[4]);
    recorder.wait_for(2 * PROGRESS, PATIENCE).expect("the cluster goes on after a second loss");
    judge(recorder);
}

/// The promise on the first page: load with a stock client, kill any two nodes at once, read everything back through
/// the survivors while others write. `GESTALT_OUTCOME_VALUES` is another count than 200,000.
#[test]
fn all_values_are_read_back_after_two_nodes_are_killed() {
    let count = std::env::var("GESTALT_OUTCOME_VALUES").unwrap_or_else(|_| "200000".to_owned());
    let python = python_with("outcome-python", &["pymemcache==4.0.0"]).unwrap();
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/outcome.py"));
    let outcome = |args: [&str; 3]| read(Command::new(&python).arg(script).args(args)).unwrap();
    let cluster = start(&[]);
    outcome(["load", &cluster.memcached(0).to_string(), &count]);
    let ratio = memory_used(&cluster) as f64 / (count.parse::<f64>().unwrap() * 1024.0);
    println!("memory used: {ratio:.2} bytes a byte of value");
    assert!(ratio < MOST_MEMORY || count.len() < 6, "{ratio:.2} bytes are used for a byte of value");
    let recorder = record(&cluster);
    cluster.kill_nodes(&[0, 3]);
    let survivors = [1, 2, 4].map(|node| cluster.memcached(node).to_string()).join(",");
    outcome(["verify", &survivors, &count]);
    let seen = judge(recorder);
    assert!(seen.longest_wait < LONGEST_WAIT, "a client waited {:?}", seen.longest_wait);
    let status = cluster.stop().expect("the cluster stops");
    assert!(status.success(), "{status}");
}

/// What all nodes together hold, by their own accounts.
fn memory_used(cluster: &LocalCluster) -> u64 {
    let (_, text, _) = cluster.gestalt(&["status", "--http", "{http}", "-o", "json"]).expect("status runs");
    let status: serde_json::Value = serde_json::from_str(&text).expect("status prints JSON");
    let nodes = status["nodes"].as_array().expect("status lists the nodes");
    nodes.iter().filter_map(|node| node["memory_used_bytes"].as_u64()).sum()
}

/// What adds of one came to, of all clients together.
#[derive(Default)]
struct Adds {
    done: u64,
    failed: Vec<gestalt::Error>,
}

/// Counts a number up until it is told to stop.
async fn count(client: gestalt::Client, key: String, goes_on: Arc<AtomicBool>) -> Adds {
    let mut adds = Adds::default();
    while goes_on.load(Ordering::Relaxed) {
        match client.add_number(key.clone(), 1).await {
            Ok(number) => {
                assert!(number.is_some(), "{key} is there");
                adds.done += 1;
            }
            Err(error) => adds.failed.push(error),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    adds
}

#[test]
fn native_clients_count_exactly_though_primaries_are_killed() {
    let cluster = start(&[]);
    let natives = cluster.all_native().unwrap();
    let natives: Vec<String> = natives.iter().map(ToString::to_string).collect();
    let uri = format!("gestalt://{}?timeout=60s", natives.join(","));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = runtime.block_on(gestalt::Client::connect(&uri)).unwrap();
    // As many keys that each data role serves some.
    let keys: Vec<String> = (0..20).map(|number| format!("number-{number}")).collect();
    for key in &keys {
        runtime.block_on(client.set(key.clone(), "0")).unwrap();
    }
    let goes_on = Arc::new(AtomicBool::new(true));
    let tasks: Vec<_> = keys
        .iter()
        .map(|key| runtime.spawn(count(client.clone(), key.clone(), Arc::clone(&goes_on))))
        .collect();
    sleep(Duration::from_secs(1));
    cluster.kill_nodes(&[2]);
    wait_for_status(&cluster, 3);
    cluster.kill_nodes(&[0]);
    sleep(3 * LEASE);
    goes_on.store(false, Ordering::Relaxed);
    let (mut done, mut failed) = (0, Vec::new());
    for (key, task) in keys.iter().zip(tasks) {
        let adds = runtime.block_on(task).unwrap();
        let value = runtime.block_on(client.get(key.clone())).unwrap().expect("it is there");
        let counted: u64 = std::str::from_utf8(&value.bytes).unwrap().trim().parse().unwrap();
        assert_eq!(counted, adds.done, "{key} was counted up so often, and {:?}", adds.failed);
        done += adds.done;
        failed.extend(adds.failed);
    }
    assert!(done > 1000, "{done} adds are too few to show anything");
    assert!(failed.is_empty(), "of {done} adds {} failed: {failed:?}", failed.len());
}
