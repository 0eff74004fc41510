//! When the sizes of values change, the memory must follow: at least 85 % of the limit holds items afterwards.

use store::Eviction;

use crate::driver::{NoRoom, Role};

const EXTENTS: usize = 16;
const LIMIT: u64 = (EXTENTS as u64) << 20;
const KIB: usize = 1024;

fn role(eviction: Eviction) -> Role {
    let mut role = Role::new(EXTENTS, eviction, LIMIT);
    role.window = 64;
    role
}

fn key(kind: char, i: usize) -> Vec<u8> {
    format!("{kind}{i:023}").into_bytes()
}

/// Writes `bytes` worth of values.
fn write(role: &mut Role, kind: char, value_len: usize, bytes: usize) {
    for i in 0..bytes / value_len {
        role.set(&key(kind, i), &vec![kind as u8; value_len]).unwrap();
    }
}

fn shift(from: usize, to: usize) -> f64 {
    let mut role = role(Eviction::Clock);
    write(&mut role, 'a', from, 24 << 20);
    assert!(role.live_share() > 0.85, "{} before the shift", role.live_share());
    write(&mut role, 'b', to, 48 << 20);
    role.check();
    assert!(role.model.keys().all(|key| key[0] == b'b'), "cold items of the old size are left");
    role.live_share()
}

#[test]
fn from_1_kib_to_4_kib_with_eviction() {
    let share = shift(KIB, 4 * KIB);
    assert!(share > 0.85, "{share}");
}

#[test]
fn from_4_kib_to_1_kib_with_eviction() {
    let share = shift(4 * KIB, KIB);
    assert!(share > 0.85, "{share}");
}

#[test]
fn from_16_kib_to_100_bytes_with_eviction() {
    let mut role = role(Eviction::Clock);
    write(&mut role, 'a', 16 * KIB, 20 << 20);
    write(&mut role, 'b', 100, 14 << 20);
    role.check();
    assert!(role.budget.total_used() <= LIMIT + LIMIT / 100, "{} used", role.budget.total_used());
    // Extents go back for the index of so many more items.
    let stats = role.store.stats();
    let useful = stats.item_bytes + stats.memory.total() - stats.memory.area;
    assert!(role.vacated > 0 && useful > LIMIT as usize * 17 / 20, "{} vacated, {stats:?}", role.vacated);
}

/// Hot items of the old size survive, and do not keep their runs from changing class.
#[test]
fn hot_items_of_the_old_size_are_moved_together() {
    let mut role = role(Eviction::Clock);
    write(&mut role, 'a', KIB, 24 << 20);
    let survivors: Vec<Vec<u8>> = role.model.keys().step_by(20).cloned().collect();
    for i in 0..6 * KIB {
        role.set(&key('b', i), &vec![1; 4 * KIB]).unwrap();
        for key in survivors.iter().skip(i % 16).step_by(16) {
            role.get(key);
        }
    }
    role.check();
    let alive = survivors.iter().filter(|key| role.model.contains_key(*key)).count();
    assert!(alive * 10 > survivors.len() * 9, "{alive} of {} hot items are left", survivors.len());
    assert!(role.moved > 0 && role.live_share() > 0.85, "{} live, {} moved", role.live_share(), role.moved);
}

fn fill(role: &mut Role, kind: char, value_len: usize) -> usize {
    (0..).position(|i| role.set(&key(kind, i), &vec![kind as u8; value_len]) == Err(NoRoom)).unwrap()
}

fn delete_and_refill(from: usize, to: usize, keep_every: usize) -> f64 {
    let mut role = role(Eviction::None);
    let count = fill(&mut role, 'a', from);
    assert!(role.live_share() > 0.85, "{} before the shift", role.live_share());
    for i in (0..count).filter(|i| !i.is_multiple_of(keep_every)) {
        assert!(role.delete(&key('a', i)));
    }
    fill(&mut role, 'b', to);
    role.check();
    assert_eq!(role.evicted, 0);
    assert_eq!(role.model.keys().filter(|key| key[0] == b'a').count(), count.div_ceil(keep_every));
    role.live_share()
}

#[test]
fn from_1_kib_to_4_kib_by_deletion() {
    let share = delete_and_refill(KIB, 4 * KIB, 10);
    assert!(share > 0.85, "{share}");
}

#[test]
fn from_4_kib_to_1_kib_by_deletion() {
    let share = delete_and_refill(4 * KIB, KIB, 10);
    assert!(share > 0.85, "{share}");
}

/// A store in which nothing may be evicted takes as many small items after the shift as it does when it is new.
#[test]
fn from_4_kib_to_100_bytes_by_deletion() {
    let mut role = role(Eviction::None);
    let count = fill(&mut role, 'a', 4 * KIB);
    (0..count).for_each(|i| assert!(role.delete(&key('a', i))));
    let after = fill(&mut role, 'b', 100);
    role.check();
    let fresh = fill(&mut self::role(Eviction::None), 'b', 100);
    assert!(role.vacated > 0 && after * 20 > fresh * 19, "{after} of {fresh} fit, {} vacated", role.vacated);
}

/// Half of every run stays: only moving can make room for another size.
#[test]
fn holes_of_one_size_become_room_for_another() {
    let share = delete_and_refill(2 * KIB, 7 * KIB, 2);
    assert!(share > 0.85, "{share}");
}

#[test]
fn overwriting_with_another_size_never_runs_out_of_room() {
    let mut role = role(Eviction::None);
    let count = fill(&mut role, 'a', KIB);
    for i in 0..count * 9 / 10 {
        role.delete(&key('a', i + count / 10));
    }
    for round in 0..4 {
        for i in 0..count / 10 {
            let len = [4 * KIB, 200, 6 * KIB, KIB][round];
            role.set(&key('a', i), &vec![round as u8; len]).unwrap();
        }
    }
    role.check();
}
