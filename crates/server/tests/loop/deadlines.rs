//! Idle, half-sent: closed in time, and counted.

use std::time::Duration;

use server::ConnectionLimits;

use crate::harness::{Cluster, Plan, eventually, http_get};

fn single(limits: ConnectionLimits) -> Cluster {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    Cluster::of(&plan, |config| config.limits = limits)
}

/// A page lacks a worker that is too busy to answer in time: another one is asked for.
fn is_counted_once(cluster: &Cluster, deadline: &str) {
    let line = format!("gestalt_connections_overdue_total{{deadline=\"{deadline}\"}} 1\n");
    eventually("counted", || {
        let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
        if page.contains(&line) { Ok(()) } else { Err(format!("no line {line}")) }
    });
}

#[test]
fn a_silent_connection_is_closed_if_a_deadline_is_set() {
    let cluster = single(ConnectionLimits { idle: Some(Duration::from_millis(100)), ..Default::default() });
    let mut client = cluster.client(0);
    client.ask("mn\r\n", "MN\r\n");
    client.expect_closed();
    is_counted_once(&cluster, "idle");
}

#[test]
fn half_a_command_is_not_waited_for_for_ever() {
    let cluster = single(ConnectionLimits { half_sent: Duration::from_millis(100), ..Default::default() });
    let mut patient = cluster.client(0);
    let mut client = cluster.client(0);
    client.ask("mn\r\nset a 0 0 10\r\n12", "MN\r\n");
    client.expect_closed();
    is_counted_once(&cluster, "half_sent");
    patient.expect_quiet();
}

#[test]
fn what_is_due_is_answered_before_the_connection_closes() {
    let cluster = single(ConnectionLimits::default());
    let mut client = cluster.client(0);
    client.send("set a 0 0 1\r\nx\r\nget a\r\nquit\r\nget a\r\n");
    client.expect("STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    client.expect_closed();
    let mut client = cluster.client(0);
    client.send("get a\r\n");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    client.expect("VALUE a 0 1\r\nx\r\nEND\r\n");
    client.expect_closed();
}

#[test]
fn what_is_not_memcached_is_closed_at_once() {
    let cluster = single(ConnectionLimits::default());
    let http = b"GET / HTTP/1.1\r\n\r\n";
    let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let binary = [0x80, 0x0e, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0, 0, 0, 0];
    for bytes in [&http[..], &tls, &binary, &[b'x'; 5000]] {
        let mut client = cluster.client(0);
        client.send(bytes);
        client.expect_closed();
    }
    let mut client = cluster.client(0);
    client.send("mn\r\nset a 0 0 -1\r\nget a\r\n");
    // A length that cannot be read says nothing of what follows: the next line is a command, as in memcached.
    client.expect("MN\r\nCLIENT_ERROR bad command line format\r\nEND\r\n");
    cluster.client(0).expect_quiet();
}
