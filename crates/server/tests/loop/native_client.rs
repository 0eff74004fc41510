//! The Rust client of the native protocol, and the conformance suite that all clients run, against a cluster.

use std::time::{Duration, Instant};

use gestalt::{Bytes, Client, Error, Layout, Options, Range, Scan, Store, StoreMode, Stored};
use proto::Timing;
use serde_json::Value as Json;
use server::NodeHandle;
use tokio::runtime::Runtime;

use crate::harness::{Cluster, PATIENCE, Plan, eventually, http_get};
use crate::operators::order;

const STEPS: &str = include_str!("../../../gestalt/conformance/steps.json");

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn uri(cluster: &Cluster, node: usize) -> String {
    let addr = cluster.nodes[node].addresses().native.expect("a native listener");
    format!("gestalt://{addr}/default?timeout=30s")
}

pub(crate) async fn client(cluster: &Cluster, node: usize) -> Client {
    Client::connect(&uri(cluster, node)).await.expect("a node that listens")
}

pub(crate) fn noise(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| byte()).collect()
}

/// What a step came to, in the words of the suite.
async fn outcome(client: &Client, step: &Json) -> Result<Json, Error> {
    let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| step[name].as_u64();
    let key = text("key");
    let value = match number("fill") {
        Some(len) => Bytes::from(vec![b'x'; len as usize]),
        None => text("value").into(),
    };
    let store = |mode, compare| Store {
        mode,
        flags: number("flags").unwrap_or(0) as u32,
        compare,
        ..Store::default()
    };
    let stored = |stored| serde_json::json!({ "stored": matches!(stored, Stored::Version(_)) });
    Ok(match step["op"].as_str().expect("an operation") {
        "get" => {
            let range = step["range"].as_array().map(|range| Range {
                start: range[0].as_u64().expect("a number"),
                len: range[1].as_u64().expect("a number"),
            });
            let found = match range {
                Some(range) => client.get_range(key, range).await?,
                None => client.get(key).await?,
            };
            match found {
                None => serde_json::json!({ "miss": true }),
                Some(value) if value.bytes.len() > 1000 => {
                    assert!(value.bytes.iter().all(|byte| *byte == b'x'));
                    serde_json::json!({ "fill": value.bytes.len() })
                }
                Some(value) => {
                    let text = std::str::from_utf8(&value.bytes).expect("a text");
                    serde_json::json!({ "value": text, "flags": value.meta.flags })
                }
            }
        }
        "set" => stored(client.store(key, value, store(StoreMode::Set, None)).await?),
        "add" => stored(client.store(key, value, store(StoreMode::Add, None)).await?),
        "replace" => stored(client.store(key, value, store(StoreMode::Replace, None)).await?),
        "append" => stored(client.store(key, value, store(StoreMode::Append, None)).await?),
        "prepend" => stored(client.store(key, value, store(StoreMode::Prepend, None)).await?),
        "cas" => {
            let version = match number("version") {
                Some(version) => version,
                None => client.stat(key.clone()).await?.expect("it is there").meta.version,
            };
            stored(client.store(key, value, store(StoreMode::Set, Some(version))).await?)
        }
        "add_number" => match client.add_number(key, step["delta"].as_i64().expect("a number")).await? {
            Some(number) => serde_json::json!({ "number": number }),
            None => serde_json::json!({ "miss": true }),
        },
        "touch" => {
            serde_json::json!({ "found": client.touch(key, number("ttl").unwrap_or(0) as u32).await? })
        }
        "delete" => serde_json::json!({ "found": client.delete(key).await? }),
        "scan" => {
            let mut keys = client.scan(Scan::of(key)).collect().await?;
            keys.sort_unstable();
            let keys: Vec<String> = keys.iter().map(|key| key.escape_ascii().to_string()).collect();
            serde_json::json!({ "keys": keys })
        }
        other => panic!("no operation {other}"),
    })
}

async fn conforms(client: &Client) {
    let steps: Vec<Json> = serde_json::from_str(STEPS).expect("a list of steps");
    assert!(steps.len() > 30);
    // Another client may have done them before.
    for key in steps.iter().filter_map(|step| step["key"].as_str()) {
        let _ = client.delete(key.to_owned()).await;
    }
    for step in &steps {
        let got = outcome(client, step).await.unwrap_or_else(|error| match error {
            Error::Code(code) => serde_json::json!({ "code": format!("{code:?}") }),
            error => serde_json::json!({ "error": format!("{error:?}") }),
        });
        assert_eq!(got, step["expect"], "{step}");
    }
}

