//! Pools and namespaces of a real cluster: keys that never meet, policies, and what becomes of the memory of those that are gone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use processes::local_cluster::{LocalCluster, Options};
use processes::ports::free_run;
use serde_json::Value;

use crate::support::{PATIENCE, eventually, json, run};

/// A cluster of five nodes with a listener for each of `names`, and the first ports of these.
fn cluster(names: &[&str]) -> (LocalCluster, Vec<u16>) {
    let ports: Vec<u16> = names.iter().map(|_| free_run(5).expect("free ports")).collect();
    let mut options = Options::default();
    for (name, port) in names.iter().zip(&ports) {
        options.flags.extend(["--bind".to_owned(), format!("{name}={port}")]);
    }
    (LocalCluster::start(&options).expect("a cluster starts"), ports)
}

/// What the server at `port` answers to `command`, line by line, up to the one with which an answer ends.
fn ask(port: u16, command: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(command.as_bytes()).unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.expect("an answer");
        let is_last =
            !line.starts_with("VALUE") && !lines.last().is_some_and(|l: &String| l.starts_with("VALUE"));
        lines.push(line);
        if is_last {
            break;
        }
    }
    lines
}

fn get(port: u16, key: &str) -> Option<String> {
    match ask(port, &format!("get {key}\r\n")).as_slice() {
        [_, value, _] => Some(value.clone()),
        [end] if end == "END" => None,
        other => panic!("{other:?}"),
    }
}

/// Whether that is what the server at `port` has; not if it has no answer yet.
fn has(port: u16, key: &str, value: &str) -> bool {
    matches!(ask(port, &format!("get {key}\r\n")).as_slice(), [_, found, _] if found == value)
}

fn set(port: u16, key: &str, value: &str) {
    assert_eq!(ask(port, &format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())), ["STORED"]);
}

fn does(cluster: &LocalCluster, args: &[&str]) -> String {
    let (code, out, error) = run(cluster, args);
    assert_eq!(code, 0, "{args:?}: {error}");
    out
}

#[test]
fn keys_of_different_namespaces_never_meet() {
    let (cluster, ports) = cluster(&["near", "far"]);
    let (default, near, far) = (cluster.memcached(0).port(), ports[0], ports[1]);
    let refused = "SERVER_ERROR no such namespace";
    for command in ["get k\r\n", "set k 0 0 1\r\nv\r\n", "flush_all\r\n"] {
        assert!(ask(near, command)[0].starts_with(refused), "{command}: nobody has made it yet");
    }
    does(&cluster, &["namespace", "create", "near"]);
    does(&cluster, &["pool", "create", "copies", "--profile", "rep(3)", "--groups", "4"]);
    does(&cluster, &["namespace", "create", "far", "--pool", "copies"]);
    eventually("served", || ["k"].iter().all(|key| ask(near, &format!("get {key}\r\n")) == ["END"]));
    eventually("served", || ask(far, "get k\r\n") == ["END"]);
    // By another node for each, so that most of them are forwarded.
    for (node, (port, value)) in [(default, "d"), (near, "n"), (far, "f")].into_iter().enumerate() {
        for key in 0..20 {
            set(port + node as u16, &format!("k{key}"), value);
        }
    }
    for (port, value) in [(default, "d"), (near, "n"), (far, "f")] {
        assert_eq!(get(port + 4, "k7").as_deref(), Some(value));
    }
    // A pool of its own has a code of its own, and its keys outlive as many losses.
    cluster.kill_nodes(&[3, 4]);
    for (port, value) in [(default, "d"), (near, "n"), (far, "f")] {
        eventually("served by others", || (0..20).all(|key| has(port, &format!("k{key}"), value)));
    }
    eventually("flushed, whoever serves the roles by now", || ask(near, "flush_all\r\n") == ["OK"]);
    for key in 0..20 {
        assert_eq!(get(near + 1, &format!("k{key}")), None);
        assert_eq!(get(default, &format!("k{key}")).as_deref(), Some("d"), "another one's are as they were");
    }
    set(near, "k7", "anew");
    does(&cluster, &["namespace", "remove", "near", "--yes"]);
    eventually("refused", || ask(near, "get k7\r\n")[0].starts_with(refused));
    does(&cluster, &["namespace", "create", "near"]);
    eventually("served again", || ask(near, "get k7\r\n") == ["END"]);
    assert_eq!(get(default + 1, "k7").as_deref(), Some("d"));
    let (code, _, error) = run(&cluster, &["pool", "remove", "copies", "--yes"]);
    assert!(code != 0 && error.contains("has namespaces: far"), "{error}");
    does(&cluster, &["namespace", "remove", "far", "--yes"]);
    does(&cluster, &["pool", "remove", "copies", "--yes"]);
    let (_, pools) = json(&cluster, &["pool", "list"]);
    assert_eq!(pools.as_array().map(Vec::len), Some(1), "{pools}");
}

