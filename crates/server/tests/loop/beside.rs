//! Tasks beside their data: the example of the native client (`crates/gestalt/examples/beside`), small, for each layout.

#[path = "../../../gestalt/examples/beside/count.rs"]
mod count;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use gestalt::{Client, NodeId, Options};

use crate::harness::{Cluster, PATIENCE, Plan};
use crate::objects::metric;
use crate::operators::order;
use count::Counts;

const KEY: &str = "text";
const WORD: &[u8] = b"needle";

/// Lines of many lengths, so that their ends are anywhere.
fn text(bytes: usize) -> String {
    let mut text = String::new();
    let mut line = 0u64;
    while text.len() < bytes {
        let words = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        (0..words).for_each(|word| write!(text, "word-{line}-{word} ").expect("memory"));
        text.push_str(if line.is_multiple_of(7) { "needle\n" } else { "hay\n" });
        line += 1;
    }
    text.push_str("the last line has no end");
    text
}

fn expected(text: &str) -> (u64, u64, u64) {
    let lines = || text.lines();
    let words = lines().map(|line| line.split_whitespace().count() as u64).sum();
    (lines().count() as u64, words, lines().filter(|line| line.contains("needle")).count() as u64)
}

/// Bytes that nodes have sent to each other.
fn sent(cluster: &Cluster) -> u64 {
    metric(cluster, "gestalt_peer_sent_bytes_total")
}

/// A client beside each node.
async fn clients(options: &Options, nodes: &BTreeMap<NodeId, std::net::SocketAddr>) -> Vec<(NodeId, Client)> {
    let mut all = Vec::new();
    for (node, address) in nodes {
        let mut options = options.clone();
        options.beside = Some(*address);
        all.push((*node, Client::with(&options).await.expect("a node that listens")));
    }
    all
}

/// What was found by fetching and beside the data, and what nodes have sent to each other for it.
async fn both(cluster: &Cluster, layout: &str, text: &str) -> [(Counts, u64); 2] {
    let change = format!(r#"{{"striped":{{"above":0}},"chunk_bytes":1048576,"layout":"{layout}"}}"#);
    let body =
        format!(r#"{{"command":{{"catalog":{{"set_policy":{{"name":"default","change":{change}}}}}}}}}"#);
    assert_eq!(order(cluster.nodes[0].addresses().http, &body).0, 200);
    let address = cluster.nodes[0].addresses().native.expect("a native listener");
    let options: Options = format!("gestalt://{address}/default?timeout=30s").parse().expect("a URI");
    let client = Client::with(&options).await.expect("a node that listens");
    // Each worker hears of the policy for itself.
    let begun = Instant::now();
    loop {
        client.set(KEY, text.to_owned()).await.expect("stored");
        let places = client.locate(KEY).await.expect("located");
        let longest = places.ranges().map(|range| range.bytes.end - range.bytes.start).max().unwrap_or(0);
        let is_it = match layout {
            "spread" => (1..100_000).contains(&longest),
            "wide" => longest == 1 << 20,
            _ => longest > 1 << 20,
        };
        if is_it {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{longest}");
    }
    let before = sent(cluster);
    let fetched = count::fetched(&client, KEY, WORD).await.expect("read");
    let between = sent(cluster);
    let with_bytes = count::nodes(&client, KEY).await.expect("located");
    let mut beside = Counts::default();
    for (node, client) in clients(&options, &client.nodes()).await {
        let counts = count::beside(&client, KEY, WORD, node).await.expect("read");
        assert!(with_bytes.contains(&node) || counts == Counts::default());
        beside = beside.plus(counts);
    }
    [(fetched, between - before), (beside, sent(cluster) - between)]
}

#[test]
fn tasks_beside_the_nodes_find_what_one_finds_that_fetches_all_and_move_little() {
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    let text = text(7 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for layout in ["wide", "copy", "spread"] {
        let [(fetched, by_fetching), (beside, by_tasks)] = runtime.block_on(both(&cluster, layout, &text));
        assert_eq!(fetched.found(), expected(&text), "{layout}");
        assert_eq!(beside.found(), expected(&text), "{layout}");
        println!("{layout}: {by_fetching} bytes between nodes for one that fetches, {by_tasks} for tasks");
        if layout == "wide" {
            // Two of three bytes lie elsewhere than where the client asks; for tasks a cell behind each of eight ranges.
            assert!(by_fetching > 4 << 20 && by_tasks < by_fetching / 6, "{by_fetching} {by_tasks}");
        }
    }
}
