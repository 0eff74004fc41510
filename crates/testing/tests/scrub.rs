//! A scrub of a real cluster that is being used.
#![allow(clippy::disallowed_methods)] // Real processes take real time.
#![allow(clippy::unwrap_used)] // a panic is how a test reports

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use testing::local_cluster::{LocalCluster, Options};

fn run(cluster: &LocalCluster, args: &[&str]) -> (i32, String) {
    let (status, out, error) =
        cluster.gestalt(&[args, &["--http", "{http}"]].concat()).expect("the binary runs");
    println!("$ gestalt {args:?}: {status}\n{out}{error}");
    (status.code().unwrap_or(-1), out)
}

fn json(cluster: &LocalCluster, args: &[&str]) -> (i32, Value) {
    let (code, out) = run(cluster, &[args, &["-o", "json"]].concat());
    (code, serde_json::from_str(&out).expect("a JSON document"))
}

fn load(cluster: &LocalCluster) {
    let args = ["bench", "load", "--keys", "20000", "--value-size", "1000"];
    assert_eq!(run(cluster, &args).0, 0);
}

/// A number of `/metrics`, of all nodes together.
fn metric(cluster: &LocalCluster, name: &str) -> u64 {
    let nodes = json(cluster, &["node", "list"]).1;
    let pages = nodes.as_array().unwrap().iter().map(|node| {
        let mut stream = TcpStream::connect(node["http"].as_str().unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    });
    let line = |page: String| {
        let line = page.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name).to_owned();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    pages.map(line).sum()
}

#[test]
fn a_cluster_that_is_written_to_is_compared_and_clean() {
    let cluster = LocalCluster::start(&Options::default()).unwrap();
    let (code, before) = json(&cluster, &["scrub", "status"]);
    assert_eq!((code, before["generation"].as_u64(), before["ended"].as_bool()), (0, Some(0), Some(false)));
    load(&cluster);
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                load(&cluster);
            }
        });
        for generation in 1..=3 {
            let (code, status) = json(&cluster, &["scrub", "start", "--wait", "--timeout", "60s"]);
            assert_eq!((code, status["generation"].as_u64()), (0, Some(generation)));
            assert_eq!(
                (status["ended"].as_bool(), status["progress"]["mismatches"].as_u64()),
                (Some(true), Some(0))
            );
            // Twenty megabytes of values, and two parities for three data roles.
            assert!(status["progress"]["done_bytes"].as_u64().unwrap() > 13_000_000, "{status}");
            assert_eq!(status["nodes"].as_array().unwrap().len(), 5);
            assert_eq!(status["damage"], serde_json::json!([]));
        }
        end.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    assert!(metric(&cluster, "gestalt_scrub_pages_total") > 3 * 13_000_000 / 4096);
    assert_eq!(metric(&cluster, "gestalt_scrub_mismatches_total"), 0);
    let (code, text) = run(&cluster, &["scrub", "status"]);
    assert!(code == 0 && text.contains("scrub 3 has ended") && text.contains("0 mismatches"), "{text}");
}

#[test]
fn a_scrub_keeps_to_its_rate_and_can_be_stopped() {
    let cluster = LocalCluster::start(&Options::default()).unwrap();
    load(&cluster);
    let (code, started) = json(&cluster, &["scrub", "start", "--rate", "256KiB"]);
    assert_eq!((code, started["bytes_per_second"].as_u64()), (0, Some(256 << 10)));
    sleep(Duration::from_secs(3));
    let (_, status) = json(&cluster, &["scrub", "status"]);
    assert_eq!(status["ended"], false, "at this rate it takes half a minute");
    let done = status["progress"]["done_bytes"].as_u64().unwrap();
    assert!(done > 0 && status["progress"]["left_bytes"].as_u64().unwrap() > 0, "{status}");
    let (code, stopped) = json(&cluster, &["scrub", "stop"]);
    assert_eq!((code, stopped["running"].as_bool()), (0, Some(false)));
    let (code, _) = run(&cluster, &["scrub", "start", "--rate", "64KiB", "--wait", "--timeout", "1s"]);
    assert_eq!(code, 3, "a wait has an end");
}
