//! Items that span several runs.

use store::{Eviction, Shortage, encoded_len};
use types::{IndexOp, MAX_ITEM_BYTES, Reach, RunClass};

use crate::driver::Role;

const KIB: usize = 1024;

fn largest_value(key: &[u8]) -> Vec<u8> {
    vec![9; MAX_ITEM_BYTES - encoded_len(key.len(), 0)]
}

#[test]
fn runs_are_assigned_with_the_record_and_free_with_the_item() {
    let mut role = Role::new(4, Eviction::None, 64 << 20);
    for len in [65 * KIB, 64 * KIB - 27, 64 * KIB, 1000 * KIB, 130 * KIB] {
        role.set(b"key", &vec![1; len]).unwrap();
        role.check();
    }
    role.delete(b"key");
    role.check();
    assert!(role.parity.classes().iter().all(|class| *class != RunClass::LARGE_CONTINUED));
    assert_eq!(role.store.stats().free_runs, 16 * role.store.stats().extents);
}

#[test]
fn an_item_has_at_most_a_mebibyte() {
    let mut role = Role::new(4, Eviction::Clock, 64 << 20);
    role.set(b"key", &largest_value(b"key")).unwrap();
    role.check();
    assert_eq!(role.store.allocate(MAX_ITEM_BYTES + 1), Err(Shortage::TooLarge));
    assert_eq!(role.store.allocate(usize::MAX), Err(Shortage::TooLarge));
}

#[test]
fn a_cancelled_large_item_leaves_no_trace() {
    let mut role = Role::new(2, Eviction::None, 64 << 20);
    role.store.commit_extent(Reach::whole(0)).unwrap();
    let len = 200 * KIB;
    let allocation = role.store.allocate(len).unwrap();
    let class = |run, class| IndexOp::Assign { run, class };
    let more = RunClass::LARGE_CONTINUED;
    assert_eq!(
        allocation.assign[..],
        [class(0, RunClass::LARGE), class(1, more), class(2, more), class(3, more)]
    );
    role.store.cancel(allocation.addr, len);
    assert_eq!(role.store.stats().free_runs, 16);
    role.check();
}

#[test]
fn small_items_give_way_to_a_large_one() {
    let mut role = Role::new(4, Eviction::Clock, 64 << 20);
    for i in 0..6000u32 {
        role.set(&i.to_le_bytes(), &[3; KIB]).unwrap();
    }
    for i in 0..20u32 {
        role.set(format!("large {i}").as_bytes(), &vec![4; 300 * KIB]).unwrap();
        role.set(&i.to_le_bytes(), &[3; KIB]).unwrap();
    }
    role.check();
    let large = role.model.keys().filter(|key| key.starts_with(b"large")).count();
    assert!(large >= 5, "{large} large items are left");
}

#[test]
fn large_items_give_way_to_small_ones_and_to_each_other() {
    let mut role = Role::new(4, Eviction::Clock, 64 << 20);
    for i in 0..30u32 {
        let len = 70 * KIB + (i as usize * 97 * KIB) % (900 * KIB);
        role.set(format!("large {i}").as_bytes(), &vec![4; len]).unwrap();
    }
    role.check();
    for i in 0..10_000u32 {
        role.set(&i.to_le_bytes(), &[3; KIB]).unwrap();
    }
    role.check();
    assert!(role.model.keys().all(|key| !key.starts_with(b"large")));
}

#[test]
fn without_eviction_small_items_are_moved_out_of_the_way() {
    let mut role = Role::new(4, Eviction::None, 64 << 20);
    let mut count = 0u32;
    while role.set(&count.to_le_bytes(), &[3; KIB]).is_ok() {
        count += 1;
    }
    // Every run keeps two thirds of its items: there is room, but no free run.
    for i in (0..count).step_by(3) {
        role.delete(&i.to_le_bytes());
    }
    role.commit_all();
    assert_eq!(role.store.stats().free_runs, 0);
    role.set(b"large", &vec![5; 400 * KIB]).unwrap();
    role.check();
    assert!(role.moved > 0 && role.evicted == 0);
}

#[test]
fn the_largest_item_can_replace_itself_for_ever() {
    let mut role = Role::new(3, Eviction::Clock, 64 << 20);
    for i in 0..20u8 {
        let mut value = largest_value(b"key");
        value[0] = i;
        role.set(b"key", &value).unwrap();
        role.set(&[i], b"small").unwrap();
    }
    role.check();
}
