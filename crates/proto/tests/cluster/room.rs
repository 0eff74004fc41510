//! Values in chunks where something has come to its end: room, ids, exceptions (docs/objects.md).

use proto::{Limits, Timing, Token};
use store::{Budget, Category, Eviction, StoreConfig};
use types::op::{Begin, Condition, Failure, Object, ObjectOp, Op, Outcome, Request, StoreMode};
use types::{ClusterId, EXTENT_BYTES, MAX_EXCEPTIONS, NodeId};

use super::objects::{CHUNK_LEN, noise};
use super::{Cluster, Setup, key_of};

/// Memory of a node that items fill.
const LIMIT: u64 = 48 << 20;
/// Who has little memory.
const SMALL: NodeId = NodeId(7);
/// Bytes of a stripe of one data chunk.
const STRIPE: usize = CHUNK_LEN as usize;

/// Eight nodes, the last of which has no room for chunks any more: two of eight groups have it, and what is put there moves. The keys
/// that are there, each with a value of eight stripes.
fn with_full_node() -> (Cluster, Vec<String>) {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 1 << 20, eviction: Eviction::None };
    let budget = |node| Budget::new(if NodeId(node) == SMALL { 12 << 20 } else { 256 << 20 });
    let mut cluster = Cluster::assemble(8, "rs(1+1)", &store, &Setup::default(), budget);
    let mut keys = Vec::new();
    while moved(&cluster) == 0 {
        let key = format!("key-{}", keys.len());
        let stored = cluster.put(0, &key, &value_of(keys.len()));
        assert!(matches!(stored, Some(Outcome::Stored(_))), "{key}: {stored:?}");
        keys.push(key);
        assert!(keys.len() < 200, "a node becomes full");
    }
    cluster.advance(200);
    (cluster, keys)
}

fn value_of(number: usize) -> Vec<u8> {
    noise(number as u64, 8 * STRIPE)
}

fn moved(cluster: &Cluster) -> u64 {
    cluster.hosts.values().map(|host| host.stats().objects.moved_stripes).sum()
}

/// Five nodes of `rs(3+2)` whose memory items have all of; how many were written.
fn full_of_items(eviction: Eviction) -> (Cluster, Vec<Budget>, usize) {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 64 << 20, eviction };
    let budgets: Vec<Budget> = (0..5).map(|_| Budget::new(LIMIT)).collect();
    let mut cluster = Cluster::with_memory(5, "rs(3+2)", &store, |node| budgets[usize::from(node)].clone());
    let mut written = 0usize;
    while budgets.iter().any(|budget| budget.has_room_for_extent(2 * EXTENT_BYTES))
        || !written.is_multiple_of(64)
    {
        let stored = cluster.set((written % 5) as u16, &format!("item-{written}"), &[written as u8; 20_000]);
        assert!(stored.is_some(), "an answer");
        written += 1;
        assert!(written < 20_000, "it is full some time");
    }
    (cluster, budgets, written)
}

/// The answer, however long it takes.
fn put_patiently(cluster: &mut Cluster, node: u16, key: &str, value: &[u8]) -> Outcome {
    let (token, upload) = cluster.begin_upload(node, key, value.len(), StoreMode::Set);
    cluster.settle();
    let mut fed = 0;
    for _ in 0..500 {
        if let Some(outcome) = cluster.answers.remove(&token) {
            return outcome;
        }
        fed = cluster.feed(node, upload, value, fed);
        cluster.advance(10);
    }
    panic!("no answer about {key}, of which {fed} bytes were taken");
}

/// What stripes lie elsewhere do so in groups that the full node has no part in.
fn check_exceptions(cluster: &Cluster, object: &Object) {
    let map = cluster.coordinator.map().unwrap();
    for exception in &object.descriptor.exceptions {
        let view = map.group(exception.group).unwrap();
        assert!(view.all_holders().all(|(_, holder)| holder.host.node != SMALL), "{exception:?}");
    }
}

/// Whoever asks for a descriptor pins its object, and here says nothing more.
fn let_go_of_what_was_looked_at(cluster: &mut Cluster) {
    cluster.advance(Timing::default().pin_us / 1_000 + 1_000);
}

