//! Namespaces that move to another pool while clients read and write and a node dies.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use processes::local_cluster::{LocalCluster, Options};
use processes::ports::free_run;
use serde_json::Value;

use crate::support::{PATIENCE, eventually, json, run};

/// Keys that are written once, before.
const KEYS: u32 = 2_000;
/// Keys that are written all the time.
const BUSY: u32 = 40;
/// Seconds that every tenth key lives.
const TTL: u32 = 3_600;
/// Bytes of a value.
const VALUE: usize = 1_000;

/// A cluster of five nodes with a listener for `name`, and the first port of that. Each node has two workers: what follows its key
/// crosses between them.
fn cluster(name: &str) -> (LocalCluster, u16) {
    let port = free_run(5).expect("free ports");
    let mut options = Options::default();
    options.flags.extend(["--workers", "2", "--bind"].map(str::to_owned));
    options.flags.push(format!("{name}={port}"));
    (LocalCluster::start(&options).expect("a cluster starts"), port)
}

fn does(cluster: &LocalCluster, args: &[&str]) -> String {
    let (code, out, error) = run(cluster, args);
    assert_eq!(code, 0, "{args:?}: {error}");
    out
}

/// A connection to one node, for one command after the other.
struct Client(BufReader<TcpStream>);

impl Client {
    fn to(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Self(BufReader::new(stream)))
    }

    /// What is answered in one line; none if the node is gone.
    fn line(&mut self, command: &str) -> Option<String> {
        self.0.get_mut().write_all(command.as_bytes()).ok()?;
        self.rest()
    }

    fn rest(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    }

    fn set(&mut self, key: &str, flags: u32, ttl: u32, value: &str) -> Option<String> {
        self.line(&format!("set {key} {flags} {ttl} {}\r\n{value}\r\n", value.len()))
    }

    /// Flags, cas unique and value; none if it is not there, or the answer is an error.
    fn gets(&mut self, key: &str) -> Option<(u32, u64, String)> {
        let first = self.line(&format!("gets {key}\r\n"))?;
        let words: Vec<&str> = first.split(' ').collect();
        let ["VALUE", _, flags, _, cas] = words[..] else { return None };
        let (flags, cas, value) = (flags.parse().unwrap(), cas.parse().unwrap(), self.rest()?);
        (self.rest()? == "END").then_some((flags, cas, value))
    }
}

/// Tells the clients to stop, also when a test fails: else it would wait for them.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A value that names its key and a number.
fn value(key: &str, number: u32) -> String {
    let head = format!("{key}={number}:");
    head.clone() + &"v".repeat(VALUE - head.len())
}

fn number_in(key: &str, value: &str) -> u32 {
    let rest = value.strip_prefix(&format!("{key}=")).unwrap_or_else(|| panic!("{key}: {value}"));
    rest.split(':').next().unwrap().parse().unwrap()
}

fn ttl_of(number: u32) -> u32 {
    if number.is_multiple_of(10) { TTL } else { 0 }
}

/// Writes and reads keys of its own until `over`; how often each was written, acknowledged and perhaps not.
fn keep_busy(port: u16, over: &AtomicBool) -> Vec<(u32, u32)> {
    let mut written = vec![(0, 0); BUSY as usize];
    let mut clients: Vec<Option<Client>> = (0..5).map(|node| Client::to(port + node)).collect();
    for at in (0..BUSY).cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("busy-{at}");
        let (acknowledged, tried) = &mut written[at as usize];
        *tried += 1;
        // Each time by another node.
        let node = (at + *tried) as usize % clients.len();
        let Some(client) = &mut clients[node] else {
            clients[node] = Client::to(port + node as u16);
            continue;
        };
        match client.set(&key, 7, 0, &value(&key, *tried)).as_deref() {
            Some("STORED") => *acknowledged = *tried,
            Some(_) => {}
            None => {
                clients[node] = None;
                continue;
            }
        }
        if let Some((flags, _, found)) = client.gets(&key) {
            let number = number_in(&key, &found);
            assert!(
                (*acknowledged..=*tried).contains(&number),
                "{key}: {number} of {acknowledged} to {tried}"
            );
            assert_eq!(flags, 7);
        }
    }
    written
}

