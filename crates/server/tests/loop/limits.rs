//! Back-pressure and bounds: nobody can make a node grow, and nobody else suffers.

use std::io::{Read, Write};
use std::time::Duration;

use server::ConnectionLimits;

use crate::harness::{Client, Cluster, Plan, eventually, http_get};

fn limited(limits: ConnectionLimits) -> Cluster {
    Cluster::of(&Plan::default(), |config| config.limits = limits)
}

#[test]
fn a_window_of_one_still_answers_everything_in_order() {
    let cluster =
        limited(ConnectionLimits { outstanding_requests: 1, outstanding_bytes: 1, ..Default::default() });
    let client = &mut cluster.client(0);
    for i in 0..100 {
        client.send(format!("set w{i} 0 0 1\r\nx\r\nget w{i} w0\r\n"));
    }
    for i in 0..100 {
        client.expect(format!("STORED\r\nVALUE w{i} 0 1\r\nx\r\nVALUE w0 0 1\r\nx\r\nEND\r\n"));
    }
}

#[test]
fn a_client_that_does_not_read_is_bounded_and_closed_and_others_go_on() {
    let limits = ConnectionLimits { unread: Duration::from_millis(300), ..Default::default() };
    let cluster = limited(limits);
    let mut other = cluster.client(0);
    let value = "v".repeat(100_000);
    other.ask(format!("set big 0 0 100000\r\n{value}\r\n"), "STORED\r\n");
    let mut greedy = cluster.client(0);
    greedy.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // 100 MB of replies for half a megabyte of requests, none of them read.
    let flood = "get big\r\n".repeat(50_000);
    let mut sent = 0;
    while sent < flood.len() {
        match greedy.stream.write(&flood.as_bytes()[sent..]) {
            Ok(len) => sent += len,
            Err(_) => break,
        }
    }
    other.ask("mg big s\r\n", "HD s100000\r\n");
    eventually("closed", || {
        let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
        let closed = page.contains("gestalt_connections_overdue_total{deadline=\"unread\"} 1");
        if closed { Ok(()) } else { Err(page) }
    });
    other.expect_quiet();
    assert!(cluster.status(0).memory.used_bytes < cluster.status(0).memory.limit_bytes);
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    let value = "0123456789".repeat(10_000);
    client.ask(format!("set big 0 0 100000\r\n{value}\r\n"), "STORED\r\n");
    let reply = format!("VALUE big 0 100000\r\n{value}\r\nEND\r\n");
    client.send("get big\r\n".repeat(200));
    for _ in 0..200 {
        client.expect(&reply);
    }
    client.expect_quiet();
}

#[test]
fn one_connection_too_many_is_told_so() {
    let cluster = limited(ConnectionLimits { max_connections: 2, ..Default::default() });
    let mut first = cluster.client(0);
    let mut second = cluster.client(0);
    first.expect_quiet();
    second.expect_quiet();
    let mut third = cluster.client(0);
    third.expect("ERROR Too many open connections\r\n");
    third.expect_closed();
    drop(second);
    eventually("free again", || {
        let mut next = Client::connect(cluster.nodes[0].addresses().memcached);
        let _ = next.stream.write_all(b"mn\r\n");
        let line = next.line();
        if line == "MN" { Ok(()) } else { Err(line) }
    });
    first.expect_quiet();
}

#[test]
fn many_half_sent_values_do_not_keep_each_other_waiting() {
    // Buffers for 4 MiB; ten clients each have sent half of a 1 MB value.
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 32 << 20);
    let mut clients: Vec<Client> = (0..10).map(|_| cluster.client(0)).collect();
    let half = vec![b'x'; 500_000];
    for (i, client) in clients.iter_mut().enumerate() {
        client.stream.set_nonblocking(true).unwrap();
        let _ = client.stream.write(format!("set half{i} 0 0 1000000\r\n").as_bytes());
        client.stream.set_nonblocking(false).unwrap();
    }
    std::thread::scope(|scope| {
        for client in &mut clients {
            let half = &half;
            scope.spawn(move || {
                client.send(half);
                client.send(half);
                client.send("\r\n");
                let line = client.line();
                assert!(line == "STORED" || line.starts_with("SERVER_ERROR out of memory"), "{line}");
            });
        }
    });
}

#[test]
fn no_input_of_any_kind_ends_a_node() {
    let cluster = Cluster::start();
    let words: [&[u8]; 24] = [
        b"get ",
        b"gets ",
        b"set ",
        b"ms ",
        b"mg ",
        b"ma ",
        b"md ",
        b"me ",
        b"a",
        b"b ",
        b" 0 0 3",
        b" 5",
        b" -1",
        b"\r\n",
        b"\n",
        b"abc\r\n",
        b"\0",
        b" noreply",
        b" v k q O1",
        b"flush_all",
        b"stats",
        b"incr ",
        b"\xff\xfe",
        b"gat 1 ",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for round in 0..200 {
        let mut client = cluster.client(round % 5);
        let mut bytes = Vec::new();
        for _ in 0..random() % 200 {
            bytes.extend_from_slice(words[random() % words.len()]);
        }
        // The node may close in the middle of it.
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        while client.stream.read(&mut [0; 4096]).is_ok_and(|len| len > 0) {}
    }
    for node in 0..5 {
        cluster
            .client(node)
            .ask("set alive 0 0 1\r\nx\r\nget alive\r\n", "STORED\r\nVALUE alive 0 1\r\nx\r\nEND\r\n");
    }
}

#[test]
fn a_full_store_says_so_and_goes_on_reading() {
    let cluster = Cluster::of(&Plan::default(), |config| config.memory_bytes = 24 << 20);
    let client = &mut cluster.client(0);
    let value = "v".repeat(100_000);
    let mut refused = 0;
    for i in 0..1500 {
        client.send(format!("set full{i} 0 0 100000\r\n{value}\r\n"));
        match client.line().as_str() {
            "STORED" => (),
            line => {
                assert!(line.starts_with("SERVER_ERROR out of memory"), "{line}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "150 MB do not fit into five times 24 MB");
    client.ask("get full0\r\n", format!("VALUE full0 0 100000\r\n{value}\r\nEND\r\n"));
    for node in 0..5 {
        let memory = cluster.status(node).memory;
        assert!(memory.used_bytes <= memory.limit_bytes, "{memory:?}");
    }
}