/// What is there only while something is written or read.
fn transient(cluster: &Cluster) -> u64 {
    let of = |host: &proto::Host| {
        let stats = host.stats().objects;
        stats.open_ids
            + stats.uploads
            + stats.pins
            + stats.gathers
            + stats.buffer_bytes
            + stats.arriving_bytes
    };
    cluster.hosts.values().map(of).sum::<u64>() + cluster.tentative_bytes()
}

#[test]
fn where_items_have_all_memory_they_make_way_for_long_values_until_these_have_their_share() {
    let (mut cluster, budgets, written) = full_of_items(Eviction::Clock);
    for number in 0..60 {
        let key = format!("long-{number}");
        let stored = put_patiently(&mut cluster, (number % 5) as u16, &key, &value_of(number));
        assert!(matches!(stored, Outcome::Stored(_)), "{key}: {stored:?}");
        assert!(cluster.read(3, &key).unwrap() == value_of(number), "{key}");
    }
    let share = LIMIT / store::CHUNK_SHARE;
    for budget in &budgets {
        let chunks = budget.used(Category::Chunks);
        assert!(chunks > share / 2, "{chunks} bytes of chunks of a share of {share}");
        assert!(chunks <= share, "beyond their share chunks make way for chunks: {chunks} of {share}");
    }
    let there = (0..written).filter(|i| cluster.get(0, &format!("item-{i}")).is_some()).count();
    assert!(there > 500, "most items stay: {there} of {written}");
    cluster.advance(1_000);
    assert_eq!(transient(&cluster), 0);
}

#[test]
fn items_that_may_not_go_make_no_way_and_a_long_value_is_refused_at_once() {
    let (mut cluster, _, _) = full_of_items(Eviction::None);
    for number in 0..4 {
        let stored = cluster.put(number, &format!("long-{number}"), &value_of(number.into()));
        assert_eq!(stored, Some(Outcome::Failed(Failure::OutOfMemory)));
    }
    // Nor is that waited for while a parity may come back, and nothing may be given back for that.
    cluster.kill(4);
    cluster.advance(Timing::default().node_lease_us / 1_000 * 2);
    for number in 0..4 {
        let stored = cluster.put(number, &format!("long-{number}"), &value_of(number.into()));
        assert_eq!(stored, Some(Outcome::Failed(Failure::OutOfMemory)));
    }
}

#[test]
fn a_stripe_that_finds_no_room_goes_to_another_group_and_is_found_there() {
    let (mut cluster, keys) = with_full_node();
    let object = cluster.object(0, keys.last().unwrap()).unwrap();
    assert!(!object.descriptor.exceptions.is_empty(), "{object:?}");
    check_exceptions(&cluster, &object);
    assert_eq!(cluster.chunk_count(), keys.len() * 8 * 2, "what is stranded goes");
    for (number, key) in keys.iter().enumerate() {
        assert!(cluster.read(3, key).unwrap() == value_of(number), "{key}");
    }
    // Also when one of those is lost that have what has moved.
    let holder = object.descriptor.exceptions[0].group;
    let view = cluster.coordinator.map().unwrap().group(holder).unwrap().clone();
    let lost = view.all_holders().map(|(_, holder)| holder.host.node.0).max().unwrap();
    cluster.kill(lost);
    cluster.advance(4_000);
    let last = keys.len() - 1;
    assert!(cluster.read(0, &keys[last]).unwrap() == value_of(last));
    for key in &keys {
        assert_eq!(cluster.run(0, super::starved::delete(key)), Some(Outcome::Deleted));
    }
    let_go_of_what_was_looked_at(&mut cluster);
    assert_eq!((cluster.chunk_count(), transient(&cluster)), (0, 0));
}

