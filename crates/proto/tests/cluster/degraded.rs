//! Reads of what lies in a chunk that is not there: who is asked for how much.

use graph::Scheme;
use proto::{GraphSettings, ReadStats, Rules};
use types::{GroupView, NodeId, ObjectLayout};

use super::graphs::{Harm, Wires};
use super::objects::noise;
use super::{Cluster, Setup};

/// A value whose first chunk is lost, and a node that reads it and keeps none of its chunks.
struct Scene {
    cluster: Cluster,
    value: Vec<u8>,
    reader: u16,
}

impl Scene {
    fn of(mut cluster: Cluster, layout: ObjectLayout) -> Self {
        cluster.layout = layout;
        let chunk_len = if layout == ObjectLayout::Wide { 1 << 20 } else { 64 << 10 };
        Self::of_value(cluster, noise(3, 1_000_000), chunk_len)
    }

    fn of_value(mut cluster: Cluster, value: Vec<u8>, chunk_len: u32) -> Self {
        cluster.put_of(0, "key", &value, chunk_len).unwrap();
        let view = cluster.group_of_chunks("key");
        let keeps = |node: &NodeId| view.all_holders().any(|(_, holder)| holder.host.node == *node);
        let owner = cluster.owner_of("key");
        let bystanders = cluster.hosts.keys().filter(|node| !keeps(node) && **node != owner);
        let reader = bystanders.map(|node| node.0).next().unwrap();
        let holder = view.holders[0].whole.unwrap().host.node;
        cluster.kill(holder.0);
        Self { cluster, value, reader }
    }

    /// Cells that are sent while a range is read.
    fn cells_of(&mut self, range: std::ops::Range<u64>) -> u32 {
        self.cluster.wires.cells = 0;
        let part = self.cluster.read_part(self.reader, "key", range.clone()).unwrap();
        assert!(part == self.value[range.start as usize..range.end as usize], "{range:?}");
        self.cluster.wires.cells
    }
}

impl Cluster {
    /// The group that has the first stripe of a value.
    fn group_of_chunks(&mut self, key: &str) -> GroupView {
        let group = self.object(0, key).unwrap().descriptor.group_of(0).unwrap();
        self.coordinator.map().unwrap().group(group).unwrap().clone()
    }
}

#[test]
fn a_lost_cell_costs_a_local_group_or_as_many_cells_as_there_are_data_roles() {
    for (nodes, profile, helpers) in [(8, "rs(3+2)", 3), (13, "lrc(6,2,2)", 3), (12, "rs(6+3)", 6)] {
        let mut scene = Scene::of(Cluster::new(nodes, profile), ObjectLayout::Spread);
        assert_eq!(scene.cells_of(10..20), helpers, "{profile}");
        assert_eq!(scene.cells_of(65_536..65_540), 1, "{profile}: what is not lost");
    }
}

#[test]
fn a_row_with_a_lost_cell_costs_one_cell_more() {
    // All of the first row: the others of it are wanted anyway.
    for (nodes, profile, data) in [(8, "rs(3+2)", 3), (13, "lrc(6,2,2)", 6), (12, "rs(6+3)", 6)] {
        let mut scene = Scene::of(Cluster::new(nodes, profile), ObjectLayout::Spread);
        assert_eq!(scene.cells_of(0..u64::from(data) * 65_536), data, "{profile}");
    }
}

fn read_by(scheme: Scheme) -> GraphSettings {
    GraphSettings { reads: Some(scheme), ..GraphSettings::default() }
}

impl Scene {
    /// A cluster in which what is lost is made by graphs for who reads it; all of a chunk lies together.
    fn by_graphs(scheme: Scheme, rules: Rules) -> Self {
        let setup = Setup { graphs: read_by(scheme), rules, ..Setup::default() };
        Self::of(Cluster::of(12, "rs(6+3)", &setup), ObjectLayout::Wide)
    }

    fn reads(&self) -> ReadStats {
        self.cluster.hosts[&NodeId(self.reader)].graph_stats().reads
    }
}

#[test]
fn what_lies_in_a_lost_chunk_is_made_by_each_scheme_and_no_cell_is_fetched() {
    for scheme in [Scheme::Star, Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri, Scheme::Auto] {
        let mut scene = Scene::by_graphs(scheme, Rules::all());
        for range in [0..1, 10..150_000, 100_000..100_001] {
            assert_eq!(scene.cells_of(range.clone()), 0, "{scheme} {range:?}");
        }
        assert_eq!(scene.reads(), ReadStats { made: 3, left: 0 }, "{scheme}");
        let load = scene.cluster.hosts.values().map(|host| host.graph_stats().load);
        assert!(load.into_iter().all(|load| load.reserved_bytes == 0), "{scheme}");
        assert_eq!(scene.cells_of(400_000..400_001), 1, "what is not lost");
    }
}

