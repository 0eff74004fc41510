//! `gestalt plan size` against what nodes are charged with as many items, healthy and with one node lost and repaired.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use processes::binary::binary;
use processes::local_cluster::{LocalCluster, Options};
use processes::pages::page;
use serde_json::Value;
use types::NodeInfo;

use crate::support::{at_rest, eventually, json, run};

/// How far the plan may be off.
const PERCENT: u64 = 3;
/// Categories of a budget, and the parts of a plan that they are.
const CATEGORIES: [(&str, &[&str]); 4] = [
    ("area", &["slot_bytes", "free_bytes"]),
    ("parity", &["parity_bytes"]),
    ("index", &["index_bytes", "replica_bytes", "table_bytes"]),
    ("buffers", &["buffer_bytes"]),
];

/// What is loaded.
struct Load {
    nodes: u16,
    keys: &'static str,
    value_size: &'static str,
}

impl Load {
    /// What `gestalt plan size` says.
    fn plan(&self) -> Value {
        let sizes = ["--items", self.keys, "--value-size", self.value_size, "--key-size", "24B"];
        let nodes = self.nodes.to_string();
        let mut command = Command::new(binary().expect("the binary is built"));
        command.args(["plan", "size", "--nodes", &nodes, "--workers", "1", "-o", "json"]).args(sizes);
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("a JSON document")
    }

    fn store(&self, cluster: &LocalCluster) {
        let sizes = ["--keys", self.keys, "--value-size", self.value_size, "--key-size", "24"];
        let flags = ["bench", "load", "--clients", "8", "--depth", "16"];
        let (code, ..) = run(cluster, &[&flags[..], &sizes].concat());
        assert_eq!(code, 0);
    }
}

/// Waits until the loss is known, and made up for.
fn wait_until_repaired(cluster: &LocalCluster, lost: u16) {
    eventually("missed", || {
        let map = cluster.map().expect("the coordinator answers");
        !map.nodes.iter().any(|info| info.host.node.0 == lost && info.alive)
    });
    at_rest(cluster);
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"))
}

/// Bytes of `category` that count against the memory of a node.
fn used(page: &str, category: &str) -> u64 {
    let name = format!("gestalt_memory_used_bytes{{category=\"{category}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name)).expect("a metric");
    line.parse::<f64>().expect("a number") as u64
}

/// A figure of the plan and what is.
#[track_caller]
fn compare(what: &str, said: u64, is: u64) {
    println!("{what}: planned {said}, is {is} ({:+.2} %)", (said as f64 / is as f64 - 1.0) * 100.0);
    assert!(said.abs_diff(is) * 100 <= is * PERCENT, "{what} is more than {PERCENT} % off");
}

/// Compares a state of the plan with the nodes that are alive, by category over all. What each of them has is given back, with what
/// it should have.
fn compare_all(cluster: &LocalCluster, planned: &Value) -> Vec<(u16, u64, u64)> {
    let map = cluster.map().expect("the coordinator answers");
    let page_of = |info: &NodeInfo| (info.host.node.0, page(info.http, "/metrics").expect("a page"));
    let pages: Vec<(u16, String)> = map.nodes.iter().filter(|info| info.alive).map(page_of).collect();
    for (category, parts) in CATEGORIES {
        let said = parts.iter().map(|part| number(&planned["all"], part)).sum();
        compare(category, said, pages.iter().map(|(_, page)| used(page, category)).sum());
    }
    let of_node = |(node, page): &(u16, String)| {
        let is = ["area", "parity", "index", "buffers", "log", "repair", "chunks"]
            .map(|category| used(page, category));
        (*node, number(&planned["nodes"][node.to_string()], "total_bytes"), is.iter().sum())
    };
    pages.iter().map(of_node).collect()
}

fn compare_each(nodes: &[(u16, u64, u64)]) {
    nodes.iter().for_each(|(node, said, is)| compare(&format!("node {node}"), *said, *is));
}

/// What a process has beside what counts against its memory.
fn compare_processes(cluster: &LocalCluster, planned: &Value) {
    let (_, memory) = json(cluster, &["status", "--memory"]);
    let processes = memory["nodes"].as_array().expect("a list");
    for process in processes {
        let (said, is) = (number(planned, "process_bytes"), number(process, "other"));
        println!("process: planned {said}, is {is}; resident {}", process["resident"]);
        assert!(is / 2 < said && said < is * 2, "a process has {is} for itself");
    }
}

/// The memory that the plan asks for is all that the nodes get: with more needed the load or the repair fails.
fn check(load: &Load) {
    let plan = load.plan();
    let options = Options {
        nodes: load.nodes,
        memory: number(&plan, "memory_bytes").to_string(),
        flags: ["--workers", "1", "--evict", "none", "--groups", &number(&plan, "groups").to_string()]
            .map(str::to_owned)
            .to_vec(),
        ..Options::default()
    };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    load.store(&cluster);
    // Parities apply the newest records within a heartbeat.
    sleep(Duration::from_secs(1));
    compare_each(&compare_all(&cluster, &plan["healthy"]));
    compare_processes(&cluster, &plan);
    cluster.signal(0, Signal::SIGKILL);
    wait_until_repaired(&cluster, 0);
    let nodes = compare_all(&cluster, &plan["one_lost"]);
    if load.nodes > 5 {
        compare_each(&nodes);
    }
    // Without a spare node the order in which roles are taken over decides who has one more of them.
    let most = nodes.iter().map(|(_, _, is)| *is).max().expect("nodes are left");
    assert!(most <= number(&plan, "memory_bytes"), "{nodes:?}");
}

#[test]
fn small_items_and_a_lost_node_without_a_spare_one() {
    check(&Load { nodes: 5, keys: "500000", value_size: "100B" });
}

#[test]
fn items_of_a_kilobyte_and_a_lost_node_whose_roles_go_to_all_others() {
    check(&Load { nodes: 6, keys: "200000", value_size: "1KiB" });
}
