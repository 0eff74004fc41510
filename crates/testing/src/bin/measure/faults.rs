//! What a lost node costs: the pause that clients see, and the repair.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use testing::local_cluster::{LocalCluster, Options};
use testing::recorder::{Recorder, Workload};

use crate::Arguments;

/// The node that is killed to be repaired.
const LOST: u16 = 1;
/// Clients, enough that every data role has some at any moment.
const CLIENTS: u64 = 48;

/// Kills a node, and in another cluster stops one, while clients read and write through the others.
pub fn pause() -> Result<(), String> {
    println!(
        "\nLongest wait of any of {CLIENTS} clients (all through surviving nodes, lease 1 s), five tries each:"
    );
    for (what, signal) in
        [("node killed (its parent sees it)", Signal::SIGKILL), ("node stopped", Signal::SIGSTOP)]
    {
        let mut waits = Vec::new();
        for node in 0..5 {
            waits.push(longest_wait(node, signal)?);
        }
        println!("{what}: {waits:.0?}");
    }
    Ok(())
}

fn longest_wait(node: u16, signal: Signal) -> Result<Duration, String> {
    let cluster = LocalCluster::start(&Options::default())?;
    let survivors: Vec<_> =
        (0..5).filter(|&other| other != node).map(|other| cluster.memcached(other)).collect();
    let workload = Workload { clients: CLIENTS, keys: 2000, max_value_bytes: 1024, ..Workload::default() };
    let recorder = Recorder::start(&workload, &survivors);
    recorder.wait_for(20_000, Duration::from_secs(60))?;
    cluster.signal(node, signal);
    recorder.wait_for(40_000, Duration::from_secs(60))?;
    let longest = recorder.finish().longest_wait;
    cluster.signal(node, Signal::SIGCONT);
    Ok(longest)
}

/// Loads values, kills a node, and waits until its data is whole again, with nobody else asking.
pub fn repair(arguments: &Arguments) -> Result<(), String> {
    let cluster = LocalCluster::start(&Options { memory: "2GiB".to_owned(), ..Options::default() })?;
    let keys = arguments.values.to_string();
    let (status, _, error) = cluster.gestalt(&["bench", "load", "--http", "{http}", "--keys", &keys])?;
    if !status.success() {
        return Err(error);
    }
    let held: u64 = items_of(&cluster, LOST)?;
    let begun = Instant::now();
    cluster.kill_nodes(&[LOST]);
    let mut most_absent = 0;
    loop {
        let (rebuilding, absent) = outstanding(&cluster)?;
        most_absent = most_absent.max(absent);
        if rebuilding == 0 {
            break;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(format!("{rebuilding} roles are not whole after two minutes"));
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let megabytes = held as f64 * 1024.0 / 1e6;
    println!(
        "\nRepair of a killed node, idle otherwise: {held} values of 1 KiB whole again {seconds:.2} s after the kill, \
         {:.0} MB/s of values (most pages seen missing: {most_absent})",
        megabytes / seconds
    );
    Ok(())
}

fn status_of(cluster: &LocalCluster) -> Result<Value, String> {
    let (_, out, error) = cluster.gestalt(&["status", "--http", "{http}", "-o", "json"])?;
    serde_json::from_str(&out).map_err(|_| error)
}

fn items_of(cluster: &LocalCluster, node: u16) -> Result<u64, String> {
    let status = status_of(cluster)?;
    status["nodes"][usize::from(node)]["items"]
        .as_u64()
        .ok_or_else(|| "the node's items are not known".to_owned())
}

/// Data roles that are not full or still the lost node's, and pages that are missing.
fn outstanding(cluster: &LocalCluster) -> Result<(usize, u64), String> {
    let status = status_of(cluster)?;
    let empty = Vec::new();
    let array = |value: &Value| value.as_array().unwrap_or(&empty).clone();
    let roles: Vec<Value> =
        array(&status["groups"]).iter().flat_map(|group| array(&group["roles"])).collect();
    let rebuilding = roles.iter().filter(|role| role["kind"] == "data" && is_outstanding(role)).count();
    let absent = array(&status["nodes"]).iter().filter_map(|node| node["absent_pages"].as_u64()).sum();
    Ok((rebuilding, absent))
}

fn is_outstanding(role: &Value) -> bool {
    role["state"] != "full" || role["host"]["node"] == LOST
}
