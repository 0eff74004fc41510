//! Nodes that others do not reach where they listen, and clusters that wait for nodes: with the real binary.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use processes::binary::run;
use processes::commanded::Commanded;
use processes::pages::page;
use processes::ports::free_run;
use processes::proxy::{Effect, Proxy};
use serde_json::Value;

use crate::support::eventually;

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A coordinator for three nodes, and its ports: for nodes, its pages, and those that are left for the nodes.
struct Trio {
    dir: tempfile::TempDir,
    base: u16,
    nodes: Vec<Commanded>,
    _coordinator: Commanded,
}

/// Ports of a node: memcached, peers, pages; three more for proxies.
const PORTS: u16 = 6;

impl Trio {
    fn new() -> Self {
        let (dir, base) = (tempfile::tempdir().unwrap(), free_run(2 + 4 * PORTS).unwrap());
        let (listen, http) = (format!("127.0.0.1:{base}"), format!("127.0.0.1:{}", base + 1));
        let args =
            ["coordinator", "--listen", &listen, "--http", &http, "--nodes", "3", "--profile", "rs(2+1)"];
        let args = args.iter().chain(&["--workers", "1"]).map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let coordinator = Commanded::start("coordinator", dir.path(), &args).unwrap();
        Self { dir, base, nodes: Vec::new(), _coordinator: coordinator }
    }

    /// The coordinator's pages.
    fn http(&self) -> String {
        format!("127.0.0.1:{}", self.base + 1)
    }

    fn port(&self, node: u16, listener: u16) -> u16 {
        self.base + 2 + node * PORTS + listener
    }

    /// Starts a node whose listeners are at `host`.
    fn start(&mut self, node: u16, host: &str, more: &[String]) {
        let at = |listener| format!("{host}:{}", self.port(node, listener));
        let args =
            ["serve", "--node", &node.to_string(), "--workers", "1", "--memory", "64MiB"].map(str::to_owned);
        let coordinator = ["--coordinator".to_owned(), format!("embedded://127.0.0.1:{}", self.base)];
        let listen =
            ["--memcached".to_owned(), at(0), "--peer".to_owned(), at(1), "--http".to_owned(), at(2)];
        let args = [&args[..], &coordinator, &listen, more].concat();
        self.nodes.push(Commanded::start(&format!("node-{node}"), self.dir.path(), &args).unwrap());
    }

    fn gestalt(&self, args: &[&str]) -> (i32, String, String) {
        let told = run(&[args, &["--http", &self.http()]].concat()).unwrap();
        println!("$ gestalt {args:?}: {told:?}");
        told
    }

    /// All three are there, reached, and serve.
    fn is_well(&self) {
        eventually("well", || self.gestalt(&["status"]).0 == 0);
        for n in 0..20 {
            let key = format!("key-{n}");
            assert_eq!(self.gestalt(&["kv", "set", &key, "value"]).0, 0);
            assert_eq!(self.gestalt(&["kv", "get", &key]).1, "value");
        }
    }

    fn listed(&self) -> Value {
        serde_json::from_str(&self.gestalt(&["node", "list", "-o", "json"]).1).unwrap()
    }
}

#[test]
fn nodes_that_listen_everywhere_tell_the_address_that_they_are_given() {
    let mut trio = Trio::new();
    for node in 0..3 {
        trio.start(node, "0.0.0.0", &["--advertise".to_owned(), format!("127.0.0.{}", node + 2)]);
    }
    trio.is_well();
    for (node, told) in trio.listed().as_array().unwrap().iter().enumerate() {
        for (listener, field) in [(0, "memcached"), (2, "http")] {
            let expected = format!("127.0.0.{}:{}", node + 2, trio.port(node as u16, listener));
            assert_eq!(told[field], expected);
        }
    }
    // Orders are taken from this machine, at any of its addresses.
    let at = format!("127.0.0.2:{}", trio.port(0, 2));
    assert_eq!(run(&["repair", "pause", "--http", &at]).unwrap().0, 0);
}

#[test]
fn nodes_behind_forwarded_ports_tell_where_they_are_forwarded_from() {
    let mut trio = Trio::new();
    // Another address, and other ports: nothing gets there but through the proxies.
    let outside = Ipv4Addr::new(127, 0, 0, 9);
    let forwarded = |trio: &Trio, node: u16, listener: u16| trio.port(node, 3 + listener);
    let mut ways = Vec::new();
    for node in 0..3 {
        for listener in 0..3 {
            let inside = SocketAddr::from((LOOPBACK, trio.port(node, listener)));
            ways.push((forwarded(&trio, node, listener), inside, Effect::default()));
        }
    }
    let proxy = Proxy::start(outside, ways, 1, Arc::default()).unwrap();
    for node in 0..3 {
        let names = ["--advertise-memcached", "--advertise-peer", "--advertise-http"];
        let told = |(name, listener): (&&str, u16)| {
            [(*name).to_owned(), format!("{outside}:{}", forwarded(&trio, node, listener))]
        };
        let flags: Vec<String> = names.iter().zip(0..).flat_map(told).collect();
        trio.start(node, "127.0.0.1", &flags);
    }
    trio.is_well();
    let nodes = trio.listed();
    assert_eq!(nodes[1]["memcached"], format!("{outside}:{}", forwarded(&trio, 1, 0)));
    // Without the proxies others reach nobody any more.
    drop(proxy);
    eventually("missed", || trio.gestalt(&["status"]).0 != 0);
}

#[test]
fn a_cluster_that_forms_names_who_is_here_and_who_is_missing() {
    let mut trio = Trio::new();
    trio.start(0, "127.0.0.1", &[]);
    trio.start(2, "127.0.0.1", &[]);
    let line = "2 of 3 nodes are here (nodes 0, 2), missing: node 1";
    eventually("told at the coordinator", || trio.gestalt(&["status"]).2.contains(line));
    let (code, out, _) = trio.gestalt(&["status", "-o", "json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, told["health"].as_str()), (3, Some("forming")));
    assert_eq!(told["registered_nodes"], serde_json::json!([0, 2]));
    assert_eq!(told["missing_nodes"], serde_json::json!([1]));
    let node = SocketAddr::from((LOOPBACK, trio.port(2, 2)));
    // It hears of the others with its next heartbeat.
    eventually("told at a node", || {
        let (code, _, error) = run(&["status", "--http", &node.to_string()]).unwrap();
        code == 3 && error.contains(line)
    });
    let status: Value = serde_json::from_str(&page(node, "/status").unwrap()).unwrap();
    assert_eq!(status["forming"], serde_json::json!({"expected": 3, "here": [0, 2]}));
    assert!(status["not_ready"][0].as_str().unwrap().contains(line), "{status}");
    eventually("logged", || trio.nodes[0].log().contains(line));
    assert_eq!(trio.nodes[0].log().matches("has not formed yet").count(), 1, "once");
    trio.start(1, "127.0.0.1", &[]);
    trio.is_well();
    let status: Value = serde_json::from_str(&page(node, "/status").unwrap()).unwrap();
    assert!(status["forming"].is_null());
}

#[test]
fn a_node_more_than_the_cluster_forms_with_joins_it() {
    let mut trio = Trio::new();
    for node in 0..4 {
        trio.start(node, "127.0.0.1", &[]);
    }
    trio.is_well();
    eventually("all four", || trio.listed().as_array().unwrap().len() == 4);
    assert!(trio.nodes.iter_mut().all(|node| node.ended(Duration::from_millis(1)).is_none()));
}