#[test]
fn the_conformance_suite_passes() {
    let cluster = Cluster::start();
    runtime().block_on(async { conforms(&client(&cluster, 0).await).await });
}

/// A cluster in which values above 64 KiB lie in chunks, once a client at node 1 has seen that they do.
pub(crate) fn striped(plan: &Plan) -> Cluster {
    let cluster = Cluster::of(plan, |config| config.memory_bytes = 256 << 20);
    let body = r#"{"command":{"catalog":{"set_policy":{"name":"default","change":{"striped":{"above":65536},"chunk_bytes":262144}}}}}"#;
    assert_eq!(order(cluster.nodes[0].addresses().http, body).0, 200);
    // Of several groups; each worker hears of the policy, and of who takes chunks, for itself.
    let value = noise(1, 5 << 20);
    for node in 0..cluster.nodes.len() {
        runtime().block_on(async {
            let uri = format!("{}&encode=client", uri(&cluster, node));
            let client = Client::connect(&uri).await.expect("a node that listens");
            let begun = std::time::Instant::now();
            loop {
                let before = client.stats().writes;
                for at in 0..8 {
                    // What is too long for a node that knows nothing of chunks yet is refused.
                    let _ = client.set(format!("probe-{at}"), value.clone()).await;
                }
                if client.stats().writes == before + 8 {
                    break;
                }
                assert!(begun.elapsed() < PATIENCE);
            }
        });
    }
    cluster
}

/// Every way in which the client and the nodes can share the coding.
fn modes(cluster: &Cluster) -> Vec<String> {
    let both = ["client", "server"];
    let of = |encode| both.map(|decode| format!("{}&encode={encode}&decode={decode}", uri(cluster, 2)));
    let others = ["", "&lost=graph"].map(|more| format!("{}{more}", uri(cluster, 3)));
    both.into_iter().flat_map(of).chain(others).collect()
}

pub(crate) async fn comes_back(client: &Client, key: &str, value: &Bytes) {
    let found = client.get(key.to_owned()).await.expect("a value").expect("it is there");
    assert!(found.bytes == value, "{key}");
    let len = value.len() as u64;
    for range in [Range { start: len / 3, len: 70_000 }, Range { start: len - 5, len: 100 }] {
        let part = client.get_range(key.to_owned(), range).await.expect("a value").expect("it is there");
        let (start, end) = range.within(len);
        assert!(part.bytes == value[start as usize..end as usize], "{range:?} of {key}");
    }
}

/// Gives a value bit by bit, with a pause after each.
async fn feed(client: &Client, key: &'static str, value: &Bytes, pause: Duration) {
    let mut upload = client.upload(key, value.len() as u64, Store::default()).expect("it is asked");
    for at in (0..value.len()).step_by(100_000) {
        upload.write(value.slice(at..value.len().min(at + 100_000))).await.expect("there is room");
        tokio::time::sleep(pause).await;
    }
    let stored = upload.finish().await;
    assert!(matches!(stored, Ok(Stored::Version(_))), "{stored:?}");
}

fn in_every_mode(plan: &Plan) {
    let cluster = striped(plan);
    runtime().block_on(async {
        for (at, mode) in modes(&cluster).iter().enumerate() {
            let client = Client::connect(mode).await.expect("a node that listens");
            conforms(&client).await;
            for len in [65_537, 1_000_000, 5 << 20] {
                let (key, value) = (format!("key-{at}-{len}"), noise(at as u64 + len as u64, len));
                client.set(key.clone(), value.clone()).await.expect("a value is stored");
                comes_back(&client, &key, &value).await;
            }
            // What is fed is coded by clients that are told to, or may choose, and by no others.
            let (before, value) = (client.stats().writes, noise(at as u64, 3_000_000));
            feed(&client, "fed", &value, Duration::ZERO).await;
            comes_back(&client, "fed", &value).await;
            let coded = client.stats().writes - before;
            assert_eq!(coded, u64::from(!mode.contains("encode=server")), "{mode}: {:?}", client.stats());
            let stats = client.stats();
            let is_clients = |what: &str| !mode.contains(&format!("{what}=server"));
            let expected = (is_clients("encode"), is_clients("decode"));
            assert_eq!((stats.writes >= 3, stats.reads >= 9), expected, "{mode}: {stats:?}");
            assert_eq!(stats.gave_way, 0, "{mode}: {stats:?}");
        }
        // What one has written any other one reads.
        let all = modes(&cluster);
        for (mode, at) in all.iter().zip((0..all.len()).rev()) {
            let client = Client::connect(mode).await.expect("a node that listens");
            let len = 5 << 20;
            comes_back(&client, &format!("key-{at}-{len}"), &noise(at as u64 + len as u64, len)).await;
        }
    });
}