#[test]
fn bound_listeners_are_shown() {
    let (cluster, ports) = cluster(&["near", "far"]);
    let (_, status) = json(&cluster, &["status"]);
    let bound = |at: usize, name: &str| serde_json::json!({ "address": format!("127.0.0.1:{}", ports[at] + 1), "namespace": name });
    assert_eq!(status["nodes"][1]["bound"], Value::from(vec![bound(0, "near"), bound(1, "far")]));
    let cell =
        format!("{},127.0.0.1:{}=near,127.0.0.1:{}=far", cluster.memcached(1), ports[0] + 1, ports[1] + 1);
    for command in [&["status"][..], &["node", "list"]] {
        let (_, table, _) = run(&cluster, command);
        assert!(table.contains(&cell), "{cell} in {table}");
    }
}

#[test]
fn what_holds_for_a_namespace_holds_for_its_keys_alone() {
    let (cluster, ports) = cluster(&["short"]);
    does(&cluster, &["namespace", "create", "short", "--default-ttl", "2s"]);
    eventually("served", || ask(ports[0], "get k\r\n") == ["END"]);
    let default = cluster.memcached(0).port();
    set(ports[0], "k", "v");
    set(default, "k", "v");
    assert_eq!(get(ports[0] + 1, "k").as_deref(), Some("v"));
    eventually("expired", || get(ports[0] + 2, "k").is_none());
    assert_eq!(get(default + 2, "k").as_deref(), Some("v"));
    let (_, shown) = json(&cluster, &["namespace", "show", "short"]);
    assert_eq!((&shown["policy"]["default_ttl_seconds"], &shown["id"]), (&Value::from(2), &Value::from(1)));
}

/// Bytes in use on all nodes.
fn used(cluster: &LocalCluster) -> u64 {
    let (_, status) = json(cluster, &["status"]);
    let nodes = status["nodes"].as_array().expect("nodes").iter();
    nodes.map(|node| node["memory_used_bytes"].as_u64().unwrap_or(0)).sum()
}

#[test]
fn the_memory_of_a_namespace_that_is_removed_comes_back() {
    let (cluster, ports) = cluster(&["heavy"]);
    does(&cluster, &["namespace", "create", "heavy"]);
    eventually("served", || ask(ports[0], "get k\r\n") == ["END"]);
    let default = cluster.memcached(0).port();
    (0..500).for_each(|key| set(default, &format!("stays-{key}"), &"s".repeat(1024)));
    let before = used(&cluster);
    let servers: Vec<String> = (0..5).map(|node| format!("127.0.0.1:{}", ports[0] + node)).collect();
    let load = ["bench", "load", "--keys", "200000", "--value-size", "1KiB"];
    let servers: Vec<&str> = servers.iter().flat_map(|server| ["--server", server]).collect();
    let (status, _, error) = cluster.gestalt(&[&load[..], &servers].concat()).unwrap();
    assert!(status.success(), "{error}");
    let filled = used(&cluster);
    assert!(filled > before + (300 << 20), "{before} -> {filled}");
    does(&cluster, &["namespace", "remove", "heavy", "--yes"]);
    // Each role keeps its first extent, and a vacant one.
    let took = eventually("the memory is back", || used(&cluster) < before + (filled - before) / 2);
    println!("{} MiB came back within {took:?}", (filled - used(&cluster)) >> 20);
    assert!((0..500).all(|key| get(default + 3, &format!("stays-{key}")).is_some()));
}

/// How often a value is refused that there is no room for: a node may only have been dealt nothing more yet.
const REFUSALS: usize = 5;

/// Writes values of 10,000 bytes until one is refused for good, or there are `most`; how many were stored.
fn fill(port: u16, most: usize) -> usize {
    let value = "v".repeat(10_000);
    let stored = |number: &usize| {
        let command = format!("set k{number} 0 0 {}\r\n{value}\r\n", value.len());
        let port = port + (number % 5) as u16;
        (0..REFUSALS).any(|attempt| match ask(port, &command)[0].as_str() {
            "STORED" => true,
            answer => {
                assert_eq!(answer, "SERVER_ERROR out of memory storing object");
                sleep(Duration::from_millis(200) * attempt as u32);
                false
            }
        })
    };
    (0..most).take_while(stored).count()
}

