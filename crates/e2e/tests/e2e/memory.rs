//! `gestalt status --memory` against what the operating system counts: nearly every resident byte has a name.

use std::net::SocketAddr;

use processes::local_cluster::{LocalCluster, Options};
use processes::pages::page;
use serde_json::Value;

use crate::support::eventually;

const PAGE_BYTES: u64 = 4096;

/// What is loaded: bytes of a value, keys, bytes of a key (so that the keys differ).
const LOADS: [(&str, &str, &str); 3] =
    [("100", "150000", "24"), ("1KiB", "40000", "25"), ("4KiB", "15000", "26")];

fn memory(cluster: &LocalCluster) -> Value {
    let args = ["status", "--memory", "-o", "json", "--http", "{http}"];
    let (status, out, error) = cluster.gestalt(&args).expect("the binary runs");
    assert!(status.success(), "{error}");
    serde_json::from_str(&out).expect("a JSON document")
}

fn load(cluster: &LocalCluster, (value_size, keys, key_size): (&str, &str, &str)) {
    let args = ["bench", "load", "--http", "{http}", "--clients", "8", "--depth", "16"];
    let sizes = ["--value-size", value_size, "--keys", keys, "--key-size", key_size];
    let (status, out, error) = cluster.gestalt(&[&args[..], &sizes].concat()).expect("the binary runs");
    assert!(status.success(), "{out}{error}");
}

/// Resident bytes of node `node`, as `/proc` has them.
fn resident(cluster: &LocalCluster, node: u16) -> u64 {
    let pid = cluster.pid(node).expect("the node lives");
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("the process is there");
    statm.split_whitespace().nth(1).expect("the second field").parse::<u64>().expect("a number") * PAGE_BYTES
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"))
}

#[test]
fn the_parts_add_up_to_the_resident_size() {
    // Few roles: what an index has without any entry is not looked at here.
    let flags = ["--evict", "none", "--groups", "5"].map(str::to_owned).to_vec();
    let cluster = LocalCluster::start(&Options { flags, ..Options::default() }).expect("a cluster starts");
    let empty: Vec<u64> = (0..5).map(|node| resident(&cluster, node)).collect();
    LOADS.into_iter().for_each(|sizes| load(&cluster, sizes));
    eventually("applied at all parities", || memory(&cluster)["all"]["replica_entries"] == 410_000);
    let found = memory(&cluster);
    for (node, report) in (0u16..).zip(found["nodes"].as_array().expect("a list")) {
        let (told, counted) = (number(report, "resident"), resident(&cluster, node));
        assert!(told.abs_diff(counted) < counted / 50, "node {node} tells {told} of {counted}");
        let named = told - number(report, "other") + empty[usize::from(node)];
        let share = named as f64 / counted as f64;
        println!("node {node}: {named} named (an empty process included) of {counted}: {share:.4}");
        assert!((0.95..1.05).contains(&share), "node {node}: {report:#}");
    }
    let all = &found["all"];
    assert_eq!(number(all, "items"), 205_000);
    assert_eq!((number(all, "index_entries"), number(all, "replica_entries")), (205_000, 410_000));
    assert_eq!(number(all, "item_headers"), 205_000 * 26);
    let payloads = 150_000 * 124 + 40_000 * (1024 + 25) + 15_000 * (4096 + 26);
    assert_eq!(number(all, "item_payloads"), payloads);
    for name in ["index_bytes_per_item", "replica_bytes_per_item"] {
        let bytes = found[name].as_f64().expect("a number");
        assert!((8.0..=12.0).contains(&bytes), "{name}: {bytes}");
    }
}

#[test]
fn the_table_names_every_kind_and_every_node() {
    let cluster = LocalCluster::start(&Options::default()).expect("a cluster starts");
    let (status, out, _) =
        cluster.gestalt(&["status", "--memory", "--http", "{http}"]).expect("the binary runs");
    println!("{out}");
    assert!(status.success());
    for kind in ["item_payloads", "free_slots", "parity_areas", "index_replicas", "other", "resident"] {
        assert!(out.lines().any(|line| line.starts_with(kind)), "{kind}");
    }
    let nodes = out.lines().skip_while(|line| !line.starts_with("node")).skip(1);
    assert_eq!(nodes.count(), 5);
    let page = page(node_http(&cluster), "/metrics").expect("a page");
    for kind in ["item_headers", "logs", "other"] {
        assert!(page.contains(&format!("gestalt_memory_bytes{{kind=\"{kind}\"}}")), "{kind} in {page}");
    }
}

/// Where the first node serves its pages.
fn node_http(cluster: &LocalCluster) -> SocketAddr {
    let args = ["status", "-o", "json", "--http", "{http}"];
    let (_, out, _) = cluster.gestalt(&args).expect("the binary runs");
    let status: Value = serde_json::from_str(&out).expect("a JSON document");
    status["nodes"][0]["http"].as_str().and_then(|address| address.parse().ok()).expect("an address")
}
