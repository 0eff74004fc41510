//! Operators over http, nodes that come later, and nodes that do not fit.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use server::{Node, NodeConfig, NodeExit};
use types::{AdminAnswer, ClusterId, ClusterMap, Entry, NodeId, Profile};
use wire::frame::FORMAT_VERSION;

use crate::harness::{Cluster, PATIENCE, Plan, coordinator, eventually, http_get, wait_until_ready};

/// Status and body of the answer to `POST /admin`.
fn post(addr: SocketAddr, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).expect("a listener that answers");
    stream.set_read_timeout(Some(PATIENCE)).expect("a listener that answers");
    let length = body.len();
    let request = format!("POST /admin HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    // A listener that has read enough to refuse may have closed before the rest is written.
    let _ = stream.write_all(request.as_bytes());
    let mut text = String::new();
    // Nor is a reset after the answer an answer less.
    let _ = stream.read_to_string(&mut text);
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

pub(crate) fn order(addr: SocketAddr, body: &str) -> (u16, String) {
    post(addr, &format!("Host: {addr}\r\nContent-Type: application/json\r\n"), body)
}

fn joiner(cluster: &Cluster, node: u16) -> NodeConfig {
    let mut config = NodeConfig::local(NodeId(node), cluster.coordinator.address());
    config.timing = Plan::default().timing;
    config.entry = Entry::Joiner;
    config
}

#[test]
fn any_node_and_the_coordinator_take_orders() {
    let cluster = Cluster::start();
    let coordinator = cluster.coordinator.http_addr().unwrap();
    let nodes: Vec<SocketAddr> = cluster.nodes.iter().map(|node| node.addresses().http).collect();
    let (code, body) = order(coordinator, r#"{"command":"pause_repair"}"#);
    let AdminAnswer::Layout(layout) = serde_json::from_str(&body).unwrap() else { panic!("{body}") };
    assert!(code == 200 && layout.repair.paused && layout.version.0 == 1);
    let (code, body) = order(nodes[2], r#"{"expect":1,"command":"resume_repair"}"#);
    assert!(code == 200 && body.contains("\"paused\":false"), "{body}");
    let (code, body) = order(nodes[3], r#"{"expect":1,"command":"pause_repair"}"#);
    assert!(code == 409 && body.contains("\"error\":\"version_conflict\""), "{code} {body}");
    assert!(body.contains("\"have\":2") && body.contains("version 2 by now"), "{body}");
    let (code, body) = order(nodes[0], r#"{"command":{"drain":{"node":1}}}"#);
    assert!(code == 409 && body.contains("not_enough_nodes"), "{code} {body}");
    let (code, body) = order(nodes[0], r#"{"command":{"can_stop":{"node":1}}}"#);
    assert!(code == 200 && body.contains("\"losses_survived_after\":1"), "{code} {body}");
    assert_eq!(order(nodes[0], r#"{"command":{"undrain":{"node":99}}}"#).0, 404);
    eventually("told to all", || {
        let maps = nodes.iter().map(|node| http_get(*node, "/map").1);
        let versions: Vec<u64> =
            maps.map(|map| serde_json::from_str::<ClusterMap>(&map).unwrap().layout.version.0).collect();
        if versions == [2; 5] { Ok(()) } else { Err(format!("{versions:?}")) }
    });
}

#[test]
fn web_pages_and_garbage_give_no_orders() {
    let cluster = Cluster::of(&Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() }, |_| ());
    let pause = r#"{"command":"pause_repair"}"#;
    for addr in [cluster.nodes[0].addresses().http, cluster.coordinator.http_addr().unwrap()] {
        let json = "Content-Type: application/json\r\n";
        let (code, body) = post(addr, &format!("Host: evil.example\r\n{json}"), pause);
        assert!(code == 403 && body.contains("from the node's own machine only"), "{code} {body}");
        // What a form of a page may send without being asked.
        assert_eq!(post(addr, &format!("Host: {addr}\r\nContent-Type: text/plain\r\n"), pause).0, 415);
        assert_eq!(order(addr, "{").0, 400);
        assert_eq!(order(addr, r#"{"command":"reboot"}"#).0, 422);
        assert_eq!(order(addr, &format!("\"{}\"", "x".repeat(2 << 20))).0, 413);
        assert_eq!(http_get(addr, "/admin").0, 405);
        assert!(!cluster.coordinator.status().map.unwrap().layout.repair.paused);
    }
}

#[test]
fn without_a_coordinator_orders_are_answered_with_the_reason() {
    let Cluster { nodes, coordinator } = Cluster::start();
    coordinator.stop();
    let addr = nodes[0].addresses().http;
    eventually("noticed", || {
        let (code, body) = order(addr, r#"{"command":"pause_repair"}"#);
        if code == 503 && body.contains("\"error\":\"no_coordinator\"") { Ok(()) } else { Err(body) }
    });
}

#[test]
fn a_node_joins_empty_if_it_says_so_or_comes_with_those_that_have_formed_the_cluster() {
    let cluster = Cluster::start();
    let node = Node::start(joiner(&cluster, 5)).unwrap();
    wait_until_ready(node.addresses().http);
    let map = cluster.coordinator.status().map.unwrap();
    assert_eq!(map.nodes.len(), 6);
    assert!(map.groups.iter().all(|view| view.roles_on(NodeId(5)) == 0));
    let (code, _) = order(cluster.nodes[0].addresses().http, r#"{"command":{"drain":{"node":1}}}"#);
    assert_eq!(code, 200, "now there is a place to go");
    let mut config = joiner(&cluster, 6);
    config.entry = Entry::Founder;
    let late = Node::start(config).unwrap();
    wait_until_ready(late.addresses().http);
    assert_eq!(cluster.coordinator.status().map.unwrap().nodes.len(), 7);
}

#[test]
fn a_joiner_of_another_cluster_profile_or_shape_is_refused_with_both_values() {
    let cluster = Cluster::start();
    let refused = |change: fn(&mut NodeConfig)| {
        let mut config = joiner(&cluster, 7);
        change(&mut config);
        match Node::start(config).unwrap().wait() {
            NodeExit::Refused(text) => text,
            other => panic!("{other:?}"),
        }
    };
    let text = refused(|config| config.cluster = Some(ClusterId(1)));
    assert!(text.contains("meant for cluster-1, the coordinator has cluster-32343"), "{text}");
    let text = refused(|config| config.profile = Some(Profile::rs(2, 1).unwrap()));
    assert!(text.contains("meant for profile rs(2+1), the cluster has rs(3+2)"), "{text}");
    let text = refused(|config| config.workers = 3);
    assert!(text.contains("3 workers, the cluster's nodes have 1"), "{text}");
    assert!(cluster.coordinator.status().map.unwrap().node(NodeId(7)).is_none());
}

/// `bytes` are frames; their headers say another version afterwards.
fn of_another_version(bytes: &mut [u8]) {
    bytes[4] = FORMAT_VERSION + 1;
    let crc = crc32c::crc32c(&bytes[..40]);
    bytes[40..44].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_coordinator_of_another_version_ends_a_node_that_would_join() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let node = Node::start(NodeConfig::local(NodeId(0), address.into())).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut register = vec![0; 44];
    stream.read_exact(&mut register).unwrap();
    of_another_version(&mut register);
    stream.write_all(&register).unwrap();
    let exit = node.wait();
    let both = format!("format {}, this node speaks {FORMAT_VERSION}", FORMAT_VERSION + 1);
    assert!(matches!(&exit, NodeExit::WrongCluster(text) if text.contains(&both)), "{exit:?}");
}

#[test]
fn a_node_of_another_version_is_told_the_coordinators() {
    let server = coordinator(&Plan::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = Node::start(NodeConfig::local(NodeId(0), listener.local_addr().unwrap().into())).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut register = vec![0; 44];
    stream.read_exact(&mut register).unwrap();
    drop(node);
    of_another_version(&mut register);
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&register).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!((&answer[..4], answer.get(4)), (&b"GSTL"[..], Some(&FORMAT_VERSION)));
}