#[test]
fn long_values_are_coded_by_whoever_is_to_code_them() {
    in_every_mode(&Plan::default());
}

#[test]
fn a_value_that_is_fed_for_longer_than_its_id_is_open_is_committed() {
    let timing = Timing { object_deadline_us: 700_000, ..Timing::default() };
    let cluster = striped(&Plan { timing, ..Plan::default() });
    runtime().block_on(async {
        let mode = format!("{}&encode=client", uri(&cluster, 0));
        let client = Client::connect(&mode).await.expect("a node that listens");
        let value = noise(7, 2_000_000);
        let begun = Instant::now();
        feed(&client, "slow", &value, Duration::from_millis(100)).await;
        assert!(begun.elapsed() > Duration::from_millis(1400), "it takes two ids' time");
        assert_eq!((client.stats().writes, client.stats().gave_way), (1, 0));
        comes_back(&client, "slow", &value).await;
    });
}

/// Gives a value from its beginning, and ends a node at its half if there is one to be ended; what came of it, and how much was given.
async fn interrupted(
    client: &Client,
    value: &Bytes,
    ends: &mut Option<NodeHandle>,
) -> (Result<Stored, Error>, u64) {
    let mut upload = client.upload("fed", value.len() as u64, Store::default()).expect("it is asked");
    for at in (0..value.len()).step_by(100_000) {
        if at > value.len() / 2
            && let Some(node) = ends.take()
        {
            tokio::task::spawn_blocking(|| node.stop()).await.expect("it ends");
        }
        if let Err(error) = upload.write(value.slice(at..value.len().min(at + 100_000))).await {
            return (Err(error), upload.given());
        }
    }
    let given = upload.given();
    (upload.finish().await, given)
}

