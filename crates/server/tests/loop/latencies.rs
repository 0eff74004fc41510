//! Histograms of latencies, as a scraper sees them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::harness::{Cluster, Plan, http_get};

/// Histograms by name and labels: bounds with cumulative counts, the sum, the count.
#[derive(Debug, Default, PartialEq)]
struct Scraped {
    buckets: Vec<(f64, u64)>,
    sum: f64,
    count: u64,
}

/// Every histogram of a page. Whatever is no sample of a family that was begun before it is an error.
fn scrape(http: SocketAddr) -> BTreeMap<String, Scraped> {
    let (_, page) = http_get(http, "/metrics");
    let mut found: BTreeMap<String, Scraped> = BTreeMap::new();
    let mut family = ("", "");
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            family = kind.split_once(' ').expect("a name and a kind");
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        if family.1 != "histogram" {
            assert_eq!(name, family.0, "{line}");
            continue;
        }
        let labels = labels.strip_suffix('}').expect("labels in braces");
        let (rest, bound) = labels.split_once(",le=").unwrap_or((labels, ""));
        let one = found.entry(format!("{}{{{rest}}}", family.0)).or_default();
        match name.strip_prefix(family.0).expect("a sample of its family") {
            "_bucket" => {
                one.buckets.push((number(bound.trim_matches('"')), number(value)));
            }
            "_sum" => one.sum = number(value),
            "_count" => one.count = number(value),
            other => panic!("{other}: {line}"),
        }
    }
    found
}

fn number<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("a number")
}

fn check(name: &str, one: &Scraped) {
    let ascending = one.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    assert!(ascending && one.buckets.len() > 20, "{name}: {one:?}");
    assert_eq!(one.buckets.last(), Some(&(f64::INFINITY, one.count)), "{name}");
    let (first, _) = one.buckets[0];
    let short = one.buckets[0].1 as f64 * first;
    assert!(one.sum <= one.count as f64 * 60.0 && (one.sum > 0.0 || short > 0.0), "{name}: {one:?}");
}

#[test]
fn every_command_is_measured_under_the_name_that_its_clients_know() {
    let cluster = Cluster::of(&Plan { nodes: 1, profile: "rs(1+0)", groups: 1, ..Plan::default() }, |_| ());
    let client = &mut cluster.client(0);
    client.ask("set a 0 0 1\r\n1\r\nadd a 0 0 1\r\n1\r\n", "STORED\r\nNOT_STORED\r\n");
    client.ask(
        "get a b\r\nget a\r\ngat 0 a\r\n",
        "VALUE a 0 1\r\n1\r\nEND\r\nVALUE a 0 1\r\n1\r\nEND\r\nVALUE a 0 1\r\n1\r\nEND\r\n",
    );
    client.ask(
        "incr a 1\r\ntouch a 0\r\nmg a v\r\nms b 1\r\nx\r\nma a\r\n",
        "2\r\nTOUCHED\r\nVA 1\r\n2\r\nHD\r\nHD\r\n",
    );
    client.ask("md b\r\ndelete a\r\nflush_all\r\n", "HD\r\nDELETED\r\nOK\r\n");
    client.ask("gets a\r\n", "END\r\n");
    let found = scrape(cluster.nodes[0].addresses().http);
    found.iter().for_each(|(name, one)| check(name, one));
    let counts = |operation: &str| {
        found.get(&format!("gestalt_request_seconds{{operation=\"{operation}\"}}")).map_or(0, |one| one.count)
    };
    let once = ["set", "add", "gat", "incr", "touch", "mg", "ms", "ma", "md", "delete", "flush_all", "gets"];
    assert_eq!(once.map(counts), [1; 12], "{found:#?}");
    assert_eq!((counts("get"), counts("cas")), (3, 0), "each key counts");
}

#[test]
fn what_requests_wait_for_is_measured_where_they_wait() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    for key in 0..40 {
        client.ask(
            format!("set key-{key} 0 0 1\r\n1\r\nget key-{key}\r\n"),
            format!("STORED\r\nVALUE key-{key} 0 1\r\n1\r\nEND\r\n"),
        );
    }
    let pages: Vec<_> = cluster.nodes.iter().map(|node| scrape(node.addresses().http)).collect();
    pages.iter().flatten().for_each(|(name, one)| check(name, one));
    let count = |operation: &str, stage: &str| -> u64 {
        let name = format!("gestalt_request_stage_seconds{{operation=\"{operation}\",stage=\"{stage}\"}}");
        pages.iter().filter_map(|page| page.get(&name)).map(|one| one.count).sum()
    };
    assert_eq!(count("set", "parities"), 40, "each at its primary");
    assert!((1..40).contains(&count("set", "network")), "those of other nodes' keys");
    assert_eq!(count("get", "parities"), 0);
    assert_eq!(count("get", "network"), count("set", "network"));
    assert!(count("get", "queue") >= 1, "the get of a key that is being set waits for that");
    let asked =
        |operation: &str| pages[0][&format!("gestalt_request_seconds{{operation=\"{operation}\"}}")].count;
    assert_eq!((asked("set"), asked("get")), (40, 40), "at the node that was asked");
    assert_eq!(pages[1].get("gestalt_request_seconds{operation=\"set\"}"), None);
}
