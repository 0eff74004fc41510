//! A walk goes on by the bits of keys' hashes: whatever happens between its steps, an item that is there throughout is met.

use std::collections::BTreeSet;

use proptest::prelude::*;
use store::{Eviction, Step};
use types::{IndexHash, KeyHash};

use crate::driver::{CLUSTER, Role};
use crate::takeover::stand_in_within;

const LIMIT: u64 = 64 << 20;

/// The bits behind these; none behind the last.
fn behind(hash: IndexHash) -> Option<IndexHash> {
    Some(IndexHash(hash.0 + 1)).filter(|next| next.0 < 1 << 40)
}

/// One step: what is met, and from where on the walk goes on. What is absent is repaired.
fn step(role: &mut Role, from: IndexHash) -> (Vec<Vec<u8>>, Option<IndexHash>) {
    loop {
        let pages = match role.store.step(from) {
            Step::Items(hash, items, damaged) => {
                assert_eq!(damaged, 0);
                assert!(hash >= from, "a walk goes forward");
                return (items.iter().map(|item| item.key.to_vec()).collect(), behind(hash));
            }
            Step::End => return (Vec::new(), None),
            Step::Absent(_, pages) => pages,
        };
        role.repair(pages);
    }
}

/// What happens between two steps.
#[derive(Clone, Debug)]
enum Change {
    Set(u16, usize),
    Delete(u16),
    Commit,
    /// Another store serves the role, at first without its bytes.
    TakeOver,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..2000u16, 0..3000usize).prop_map(|(key, len)| Change::Set(key, len)),
        4 => (0..2000u16).prop_map(Change::Delete),
        1 => Just(Change::Commit),
    ]
}

fn key(number: u16) -> Vec<u8> {
    format!("key-{number}").into_bytes()
}

fn carry_out(mut role: Role, change: &Change) -> Role {
    match change {
        // Where nothing more can be evicted it is refused.
        Change::Set(number, len) => _ = role.set(&key(*number), &vec![3; *len]),
        Change::Delete(number) => _ = role.delete(&key(*number)),
        Change::Commit => role.commit_all(),
        Change::TakeOver => {
            role.commit_all();
            role = stand_in_within(role, LIMIT);
        }
    }
    role
}

/// Walks to the end, with these changes between steps; what was met, and what was there throughout.
fn walk(mut role: Role, every: usize, changes: &[Change]) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
    let mut throughout: BTreeSet<Vec<u8>> = role.model.keys().cloned().collect();
    let (mut met, mut changes) = (BTreeSet::new(), changes.iter());
    let (mut next, mut steps) = (Some(IndexHash(0)), 0);
    while let Some(from) = next {
        let keys;
        (keys, next) = step(&mut role, from);
        met.extend(keys);
        steps += 1;
        if steps % every == 0
            && let Some(change) = changes.next()
        {
            let evicted = role.evicted;
            role = carry_out(role, change);
            throughout.retain(|key| role.model.contains_key(key));
            // What is set anew may have been evicted for that just before.
            if let Change::Set(number, _) = change
                && role.evicted > evicted
            {
                throughout.remove(&key(*number));
            }
        }
    }
    (met, throughout)
}

fn filled(extents: usize, items: u16, len: usize) -> Role {
    let mut role = Role::new(extents, Eviction::Clock, LIMIT);
    (0..items).for_each(|number| role.set(&key(number), &vec![1; len]).expect("it evicts"));
    role.commit_all();
    role
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_there_throughout_is_met(
        items in 0..1200u16,
        every in 1..8usize,
        mut changes in proptest::collection::vec(change(), 0..300),
        over in proptest::option::of(0..100usize),
    ) {
        if let Some(at) = over {
            changes.insert(at.min(changes.len()), Change::TakeOver);
        }
        // Three extents, which many of the longer values fill: some go.
        let (met, throughout) = walk(filled(3, items, 700), every, &changes);
        let missed: Vec<_> = throughout.difference(&met).collect();
        prop_assert!(missed.is_empty(), "{} of {} missed", missed.len(), throughout.len());
    }
}

#[test]
fn tables_that_grow_and_shrink_lose_nothing() {
    let changes: Vec<Change> = (500..2000u16)
        .map(|number| Change::Set(number, 20))
        .chain((200..1900u16).map(Change::Delete))
        .collect();
    for every in [1, 3] {
        let (met, throughout) = walk(filled(6, 500, 20), every, &changes);
        assert!(throughout.len() >= 200 && met.is_superset(&throughout));
    }
}

#[test]
fn a_walk_over_a_store_at_rest_meets_each_item_once_in_the_order_of_its_bits() {
    let mut role = filled(6, 1000, 100);
    let (mut met, mut next) = (Vec::new(), Some(IndexHash(0)));
    while let Some(from) = next {
        let keys;
        (keys, next) = step(&mut role, from);
        met.extend(keys);
    }
    let bits: Vec<IndexHash> = met.iter().map(|key| KeyHash::of(CLUSTER, key).into()).collect();
    assert!(met.len() == 1000 && bits.is_sorted());
    assert_eq!(met.into_iter().collect::<BTreeSet<_>>(), role.model.into_keys().collect());
}

#[test]
fn what_was_flushed_is_not_met() {
    let mut role = filled(6, 300, 100);
    role.flush();
    assert_eq!(step(&mut role, IndexHash(0)).0, Vec::<Vec<u8>>::new());
    role.set(b"new", b"value").expect("there is room");
    role.commit_all();
    let (met, _) = walk(role, 1, &[]);
    assert_eq!(met, BTreeSet::from([b"new".to_vec()]));
}

#[test]
fn what_is_damaged_is_counted_and_the_others_are_met() {
    let mut role = filled(6, 3, 10);
    let (addr, _) = role.store.iter_items().next().expect("there is one");
    role.store.damage(addr.byte() + store::ITEM_HEADER_BYTES, 1);
    let (mut from, mut keys, mut lost) = (Some(IndexHash(0)), 0, 0);
    while let Some(Step::Items(hash, items, damaged)) = from.map(|from| role.store.step(from)) {
        (from, keys, lost) = (behind(hash), keys + items.len(), lost + damaged);
    }
    assert_eq!((keys, lost), (2, 1));
}
