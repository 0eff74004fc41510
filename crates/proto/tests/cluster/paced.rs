//! Repair as operators want it: paused, slow, with little memory; and what requests wait for in spite of it.

use types::{AdminCommand, AdminRequest};

use super::*;

impl Cluster {
    pub(super) fn order(&mut self, command: AdminCommand) {
        let request = AdminRequest { expect: None, command };
        self.coordinator.administer(self.now, &request).unwrap();
        self.settle();
    }

    fn to_rebuild(&self) -> u64 {
        self.hosts.values().map(|host| host.stats().to_rebuild_bytes).sum()
    }

    fn rebuilt(&self) -> u64 {
        self.hosts.values().map(|host| host.stats().rebuilt_bytes).sum()
    }

    fn is_whole(&self) -> bool {
        let map = self.coordinator.map().unwrap();
        map.groups.iter().all(|view| view.roles_in_play() == 0 && view.in_sync().count() == view.m())
    }
}

fn limit(bytes_per_second: u64, memory_bytes: u64) -> AdminCommand {
    let (rate, memory) = (Some(bytes_per_second), Some(memory_bytes));
    AdminCommand::LimitRepair { bytes_per_second: rate, memory_bytes: memory }
}

#[test]
fn paused_repair_waits_for_requests_alone() {
    let mut cluster = Cluster::new(6, "rs(3+2)");
    load(&mut cluster, 800, 0, 0);
    cluster.order(AdminCommand::PauseRepair);
    cluster.kill(1);
    cluster.advance(4000);
    assert!(cluster.to_rebuild() > 0 && !cluster.is_whole());
    assert_eq!(cluster.rebuilt(), 0);
    // Whoever asks is served all the same.
    check(&mut cluster, 50, 0, 0);
    assert!(cluster.rebuilt() > 0);
    cluster.advance(3000);
    assert!(cluster.to_rebuild() > 0, "what nobody asks for stays as it is");
    cluster.order(AdminCommand::ResumeRepair);
    cluster.advance(6000);
    assert!(cluster.is_whole());
    assert_eq!(cluster.to_rebuild(), 0);
    check(&mut cluster, 800, 0, 2);
}

#[test]
fn a_limit_slows_repair_down_and_without_it_repair_ends() {
    let mut cluster = Cluster::new(6, "rs(3+2)");
    load(&mut cluster, 1500, 0, 0);
    let rate = 64 << 10;
    cluster.order(limit(rate, 1 << 20));
    cluster.kill(1);
    cluster.advance(1500);
    let (start, seconds) = (cluster.rebuilt(), 4);
    cluster.advance(seconds * 1000);
    let done = cluster.rebuilt() - start;
    // Every living node has the rate for itself; a piece may be as large as a run.
    let most = 5 * (rate * seconds + (64 << 10));
    assert!(done > 0 && done <= most, "{done} bytes, at most {most}");
    assert!(cluster.to_rebuild() > 0);
    cluster.order(limit(0, 0));
    cluster.advance(8000);
    assert!(cluster.is_whole());
    check(&mut cluster, 1500, 0, 2);
}

#[test]
fn a_lesson_under_way_survives_a_pause() {
    let mut cluster = Cluster::new(6, "rs(3+2)");
    load(&mut cluster, 1500, 0, 0);
    cluster.order(limit(64 << 10, 0));
    cluster.kill(1);
    // Until its lease is over the lost node itself may be asked to learn what it missed.
    cluster.advance(1500);
    let learners = |cluster: &Cluster| {
        let map = cluster.coordinator.map().unwrap();
        map.groups
            .iter()
            .flat_map(|view| {
                view.learners.iter().map(|l| (view.group, l.role, l.host, l.since)).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    for _ in 0..400 {
        cluster.advance(50);
        if !learners(&cluster).is_empty() {
            break;
        }
    }
    let under_way = learners(&cluster);
    assert!(!under_way.is_empty());
    cluster.order(AdminCommand::PauseRepair);
    cluster.advance(10_000);
    assert_eq!(learners(&cluster), under_way, "nobody gave up, and nobody was appointed");
    cluster.order(limit(0, 0));
    cluster.order(AdminCommand::ResumeRepair);
    cluster.advance(8000);
    assert!(cluster.is_whole());
    check(&mut cluster, 1500, 0, 2);
}

#[test]
fn paused_repair_begins_no_graph() {
    let graphs = GraphSettings { repair: Some(graph::Scheme::Chain), ..GraphSettings::default() };
    let mut cluster = Cluster::with_graphs(7, "rs(3+2)", graphs);
    for key in 0..6u64 {
        cluster.put(0, &format!("key-{key}"), &super::objects::noise(key, 900_000)).unwrap();
    }
    cluster.order(AdminCommand::PauseRepair);
    cluster.kill(1);
    let started = |cluster: &Cluster| {
        let stats = cluster.hosts.values().map(Host::graph_stats);
        stats.flat_map(|stats| stats.steps.primitives.map(|steps| steps.started)).sum::<u64>()
    };
    cluster.advance(5_000);
    assert_eq!(started(&cluster), 0);
    cluster.order(AdminCommand::ResumeRepair);
    cluster.advance(5_000);
    assert!(started(&cluster) > 0);
}