/// What the server at `port` says to a value of 2 MiB.
fn put_long(port: u16, key: &str) -> String {
    let value = "v".repeat(2 << 20);
    ask(port, &format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())).remove(0)
}

#[test]
fn values_in_chunks_take_no_more_than_the_quota_of_their_namespace() {
    const FULL: &str = "SERVER_ERROR out of memory storing object";
    let (cluster, ports) = cluster(&["kept", "evicted"]);
    let quota = ["--quota", "32MiB"];
    does(&cluster, &[&["namespace", "create", "kept", "--evict", "no"], &quota[..]].concat());
    does(&cluster, &[&["namespace", "create", "evicted", "--evict", "yes"], &quota[..]].concat());
    eventually("served", || ports.iter().all(|port| ask(*port, "get k\r\n") == ["END"]));
    let shown = |name: &str| json(&cluster, &["namespace", "show", name]).1;
    let memory = |name: &str| shown(name)["bytes"].as_u64().unwrap();
    // A value and its parities take 3.3 MiB and a little, so nine of them fit, if the shares of all nodes are used up.
    let stored = (0..12).take_while(|number| put_long(ports[0], &format!("k{number}")) == "STORED").count();
    assert!((7..=9).contains(&stored), "{stored} values");
    // A node that was at the end of its share may have got some of what others had left.
    eventually("full", || put_long(ports[0], "more") == FULL);
    assert_eq!(put_long(ports[0], "k0"), FULL, "the former one goes only when the new one is there");
    assert_eq!(get(ports[0], "k0").map(|value| value.len()), Some(2 << 20));
    eventually("all that is charged is there", || {
        let bytes = memory("kept");
        bytes <= 32 << 20 && bytes >= (stored as u64) * (10 << 20) / 3
    });
    assert!(shown("kept")["chunk_bytes"].as_u64().unwrap() * 10 > memory("kept") * 9);
    assert_eq!(ask(ports[0], "delete k0\r\n"), ["DELETED"]);
    eventually("room", || put_long(ports[0], "k0") == "STORED");
    // Where values may go they do, the coldest first.
    for number in 0..20 {
        assert_eq!(put_long(ports[1], &format!("k{number}")), "STORED", "value {number}");
    }
    assert_eq!(get(ports[1], "k19").map(|value| value.len()), Some(2 << 20));
    eventually("no more than the quota", || memory("evicted") <= 32 << 20);
    // And with a smaller quota some more.
    does(&cluster, &["namespace", "set", "evicted", "--quota", "16MiB"]);
    eventually("no more than the smaller quota", || memory("evicted") <= 16 << 20);
    assert!(memory("evicted") >= 5 << 20, "not all of them go: {}", memory("evicted"));
    does(&cluster, &["namespace", "set", "kept", "--quota", "0"]);
    eventually("no limit", || put_long(ports[0], "more") == "STORED");
}

#[test]
fn a_namespace_takes_no_more_than_its_quota_whoever_serves_it() {
    let (cluster, ports) = cluster(&["kept", "evicted"]);
    let quota = ["--quota", "10MiB"];
    does(&cluster, &[&["namespace", "create", "kept", "--evict", "no"], &quota[..]].concat());
    does(&cluster, &[&["namespace", "create", "evicted", "--evict", "yes"], &quota[..]].concat());
    eventually("served", || ports.iter().all(|port| ask(*port, "get k\r\n") == ["END"]));
    let memory = |name: &str| json(&cluster, &["namespace", "show", name]).1["bytes"].as_u64().unwrap();
    // 10 MiB with the parities' part are 6 MiB of items, in slots a little longer than those.
    let stored = fill(ports[0], 1_000);
    assert!((450..=629).contains(&stored), "{stored} items");
    assert!(memory("kept") <= 10 << 20);
    assert_eq!(get(ports[0], "k0").map(|value| value.len()), Some(10_000));
    assert_eq!(fill(ports[1], 1_000), 1_000, "the former ones give way");
    eventually("no more than the quota", || memory("evicted") <= 10 << 20);
    assert_eq!(get(ports[1], "k999").map(|value| value.len()), Some(10_000));
    // There is room again for who has a larger one.
    does(&cluster, &["namespace", "set", "kept", "--quota", "20MiB"]);
    eventually("room", || fill(ports[0], 700) == 700);
    assert!(memory("kept") <= 20 << 20);
}
