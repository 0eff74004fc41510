//! What nodes and coordinators say when somebody is away.

use cluster::health::{Fullness, Health};
use proto::Timing;
use server::{CoordinatorReport, NodeStatus};
use types::NodeId;

use crate::harness::{Cluster, Plan, eventually, http_get};

/// Long enough for a busy machine, and three of them short enough to wait for.
const LEASE_US: u64 = 1_000_000;

fn cluster() -> Cluster {
    Cluster::of(&Plan { timing: Timing::from_lease(LEASE_US), ..Plan::default() }, |_| ())
}

fn until(what: &str, cluster: &Cluster, holds: impl Fn(&NodeStatus) -> bool) -> NodeStatus {
    eventually(what, || {
        let status = cluster.status(0);
        if holds(&status) { Ok(status) } else { Err(format!("{status:?}")) }
    })
}

fn health(status: &NodeStatus) -> Option<Health> {
    status.assessment.as_ref().map(|found| found.health)
}

fn metric(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.split(' ').next() == Some(name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn while_the_coordinator_is_there_a_node_knows_that_all_is_well() {
    let cluster = cluster();
    let status = until("well", &cluster, |status| health(status) == Some(Health::Ok));
    assert!(status.coordinator_age_seconds.unwrap() < 3.0 * status.lease_seconds);
    assert!((status.lease_seconds - 1.0).abs() < 1e-9 && status.warnings.is_empty());
    assert!(!status.data_roles.is_empty() && status.data_roles.iter().all(|role| role.serves));
    let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
    assert_eq!(metric(&page, "gestalt_unavailable_slots"), Some(0.0));
    assert!(metric(&page, "gestalt_coordinator_age_seconds").unwrap() < 3.0);
    assert_eq!(metric(&page, "gestalt_full{state=\"refusing\"}"), Some(0.0));
}

#[test]
fn without_a_coordinator_a_node_stays_ready_and_says_how_old_its_knowledge_is() {
    let mut cluster = cluster();
    let http = cluster.nodes[0].addresses().http;
    assert!(metric(&http_get(http, "/metrics").1, "gestalt_protection_achieved").is_some());
    let other = crate::harness::coordinator(&Plan::default());
    std::mem::replace(&mut cluster.coordinator, other).stop();
    let status = until("unknown", &cluster, |status| health(status) == Some(Health::Unknown));
    assert!(status.ready && status.coordinator_age_seconds.unwrap() >= 3.0, "{status:?}");
    let (code, body) = http_get(http, "/readyz");
    assert!(code == 200 && body.starts_with("ready\nno coordinator heard for "), "{code} {body}");
    let (_, page) = http_get(http, "/metrics");
    assert!(metric(&page, "gestalt_coordinator_age_seconds").unwrap() >= 3.0);
    for gone in ["gestalt_protection_achieved", "gestalt_nodes{state=\"alive\"}", "gestalt_lost_slots"] {
        assert_eq!(metric(&page, gone), None, "{gone} is no measurement any more");
    }
    assert_eq!(metric(&page, "gestalt_unavailable_slots"), Some(0.0), "all is served");

    // A node that is lost now is missed by the others, though nobody reconfigures anything.
    cluster.nodes.remove(4).stop();
    let status = until("unavailable", &cluster, |status| health(status) == Some(Health::Unavailable));
    let found = status.assessment.unwrap();
    assert_eq!((found.silent_nodes, found.states[1]), (vec![NodeId(4)], Health::Unknown));
    assert!(metric(&http_get(http, "/metrics").1, "gestalt_unavailable_slots").unwrap() > 0.0);
    assert!(status.ready, "what is left is served: {:?}", status.not_ready);
}

#[test]
fn a_node_that_is_cut_off_from_all_others_is_not_ready() {
    let mut cluster = cluster();
    let other = crate::harness::coordinator(&Plan::default());
    std::mem::replace(&mut cluster.coordinator, other).stop();
    cluster.nodes.drain(1..).for_each(|node| drop(node.stop()));
    let reason = "none of the data roles here has had a read lease for ";
    let status =
        until("not ready", &cluster, |status| status.not_ready.iter().any(|why| why.starts_with(reason)));
    assert!(!status.ready && status.data_roles.iter().all(|role| !role.serves));
    let found = status.assessment.unwrap();
    assert_eq!(cluster::health::slot_count(&found.unavailable_slots), 16_384);
    assert_eq!(found.beyond_repair.unwrap().nodes, [1, 2, 3, 4].map(NodeId));
    assert_eq!(http_get(cluster.nodes[0].addresses().http, "/readyz").0, 503);
}

#[test]
fn the_coordinator_says_who_is_silent_and_for_how_long() {
    let mut cluster = cluster();
    let http = cluster.coordinator.http_addr().unwrap();
    let report = || serde_json::from_str::<CoordinatorReport>(&http_get(http, "/status").1).unwrap();
    let before = report();
    assert!(before.nodes.len() == 5 && before.nodes.iter().all(|node| !node.silent), "{:?}", before.nodes);
    assert!((before.lease_seconds - 1.0).abs() < 1e-9);
    cluster.nodes.remove(3).stop();
    let report = eventually("silent", || {
        let report = report();
        if report.nodes[3].silent { Ok(report) } else { Err(format!("{:?}", report.nodes)) }
    });
    assert!(report.nodes[3].node == NodeId(3) && report.nodes[3].age_seconds >= 1.0, "{:?}", report.nodes);
    assert_eq!(report.nodes.iter().filter(|node| node.silent).count(), 1);
    assert_eq!(metric(&http_get(http, "/metrics").1, "gestalt_coordinator_silent_nodes"), Some(1.0));
}

#[test]
fn a_node_that_refuses_writes_for_want_of_memory_is_full() {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let cluster = Cluster::of(&plan, |config| {
        config.memory_bytes = 24 << 20;
        config.eviction = store::Eviction::None;
    });
    assert_eq!(cluster.status(0).fullness, Fullness::Room);
    let client = &mut cluster.client(0);
    let value = "x".repeat(500_000);
    let refused = (0..100).any(|at| {
        client.send(format!("set k{at} 0 0 {}\r\n{value}\r\n", value.len()));
        client.line() != "STORED"
    });
    assert!(refused);
    let status = until("full", &cluster, |status| status.fullness == Fullness::Refusing);
    assert_eq!(health(&status), Some(Health::Full));
    let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
    assert_eq!(metric(&page, "gestalt_full{state=\"refusing\"}"), Some(1.0));
    assert!(status.ready);
}
