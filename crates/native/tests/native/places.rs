//! Where bytes of values lie, range by range.

use native::{Located, Meta, Places, Span};
use types::{GroupId, NodeId, RoleIndex, Slot};

fn places(spans: Vec<Span>) -> Places {
    let len = spans.iter().map(|span| span.len).sum();
    let meta = Meta { version: 1, flags: 0, ttl: None, value_len: len };
    let (slot, group, role) = (Slot(0), GroupId(0), RoleIndex(0));
    Places { slot, group, role, primary: None, found: Some((meta, spans)) }
}

fn span(start: u64, len: u64, cell_len: u32, nodes: &[u16]) -> Span {
    let nodes = nodes.iter().map(|node| Some(NodeId(*node))).collect();
    Span { start, len, cell_len, nodes }
}

fn ranges(places: &Places) -> Vec<(u64, u64, Option<u16>)> {
    let of = |Located { bytes, node }| (bytes.start, bytes.end, node.map(|NodeId(number)| number));
    places.ranges().map(of).collect()
}

#[test]
fn cells_go_round_the_nodes_and_the_last_one_is_shorter() {
    let places = places(vec![span(0, 250, 100, &[4, 5])]);
    assert_eq!(ranges(&places), [(0, 100, Some(4)), (100, 200, Some(5)), (200, 250, Some(4))]);
}

#[test]
fn what_follows_on_the_same_node_is_one_range() {
    let places = places(vec![span(0, 100, 0, &[4]), span(100, 100, 0, &[4]), span(200, 90, 60, &[4, 5])]);
    assert_eq!(ranges(&places), [(0, 260, Some(4)), (260, 290, Some(5))]);
}

#[test]
fn what_nobody_has_is_said_so_and_what_is_not_there_has_no_range() {
    let mut gone = places(vec![span(0, 100, 50, &[4, 5])]);
    gone.found.as_mut().unwrap().1[0].nodes[1] = None;
    assert_eq!(ranges(&gone), [(0, 50, Some(4)), (50, 100, None)]);
    let nothing = Places { found: None, ..places(Vec::new()) };
    assert_eq!(ranges(&nothing), []);
    assert_eq!(ranges(&places(vec![span(0, 100, 50, &[])])), [], "a span without nodes says nothing");
}
