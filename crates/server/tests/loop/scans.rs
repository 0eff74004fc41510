//! Scans: every key that is there throughout comes, whatever happens to nodes; and only nodes that allow it say which keys there are.

use std::collections::BTreeSet;
use std::time::Duration;

use gestalt::{Bytes, Client, Code, Error, Scan};
use proto::Timing;
use tokio::task::JoinSet;

use crate::harness::{Cluster, Plan, http_get};
use crate::native_client::{client, runtime};
use crate::operators::order;

const KEYS: usize = 20_000;
/// Writes that are under way at the same time.
const WRITERS: usize = 256;

fn key(number: usize) -> String {
    format!("key-{number}")
}

async fn write(client: &Client, keys: impl Iterator<Item = String>) {
    let mut writes: JoinSet<Result<(), Error>> = JoinSet::new();
    for key in keys {
        if writes.len() >= WRITERS {
            writes.join_next().await.expect("one is under way").expect("no panic").expect("it is stored");
        }
        let client = client.clone();
        writes.spawn(async move { client.set(key, &b"value"[..]).await.map(drop) });
    }
    while let Some(written) = writes.join_next().await {
        written.expect("no panic").expect("it is stored");
    }
}

async fn scanned(client: &Client, scan: Scan) -> Vec<Bytes> {
    client.scan(scan).collect().await.expect("all keys")
}

#[test]
fn all_keys_come_though_a_node_is_drained_and_another_one_ends() {
    let timing = Timing::from_lease(500_000);
    let plan = Plan { nodes: 7, workers: 2, timing, ..Plan::default() };
    let mut cluster = Cluster::of(&plan, |_| ());
    runtime().block_on(async {
        let client = client(&cluster, 0).await;
        write(&client, (0..KEYS).map(key)).await;
        write(&client, (0..200).map(|number| format!("gone-{number}"))).await;
        for number in 0..200 {
            assert!(client.delete(format!("gone-{number}")).await.expect("it is removed"));
        }
        let mut scan = Scan::default();
        scan.page_keys = 10;
        let (mut keys, mut seen, mut count) = (client.scan(scan), BTreeSet::new(), 0);
        while let Some(key) = keys.next().await.expect("it goes on") {
            seen.insert(key);
            count += 1;
            if count == KEYS / 10 {
                let (code, body) =
                    order(cluster.nodes[0].addresses().http, r#"{"command":{"drain":{"node":1}}}"#);
                assert_eq!(code, 200, "{body}");
            }
            if count == KEYS / 5 {
                drop(cluster.nodes.remove(2).stop());
            }
            // Meanwhile others come and go.
            if count % 500 == 0 {
                write(&client, [format!("new-{count}")].into_iter()).await;
                client.delete(format!("new-{}", count - 500)).await.expect("it is done");
            }
        }
        let missed: Vec<String> = (0..KEYS).map(key).filter(|key| !seen.contains(key.as_bytes())).collect();
        assert!(missed.is_empty(), "{} of {KEYS} are missed, as {:?}", missed.len(), missed.first());
        assert!(!seen.iter().any(|key| key.starts_with(b"gone-")), "what was removed before comes");
        println!("{KEYS} keys, {count} came, {} of them twice", count - seen.len());
    });
}

#[test]
fn a_prefix_brings_its_keys_and_what_has_come_is_counted() {
    let cluster = Cluster::of(&Plan { nodes: 3, profile: "rs(2+1)", groups: 3, ..Plan::default() }, |_| ());
    runtime().block_on(async {
        let client = client(&cluster, 0).await;
        write(&client, (0..300).map(|number| format!("{}/{number}", number % 3))).await;
        let keys = scanned(&client, Scan::of("1/")).await;
        assert!(keys.len() == 100 && keys.iter().all(|key| key.starts_with(b"1/")));
        let one = Scan::of(keys[0].clone());
        assert!(scanned(&client, one).await.contains(&keys[0]), "a prefix may be a whole key");
        assert_eq!(scanned(&client, Scan::of("none")).await, Vec::<Bytes>::new());
        client
            .store("1/short", &b"lived"[..], gestalt::Store { ttl: 1, ..gestalt::Store::default() })
            .await
            .expect("it is stored");
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        assert_eq!(scanned(&client, Scan::of("1/")).await.len(), 100, "what has expired is not there");
    });
    let of = |name: &str| -> u64 {
        let pages = cluster.nodes.iter().map(|node| http_get(node.addresses().http, "/metrics").1);
        let value = |page: String| {
            let line = page.lines().find(|line| line.starts_with(name)).expect("a metric").to_owned();
            line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number") as u64
        };
        pages.map(value).sum()
    };
    assert!(of("gestalt_native_scans_total") >= 6 && of("gestalt_native_scanned_keys_total") >= 201);
}

#[test]
fn where_scans_are_off_it_is_said_so_and_nothing_else() {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let cluster = Cluster::of(&plan, |config| config.native_scans = false);
    runtime().block_on(async {
        let client = client(&cluster, 0).await;
        client.set("key", &b"value"[..]).await.expect("it is stored");
        let refused = client.scan(Scan::default()).collect().await;
        assert_eq!(refused, Err(Error::Code(Code::ScansOff)));
        assert!(client.get("key").await.expect("the connection stands").is_some());
        let mut wrong = Scan::default();
        wrong.page_keys = 0;
        assert_eq!(client.scan(wrong).collect().await, Err(Error::BadKey), "no page is of no keys");
    });
}
