//! Status, metrics, stats.

use std::io::Write;
use std::net::TcpStream;

use types::{ClusterMap, MapChanges};

use crate::harness::{Cluster, Plan, coordinator, eventually, http_get};
use server::{Node, NodeConfig};

#[test]
fn pages_tell_what_the_cluster_is() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    client.ask("set a 0 0 1\r\nx\r\nget a nothing\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    let addr = cluster.nodes[0].addresses();
    assert_eq!(http_get(addr.http, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(http_get(addr.http, "/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(http_get(addr.http, "/nothing").0, 404);

    let (code, body) = http_get(addr.http, "/map");
    let map: ClusterMap = serde_json::from_str(&body).unwrap();
    assert_eq!((code, map.nodes.len(), map.groups.len()), (200, 5, 5));
    assert_eq!(map.nodes[0].memcached, addr.memcached);

    let since = |since: u64| {
        let path = format!("/map?cluster={}&since={since}", map.cluster.0);
        http_get(addr.http, &path).1
    };
    let none: MapChanges = serde_json::from_str(&since(map.version)).unwrap();
    assert!((none.since, none.version) == (map.version, map.version) && none.parts().next().is_none());
    assert_eq!(serde_json::from_str::<ClusterMap>(&since(0)).unwrap(), map, "whoever has nothing gets all");
    assert_eq!(http_get(addr.http, "/map?since=x").0, 400);

    let status = cluster.status(0);
    let known = status.cluster.unwrap();
    assert_eq!((known.protection_asked, known.protection_achieved), (2, 2));
    assert!(status.ready && status.links.len() == 4 && known.lost_slots.is_empty());

    let (_, page) = http_get(addr.http, "/metrics");
    for line in [
        "gestalt_requests_total{op=\"get\",outcome=\"hit\"} 1",
        "gestalt_requests_total{op=\"get\",outcome=\"miss\"} 1",
        "gestalt_requests_total{op=\"set\",outcome=\"any\"} 1",
        "gestalt_links 4",
        "gestalt_protection_achieved 2",
        "gestalt_nodes{state=\"alive\"} 5",
    ] {
        assert!(page.contains(line), "{line} in\n{page}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split([' ', '{']).next().unwrap();
        assert!(name.starts_with("gestalt_") || name.starts_with("process_"), "{line}");
        let family = |suffix| {
            name.strip_suffix(suffix).is_some_and(|of| page.contains(&format!("# TYPE {of} histogram")))
        };
        let is_known = page.contains(&format!("# TYPE {name} "));
        assert!(is_known || ["_bucket", "_sum", "_count"].into_iter().any(family), "{line}");
    }
    let standard = [
        "cpu_seconds_total",
        "resident_memory_bytes",
        "virtual_memory_bytes",
        "start_time_seconds",
        "open_fds",
        "max_fds",
        "threads",
    ];
    for name in standard.into_iter().filter(|_| cfg!(target_os = "linux")) {
        assert!(page.contains(&format!("\nprocess_{name} ")), "{name} in\n{page}");
    }
}

#[test]
fn the_coordinator_has_pages_too() {
    let plan = Plan { nodes: 2, profile: "rs(1+1)", groups: 2, ..Plan::default() };
    let server = coordinator(&plan);
    let http = server.http_addr().unwrap();
    assert_eq!(http_get(http, "/readyz").0, 503);
    assert_eq!(http_get(http, "/map").0, 503);
    drop(server);
    let cluster = Cluster::of(&plan, |_| ());
    let http = cluster.coordinator.http_addr().unwrap();
    assert_eq!(http_get(http, "/readyz").0, 200);
    let map: ClusterMap = serde_json::from_str(&http_get(http, "/map").1).unwrap();
    assert_eq!(map.nodes.len(), 2);
    let path = format!("/map?cluster={}&since={}", map.cluster.0, map.version);
    let none: MapChanges = serde_json::from_str(&http_get(http, &path).1).unwrap();
    assert_eq!((none.version, none.parts().next()), (map.version, None));
    let report: server::CoordinatorReport = serde_json::from_str(&http_get(http, "/status").1).unwrap();
    assert_eq!((report.expected_nodes, report.registered.len(), report.connected.len()), (2, 2, 2));
    assert!(http_get(http, "/metrics").1.contains("gestalt_coordinator_registered_nodes 2"));
    assert_eq!(cluster.coordinator.status().map.unwrap().nodes.len(), 2);
    let mut stranger = TcpStream::connect(cluster.coordinator.addr()).unwrap();
    stranger
        .write_all(b"GET / HTTP/1.1\r\nHost: an address that is long enough for a header\r\n\r\n")
        .unwrap();
    eventually("counted", || {
        let page = http_get(http, "/metrics").1;
        if page.contains("gestalt_coordinator_malformed_total 1") { Ok(()) } else { Err(page) }
    });
}

#[test]
fn a_node_without_a_cluster_is_alive_and_not_ready_and_says_why() {
    let plan = Plan { nodes: 2, profile: "rs(1+1)", groups: 2, ..Plan::default() };
    let server = coordinator(&plan);
    let mut config = NodeConfig::local(types::NodeId(0), server.address());
    config.timing = plan.timing;
    let node = Node::start(config).unwrap();
    let http = node.addresses().http;
    assert_eq!(http_get(http, "/healthz").0, 200);
    let (code, body) = http_get(http, "/readyz");
    assert!(code == 503 && body.contains("has not formed"), "{code} {body}");
}

#[test]
fn stats_have_the_names_that_tools_look_for() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    client.ask("set a 0 0 1\r\nx\r\nget a\r\nget b\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nEND\r\n");
    let stats = stats(client, "stats");
    let value = |name: &str| stats.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    for name in [
        "pid",
        "uptime",
        "time",
        "version",
        "pointer_size",
        "bytes",
        "limit_maxbytes",
        "threads",
        "rusage_user",
    ] {
        assert!(value(name).is_some(), "{name}");
    }
    assert_eq!((value("cmd_get"), value("get_hits"), value("get_misses")), (Some("2"), Some("1"), Some("1")));
    assert_eq!((value("cmd_set"), value("curr_connections")), (Some("1"), Some("1")));
    assert_eq!(value("gestalt_protection_achieved"), Some("2"));
    assert!(!self::stats(client, "stats settings").is_empty());
    for which in ["stats items", "stats slabs", "stats conns"] {
        self::stats(client, which);
    }
    client.ask("stats reset\r\n", "RESET\r\n");
    let stats = self::stats(client, "stats");
    assert!(stats.contains(&("cmd_get".to_owned(), "0".to_owned())));
    assert!(stats.contains(&("curr_connections".to_owned(), "1".to_owned())));
}

fn stats(client: &mut crate::harness::Client, command: &str) -> Vec<(String, String)> {
    client.send(format!("{command}\r\n"));
    let mut found = Vec::new();
    loop {
        let line = client.line();
        if line == "END" {
            return found;
        }
        let mut words = line.splitn(3, ' ');
        assert_eq!(words.next(), Some("STAT"), "{line}");
        found.push((words.next().expect("a name").to_owned(), words.next().unwrap_or_default().to_owned()));
    }
}
