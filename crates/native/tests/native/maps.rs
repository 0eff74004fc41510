//! The map on the connection.

use std::collections::BTreeMap;

use bytes::BytesMut;
use native::{
    BadRouteMap, Decoder, FromServer, MAX_BODY_BYTES, MapAssembly, RouteMap, RouteNamespace, RouteNode,
    RoutePool,
};
use proptest::prelude::*;
use types::{ClusterId, KeyHash, NamespaceId, NodeId, PoolId};

/// That of the document.
pub fn small() -> RouteMap {
    let node = |port| RouteNode { native: Some(([127, 0, 0, 1], port).into()), alive: true };
    let primaries = vec![None, Some(NodeId(1)), Some(NodeId(0))];
    RouteMap {
        cluster: ClusterId(0x7e57),
        version: 41,
        nodes: BTreeMap::from([(NodeId(0), node(11_311)), (NodeId(1), node(11_312))]),
        pools: BTreeMap::from([(PoolId(0), RoutePool { slot_bits: 14, primaries })]),
        namespaces: BTreeMap::from([(
            NamespaceId(0),
            RouteNamespace { name: "default".parse().unwrap(), pool: PoolId(0) },
        )]),
    }
}

fn large() -> RouteMap {
    let primaries = (0..100_000).map(|at| Some(NodeId(at as u16 % 1000))).collect();
    let mut map = small();
    map.pools.insert(PoolId(1), RoutePool { slot_bits: 20, primaries });
    map
}

fn through(map: &RouteMap) -> RouteMap {
    let mut bytes = Vec::new();
    map.put(&mut bytes);
    let (mut bytes, mut assembly) = (BytesMut::from(&bytes[..]), MapAssembly::default());
    loop {
        let frame = Decoder::next(&mut bytes).unwrap().expect("there is more");
        assert!(frame.body.len() <= MAX_BODY_BYTES);
        let Ok(FromServer::Map(part, more)) = FromServer::take(frame) else { panic!("no map") };
        if let Some(map) = assembly.add(&part, more).unwrap() {
            assert!(!more && bytes.is_empty());
            return map;
        }
    }
}

#[test]
fn maps_of_every_size_arrive() {
    assert_eq!(through(&small()), small());
    assert_eq!(through(&large()), large());
}

#[test]
fn the_example_of_the_document_finds_a_primary() {
    let map = small();
    let of = |key: &str| map.primary_of(NamespaceId(0), key.as_bytes());
    let hash = KeyHash::of(map.cluster, b"user:17");
    // The document works this one out.
    assert_eq!((hash.0 >> (64 - 14), map.pools[&PoolId(0)].index_of(hash)), (HASH_SLOT, HASH_INDEX));
    assert_eq!(of("user:17"), Some(NodeId(0)));
    assert_eq!(map.primary_of(NamespaceId(9), b"user:17"), None);
}

/// Those of `user:17`.
const HASH_SLOT: u64 = 15_002;
const HASH_INDEX: usize = 2;

#[test]
fn where_pools_or_namespaces_have_changed_a_whole_map_is_needed() {
    let old = small();
    assert!(large().since(&old).is_none());
    let mut named = small();
    named.namespaces.clear();
    assert!(named.since(&old).is_none());
    let other = RouteMap { cluster: ClusterId(1), ..small() };
    assert!(other.since(&old).is_none());
    let mut moved = large();
    moved.version += 1;
    let primaries = &mut moved.pools.get_mut(&PoolId(1)).unwrap().primaries;
    primaries.iter_mut().for_each(|node| *node = None);
    assert!(moved.since(&large()).is_none(), "more changes than fit into a frame");
}

#[test]
fn changes_of_another_map_change_nothing() {
    let mut newer = small();
    (newer.version, newer.pools.get_mut(&PoolId(0)).unwrap().primaries[1]) = (42, None);
    let changes = newer.since(&small()).unwrap();
    let mut map = RouteMap { version: 40, ..small() };
    assert_eq!(map.apply(&changes), Err(BadRouteMap::OtherMap));
    assert_eq!(map, RouteMap { version: 40, ..small() });
    let mut map = small();
    map.pools.get_mut(&PoolId(0)).unwrap().primaries.truncate(1);
    let before = map.clone();
    assert_eq!(map.apply(&changes), Err(BadRouteMap::NoSuchRole));
    assert_eq!(map, before);
}

fn any_map() -> impl Strategy<Value = RouteMap> {
    let node = (any::<u16>(), any::<bool>(), proptest::option::of(any::<[u8; 16]>()));
    let nodes = prop::collection::vec(node, 0..6);
    (nodes, prop::collection::vec(proptest::option::of(0u16..9), 8)).prop_map(|(nodes, primaries)| {
        let node = |(id, alive, ip): (u16, bool, Option<[u8; 16]>)| {
            (NodeId(id), RouteNode { alive, native: ip.map(|ip| (ip, id).into()) })
        };
        let mut map = small();
        map.nodes = nodes.into_iter().map(node).collect();
        map.pools.get_mut(&PoolId(0)).unwrap().primaries =
            primaries.into_iter().map(|node| node.map(NodeId)).collect();
        map
    })
}

proptest! {
    #[test]
    fn changes_make_the_new_map_of_the_old_one(old in any_map(), new in any_map()) {
        let new = RouteMap { version: 50, ..new };
        let changes = new.since(&old).unwrap();
        let mut bytes = Vec::new();
        changes.put(&mut bytes);
        let frame = Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        let Ok(FromServer::Changes(told)) = FromServer::take(frame) else { panic!("no changes") };
        let mut map = through(&old);
        map.apply(&told).unwrap();
        prop_assert_eq!(map, new);
    }
}
