//! What `stats` says of a node and of all nodes, and what a node may be told not to do.

use std::collections::{BTreeMap, BTreeSet};

use server::ConnectionLimits;

use crate::harness::{Client, Cluster, Plan, eventually};

/// The answer to a `stats` command.
fn stats(client: &mut Client, what: &str) -> BTreeMap<String, String> {
    client.send(format!("stats {what}\r\n"));
    let mut all = BTreeMap::new();
    loop {
        let line = client.line();
        if line.trim_end() == "END" {
            return all;
        }
        let mut words = line.trim_end().splitn(3, ' ');
        assert_eq!(words.next(), Some("STAT"), "{line}");
        let (name, value) = (words.next().expect("a name"), words.next().expect("a value"));
        assert!(all.insert(name.to_owned(), value.to_owned()).is_none(), "{name} twice");
    }
}

fn number(stats: &BTreeMap<String, String>, name: &str) -> u64 {
    stats[name].parse().unwrap_or_else(|_| panic!("{name} {}", stats[name]))
}

#[test]
fn cas_uniques_are_unique_over_the_cluster() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    let mut seen = BTreeSet::new();
    for i in 0..300 {
        client.ask(format!("set unique-{i} 0 0 1\r\nx\r\n"), "STORED\r\n");
        client.send(format!("gets unique-{i}\r\n"));
        let line = client.line();
        let unique: u64 = line.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
        client.expect("x\r\nEND\r\n");
        assert!(seen.insert(unique), "{unique} twice");
    }
}

#[test]
fn versions_are_three_numbers_and_ours_is_a_statistic_of_its_own() {
    let cluster = Cluster::start();
    let stats = stats(&mut cluster.client(3), "");
    assert_eq!((&*stats["version"], &*stats["gestalt_version"]), ("1.6.45", "0.1.0"));
}

#[test]
fn reads_of_what_has_expired_are_counted_and_a_reset_takes_them_back() {
    let cluster = Cluster::of(&Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() }, |_| ());
    let client = &mut cluster.client(0);
    client.ask("set gone 0 4294967295 1\r\nx\r\nget gone\r\n", "STORED\r\nEND\r\n");
    client.ask("set here 0 0 1\r\nx\r\nget here none\r\n", "STORED\r\nVALUE here 0 1\r\nx\r\nEND\r\n");
    let before = stats(client, "");
    let of = |stats: &BTreeMap<String, String>| {
        ["get_expired", "get_misses", "get_hits", "total_items"].map(|name| number(stats, name))
    };
    assert_eq!(of(&before), [1, 2, 1, 2]);
    client.ask("stats reset\r\n", "RESET\r\n");
    let after = stats(client, "");
    assert_eq!((of(&after), number(&after, "curr_connections")), ([0; 4], 1));
}

#[test]
fn items_and_slabs_are_told_by_class() {
    let cluster = Cluster::of(&Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() }, |_| ());
    let client = &mut cluster.client(0);
    for (key, len) in [("a", 10), ("b", 10), ("c", 5000), ("d", 700_000)] {
        let value = "x".repeat(len);
        client.ask(format!("set {key} 0 0 {len}\r\n{value}\r\n"), "STORED\r\n");
    }
    let (items, slabs) = (stats(client, "items"), stats(client, "slabs"));
    let sum = |stats: &BTreeMap<String, String>, suffix: &str| -> u64 {
        stats.keys().filter(|name| name.ends_with(suffix)).map(|name| number(stats, name)).sum()
    };
    assert_eq!((sum(&items, ":number"), sum(&slabs, ":used_chunks")), (4, 4));
    assert_eq!(number(&slabs, "active_slabs"), 3);
    assert_eq!(sum(&items, ":mem_requested"), sum(&slabs, ":mem_requested"));
    assert_eq!(sum(&slabs, ":total_chunks"), sum(&slabs, ":used_chunks") + sum(&slabs, ":free_chunks"));
}

#[test]
fn stats_cluster_sums_over_all_nodes_and_says_who_is_missing() {
    let mut cluster = Cluster::start();
    for node in 0..5 {
        let client = &mut cluster.client(node);
        client.ask(format!("set sum-{node} 0 0 1\r\nx\r\n"), "STORED\r\n");
        client.ask(format!("get sum-{node}\r\n"), format!("VALUE sum-{node} 0 1\r\nx\r\nEND\r\n"));
    }
    let client = &mut cluster.client(2);
    let all = stats(client, "cluster");
    let told = ["gestalt_nodes", "gestalt_nodes_answered", "cmd_set", "curr_items", "limit_maxbytes"];
    assert_eq!(told.map(|name| number(&all, name)), [5, 5, 5, 5, 5 * (64 << 20)]);
    assert!(all["gestalt_nodes_missing"] == "-" && !all.contains_key("pid"));
    drop(cluster.nodes.remove(4));
    eventually("missing", || {
        let all = stats(client, "cluster");
        let told = (number(&all, "gestalt_nodes_answered"), all["gestalt_nodes_missing"].clone());
        if told == (4, "4".to_owned()) { Ok(()) } else { Err(format!("{told:?}")) }
    });
}

#[test]
fn a_node_may_be_told_not_to_flush() {
    let cluster = Cluster::of(&Plan::default(), |config| {
        config.limits = ConnectionLimits { flush_all: false, ..ConnectionLimits::default() };
    });
    let client = &mut cluster.client(1);
    client.ask("set kept 0 0 1\r\nx\r\n", "STORED\r\n");
    client.ask("flush_all\r\nflush_all 0 noreply\r\nmn\r\n", "CLIENT_ERROR flush_all not allowed\r\nMN\r\n");
    client.ask("get kept\r\n", "VALUE kept 0 1\r\nx\r\nEND\r\n");
    assert_eq!(stats(client, "settings")["flush_enabled"], "no");
    assert_eq!(number(&stats(client, ""), "cmd_flush"), 2);
}
