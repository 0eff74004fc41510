//! Starting, refusing, stopping, and peers that are none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use proto::Timing;
use server::{Node, NodeConfig, NodeExit, NodeHandle, StartError};
use types::{ClusterId, HostId, NodeId, Profile};
use wire::frame::{Encoder, LinkHello, LinkMessage};

use crate::harness::{Cluster, Plan, coordinator, eventually, http_get, wait_until_ready};

/// A lease that a test can wait for.
const LEASE: Duration = Duration::from_secs(2);
const SHORT: Timing = Timing::from_lease(2_000_000);

#[test]
fn a_port_in_use_is_named() {
    let cluster = Cluster::of(&Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() }, |_| ());
    let mut config = NodeConfig::local(NodeId(7), cluster.coordinator.address());
    config.memcached = cluster.nodes[0].addresses().memcached;
    let error = Node::start(config).unwrap_err();
    assert!(matches!(error, StartError::AddressInUse { what: "memcached", .. }), "{error}");
}

#[test]
fn an_address_that_others_cannot_use_needs_another_one_to_tell() {
    let mut config = NodeConfig::local(NodeId(0), "embedded://127.0.0.1:1".parse().unwrap());
    config.peer = "0.0.0.0:0".parse().unwrap();
    let error = Node::start(config.clone()).unwrap_err();
    assert!(matches!(error, StartError::NotAdvertisable { what: "peer", .. }), "{error}");
    config.advertise.host = Some("127.0.0.1".parse().unwrap());
    let node = Node::start(config.clone()).unwrap();
    assert!(node.addresses().peer.ip().is_loopback());
    assert_eq!(node.stop(), NodeExit::Stopped);
    // As behind a translation of addresses: another port, too, or only another host.
    config.http = "0.0.0.0:0".parse().unwrap();
    config.advertise.peer = Some("10.9.9.9:1234".parse().unwrap());
    config.advertise.http = Some("10.9.9.9:0".parse().unwrap());
    let node = Node::start(config).unwrap();
    let told = node.addresses();
    assert_eq!(told.peer, "10.9.9.9:1234".parse().unwrap());
    assert!(told.http.ip() == told.peer.ip() && told.http.port() != 0);
    assert!(told.memcached.ip().is_loopback());
    assert_eq!(node.stop(), NodeExit::Stopped);
}

#[test]
fn a_node_of_other_expectations_ends_with_the_reason() {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let wrong = |change: fn(&mut NodeConfig)| {
        let server = coordinator(&plan);
        let mut config = NodeConfig::local(NodeId(0), server.address());
        change(&mut config);
        Node::start(config).unwrap().wait().reason()
    };
    let profile = wrong(|config| config.profile = Some(Profile::rs(3, 2).unwrap()));
    assert!(profile.contains("meant for profile rs(3+2), the cluster has none"), "{profile}");
    let workers = wrong(|config| config.workers = 2);
    assert!(workers.contains("2 workers, the cluster's nodes have 1"), "{workers}");
    let identity = wrong(|config| config.cluster = Some(ClusterId(1)));
    assert!(identity.contains("meant for cluster-1"), "{identity}");
}

