//! Every command once, through every node.

use server::{BoundListener, Node, NodeConfig, NodeStatus};
use types::NodeId;

use crate::harness::{Client, Cluster, Plan, coordinator, http_get};

#[test]
fn every_node_serves_every_key() {
    let cluster = Cluster::start();
    for writer in 0..5 {
        let mut client = cluster.client(writer);
        for i in 0..20 {
            client.ask(format!("set key-{writer}-{i} {i} 0 5\r\nvalue\r\n"), "STORED\r\n");
        }
    }
    for reader in 0..5 {
        let mut client = cluster.client(reader);
        for writer in 0..5 {
            for i in 0..20 {
                client.ask(
                    format!("get key-{writer}-{i}\r\n"),
                    format!("VALUE key-{writer}-{i} {i} 5\r\nvalue\r\nEND\r\n"),
                );
            }
        }
    }
    let items: u64 = (0..5).map(|node| cluster.status(node).items).sum();
    assert_eq!(items, 100);
}

#[test]
fn commands_answer_as_memcached_does() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(2);
    client.ask("get a\r\n", "END\r\n");
    client.ask("set a 7 0 1\r\nx\r\n", "STORED\r\n");
    client.ask("add a 0 0 1\r\ny\r\n", "NOT_STORED\r\n");
    client.ask("replace a 8 0 2\r\nyy\r\n", "STORED\r\n");
    client.ask("append a 0 0 1\r\n!\r\n", "STORED\r\n");
    client.ask("prepend a 0 0 1\r\n?\r\n", "STORED\r\n");
    client.ask("get a\r\n", "VALUE a 8 4\r\n?yy!\r\nEND\r\n");
    client.ask("delete a\r\n", "DELETED\r\n");
    client.ask("delete a\r\n", "NOT_FOUND\r\n");
    client.ask("set n 0 0 2\r\n41\r\n", "STORED\r\n");
    client.ask("incr n 1\r\n", "42\r\n");
    client.ask("decr n 50\r\n", "0\r\n");
    client.ask("incr missing 1\r\n", "NOT_FOUND\r\n");
    client.ask("touch n 100\r\n", "TOUCHED\r\n");
    client.ask("touch missing 100\r\n", "NOT_FOUND\r\n");
    client.ask("gat 100 n\r\n", "VALUE n 0 2\r\n0 \r\nEND\r\n");
    client.ask("version\r\n", "VERSION 1.6.45\r\n");
    client.ask("verbosity 1\r\n", "OK\r\n");
    client.ask("mn\r\n", "MN\r\n");
    client.ask("nonsense\r\n", "ERROR\r\n");
    client.expect_quiet();
    client.send("quit\r\n");
    client.expect_closed();
}

#[test]
fn cas_sees_versions() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    client.ask("set c 0 0 3\r\none\r\n", "STORED\r\n");
    client.send("gets c\r\n");
    let line = client.line();
    let version: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    client.expect("one\r\nEND\r\n");
    client.ask(format!("cas c 0 0 3 {}\r\ntwo\r\n", version + 1), "EXISTS\r\n");
    client.ask(format!("cas c 0 0 3 {version}\r\ntwo\r\n"), "STORED\r\n");
    client.ask(format!("cas c 0 0 3 {version}\r\nxxx\r\n"), "EXISTS\r\n");
    client.ask(format!("cas none 0 0 3 {version}\r\nxxx\r\n"), "NOT_FOUND\r\n");
    client.ask("get c\r\n", "VALUE c 0 3\r\ntwo\r\nEND\r\n");
}

#[test]
fn meta_commands_answer_with_codes() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(1);
    client.ask("mg m v\r\n", "EN\r\n");
    client.ask("ms m 5 F3 Oabc\r\nvalue\r\n", "HD Oabc\r\n");
    client.ask("mg m v f s k Oq\r\n", "VA 5 f3 s5 km Oq\r\nvalue\r\n");
    client.ask("ms n 1 q\r\n1\r\nma n N0 v\r\nmg none v q\r\nmn\r\n", "VA 1\r\n2\r\nMN\r\n");
    client.ask("md m q\r\nmd m\r\n", "NF\r\n");
    client.expect_quiet();
}

#[test]
fn values_of_every_size_come_back() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(3);
    for len in [0, 1, 100, 4095, 4096, 65_535, 65_536, 500_000, 1024 * 1024 - 512, 1024 * 1024, 2 << 20] {
        let value: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let mut request = format!("set big-{len} 0 0 {len}\r\n").into_bytes();
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        client.ask(&request, "STORED\r\n");
        let mut reply = format!("VALUE big-{len} 0 {len}\r\n").into_bytes();
        reply.extend_from_slice(&value);
        reply.extend_from_slice(b"\r\nEND\r\n");
        client.ask(format!("get big-{len}\r\n"), &reply);
    }
    client.expect_quiet();
}

#[test]
fn two_workers_serve_each_others_keys() {
    let plan = Plan { workers: 2, groups: 10, ..Plan::default() };
    let cluster = Cluster::of(&plan, |_| ());
    // Connections are dealt to workers in turn, so these two belong to different ones.
    let (mut first, mut second) = (cluster.client(0), cluster.client(0));
    for i in 0..100 {
        first.send(format!("set k{i} 0 0 {}\r\n{i}\r\n", i.to_string().len()));
    }
    first.expect("STORED\r\n".repeat(100));
    for i in 0..100 {
        second.send(format!("get k{i}\r\n"));
    }
    for i in 0..100 {
        second.expect(format!("VALUE k{i} 0 {}\r\n{i}\r\nEND\r\n", i.to_string().len()));
    }
    first.ask("flush_all\r\n", "OK\r\n");
    second.ask("get k1 k2 k3 k4 k5 k6 k7\r\n", "END\r\n");
    let status = cluster.status(0);
    assert_eq!((status.workers, status.links.len()), (2, 8));
}

#[test]
fn one_node_without_parity_is_a_plain_cache() {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let cluster = Cluster::of(&plan, |_| ());
    let client = &mut cluster.client(0);
    client.ask("set a 0 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn before_the_first_map_requests_wait_also_at_a_listener_that_is_bound() {
    let plan = Plan { nodes: 2, profile: "none", groups: 2, ..Plan::default() };
    let coordinator = coordinator(&plan);
    let start = |id| {
        let mut config = NodeConfig::local(NodeId(id), coordinator.address());
        config.timing = plan.timing;
        let (addr, namespace) = ("127.0.0.1:0".parse().unwrap(), "default".parse().unwrap());
        config.bound = vec![BoundListener { addr, namespace }];
        Node::start(config).unwrap()
    };
    let first = start(0);
    let (_, status) = http_get(first.addresses().http, "/status");
    let status: NodeStatus = serde_json::from_str(&status).unwrap();
    let mut client = Client::connect(status.bound[0].addr);
    client.send("get k\r\n");
    // There is no cluster, and so no map, without the second one.
    let _second = start(1);
    client.expect("END\r\n");
}
