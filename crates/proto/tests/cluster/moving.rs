//! Values in chunks that move to another pool with their namespace.

use types::{AdminCommand, AdminRequest, CatalogChange, EvictPolicy, Name, PolicyChange};

use super::*;

pub(super) const OTHER: &str = "other";

impl Cluster {
    fn change(&mut self, change: CatalogChange) {
        let request = AdminRequest { expect: None, command: AdminCommand::Catalog(change) };
        self.coordinator.administer(self.now, &request).unwrap();
        self.settle();
    }

    pub(super) fn convert(&mut self, to: &str) {
        self.change(CatalogChange::ConvertNamespace { name: Name::default_name(), to: to.parse().unwrap() });
    }

    /// The pool of the default namespace, and whether it is on its way to another one.
    pub(super) fn home(&self) -> (String, bool) {
        let catalog = &self.coordinator.map().unwrap().catalog;
        let known = &catalog.namespaces[0];
        (catalog.pool(known.pool).unwrap().name.to_string(), known.conversion.is_some())
    }

    /// How often a value was written anew, in all.
    pub(super) fn rewritten(&self) -> u64 {
        self.hosts.values().map(|host| host.stats().objects.rewritten_values).sum()
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Five nodes with a pool of rs(3+2) and another one of this code.
fn with_pool(code: &str) -> Cluster {
    with_pool_and(code, &Setup::default())
}

pub(super) fn with_pool_and(code: &str, setup: &Setup) -> Cluster {
    let mut cluster = Cluster::of(5, "rs(3+2)", setup);
    let (name, profile) = (OTHER.parse().unwrap(), code.parse().unwrap());
    cluster.change(CatalogChange::CreatePool { name, profile, groups: Some(3) });
    cluster.advance(1_000);
    cluster
}

#[test]
fn values_in_chunks_are_written_anew_in_another_pool_with_its_code() {
    let mut cluster = with_pool("rs(2+1)");
    let values: Vec<(String, Vec<u8>)> =
        [10_000, 500_000, 3_000_000].map(|len| (format!("key-{len}"), bytes(len))).into();
    for (key, value) in &values {
        assert!(matches!(cluster.put(0, key, value), Some(Outcome::Stored(_))), "{key}");
    }
    let before = cluster.object(1, "key-500000").unwrap().descriptor;
    cluster.convert(OTHER);
    for _ in 0..40 {
        for (key, value) in &values {
            assert!(cluster.read(2, key).as_ref() == Ok(value), "{key} while it moves");
        }
        cluster.advance(100);
    }
    assert_eq!((cluster.home(), cluster.rewritten()), ((OTHER.to_owned(), false), 3));
    for (key, value) in &values {
        assert!(cluster.read(3, key).as_ref() == Ok(value), "{key}");
    }
    let after = cluster.object(1, "key-500000").unwrap().descriptor;
    assert_eq!((before.geometry.k, after.geometry.k), (3, 2));
    assert_ne!(before.id.owner.group, after.id.owner.group);
    // Nothing is left where it was.
    cluster.advance(60_000);
    let kept = |host: &Host| host.chunks().map(|(member, chunks)| (member.group, chunks.count())).collect();
    let kept: Vec<Vec<_>> = cluster.hosts.values().map(kept).collect();
    assert!(kept.iter().flatten().all(|(group, count)| group.0 >= 5 || *count == 0), "{kept:?}");
}

#[test]
fn a_value_whose_writer_began_before_the_namespace_is_stored_where_it_was_and_moves_then() {
    let mut cluster = with_pool("rs(2+1)");
    let value = bytes(400_000);
    cluster.put(0, "other", &value);
    let (token, upload) = cluster.begin_upload(0, "key", value.len(), StoreMode::Set);
    cluster.settle();
    let now = cluster.clocks(NodeId(0));
    let half = value.len() / 2;
    let mut fed = 0;
    while fed < half {
        let host = cluster.hosts.get_mut(&NodeId(0)).unwrap();
        let piece = host.streams(now).upload_wants(upload).min(half - fed);
        host.streams(now).feed(upload, Bytes::copy_from_slice(&value[fed..fed + piece]));
        fed += piece;
        cluster.settle();
    }
    cluster.convert(OTHER);
    // Longer than a namespace takes to begin; a reader finds nothing, and a writer of the same key waits.
    cluster.advance(4_000);
    assert!(cluster.read(1, "other").as_ref() == Ok(&value));
    assert_eq!((cluster.rewritten(), cluster.run(1, get("key"))), (1, Some(Outcome::Miss)));
    assert_eq!(cluster.home(), ("default".to_owned(), true));
    cluster.feed(0, upload, &value, fed);
    assert!(
        matches!(cluster.answers.get(&token), Some(Outcome::Stored(_))),
        "{:?}",
        cluster.answers.get(&token)
    );
    assert!(cluster.read(1, "key").as_ref() == Ok(&value));
    cluster.advance(4_000);
    assert_eq!((cluster.home(), cluster.rewritten()), ((OTHER.to_owned(), false), 2));
    assert!(cluster.read(1, "key").as_ref() == Ok(&value));
}

#[test]
fn who_is_slow_to_write_a_value_when_its_namespace_moves_keeps_nobody_from_writing_it() {
    for is_there in [true, false] {
        let mut cluster = with_pool("rs(2+1)");
        let (value, other) = (bytes(400_000), bytes(300_000));
        if is_there {
            cluster.put(0, "key", &bytes(200_000)).unwrap();
        }
        let (token, upload) = cluster.begin_upload(0, "key", value.len(), StoreMode::Set);
        cluster.settle();
        cluster.convert(OTHER);
        cluster.advance(3_000);
        let (theirs, second) = cluster.begin_upload(1, "key", other.len(), StoreMode::Set);
        cluster.settle();
        cluster.feed(1, second, &other, 0);
        cluster.advance(2_000);
        let stored = cluster.answers.get(&theirs);
        assert!(matches!(stored, Some(Outcome::Stored(_))), "{is_there}: {stored:?}");
        assert_eq!(cluster.home(), (OTHER.to_owned(), false), "nothing holds it up");
        // Whoever was slow has not written it.
        cluster.feed(0, upload, &value, 0);
        cluster.advance(10_000);
        let outcome = cluster.answers.get(&token);
        assert!(matches!(outcome, Some(Outcome::Failed(_))), "{is_there}: {outcome:?}");
        assert!(cluster.read(2, "key").as_ref() == Ok(&other));
    }
}

#[test]
fn a_value_that_comes_in_drops_does_not_hold_its_namespace_up_for_good() {
    let mut cluster = with_pool("rs(2+1)");
    let value = bytes(400_000);
    let (token, upload) = cluster.begin_upload(0, "key", value.len(), StoreMode::Set);
    cluster.settle();
    cluster.convert(OTHER);
    let mut at = 0;
    while cluster.home().1 && at < 400 {
        cluster.feed_some(0, upload, &value[at..at + 1]);
        cluster.advance(1_000);
        at += 1;
    }
    assert_eq!((cluster.home(), at > 100), ((OTHER.to_owned(), false), true), "after {at} s");
    let outcome = cluster.answers.get(&token);
    assert!(matches!(outcome, Some(Outcome::Failed(_)) | None), "{outcome:?}");
    assert_eq!(cluster.run(1, get("key")), Some(Outcome::Miss));
}

#[test]
fn a_namespace_that_turns_back_has_every_value_where_it_was() {
    let mut cluster = with_pool("rs(2+1)");
    let values: Vec<(String, Vec<u8>)> =
        (0..30).map(|number| (format!("key-{number}"), bytes(50_000 + number))).collect();
    for (key, value) in &values {
        assert!(matches!(cluster.put(0, key, value), Some(Outcome::Stored(_))), "{key}");
    }
    cluster.convert(OTHER);
    while cluster.rewritten() == 0 {
        cluster.advance(10);
    }
    cluster.convert("default");
    for (key, value) in &values {
        assert!(cluster.read(2, key).as_ref() == Ok(value), "{key}");
    }
    cluster.advance(5_000);
    assert_eq!(cluster.home(), ("default".to_owned(), false));
    for (key, value) in &values {
        assert!(cluster.read(3, key).as_ref() == Ok(value), "{key}");
    }
}

#[test]
fn what_is_written_before_anything_leaves_has_a_version_of_the_former_pool() {
    let mut cluster = with_pool("rs(2+1)");
    cluster.convert(OTHER);
    let Some(Outcome::Stored(before)) = cluster.run(0, set("key", b"v")) else { panic!("it is stored") };
    cluster.advance(5_000);
    let Some(Outcome::Stored(after)) = cluster.run(0, set("key", b"v")) else { panic!("it is stored") };
    assert_eq!([before.version, after.version].map(|version| version >> 62), [0, 1]);
}

#[test]
fn a_value_that_is_longer_than_its_quota_by_now_moves_all_the_same() {
    let mut cluster = with_pool("rep(2)");
    let value = bytes(500_000);
    assert!(matches!(cluster.put(0, "key", &value), Some(Outcome::Stored(_))));
    let change = PolicyChange {
        quota_bytes: Some(600_000),
        evict: Some(EvictPolicy::Keep),
        ..PolicyChange::default()
    };
    cluster.change(CatalogChange::SetPolicy { name: Name::default_name(), change });
    cluster.convert(OTHER);
    cluster.advance(5_000);
    assert_eq!((cluster.home(), cluster.rewritten()), ((OTHER.to_owned(), false), 1));
    assert!(cluster.read(2, "key").as_ref() == Ok(&value));
}

#[test]
fn a_value_that_is_being_written_when_its_namespace_turns_back_holds_nothing_up() {
    let mut cluster = with_pool("rs(2+1)");
    let value = bytes(300_000);
    cluster.put(0, "key", &value);
    cluster.convert(OTHER);
    cluster.advance(5_000);
    assert_eq!(cluster.home(), (OTHER.to_owned(), false));
    cluster.convert("default");
    cluster.advance(100);
    cluster.change(CatalogChange::PauseConversion { name: Name::default_name(), paused: true });
    let (token, upload) = cluster.begin_upload(0, "key", value.len(), StoreMode::Set);
    cluster.settle();
    cluster.convert(OTHER);
    cluster.advance(3_000);
    assert_eq!(cluster.home(), (OTHER.to_owned(), false), "it waits for nobody");
    cluster.feed(0, upload, &value, 0);
    cluster.advance(10_000);
    let outcome = cluster.answers.get(&token);
    assert!(matches!(outcome, Some(Outcome::Failed(Failure::Busy | Failure::Unavailable))), "{outcome:?}");
    assert!(cluster.read(1, "key").as_ref() == Ok(&value), "as it was");
}