#[test]
fn a_fed_value_of_which_a_holder_is_lost_says_that_nothing_was_done_and_can_be_fed_anew() {
    let mut cluster = striped(&Plan::default());
    let mut ends = Some(cluster.nodes.remove(4));
    runtime().block_on(async {
        let mode = format!("{}&encode=client", uri(&cluster, 0));
        let client = Client::connect(&mode).await.expect("a node that listens");
        let (value, begun) = (noise(7, 6_000_000), Instant::now());
        loop {
            match interrupted(&client, &value, &mut ends).await {
                (Ok(stored), given) => {
                    assert!(matches!(stored, Stored::Version(_)) && given == value.len() as u64);
                    break;
                }
                (Err(Error::Interrupted(fed)), given) => assert!((1..=given).contains(&fed)),
                (Err(error), _) => assert!(error.is_harmless(), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(begun.elapsed() < PATIENCE, "{:?}", client.stats());
        }
        assert!(client.stats().gave_way > 0, "{:?}", client.stats());
        comes_back(&client, "fed", &value).await;
    });
}

#[test]
fn those_of_groups_of_another_worker_are_too() {
    in_every_mode(&Plan { workers: 2, groups: 10, ..Plan::default() });
}

#[test]
fn a_client_makes_what_lost_holders_had_of_the_other_chunks() {
    let mut cluster = striped(&Plan::default());
    let runtime = runtime();
    let values: Vec<Bytes> = (0..6).map(|at| noise(at, 1_500_000)).collect();
    let mode = format!("{}&encode=client&decode=client", uri(&cluster, 0));
    let client = runtime.block_on(async {
        let client = Client::connect(&mode).await.expect("a node that listens");
        for (at, value) in values.iter().enumerate() {
            client.set(format!("key-{at}"), value.clone()).await.expect("a value is stored");
        }
        client
    });
    let ending: Vec<_> = [4, 3]
        .map(|node| cluster.nodes.remove(node))
        .map(|node| std::thread::spawn(move || node.stop()))
        .into();
    runtime.block_on(async {
        // They end while they are read from, and not at once; all values are read once more without them.
        let begun = Instant::now();
        while client.stats().decoded_rows == 0 {
            for (at, value) in values.iter().enumerate() {
                comes_back(&client, &format!("key-{at}"), value).await;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?}", client.stats());
        }
        for (at, value) in values.iter().enumerate() {
            comes_back(&client, &format!("key-{at}"), value).await;
        }
    });
    ending.into_iter().for_each(|ending| drop(ending.join().expect("it ends")));
}

/// Bytes that nodes have sent to clients.
fn sent_to_clients(cluster: &Cluster) -> u64 {
    cluster.nodes.iter().map(|node| metric(node, "gestalt_client_sent_bytes_total")).sum()
}

fn metric(node: &NodeHandle, name: &str) -> u64 {
    let (_, page) = http_get(node.addresses().http, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|bytes| bytes.parse::<f64>().ok()).expect("a number") as u64
}

/// A thousand bytes of each cell that is lost, by keys.
async fn lost_parts(client: &Client, values: &[(String, Bytes)]) -> Vec<(usize, Range)> {
    let mut lost = Vec::new();
    for (at, (key, value)) in values.iter().enumerate() {
        for start in (1_000..value.len() as u64 - 1_000).step_by(20_000) {
            let before = client.stats();
            let range = Range { start, len: 1_000 };
            part_comes_back(client, (key, value), range).await;
            let stats = client.stats();
            if (stats.decoded_rows, stats.gave_way) == (before.decoded_rows + 1, before.gave_way) {
                lost.push((at, range));
            }
        }
    }
    lost
}

async fn part_comes_back(client: &Client, (key, value): (&String, &Bytes), range: Range) {
    let found = client.get_range(key.clone(), range).await.expect("a value").expect("it is there");
    let (start, end) = range.within(value.len() as u64);
    assert!(found.bytes == value[start as usize..end as usize], "{range:?} of {key}");
}

#[test]
fn of_a_lost_chunk_a_client_gets_as_many_cells_as_make_it_or_what_it_wants_made_by_a_graph() {
    let mut cluster = striped(&Plan::default());
    let runtime = runtime();
    let values: Vec<_> = (0..4).map(|at| (format!("key-{at}"), noise(at, 190_000))).collect();
    let clients = ["star", "graph"].map(|lost| {
        let mode = format!("{}&encode=client&decode=client&lost={lost}", uri(&cluster, 0));
        runtime.block_on(async { Client::connect(&mode).await.expect("a node that listens") })
    });
    let [star, graph] = &clients;
    runtime.block_on(async {
        for (key, value) in &values {
            star.set(key.clone(), value.clone()).await.expect("a value is stored");
        }
    });
    cluster.nodes.remove(4).stop();
    // Once all know that it is gone, whoever is asked knows who has what.
    let lost = eventually("lost cells", || {
        let lost = runtime.block_on(lost_parts(star, &values));
        if lost.is_empty() { Err(format!("{:?}", star.stats())) } else { Ok(lost) }
    });
    let read_all = |client: &Client| {
        let before = (sent_to_clients(&cluster), client.stats());
        runtime.block_on(async {
            for (at, range) in &lost {
                let (key, value) = &values[*at];
                part_comes_back(client, (key, value), *range).await;
            }
        });
        let after = client.stats();
        let (decoded, made) =
            (after.decoded_rows - before.1.decoded_rows, after.graph_cells - before.1.graph_cells);
        (sent_to_clients(&cluster) - before.0, decoded, made)
    };
    let (count, cell) = (lost.len() as u64, 190_000 / 3);
    // Three cells each, what answers have beside them, and a cell now and then that is hedged.
    let of_star = read_all(star);
    assert_eq!((of_star.1, of_star.2), (count, 0), "{of_star:?}");
    assert!((3 * count * cell..4 * count * cell).contains(&of_star.0), "{of_star:?} of {count}");
    // A thousand bytes each.
    eventually("all is made", || {
        let all = read_all(graph);
        let is_short = (1_000 * count..2_500 * count).contains(&all.0);
        if is_short && (all.1, all.2) == (0, count) { Ok(all) } else { Err(format!("{all:?} of {count}")) }
    });
    let made = cluster.nodes.iter().map(|node| metric(node, "gestalt_graph_reads_total")).sum::<u64>();
    assert!(made > 0, "nodes have made some by graphs");
}

#[test]
fn many_requests_are_in_flight_and_each_has_its_own_answer() {
    let cluster = Cluster::start();
    runtime().block_on(async {
        let client = client(&cluster, 2).await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..10_000u32 {
            let client = client.clone();
            tasks.spawn(async move {
                let (key, value) = (format!("key-{number}"), Bytes::from(number.to_string()));
                client.set(key.clone(), value.clone()).await?;
                assert_eq!(client.get(key).await?.map(|found| found.bytes), Some(value));
                Ok::<(), Error>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic").expect("no failure");
        }
        let values = client.get_many((0..100).map(|number| format!("key-{number}"))).await.unwrap();
        assert!(
            values
                .iter()
                .enumerate()
                .all(|(at, value)| { value.as_ref().is_some_and(|value| value.bytes == at.to_string()) })
        );
    });
}

#[test]
fn values_of_any_length_are_streamed_both_ways() {
    use tokio::io::AsyncReadExt as _;

    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    let body = r#"{"command":{"catalog":{"set_policy":{"name":"default","change":{"striped":{"above":65536},"chunk_bytes":262144}}}}}"#;
    assert_eq!(order(cluster.nodes[0].addresses().http, body).0, 200);
    runtime().block_on(async {
        let client = client(&cluster, 1).await;
        let value = noise(7, 20 << 20);
        // Each worker hears of the policy for itself.
        let begun = std::time::Instant::now();
        while client.set("film", value.clone()).await.is_err() {
            assert!(begun.elapsed() < PATIENCE);
        }
        let about = client.stat("film").await.unwrap().expect("it is there");
        assert!(matches!(about.layout, Layout::Chunks { k: 3, .. }) && about.meta.value_len == 20 << 20);
        assert_eq!(client.get("film").await.unwrap().map(|found| found.bytes == value), Some(true));
        let mut upload = client.upload("other", value.len() as u64, Store::default()).unwrap();
        for at in (0..value.len()).step_by(100_000) {
            upload.write(value.slice(at..value.len().min(at + 100_000))).await.unwrap();
        }
        assert!(matches!(upload.finish().await, Ok(Stored::Version(_))));
        let range = Range { start: 1_000_000, len: 5_000_000 };
        let mut reader = client.reader("other", Some(range)).await.unwrap().expect("it is there");
        assert_eq!((reader.len(), reader.meta().value_len), (5_000_000, 20 << 20));
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await.unwrap();
        assert!(bytes == value[1_000_000..6_000_000]);
        // What is given up in the middle leaves nothing behind, and keeps nobody waiting.
        let mut upload = client.upload("half", 1 << 20, Store::default()).unwrap();
        upload.write(value.slice(..100_000)).await.unwrap();
        drop(upload);
        drop(client.reader("film", None).await.unwrap());
        assert_eq!(client.get("half").await.unwrap(), None);
        let places = client.locate("film").await.unwrap();
        let (_, spans) = places.found.expect("it is there");
        assert_eq!(spans.iter().map(|span| span.len).sum::<u64>(), 20 << 20);
    });
}

#[test]
fn a_value_in_pieces_is_received_in_one_buffer() {
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 256 << 20);
    runtime().block_on(async {
        let options = format!("{}&encode=server&decode=server", uri(&cluster, 1)).parse().unwrap();
        let client = Client::with(&options).await.expect("a node that listens");
        for len in [1000, 65_536, 65_537, 200_000, 1_000_000] {
            let value = noise(len, len as usize);
            client.set("k", value.clone()).await.unwrap();
            let before = client.stats().landed_bytes;
            let (whole, part) = (Range { start: 0, len }, Range { start: len / 4, len: len / 2 });
            assert!(client.get("k").await.unwrap().is_some_and(|found| found.bytes == value));
            let landed = client.stats().landed_bytes - before;
            for range in [whole, part] {
                let found = client.get_range("k", range).await.unwrap().expect("it is there");
                let (start, end) = range.within(len);
                assert!(found.bytes == value[start as usize..end as usize], "{range:?} of {len}");
            }
            // What fits into a frame is not copied as it is. Of each piece some comes with its head, and all of a short one.
            let pieces = len / 65_536;
            let least = if len > 65_536 { pieces * (65_536 - 10_000) } else { 0 };
            assert!((least..=len).contains(&landed) && (landed > 0) == (least > 0), "{landed} of {len}");
        }
    });
}

#[test]
fn all_of_a_value_of_more_stripes_than_one_answer_names_is_located() {
    let plan = Plan { nodes: 3, profile: "rs(2+1)", groups: 3, ..Plan::default() };
    let cluster = Cluster::of(&plan, |config| config.memory_bytes = 256 << 20);
    let body = r#"{"command":{"catalog":{"set_policy":{"name":"default","change":{"striped":{"above":65536},"chunk_bytes":65536}}}}}"#;
    assert_eq!(order(cluster.nodes[0].addresses().http, body).0, 200);
    let (stripe, len) = (2 * 65_536, 515 * 2 * 65_536 + 1000);
    runtime().block_on(async {
        let client = client(&cluster, 1).await;
        // Each worker hears of the policy for itself.
        let begun = std::time::Instant::now();
        while client.set("film", noise(7, len as usize)).await.is_err() {
            assert!(begun.elapsed() < PATIENCE);
        }
        let first = client.locate_from("film", 0).await.unwrap();
        assert_eq!(first.next_page(), Some(512 * stripe));
        let places = client.locate("film").await.unwrap();
        let (_, spans) = places.found.as_ref().expect("it is there");
        assert!(spans.iter().all(|span| span.nodes.len() == 2 && !span.nodes.contains(&None)));
        assert_eq!(spans.len(), 516);
        let mut end = 0;
        for range in places.ranges() {
            assert_eq!(range.bytes.start, end);
            end = range.bytes.end;
        }
        assert_eq!((end, places.next_page()), (len, None));
        // A page begins with the stripe that has the byte.
        for (from, first, count) in
            [(stripe - 1, 0, 512), (stripe, 1, 512), (5 * stripe + 7, 5, 511), (len - 1, 515, 1)]
        {
            let page = client.locate_from("film", from).await.unwrap();
            let (_, found) = page.found.expect("it is there");
            assert_eq!(found[..], spans[first..first + count], "from {from}");
        }
        for from in [len, u64::MAX] {
            let page = client.locate_from("film", from).await.unwrap();
            assert!(page.next_page().is_none() && page.found.is_some_and(|(_, spans)| spans.is_empty()));
        }
        client.set("short", "value").await.unwrap();
        for (from, count) in [(0, 1), (4, 1), (5, 0)] {
            let page = client.locate_from("short", from).await.unwrap();
            assert_eq!(page.found.expect("it is there").1.len(), count, "from {from}");
        }
    });
}

#[test]
fn a_node_that_ends_costs_no_wrong_answer_and_reads_go_on() {
    let mut cluster = Cluster::start();
    let runtime = runtime();
    let client = runtime.block_on(client(&cluster, 0));
    runtime.block_on(async {
        for number in 0..200u32 {
            client.set(format!("key-{number}"), number.to_string()).await.unwrap();
        }
    });
    let node = cluster.nodes.remove(3);
    let ending = std::thread::spawn(move || node.stop());
    runtime.block_on(async {
        for round in 0..5u32 {
            for number in 0..200u32 {
                let value = client.get(format!("key-{number}")).await.expect("a read is done again");
                assert_eq!(value.map(|value| value.bytes), Some(number.to_string().into()), "round {round}");
            }
        }
        // Each is done, or it is known that it may have been, or not.
        for number in 0..200u32 {
            match client.set(format!("key-{number}"), "new").await {
                Ok(_) => {}
                Err(error) => assert!(!error.is_harmless() || error == Error::Unreachable, "{error:?}"),
            }
        }
    });
    ending.join().expect("it ends");
    eventually("written", || {
        let written = runtime.block_on(client.set("key-1", "newer"));
        written.map(drop).map_err(|error| error.to_string())
    });
}

#[test]
fn deadlines_are_kept_and_an_address_of_nobody_is_an_error() {
    let cluster = Cluster::start();
    runtime().block_on(async {
        let mut options: Options = "gestalt://127.0.0.1:1".parse().unwrap();
        options.timeout = Duration::from_millis(300);
        assert!(Client::with(&options).await.is_err());
        let begun = std::time::Instant::now();
        let error = Client::lazy(&options).set("k", "v").await.unwrap_err();
        assert_eq!((error, error.is_harmless()), (Error::Unreachable, true));
        assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < PATIENCE);
        let wrong = uri(&cluster, 0).replace("/default", "/nobody");
        let client = Client::connect(&wrong).await.unwrap();
        assert_eq!(client.get("k").await, Err(Error::NoNamespace));
        let pending = client.within(Duration::from_secs(1));
        drop(client);
        assert_eq!(pending.get("k").await, Err(Error::NoNamespace), "a clone keeps it open");
    });
}
