//! Items of 16 to 170 KiB, of which several share eight runs.

use store::{Budget, DataStore, Eviction, Replica};
use types::{Addr, Cohort, EXTENT_BYTES, IndexHash, IndexOp, RUN_BYTES, Reach, RunClass, class_of};

use crate::driver::{Role, config};
use crate::takeover::stand_in_within;

const EXTENTS: usize = 24;
const LIMIT: u64 = (EXTENTS * EXTENT_BYTES) as u64;
const AMPLE: u64 = 64 << 20;
const KIB: usize = 1024;

fn key(kind: char, i: usize) -> Vec<u8> {
    format!("{kind}{i:07}").into_bytes()
}

fn write(role: &mut Role, kind: char, value_len: usize, bytes: usize) {
    for i in 0..bytes / value_len {
        role.set(&key(kind, i), &vec![kind as u8; value_len]).unwrap();
    }
}

fn delete(role: &mut Role, which: impl Iterator<Item = usize>) {
    for i in which {
        role.delete(&key('a', i));
    }
}

/// Lengths from `least` on up to 200 KiB, the shorter ones more often.
fn mixed_len(i: usize, least: usize) -> usize {
    least + (i * 7919) % ((200 * KIB) >> (i % 4))
}

/// Extents until `count` values of 32 KiB are in.
fn extents_of(extents_of_area: usize, count: usize) -> usize {
    let mut role = Role::new(extents_of_area, Eviction::None, AMPLE);
    write(&mut role, 'a', 32 * KIB, count * 32 * KIB);
    role.check();
    role.store.stats().extents
}

#[test]
fn a_power_of_two_and_a_header_cost_little_more_than_themselves() {
    assert_eq!(extents_of(EXTENTS, 300), 10);
    // In a short area each has a run.
    assert_eq!(extents_of(15, 240), 15);
}

#[test]
fn the_runs_of_a_span_are_assigned_with_its_first_item_and_free_with_its_last() {
    let mut role = Role::new(EXTENTS, Eviction::None, AMPLE);
    role.store.commit_extent(Reach::whole(0)).unwrap();
    let len = 33 * KIB;
    let first = role.store.allocate(len).unwrap();
    let continued = (1..8).map(|run| IndexOp::Assign { run, class: RunClass::SPAN_CONTINUED });
    let assigned = std::iter::once(IndexOp::Assign { run: 0, class: class_of(len) }).chain(continued);
    assert!(first.assign.iter().copied().eq(assigned));
    let second = role.store.allocate(len).unwrap();
    assert_eq!(second.addr.byte(), types::slot_bytes(class_of(len)));
    assert_eq!(second.assign, first.assign);
    role.store.cancel(first.addr, len);
    role.store.cancel(second.addr, len);
    assert_eq!(role.store.stats().free_runs, 16);

    write(&mut role, 'a', len, 40 * len);
    delete(&mut role, 0..40);
    role.check();
    assert_eq!(role.store.stats().free_runs, 16 * role.store.stats().extents);
    assert!(role.parity.classes().contains(&RunClass::SPAN_CONTINUED));
    // The same runs in other cuts, over what the table still says of the old ones.
    write(&mut role, 'b', 100 * KIB, 2 << 20);
    write(&mut role, 'c', 300 * KIB, 2 << 20);
    write(&mut role, 'd', 3 * KIB, 2 << 20);
    role.check();
    let mut role = stand_in_within(role, AMPLE);
    role.check();
}

#[test]
fn without_eviction_the_last_items_take_what_is_left() {
    let mut role = Role::new(EXTENTS, Eviction::None, LIMIT);
    // A small item in each half extent leaves no whole span.
    write(&mut role, 'a', KIB, 16 << 20);
    let kept = |i: usize| i.is_multiple_of(400);
    delete(&mut role, (0..16 * KIB).filter(|i| !kept(*i)));
    role.commit_all();
    let mut count = 0;
    while role.set(&key('b', count), &[2; 40 * KIB]).is_ok() {
        count += 1;
    }
    role.check();
    assert!(role.live_share() > 0.55 && role.evicted == 0, "{}", role.live_share());
}

fn shift(from: usize, to: usize) -> f64 {
    let mut role = Role::new(EXTENTS, Eviction::Clock, LIMIT);
    role.window = 32;
    write(&mut role, 'a', from, 36 << 20);
    assert!(role.live_share() > 0.75, "{from}: {} before the shift", role.live_share());
    write(&mut role, 'b', to, 72 << 20);
    role.check();
    let old = role.model.keys().filter(|key| key[0] == b'a').count();

    assert!(old * from < EXTENT_BYTES, "{old} cold items of the old size are left");
    role.live_share()
}