fn shown(cluster: &LocalCluster, name: &str) -> Value {
    json(cluster, &["namespace", "show", name]).1
}

fn items_left(cluster: &LocalCluster, name: &str) -> u64 {
    shown(cluster, name)["moving"]["items_left"].as_u64().unwrap_or(0)
}

#[test]
fn a_namespace_moves_to_another_pool_while_clients_go_on_and_a_node_dies() {
    let (cluster, port) = cluster("n");
    does(&cluster, &["pool", "create", "b", "--profile", "rep(3)", "--groups", "4"]);
    does(&cluster, &["namespace", "create", "n", "--striped-above", "never"]);
    eventually("served", || Client::to(port).unwrap().gets("k").is_none());
    let mut client = Client::to(port).unwrap();
    eventually("stored", || client.set("k-0", 0, 0, "v").as_deref() == Some("STORED"));
    for number in 0..KEYS {
        let key = format!("k-{number}");
        let stored = client.set(&key, number, ttl_of(number), &value(&key, number));
        assert_eq!(stored.as_deref(), Some("STORED"));
    }
    let tokens: Vec<u64> = (0..KEYS).map(|number| client.gets(&format!("k-{number}")).unwrap().1).collect();

    // At this rate it takes some seconds: so there is a middle.
    does(&cluster, &["repair", "limit", "--rate", "64KiB"]);
    let over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let busy = scope.spawn(|| keep_busy(port, &over));
        let at_end = Over(&over);
        does(&cluster, &["namespace", "convert", "n", "--to", "b"]);
        eventually("on its way", || (1..u64::from(KEYS)).contains(&items_left(&cluster, "n")));
        let paused = does(&cluster, &["namespace", "convert", "n", "--pause"]);
        assert!(
            paused.contains("namespace n: moving to b: ") && paused.contains("it stands still"),
            "{paused}"
        );
        let (code, text, _) = run(&cluster, &["status"]);
        assert!(code == 0 && text.contains("namespace n: moving to b: "), "{text}");
        let (code, _, error) = run(&cluster, &["pool", "remove", "b", "--yes"]);
        assert!(code == 1 && error.contains("n (it is coming)"), "{error}");
        let (code, _, error) = run(&cluster, &["namespace", "convert", "n", "--to", "b"]);
        assert!(code == 1 && error.contains("it is on its way there"), "{error}");
        assert!(items_left(&cluster, "n") > 0, "in the middle");
        cluster.kill_nodes(&[3]);
        sleep(Duration::from_secs(1));
        does(&cluster, &["repair", "limit", "--rate", "none"]);
        does(&cluster, &["namespace", "convert", "n", "--resume", "--wait", "--timeout", "60s"]);
        drop(at_end);
        busy.join().expect("nothing was read that was not written")
    });

    let after = shown(&cluster, "n");
    assert_eq!((&after["pool_name"], &after["moving"]), (&Value::from("b"), &Value::Null));
    assert!(written.iter().all(|(acknowledged, _)| *acknowledged > 0), "{written:?}");
    let mut client = Client::to(port + 1).unwrap();
    for (at, (acknowledged, tried)) in (0..).zip(&written) {
        let key = format!("busy-{at}");
        let number = number_in(&key, &client.gets(&key).expect("it is there").2);
        assert!((*acknowledged..=*tried).contains(&number), "{key}: {number} of {acknowledged} to {tried}");
    }
    for (number, token) in (0..KEYS).zip(&tokens) {
        let key = format!("k-{number}");
        let found = client.gets(&key);
        assert_eq!(found, Some((number, *token, value(&key, number))), "{key}");
        let ttl = client.line(&format!("mg {key} t\r\n")).unwrap();
        let left: i64 = ttl.strip_prefix("HD t").unwrap().parse().unwrap();
        let expected = if ttl_of(number) == 0 { -1..=-1 } else { i64::from(TTL) - 600..=i64::from(TTL) };
        assert!(expected.contains(&left), "{key}: {ttl}");
    }
    // Who has read before may still write by what he has read, once.
    for (number, answer) in [(5, "STORED"), (5, "EXISTS"), (6, "STORED")] {
        let cas = tokens[number as usize];
        assert_eq!(client.line(&format!("cas k-{number} 0 0 1 {cas}\r\nw\r\n")).as_deref(), Some(answer));
    }
}