#[test]
fn who_wants_a_graph_has_what_is_lost_made_where_nodes_fetch_cells_by_themselves() {
    for layout in [ObjectLayout::Spread, ObjectLayout::Wide] {
        let mut scene = Scene::of(Cluster::new(12, "rs(6+3)"), layout);
        assert_eq!(scene.cells_of(10..20), 6, "{layout:?}");
        scene.cluster.by_graph = true;
        assert_eq!(scene.cells_of(10..60_000), 0, "{layout:?}");
        assert_eq!(scene.reads(), ReadStats { made: 1, left: 0 }, "{layout:?}");
        // All of a row takes as many cells either way.
        if layout == ObjectLayout::Spread {
            assert_eq!(scene.cells_of(0..6 * 65_536), 6);
            assert_eq!(scene.reads().made, 1);
        }
    }
}

#[test]
fn what_no_graph_makes_for_who_wants_one_is_read_cell_by_cell() {
    let mut scene = Scene::of(Cluster::new(12, "rs(6+3)"), ObjectLayout::Spread);
    scene.cluster.by_graph = true;
    scene.cluster.wires = Wires::doing(Harm::Lost, 1);
    let read = scene.cluster.read_part(scene.reader, "key", 10..60_000);
    assert!(read.unwrap() == scene.value[10..60_000]);
    assert_eq!(scene.reads(), ReadStats { made: 0, left: 1 });
}

#[test]
fn the_model_leaves_little_to_cells() {
    let mut cluster = Cluster::with_graphs(12, "rs(6+3)", read_by(Scheme::Auto));
    cluster.layout = ObjectLayout::Wide;
    let mut scene = Scene::of_value(cluster, noise(4, 12_000), 64 << 10);
    assert_eq!(scene.cells_of(10..20), 6);
    assert_eq!(scene.reads(), ReadStats::default());
}

/// Bytes that slices take from zone to zone while 64 KiB of a lost chunk are made for a reader, if a MiB of them costs so much.
fn between_zones(zone_price_us: u32, zone: fn(u16) -> &'static str) -> u64 {
    let graphs = GraphSettings { zone_price_us, ..read_by(Scheme::Auto) };
    let cluster = Cluster::of(12, "rs(6+3)", &Setup { graphs, zone, ..Setup::default() });
    let mut scene = Scene::of(cluster, ObjectLayout::Wide);
    assert_eq!(scene.cells_of(0..65_536), 0);
    scene.cluster.hosts.values().map(|host| host.graph_stats().zone_bytes).sum()
}

#[test]
fn where_bytes_between_zones_cost_something_fewer_cross() {
    let zone = |node| if node % 2 == 0 { "a" } else { "b" };
    let (free, dear) = (between_zones(0, zone), between_zones(100_000, zone));
    assert_eq!(dear, 2 * 55_616, "two rows, once, as a sum");
    assert!(free > 2 * dear, "parts and sums cross by `tri`: {free}");
    assert_eq!(between_zones(100_000, |_| "a"), 0);
}

/// What a reader gets where slices are lost on their way.
fn read_over_bad_wires(rules: Rules) -> (Result<Vec<u8>, types::op::Outcome>, Scene) {
    let mut scene = Scene::by_graphs(Scheme::Chain, rules);
    scene.cluster.wires = Wires::doing(Harm::Lost, 1);
    let read = scene.cluster.read_part(scene.reader, "key", 10..150_000);
    (read, scene)
}

#[test]
fn what_no_graph_makes_is_read_cell_by_cell() {
    let (read, scene) = read_over_bad_wires(Rules::all());
    assert!(read.unwrap() == scene.value[10..150_000]);
    assert_eq!(scene.reads(), ReadStats { made: 0, left: 1 });
}

#[cfg(feature = "planted-bugs")]
#[test]
fn who_does_not_go_on_without_the_graph_waits_in_vain() {
    let (read, _) = read_over_bad_wires(Rules::without(proto::Bug::GraphLeavesReader));
    assert!(read.is_err());
}

#[test]
fn who_reads_no_further_lets_the_graph_go() {
    let mut scene = Scene::by_graphs(Scheme::Chain, Rules::all());
    scene.cluster.wires = Wires::doing(Harm::Lost, 1);
    let (_, gather) = scene.cluster.begin_gather(scene.reader, "key", 10..150_000);
    scene.cluster.settle();
    let runs =
        |scene: &Scene| scene.cluster.hosts.values().map(|host| host.graph_stats().load.runs).sum::<usize>();
    assert!(runs(&scene) > 0);
    let now = scene.cluster.clocks(NodeId(scene.reader));
    scene.cluster.hosts.get_mut(&NodeId(scene.reader)).unwrap().streams(now).abandon_gather(gather);
    scene.cluster.settle();
    assert_eq!(runs(&scene), 0);
}