#[test]
fn a_value_with_too_many_stripes_elsewhere_fails_whole_and_leaves_nothing() {
    let (mut cluster, keys) = with_full_node();
    let (key, before) = (keys[0].clone(), cluster.chunk_count());
    // As many as a descriptor may name, or nearly.
    let long = noise(1_000, 450 * STRIPE);
    let stored = cluster.put(1, "long", &long);
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
    let object = cluster.object(0, "long").unwrap();
    check_exceptions(&cluster, &object);
    let named = object.descriptor.exceptions.len();
    assert!((MAX_EXCEPTIONS * 3 / 4..=MAX_EXCEPTIONS).contains(&named), "{named}");
    assert!(cluster.read(2, "long").unwrap() == long);
    assert_eq!(cluster.run(2, super::starved::delete("long")), Some(Outcome::Deleted));
    let_go_of_what_was_looked_at(&mut cluster);
    assert_eq!((cluster.chunk_count(), transient(&cluster)), (before, 0));
    // One that would need more of them.
    let refused = cluster.put(1, &key, &noise(1_001, 560 * STRIPE));
    assert_eq!(refused, Some(Outcome::Failed(Failure::OutOfMemory)));
    assert_eq!(
        cluster.hosts[&NodeId(1)].stats().refused_writes,
        1,
        "the node that was to write it says that it is full"
    );
    cluster.advance(2_000);
    assert_eq!((cluster.chunk_count(), transient(&cluster)), (before, 0));
    assert!(cluster.read(3, &key).unwrap() == value_of(0), "what was there is there");
}

fn begin(key: &str) -> Request {
    let condition = Condition { mode: StoreMode::Set, compare: None, invalidate: false };
    Request::on(key_of(key), Op::Object(ObjectOp::Begin(Begin { condition, conversions: 0 })))
}

#[test]
fn ids_that_nobody_renews_are_bounded_and_end() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let most = Limits::default().open_objects;
    let owner = cluster.owner_of("key");
    let held = |cluster: &Cluster| cluster.hosts[&owner].memory().queue_bytes;
    let before = held(&cluster);
    let tokens: Vec<Token> = (0..most + 10).map(|_| cluster.begin(owner.0, begin("key"))).collect();
    let begun = |token: &&Token| matches!(cluster.answers.get(token), Some(Outcome::Begun(_)));
    assert_eq!(tokens.iter().filter(begun).count(), most);
    let busy = Some(&Outcome::Failed(Failure::Busy));
    assert!(tokens[most..].iter().all(|token| cluster.answers.get(token) == busy));
    assert_eq!(cluster.hosts[&owner].stats().objects.open_ids, most as u64);
    let taken = held(&cluster) - before;
    assert!((1..200 * most as u64).contains(&taken), "{taken} bytes for {most} ids");
    // A value is told so before it is sent; others are taken.
    let (token, _) = cluster.begin_upload(1, "key", 500_000, StoreMode::Set);
    cluster.settle();
    assert_eq!(cluster.answers.get(&token), busy);
    let other = (0..).map(|n| format!("other-{n}")).find(|key| cluster.owner_of(key) != owner).unwrap();
    let stored = cluster.put(1, &other, &noise(1, 500_000));
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
    assert!(matches!(cluster.run(1, super::set("key", b"short")), Some(Outcome::Stored(_))));
    cluster.advance(Timing::default().object_deadline_us / 1_000 + 1_000);
    assert_eq!(transient(&cluster), 0);
    let stored = cluster.put(1, "key", &noise(2, 500_000));
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
}

#[test]
fn what_no_node_has_room_for_is_refused_before_it_is_sent() {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 1 << 20, eviction: Eviction::Clock };
    let mut cluster = Cluster::with_memory(5, "rs(3+2)", &store, |_| Budget::new(16 << 20));
    // A third of it at each node.
    let (too_long, possible) = (60 << 20, 30 << 20);
    assert_eq!(cluster.refusal_of(0, "key", too_long), Some(Failure::OutOfMemory));
    assert_eq!(cluster.refusal_of(0, "key", possible), None);
    cluster.put(0, "key", &noise(1, 1_000_000)).unwrap();
    // The same once there are holders.
    assert_eq!(cluster.refusal_of(0, "key", too_long), Some(Failure::OutOfMemory));
    assert_eq!(cluster.refusal_of(0, "key", possible), None);
    assert!(cluster.read(1, "key").unwrap() == noise(1, 1_000_000));
}