#[test]
fn a_pool_grows_by_another_one_with_more_groups() {
    let (cluster, port) = cluster("n");
    does(&cluster, &["pool", "create", "small", "--profile", "rep(2)", "--groups", "2"]);
    does(&cluster, &["namespace", "create", "n", "--pool", "small", "--striped-above", "never"]);
    let mut client = Client::to(port).unwrap();
    eventually("stored", || client.set("k-0", 0, 0, "v").as_deref() == Some("STORED"));
    for number in 0..200 {
        let key = format!("k-{number}");
        assert_eq!(client.set(&key, number, 0, &value(&key, number)).as_deref(), Some("STORED"));
    }
    does(&cluster, &["pool", "create", "large", "--profile", "rep(2)", "--groups", "20"]);
    let (code, after) = json(&cluster, &["namespace", "convert", "n", "--to", "large", "--wait"]);
    assert_eq!((code, &after["pool_name"], &after["conversions"]), (0, &"large".into(), &1.into()));
    does(&cluster, &["pool", "remove", "small", "--yes"]);
    for number in 0..200 {
        let key = format!("k-{number}");
        let (flags, _, found) = client.gets(&key).expect("it is there");
        assert_eq!((flags, found), (number, value(&key, number)));
    }
    let (code, _, error) = run(&cluster, &["namespace", "convert", "n", "--to", "large"]);
    assert!(code == 1 && error.contains("it is there"), "{error}");
    let (code, _, error) = run(&cluster, &["namespace", "convert", "n", "--pause"]);
    assert!(code == 1 && error.contains("does not move to another pool"), "{error}");
}

/// Lengths of values: packed, in one stripe, and in several.
const LENGTHS: [usize; 3] = [10_000, 900_000, 7_000_000];

/// A value of this length that names its key and a number.
fn long_value(key: &str, number: u32, len: usize) -> String {
    let head = format!("{key}={number}:");
    head.clone() + &"v".repeat(len - head.len())
}

/// Writes, lengthens and reads keys of its own, of all lengths, until `over`; how many times. Nothing may fail.
fn write_long_values(port: u16, over: &AtomicBool) -> u32 {
    let mut clients: Vec<Client> = (0..5).map(|node| Client::to(port + node).unwrap()).collect();
    let mut times = 0;
    while !over.load(Ordering::Relaxed) {
        let at = times as usize;
        let (key, client) = (format!("long-{}", at % 7), &mut clients[at % 5]);
        let value = long_value(&key, times, LENGTHS[at % LENGTHS.len()]);
        assert_eq!(client.set(&key, times, 0, &value).as_deref(), Some("STORED"), "{key}, the {times}th");
        let appended = client.line(&format!("append {key} 0 0 4\r\nmore\r\n"));
        assert_eq!(appended.as_deref(), Some("STORED"), "{key}, the {times}th");
        let found = client.gets(&key).map(|(flags, _, found)| (flags, found));
        assert!(found == Some((times, value + "more")), "{key}, the {times}th");
        times += 1;
    }
    times
}

