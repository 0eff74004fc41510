//! Extents of which every run is free go back to the budget, and may be used again.

use store::{Budget, Category, DataStore, Eviction, Replica, ReplicaBuilder, Wipe};
use types::{EXTENT_BYTES, RunClass};

use crate::driver::Role;

const EXTENTS: usize = 4;

fn key(i: usize) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

/// All extents full of items that are gone again.
fn emptied() -> Role {
    let mut role = Role::new(EXTENTS, Eviction::None, 64 << 20);
    let count = EXTENTS * EXTENT_BYTES * 9 / 10 / 3000;
    (0..count).for_each(|i| role.set(&key(i), &[i as u8; 3000]).unwrap());
    (0..count).for_each(|i| assert!(role.delete(&key(i))));
    role.commit_all();
    role
}

fn copy(replica: &Replica, budget: &Budget) -> Replica {
    let mut builder = ReplicaBuilder::new(budget.clone());
    builder.push(&replica.encode_part(0, 1 << 30).0).unwrap();
    builder.finish().unwrap()
}

#[test]
fn a_vacant_extent_goes_back_and_may_be_had_again() {
    let mut role = emptied();
    let extents = role.store.area().extents().count();
    assert!(role.store.vacant_extents().eq((0..extents as u32).rev()));
    while role.vacate_one() {}
    assert_eq!((role.vacated, role.store.area().extents().count()), (extents, 0));
    assert_eq!(role.budget.used(Category::Area), 0);
    assert!(role.store.replica().touched().is_empty());
    assert!(role.store.replica().classes().is_empty(), "no run has a class");
    role.check();
    role.check_present();
    for i in 0..1000 {
        role.set(&key(i), &[7; 3000]).unwrap();
    }
    role.check();
    role.check_present();
}

#[test]
fn an_extent_with_an_item_or_a_pending_slot_is_not_vacant() {
    let mut role = emptied();
    let all: Vec<u32> = role.store.vacant_extents().collect();
    role.set(b"one", &[1; 3000]).unwrap();
    assert!(role.store.vacant_extents().eq(all[..all.len() - 1].iter().copied()), "its slot is pending");
    role.commit_all();
    assert!(role.store.vacant_extents().eq(all[..all.len() - 1].iter().copied()), "it is there");
    assert!(role.delete(b"one"));
    role.commit_all();
    assert!(role.store.vacant_extents().eq(all));
}

#[test]
fn nothing_is_put_into_an_extent_on_its_way() {
    let mut role = emptied();
    let extent = role.store.vacant_extents().last().unwrap();
    role.store.vacating().begin(extent);
    for i in 0..100 {
        let addr = role.store.allocate(3000).unwrap().addr;
        assert_ne!((addr.byte() / EXTENT_BYTES) as u32, extent, "item {i}");
    }
}

/// A takeover in the middle of it: some runs are zero and untouched, the others are as they were.
#[test]
fn a_stand_in_repairs_only_what_was_not_wiped() {
    let mut role = emptied();
    role.set(b"stays", &[5; 3000]).unwrap();
    role.commit_all();
    let extent = role.store.vacant_extents().next().unwrap();
    let before = role.store.replica().touched().count();
    role.store.vacating().begin(extent);
    let mut runs = Wipe::runs(extent);
    let first = runs.next().unwrap();
    let Wipe { write: Some((addr, delta)), op } = role.store.vacating().wipe(first) else {
        panic!("it was written")
    };
    role.store.apply_write(addr, &delta);
    role.shadow[addr.byte()..][..delta.len()].fill(0);
    role.store.apply_op(&op);
    role.parity.touch(addr, delta.len());
    role.parity.apply(&op);
    assert_eq!(role.parity.class(first), RunClass::FREE);
    let budget = Budget::new(64 << 20);
    let store =
        DataStore::from_replica(role.config.clone(), budget.clone(), copy(&role.parity, &budget)).unwrap();
    assert!(store.absent_count() < before && store.absent_count() > 0);
    let parity = copy(&role.parity, &Budget::new(u64::MAX));
    let mut stand_in = Role::around(store, role.config.clone(), budget, parity, role.model.clone());
    stand_in.shadow = role.shadow;
    stand_in.check();
    while let Some(pages) = stand_in.store.next_absent(0) {
        stand_in.repair(pages);
    }
    stand_in.check_present();
}