#[test]
fn the_memory_follows_the_sizes() {
    for (from, to) in [(KIB, 32 * KIB), (32 * KIB, KIB), (32 * KIB, 40 * KIB), (64 * KIB, 20 * KIB)] {
        let share = shift(from, to);
        assert!(share > 0.8, "{from} -> {to}: {share}");
    }
}

#[test]
fn hot_items_survive_in_a_cache_of_long_values() {
    let mut role = Role::new(EXTENTS, Eviction::Clock, LIMIT);
    write(&mut role, 'h', 32 * KIB, 4 << 20);
    let hot: Vec<Vec<u8>> = role.model.keys().cloned().collect();
    for i in 0..3000 {
        role.set(&key('b', i), &[1; 32 * KIB]).unwrap();
        role.get(&hot[i % hot.len()]);
    }
    role.check();
    let alive = hot.iter().filter(|key| role.model.contains_key(*key)).count();
    assert!(alive * 10 > hot.len() * 9, "{alive} of {} hot items are left", hot.len());
}

#[test]
fn large_items_find_room_among_full_spans() {
    for eviction in [Eviction::Clock, Eviction::None] {
        let mut role = Role::new(EXTENTS, eviction, LIMIT);
        let mut count = 0;
        while role.evicted == 0 && role.set(&key('a', count), &[1; 32 * KIB]).is_ok() {
            count += 1;
        }
        if eviction == Eviction::None {
            delete(&mut role, (0..count).step_by(3));
        }
        for (i, len) in [200, 700, 1000, 190].into_iter().enumerate() {
            role.set(&key('l', i), &vec![2; len * KIB]).unwrap();
        }
        role.check();
        assert!(eviction == Eviction::Clock || role.moved > 0);
    }
}

#[test]
fn any_sizes_in_any_order_lose_nothing() {
    for eviction in [Eviction::Clock, Eviction::None] {
        let mut role = Role::new(EXTENTS, eviction, LIMIT);
        role.window = 16;
        for i in 0..4000 {
            let len = if i % 3 == 0 { i * 37 % 4000 } else { mixed_len(i, 10_000) };
            let written = role.set(&key('a', i * 31 % 400), &vec![i as u8; len]);
            if written.is_err() || i % 5 == 0 {
                role.delete(&key('a', i * 17 % 400));
            }
        }
        role.check();
        let mut role = stand_in_within(role, LIMIT * 2);
        role.check_present();
        role.check();
        write(&mut role, 'b', 33 * KIB, 1 << 20);
        role.check();
    }
}

#[test]
fn a_stand_in_with_little_memory_serves_them() {
    for eviction in [Eviction::Clock, Eviction::None] {
        let mut role = Role::new(EXTENTS, eviction, AMPLE);
        for i in 0..200 {
            role.set(&key('a', i), &vec![i as u8; mixed_len(i, 16 * KIB)]).unwrap();
        }
        role.commit_all();
        let mut role = stand_in_within(role, 9 << 20);
        for i in 0..200 {
            role.commit_all();
            let expected = role.model.get(&key('a', i)).map(|(value, _)| value.clone());
            assert_eq!(role.get(&key('a', i)), expected);
        }
        assert!(role.surrendered > 0);
        role.check_present();
    }
}

#[test]
fn a_replica_with_half_a_span_is_refused() {
    const SLOT: usize = 34_952;
    let adopt = |first: u32, continued: u32, byte: usize| {
        let budget = Budget::new(AMPLE);
        let mut replica = Replica::new(budget.clone());
        replica.apply(&IndexOp::Assign { run: first, class: class_of(SLOT) });
        for run in first + 1..=first + continued {
            replica.apply(&IndexOp::Assign { run, class: RunClass::SPAN_CONTINUED });
        }
        replica.apply(&IndexOp::Insert {
            hash: IndexHash(1),
            addr: Addr::from_byte(byte),
            cohort: Cohort::default(),
        });
        DataStore::from_replica(config(1, Eviction::None), budget, replica).is_ok()
    };
    assert!(adopt(0, 7, 14 * SLOT) && adopt(8, 7, 8 * RUN_BYTES));
    assert!(!adopt(0, 6, SLOT) && !adopt(0, 7, SLOT + 8) && !adopt(0, 7, 15 * SLOT));
    assert!(!adopt(4, 7, 4 * RUN_BYTES) && !adopt(4, 7, 4 * RUN_BYTES + SLOT) && !adopt(0, 8, 8 * RUN_BYTES));
}