#[test]
fn long_values_move_to_another_pool_and_back_while_clients_write_and_read_them() {
    let (cluster, port) = cluster("n");
    does(&cluster, &["pool", "create", "b", "--profile", "rs(2+1)", "--groups", "4"]);
    does(&cluster, &["namespace", "create", "n", "--striped-above", "100KiB"]);
    let mut client = Client::to(port).unwrap();
    eventually("stored", || client.set("k-0", 0, 0, "v").as_deref() == Some("STORED"));
    let value_of = |number: u32| {
        let key = format!("k-{number}");
        let value = long_value(&key, number, LENGTHS[number as usize % LENGTHS.len()]);
        (key, value)
    };
    for number in 0..40 {
        let (key, value) = value_of(number);
        assert_eq!(client.set(&key, number, 0, &value).as_deref(), Some("STORED"), "{key}");
    }
    let tokens: Vec<u64> = (0..40).map(|number| client.gets(&format!("k-{number}")).unwrap().1).collect();
    let over = AtomicBool::new(false);
    for pool in ["b", "default"] {
        let written = thread::scope(|scope| {
            let busy = scope.spawn(|| write_long_values(port, &over));
            let at_end = Over(&over);
            sleep(Duration::from_millis(300));
            does(&cluster, &["namespace", "convert", "n", "--to", pool, "--wait", "--timeout", "60s"]);
            drop(at_end);
            busy.join().expect("everything was written, and read as it was written")
        });
        over.store(false, Ordering::Relaxed);
        assert!(written > 1);
        assert_eq!(shown(&cluster, "n")["pool_name"], Value::from(pool));
        for (number, token) in (0..40).zip(&tokens) {
            let (key, value) = value_of(number);
            assert!(client.gets(&key) == Some((number, *token, value)), "{key} in {pool}");
        }
    }
}

#[test]
fn a_namespace_that_is_full_moves_turns_back_and_has_lost_nothing() {
    let (cluster, port) = cluster("n");
    does(&cluster, &["pool", "create", "b", "--profile", "rs(2+1)", "--groups", "4"]);
    let flags = ["--striped-above", "100KiB", "--quota", "20MiB", "--evict", "no"];
    does(&cluster, &[&["namespace", "create", "n"][..], &flags].concat());
    let mut client = Client::to(port).unwrap();
    eventually("stored", || client.set("k-0", 0, 0, "v").as_deref() == Some("STORED"));
    // Until there is no room for one more, now or a little later.
    let mut full = 0;
    let mut stored = 0;
    while full < 5 {
        let key = format!("k-{stored}");
        match client.set(&key, stored, 0, &long_value(&key, stored, 900_000)).as_deref() {
            Some("STORED") => (full, stored) = (0, stored + 1),
            Some(refused) => {
                assert!(refused.contains("out of memory"), "{refused}");
                full += 1;
                sleep(Duration::from_millis(300));
            }
            None => panic!("the node is gone"),
        }
    }
    assert!(stored > 5, "{stored}");
    does(&cluster, &["repair", "limit", "--rate", "1MiB"]);
    does(&cluster, &["namespace", "convert", "n", "--to", "b"]);
    let left = u64::from(stored);
    eventually("on its way", || (1..left).contains(&items_left(&cluster, "n")));
    does(&cluster, &["repair", "limit", "--rate", "none"]);
    does(&cluster, &["namespace", "convert", "n", "--to", "default", "--wait", "--timeout", "60s"]);
    let there = |pool: &str| assert_eq!(shown(&cluster, "n")["pool_name"], Value::from(pool));
    there("default");
    does(&cluster, &["namespace", "convert", "n", "--to", "b", "--wait", "--timeout", "60s"]);
    there("b");
    for number in 0..stored {
        let key = format!("k-{number}");
        let found = client.gets(&key).map(|(flags, _, found)| (flags, found));
        assert!(found == Some((number, long_value(&key, number, 900_000))), "{key}");
    }
}
