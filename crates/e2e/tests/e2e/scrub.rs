//! A scrub of a real cluster that is being used.

use std::sync::atomic::{AtomicBool, Ordering};

use processes::local_cluster::{LocalCluster, Options};
use processes::pages::page;

use crate::support::{eventually, json, run};

fn load(cluster: &LocalCluster) {
    let args = ["bench", "load", "--keys", "20000", "--value-size", "1000"];
    assert_eq!(run(cluster, &args).0, 0);
}

/// A number of `/metrics`, of all nodes together.
fn metric(cluster: &LocalCluster, name: &str) -> u64 {
    let nodes = json(cluster, &["node", "list"]).1;
    let nodes = nodes.as_array().unwrap().iter().map(|node| node["http"].as_str().unwrap().parse().unwrap());
    let pages = nodes.map(|node| page(node, "/metrics").unwrap());
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
            let (code, status) = json(&cluster, &["scrub", "start", "--wait", "--timeout", "180s"]);
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
    let (code, text, _) = run(&cluster, &["scrub", "status"]);
    assert!(code == 0 && text.contains("scrub 3 has ended") && text.contains("0 mismatches"), "{text}");
}

#[test]
fn a_scrub_keeps_to_its_rate_and_can_be_stopped() {
    let cluster = LocalCluster::start(&Options::default()).unwrap();
    load(&cluster);
    let (code, started) = json(&cluster, &["scrub", "start", "--rate", "256KiB"]);
    assert_eq!((code, started["bytes_per_second"].as_u64()), (0, Some(256 << 10)));
    let mut status = started;
    eventually("under way", || {
        status = json(&cluster, &["scrub", "status"]).1;
        status["progress"]["done_bytes"].as_u64().is_some_and(|done| done > 0)
    });
    assert_eq!(status["ended"], false, "at this rate it takes half a minute");
    assert!(status["progress"]["left_bytes"].as_u64().unwrap() > 0, "{status}");
    let (code, stopped) = json(&cluster, &["scrub", "stop"]);
    assert_eq!((code, stopped["running"].as_bool()), (0, Some(false)));
    let (code, _, _) = run(&cluster, &["scrub", "start", "--rate", "64KiB", "--wait", "--timeout", "1s"]);
    assert_eq!(code, 3, "a wait has an end");
}
