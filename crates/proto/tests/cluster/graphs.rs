//! Chunks that are made again by coding graphs: by each scheme, over lists of them, and where one of a list cannot be made.

use graph::{Execution, Scheme};
use proto::{GraphSettings, GraphStats};
use types::NodeId;

use super::Cluster;
use super::objects::noise;

fn by(scheme: Scheme) -> GraphSettings {
    GraphSettings { repair: Some(scheme), ..GraphSettings::default() }
}

impl Cluster {
    fn graph_stats(&self) -> GraphStats {
        let all = self.hosts.values().map(proto::Host::graph_stats);
        all.fold(GraphStats::default(), |sum, one| sum.plus(&one))
    }

    fn is_filled(&self) -> bool {
        let map = self.coordinator.map().unwrap();
        let roles = map.groups.iter().filter(|view| view.takes_chunks()).flat_map(|view| &view.holders);
        roles.into_iter().all(|holders| holders.whole.is_some() && holders.filling.is_none())
    }

    /// Values of many lengths, some of several stripes.
    fn put_values(&mut self) -> Vec<(String, Vec<u8>)> {
        let lens = [1_500_000, 2_000_000, 900_000, 300_000, 450_000, 700_000];
        let values = lens.iter().enumerate();
        let values: Vec<_> =
            values.map(|(at, len)| (format!("key-{at}"), noise(at as u64, *len as usize))).collect();
        for (key, value) in &values {
            self.put(0, key, value).unwrap();
        }
        self.advance(100);
        values
    }

    fn has_values(&mut self, values: &[(String, Vec<u8>)]) {
        let node = self.hosts.keys().next().unwrap().0;
        for (key, value) in values {
            assert!(self.read(node, key).unwrap() == *value, "{key}");
        }
    }
}

/// A node dies, and what it had is made again: all of it by graphs, and right.
fn lost_chunks_are_made(profile: &str, nodes: u16, graphs: GraphSettings) -> GraphStats {
    let mut cluster = Cluster::with_graphs(nodes, profile, graphs);
    let values = cluster.put_values();
    let all = cluster.chunk_count();
    cluster.kill(1);
    cluster.advance(6_000);
    assert!(cluster.is_filled());
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    cluster.has_values(&values);
    // What was made is what others are made of now.
    cluster.kill(2);
    cluster.advance(3_500);
    cluster.has_values(&values);
    let stats = cluster.graph_stats();
    assert_eq!((stats.load.runs, stats.load.reserved_bytes, stats.load.held_bytes), (0, 0, 0));
    stats
}

fn made_by(stats: &GraphStats, scheme: Scheme) -> u64 {
    stats.orders[scheme as usize].made
}

#[test]
fn each_scheme_makes_what_a_lost_node_had() {
    for scheme in [Scheme::Star, Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri] {
        for execution in [Execution::Coherent, Execution::Incoherent] {
            let graphs = GraphSettings { execution, ..by(scheme) };
            let stats = lost_chunks_are_made("rs(3+2)", 7, graphs);
            assert!(made_by(&stats, scheme) > 0, "{scheme} {execution:?}: {stats:?}");
            let failed: u64 = stats.orders.iter().map(|orders| orders.failed).sum();
            assert_eq!(failed, 0, "{scheme} {execution:?}");
        }
    }
}

#[test]
fn a_local_code_makes_them_of_its_local_group() {
    let stats = lost_chunks_are_made("lrc(4,2,1)", 9, by(Scheme::Chain));
    assert!(made_by(&stats, Scheme::Chain) > 0, "{stats:?}");
}

#[test]
fn the_model_chooses_where_nobody_else_does() {
    let stats = lost_chunks_are_made("rs(3+2)", 7, by(Scheme::Auto));
    let made: u64 = stats.orders.iter().map(|orders| orders.made).sum();
    assert!(made > 0 && made_by(&stats, Scheme::Auto) == 0, "{stats:?}");
}

#[test]
fn a_helper_that_dies_is_planned_around() {
    let mut cluster = Cluster::with_graphs(8, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    let all = cluster.chunk_count();
    cluster.kill(1);
    // The next one goes as soon as something is asked for.
    for _ in 0..400 {
        cluster.advance(10);
        if cluster.graph_stats().steps.primitives.iter().any(|steps| steps.started > 0) {
            break;
        }
    }
    cluster.kill(3);
    cluster.advance(12_000);
    assert!(cluster.is_filled());
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    cluster.has_values(&values);
    assert_eq!(cluster.graph_stats().load.runs, 0);
    assert!(!cluster.hosts.contains_key(&NodeId(3)));
}