#[test]
fn two_living_processes_of_one_id_end_with_the_second_one_refused() {
    let plan = Plan { timing: SHORT, nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let cluster = Cluster::of(&plan, |_| ());
    let living = cluster.nodes[0].host();
    let second = Node::start(config_of(0, &plan, &cluster)).unwrap();
    let began = Instant::now();
    waits_for_its_place(&second);
    let exit = second.wait();
    let why = format!("already here as another process ({living}, at {})", cluster.nodes[0].addresses().peer);
    assert!(matches!(&exit, NodeExit::Refused(text) if text.contains(&why)), "{exit:?}");
    assert!(exit.reason().contains("that one lives: stop it first"), "{exit:?}");
    assert!(began.elapsed() > 3 * LEASE, "it does not give up before a dead one's place would be free");
    assert_eq!(known_process(&cluster, 0), (living, true), "the first one keeps its place");
    wait_until_ready(cluster.nodes[0].addresses().http);
    cluster.client(0).ask("set a 0 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn a_node_that_is_started_again_within_its_lease_comes_in_when_that_has_run_out() {
    let plan = Plan { timing: SHORT, ..Plan::default() };
    let mut cluster = Cluster::of(&plan, |_| ());
    let former = cluster.nodes.remove(4);
    let was = former.host();
    // Nobody tells the coordinator.
    former.stop();
    let again = Node::start(config_of(4, &plan, &cluster)).unwrap();
    waits_for_its_place(&again);
    assert_eq!(known_process(&cluster, 4), (was, true));
    let began = Instant::now();
    wait_until_ready(again.addresses().http);
    println!("it is in after {:?}", began.elapsed());
    assert_eq!(known_process(&cluster, 4), (again.host(), true));
    assert_eq!(again.stop(), NodeExit::Stopped);
}

#[test]
fn a_node_that_waits_for_its_place_can_be_stopped() {
    // Much longer than the test may take.
    let plan = Plan {
        timing: Timing::from_lease(600_000_000),
        nodes: 1,
        profile: "none",
        groups: 1,
        ..Plan::default()
    };
    let mut cluster = Cluster::of(&plan, |_| ());
    cluster.nodes.remove(0).stop();
    let again = Node::start(config_of(0, &plan, &cluster)).unwrap();
    waits_for_its_place(&again);
    assert_eq!(again.stop(), NodeExit::Stopped);
}

#[test]
fn before_the_cluster_has_formed_a_place_is_waited_for_too() {
    let plan = Plan { timing: SHORT, nodes: 2, profile: "rs(1+1)", groups: 2, ..Plan::default() };
    let server = coordinator(&plan);
    let start = |id| {
        let mut config = NodeConfig::local(NodeId(id), server.address());
        config.timing = plan.timing;
        Node::start(config).unwrap()
    };
    let former = start(0);
    eventually(
        "registered",
        || {
            if server.status().registered.is_empty() { Err(String::new()) } else { Ok(()) }
        },
    );
    former.stop();
    let again = start(0);
    waits_for_its_place(&again);
    let other = start(1);
    wait_until_ready(again.addresses().http);
    wait_until_ready(other.addresses().http);
}

#[test]
fn before_the_cluster_has_formed_a_long_value_is_refused_for_that_and_not_for_its_length() {
    let plan = Plan { timing: SHORT, nodes: 2, profile: "rs(1+1)", groups: 2, ..Plan::default() };
    let server = coordinator(&plan);
    let mut config = NodeConfig::local(NodeId(0), server.address());
    config.timing = plan.timing;
    let node = Node::start(config).unwrap();
    let mut stream = TcpStream::connect(node.addresses().memcached).unwrap();
    stream.write_all(b"set long 0 0 2000000\r\n").unwrap();
    stream.write_all(&vec![b'x'; 2_000_000]).unwrap();
    stream.write_all(b"\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("SERVER_ERROR") && !answer.contains("too large"), "{answer}");
}

/// How node `id` of a cluster of this plan is started.
fn config_of(id: u16, plan: &Plan, cluster: &Cluster) -> NodeConfig {
    let mut config = NodeConfig::local(NodeId(id), cluster.coordinator.address());
    config.timing = plan.timing;
    config
}

fn waits_for_its_place(node: &NodeHandle) {
    eventually("waiting", || {
        let (_, body) = http_get(node.addresses().http, "/readyz");
        if body.contains("is here as another process") { Ok(()) } else { Err(body) }
    });
}

/// The process that the coordinator's map has for node `id`, and whether it is alive.
fn known_process(cluster: &Cluster, id: u16) -> (HostId, bool) {
    let map = cluster.coordinator.status().map.expect("a map");
    let info = map.node(NodeId(id)).expect("one of its nodes");
    (info.host, info.alive)
}

#[test]
fn rude_peers_are_closed_and_the_cluster_goes_on() {
    let cluster = Cluster::start();
    for node in &cluster.nodes {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], b"GSTL", b""] {
            let mut stream = TcpStream::connect(node.addresses().peer).unwrap();
            let _ = stream.write_all(garbage);
        }
        let mut stream = TcpStream::connect(cluster.coordinator.addr()).unwrap();
        let _ = stream.write_all(&[0x55; 4096]);
    }
    let client = &mut cluster.client(0);
    for i in 0..50 {
        client.ask(format!("set r{i} 0 0 1\r\nx\r\n"), "STORED\r\n");
    }
    assert_eq!(cluster.status(0).links.len(), 4);
}

#[test]
fn a_peer_that_turns_malformed_loses_its_link_and_the_real_one_comes_back() {
    let cluster = Cluster::start();
    let map = cluster.coordinator.status().map.expect("a map");
    let (from, target) = (map.nodes[0].host, &map.nodes[1]);
    let mut stream = TcpStream::connect(target.peer).unwrap();
    let hello = LinkHello { cluster: map.cluster, from, to: target.host.node, shard: 0 };
    let mut bytes = Vec::new();
    Encoder::new(map.cluster, from).encode(&LinkMessage::Hello(hello), &mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut welcome = [0; 64];
    assert!(stream.read(&mut welcome).unwrap() > 0, "the handshake is right");
    let _ = stream.write_all(&[0xa5; 10_000]);
    eventually("counted", || {
        let (_, page) = http_get(target.http, "/metrics");
        if page.contains("gestalt_link_malformed_total 1") { Ok(()) } else { Err(page) }
    });
    cluster.nodes.iter().for_each(|node| wait_until_ready(node.addresses().http));
    let client = &mut cluster.client(1);
    for i in 0..50 {
        eventually("stored", || {
            client.send(format!("set m{i} 0 0 1\r\nx\r\n"));
            let line = client.line();
            if line == "STORED" { Ok(()) } else { Err(line) }
        });
    }
}

#[test]
fn the_coordinator_can_go_and_the_data_path_does_not_notice() {
    let cluster = Cluster::start();
    let Cluster { nodes, coordinator } = cluster;
    coordinator.stop();
    eventually("noticed", || {
        let (_, page) = http_get(nodes[0].addresses().http, "/metrics");
        if page.contains("gestalt_coordinator_connected 0") { Ok(()) } else { Err(page) }
    });
    let mut client = crate::harness::Client::connect(nodes[2].addresses().memcached);
    client.ask("set a 0 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn a_stopped_node_gives_its_ports_back() {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let mut cluster = Cluster::of(&plan, |_| ());
    let mut client = cluster.client(0);
    client.expect_quiet();
    let node = cluster.nodes.remove(0);
    let addr = node.addresses().memcached;
    assert_eq!(node.stop(), NodeExit::Stopped);
    client.expect_closed();
    let mut config = NodeConfig::local(NodeId(0), cluster.coordinator.address());
    config.memcached = addr;
    assert!(Node::start(config).is_ok());
}

#[test]
fn a_lost_node_costs_its_keys_a_pause_and_nothing_else() {
    let mut cluster = Cluster::start();
    let client = &mut cluster.client(0);
    for i in 0..300 {
        client.ask(format!("set lost{i} {i} 0 6\r\nval{i:03}\r\n"), "STORED\r\n");
    }
    cluster.nodes.remove(4).stop();
    cluster.coordinator.exited(NodeId(4));
    for i in 0..300 {
        let line = eventually("readable", || {
            client.send(format!("get lost{i}\r\n"));
            let line = client.line();
            if line.starts_with("SERVER_ERROR") { Err(line) } else { Ok(line) }
        });
        assert_eq!(line, format!("VALUE lost{i} {i} 6"));
        client.expect(format!("val{i:03}\r\nEND\r\n"));
        client.ask(
            format!("set lost{i} 0 0 1\r\nx\r\nget lost{i}\r\n"),
            format!("STORED\r\nVALUE lost{i} 0 1\r\nx\r\nEND\r\n"),
        );
    }
    eventually("ready again", || {
        let status = cluster.status(0);
        if status.ready { Ok(()) } else { Err(status.not_ready.join(", ")) }
    });
    let known = cluster.status(0).cluster.expect("a map");
    assert_eq!((known.dead_nodes.as_slice(), known.protection_asked), (&[NodeId(4)][..], 2));
    assert!(known.protection_achieved < 2 && known.lost_slots.is_empty());
}
