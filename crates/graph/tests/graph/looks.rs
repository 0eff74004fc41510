//! What an asker sees of a graph that runs: which link holds the others up.

use codec::Code;
use graph::net::{Fault, Who, WorldConfig};
use graph::{Class, LinkEnd, Links, Look, Place, Scheme, TaskConfig};
use types::NodeId;

use crate::support::{ASKER, Cluster, node, sources, to_asker};

const LEN: u32 = 1 << 20;
/// How many times slower a link becomes.
const SLOWER: f64 = 8.0;

fn looking(cluster: &Cluster, scheme: Scheme) -> TaskConfig {
    let config = cluster.config(to_asker(&[1]), scheme);
    TaskConfig {
        class: Class::Repair,
        looks: true,
        least_patience_us: 5_000_000,
        deadline_us: 20_000_000,
        ..config
    }
}

/// What was seen last of a graph by `scheme` while a node's links were slow in both directions.
fn seen(scheme: Scheme, slow: NodeId) -> Option<Look> {
    let links = Links::uniform(LinkEnd::symmetric(1.0, 25.0));
    let code = Code::rs(6, 3).unwrap();
    let mut cluster = Cluster::new(code.clone(), &[LEN], WorldConfig::new(links), 1);
    cluster.world.at(0, Fault::Slow(slow, SLOWER));
    let config = looking(&cluster, scheme);
    let finished = cluster.run(config, sources(&code, &[1]));
    cluster.assert_right(&to_asker(&[1]), &finished);
    cluster.world.look(Who::Asker(ASKER))?.look()
}

#[test]
fn the_link_that_holds_a_graph_up_is_one_of_the_slow_node() {
    for scheme in [Scheme::Star, Scheme::Ppr, Scheme::Chain, Scheme::Tri] {
        for slow in [0, 2, 3, 4, 5, 6].map(node) {
            let look = seen(scheme, slow).unwrap_or_else(|| panic!("{scheme}: nothing is seen of {slow:?}"));
            let ends = [look.held.0, look.held.1];
            assert!(ends.contains(&Place::Node(slow)), "{scheme} {slow:?}: {look:?}");
            // A star has few slices: nobody waits for what is behind them.
            let least = if scheme == Scheme::Chain { 0.3 } else { 0.0 };
            assert!((least..1.0).contains(&look.share), "{scheme} {look:?}");
        }
    }
}
