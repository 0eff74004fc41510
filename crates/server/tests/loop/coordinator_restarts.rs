//! A coordinator that ends and is started again, and one that is not of the cluster.

use proto::{CoordinatorConfig, RecordKeeping, Rules};
use server::{CoordinatorHandle, CoordinatorServer, CoordinatorServerConfig, CoordinatorStart};
use types::{ClusterId, NodeId};

use crate::harness::{Cluster, Plan, eventually, http_get};

/// A coordinator at the address of a former one, with nothing but its configuration.
fn start_again(
    plan: &Plan,
    former: CoordinatorHandle,
    cluster: u64,
    start: CoordinatorStart,
) -> CoordinatorHandle {
    let listen = former.addr();
    former.stop();
    let cluster = CoordinatorConfig {
        cluster: ClusterId(cluster),
        profile: plan.profile.parse().expect("a profile"),
        nodes: plan.nodes,
        shards: plan.workers,
        groups: plan.groups,
        timing: plan.timing,
        rules: Rules::all(),
        records: RecordKeeping::Kept,
        on_loss: types::LossPolicy::Error,
    };
    let http = Some("127.0.0.1:0".parse().expect("an address"));
    eventually("listening again", || {
        let config =
            CoordinatorServerConfig { listen, http, cluster: cluster.clone(), start, processes: None };
        CoordinatorServer::start(config).map_err(|error| error.to_string())
    })
}

#[test]
fn a_restarted_coordinator_goes_on_with_the_cluster_that_its_nodes_serve() {
    let plan = Plan::default();
    let Cluster { mut nodes, coordinator } = Cluster::start();
    let before = coordinator.status().map.expect("a map");
    let mut client = crate::harness::Client::connect(nodes[1].addresses().memcached);
    for i in 0..100 {
        client.ask(format!("set again{i} 0 0 1\r\nx\r\n"), "STORED\r\n");
    }
    let coordinator = start_again(&plan, coordinator, 0xbad, CoordinatorStart::Gather);
    eventually("the same cluster", || {
        let map = coordinator.status().map.ok_or("no map yet")?;
        assert_eq!((map.cluster, map.groups.len()), (before.cluster, before.groups.len()));
        Ok::<(), String>(())
    });
    // It presides: a node that is lost now is seen to.
    nodes.remove(4).stop();
    coordinator.exited(NodeId(4));
    for i in 0..100 {
        eventually("readable", || {
            client.send(format!("get again{i}\r\n"));
            let line = client.line();
            if line.starts_with("SERVER_ERROR") { Err(line) } else { Ok(line) }
        });
        client.expect("x\r\nEND\r\n");
    }
    eventually("a view without the lost node", || {
        let map = coordinator.status().map.ok_or("no map")?;
        let left = map.groups.iter().map(|view| view.roles_on(NodeId(4))).sum::<usize>();
        if left == 0 { Ok(()) } else { Err(format!("{left} roles are still there")) }
    });
}

#[test]
fn a_coordinator_of_another_cluster_ends_no_node_that_serves() {
    let plan = Plan::default();
    let Cluster { nodes, coordinator } = Cluster::start();
    let mut client = crate::harness::Client::connect(nodes[0].addresses().memcached);
    client.ask("set mine 0 0 1\r\nx\r\n", "STORED\r\n");
    let foreign = start_again(&plan, coordinator, 0xf0e, CoordinatorStart::NewCluster);
    eventually("every node has been there", || {
        let pages = nodes.iter().map(|node| http_get(node.addresses().http, "/metrics").1);
        let away = pages.filter(|page| page.contains("gestalt_coordinator_connected 0")).count();
        if away == nodes.len() { Ok(()) } else { Err(format!("{away} have noticed")) }
    });
    for i in 0..20 {
        client.ask(
            format!("set mine{i} 0 0 1\r\ny\r\nget mine\r\n"),
            "STORED\r\nVALUE mine 0 1\r\nx\r\nEND\r\n",
        );
    }
    assert!(foreign.status().map.is_none(), "it has formed nothing over them");
    for node in nodes {
        assert_eq!(node.stop(), server::NodeExit::Stopped, "none had ended by itself");
    }
}

#[test]
fn a_coordinator_that_hears_too_few_says_for_whom_it_waits_and_an_operator_may_go_on_without_them() {
    let plan = Plan::default();
    let Cluster { mut nodes, coordinator } = Cluster::start();
    nodes.drain(2..).for_each(|node| drop(node.stop()));
    let coordinator = start_again(&plan, coordinator, 0xbad, CoordinatorStart::Gather);
    let http = coordinator.http_addr().expect("a page");
    let gathered = eventually("two have answered", || {
        let report: server::CoordinatorReport = serde_json::from_str(&http_get(http, "/status").1).unwrap();
        report.gathered.filter(|gathered| gathered.heard.len() == 2).ok_or("not yet".to_owned())
    });
    assert_eq!(gathered.missing, [2, 3, 4].map(NodeId));
    assert_eq!(gathered.lacking, 1);
    let coordinator = start_again(&plan, coordinator, 0xbad, CoordinatorStart::WithoutQuorum);
    eventually("the others count as lost", || {
        let map = coordinator.status().map.ok_or("no map yet")?;
        assert_eq!(map.cluster, gathered.cluster);
        let alive: Vec<NodeId> =
            map.nodes.iter().filter(|node| node.alive).map(|node| node.host.node).collect();
        if alive == [NodeId(0), NodeId(1)] && !map.lost_slots().is_empty() {
            Ok(())
        } else {
            Err("not yet".to_owned())
        }
    });
}

#[test]
fn what_helps_a_coordinator_that_hears_too_few_reaches_it_through_any_node() {
    let Cluster { mut nodes, coordinator } = Cluster::start();
    nodes.drain(2..).for_each(|node| drop(node.stop()));
    let http = nodes[0].addresses().http;
    eventually("it decides nothing", || {
        let (_, page) = http_get(http, "/metrics");
        page.contains("gestalt_coordinator_connected 0").then_some(()).ok_or("it still does".to_owned())
    });
    let fence = r#"{"command":{"fence":{"node":4,"loss":"accept"}}}"#;
    let (status, text) = crate::operators::order(http, fence);
    assert_eq!(status, 200, "{text}");
    eventually("it decides again: three of four electors are not too few", || {
        let map = coordinator.status().map.ok_or("no map")?;
        let alive = map.nodes.iter().filter(|node| node.alive).count();
        if alive == 2 { Ok(()) } else { Err(format!("{alive} are alive")) }
    });
}
