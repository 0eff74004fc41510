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

#[test]
fn a_page_ends_where_the_next_one_begins_and_joins_that_of_the_same_value() {
    let page = |version, spans: Vec<Span>| {
        let mut places = places(spans);
        let (meta, _) = places.found.as_mut().expect("a value");
        (meta.version, meta.value_len) = (version, 250);
        places
    };
    let mut first = page(1, vec![span(0, 100, 0, &[4]), span(100, 100, 0, &[5])]);
    let last = || page(1, vec![span(200, 50, 0, &[6])]);
    assert_eq!((first.next_page(), last().next_page()), (Some(200), None));
    let gone = Places { found: None, ..last() };
    let others = [
        page(2, vec![span(200, 50, 0, &[6])]),
        page(1, vec![span(100, 100, 0, &[5])]),
        page(1, vec![]),
        gone,
    ];
    for other in others {
        assert!(!first.join(other) && first.next_page() == Some(200));
    }
    assert!(first.join(last()) && first.next_page().is_none());
    assert_eq!(ranges(&first), [(0, 100, Some(4)), (100, 200, Some(5)), (200, 250, Some(6))]);
    assert!(!first.join(last()), "there is no page behind the last one");
}
