//! What the model says of both ways to make the parities of a value, by what its writer knows of the network (`ways`).

use graph::{Aim, EncodeQuestion, Execution, LinkEnd, Links, Scheme, plan_encode};
use types::{Geometry, GroupId, NodeId};

use super::ways::Forecast;
use crate::objects::scope::Scope;

/// A node that is none of the map.
const OTHERS: NodeId = NodeId(u16::MAX);
const MIB: f64 = 1_048_576.0;
/// Picoseconds in a microsecond.
const PICOS: f64 = 1e6;

/// Of values like this one, in a group; `known` is what a byte has taken by each way, in picoseconds. None where there is nothing to choose: not
/// all roles have holders, or there are too many for a graph.
pub(super) fn forecast(
    scope: &Scope<'_>,
    group: GroupId,
    geometry: Geometry,
    known: [Option<f64>; 2],
) -> Option<Forecast> {
    let (view, protection) = (scope.view(group)?, scope.protection(group)?);
    let holders = view.holders.iter().map(|holders| Some(holders.whole?.host.node));
    let holders: Vec<NodeId> = holders.collect::<Option<_>>()?;
    let (code, stripe) = (protection.code(), geometry.stripe(0)?);
    let chunk_len = u32::try_from(stripe.chunk_len()).ok()?.min(graph::limits::MAX_STRAND_BYTES);
    let links = links(scope, &holders, carried(code.n() as f64 / code.k() as f64, known));
    let (len, aim, execution) = (chunk_len, Aim::READER, Execution::Coherent);
    let lent = lent(&holders, code.k(), scope.here().node);
    let bytes = f64::from(chunk_len) * code.k() as f64;
    let price_us = f64::from(scope.graphs().zone_price_us);
    let of = |scheme, holders: &[NodeId]| {
        let question = EncodeQuestion { code, holders, len, links: &links, aim, execution };
        let prediction = plan_encode(&question, scheme).ok()?.prediction;
        let zones_us = price_us * prediction.zone_bytes as f64 / MIB;
        Some([prediction.us, zones_us].map(|us| us * PICOS / bytes))
    };
    let ([node, node_zones], [tri, tri_zones]) = (of(Scheme::Star, &holders)?, of(Scheme::Tri, &lent)?);
    Some(Forecast { time: [node, tri], zones: [node_zones, tri_zones] })
}

/// Who gives products of each role's chunk: of one that the writer keeps itself others do, to whom it lends it (`sums`), for the model somebody
/// without any other work.
fn lent(holders: &[NodeId], k: usize, writer: NodeId) -> Vec<NodeId> {
    let giver =
        |(role, holder): (usize, &NodeId)| if role < k && *holder == writer { OTHERS } else { *holder };
    holders.iter().enumerate().map(giver).collect()
}

/// Bytes a second that the writer's link has carried, where it has sent so many for each byte of a value, or one.
fn carried(sent_by_node: f64, known: [Option<f64>; 2]) -> Option<f64> {
    let [node, tri] = known.map(|time| time.map(|picos| 1e12 / picos));
    let rates = [node.map(|rate| sent_by_node * rate), tri];
    rates.into_iter().flatten().reduce(f64::max)
}

/// All links alike and of 1 Gbit/s, or what the writer's has carried if that is more; its own are as fast as that. From which nodes things come
/// slowly is known (`objects/meter.rs`).
fn links(scope: &Scope<'_>, holders: &[NodeId], carried: Option<f64>) -> Links {
    let usual = LinkEnd::default();
    let bytes_per_s = usual.up_bytes_per_s.max(carried.unwrap_or(0.0));
    let others = LinkEnd { up_bytes_per_s: bytes_per_s, down_bytes_per_s: bytes_per_s, ..usual };
    let here = scope.here().node;
    let mut links = Links { asker_node: Some(here.0), ..Links::uniform(others) };
    for (node, times) in scope.around.meter().slow_lately(scope.now.time) {
        links.nodes.insert(node.0, LinkEnd { up_bytes_per_s: bytes_per_s / times, ..others });
    }
    let own = LinkEnd { up_bytes_per_s: carried.unwrap_or(bytes_per_s), ..others };
    links.nodes.insert(here.0, own);
    let zones = scope.zones();
    for node in holders.iter().copied().chain([here]).filter(|_| !zones.are_one()) {
        links.nodes.entry(node.0).or_insert(others).zone = zones.of(node);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_keeps_of_data_others_give_products_of() {
        let holders = [1, 2, 3, 4, 5].map(NodeId);
        let [data, parity] = [2, 4].map(|writer| lent(&holders, 3, NodeId(writer)));
        assert_eq!(data, [NodeId(1), OTHERS, NodeId(3), NodeId(4), NodeId(5)]);
        assert_eq!(parity, holders);
    }

    #[test]
    fn a_link_carries_what_was_sent_over_it_by_the_way_that_sent_most() {
        // 80 ns a byte by the writer, who sent 1.5 for each.
        assert_eq!(carried(1.5, [Some(80_000.0), Some(80_000.0)]), Some(1.5 * 12.5e6));
        assert_eq!(carried(1.5, [None, Some(80_000.0)]), Some(12.5e6));
        assert_eq!(carried(1.5, [None, None]), None);
    }
}
