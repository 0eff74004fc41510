//! A stand-in with less memory than its role has data: extents give way to others, and nothing else is seen of it.

use proptest::prelude::*;
use store::{Category, Eviction, Found, Reclaim, Shortage, Victim};
use types::{Cohort, EXTENT_BYTES, IndexOp, PAGE_BYTES, PageRange, Reach};

use crate::driver::{NoRoom, Role, hash};
use crate::takeover::stand_in_within;

/// Room for four extents and their tables.
const SMALL: u64 = 9 << 19;
/// Extents of the role that is lost: three times as many.
const EXTENTS: usize = 12;

fn key(i: u32) -> [u8; 4] {
    i.to_le_bytes()
}

fn value(i: u32, round: u32) -> Vec<u8> {
    let len = 1 + (i * 977 + round * 131) % 9000;
    (0..len).map(|at| (at * 7 + i + round) as u8).collect()
}

/// A full role, and the number of its keys.
fn full_role(eviction: Eviction) -> (Role, u32) {
    let mut role = Role::new(EXTENTS, eviction, 64 << 20);
    let mut keys = 0;
    while role.evicted == 0 && role.set(&key(keys), &value(keys, 0)).is_ok() {
        keys += 1;
    }
    role.commit_all();
    assert_eq!(role.store.stats().extents, EXTENTS);
    (role, keys)
}

fn get(role: &mut Role, key: &[u8]) {
    role.commit_all();
    let expected = role.model.get(key).map(|(value, _)| value.clone());
    assert_eq!(role.get(key), expected, "{key:?}");
}

#[test]
fn a_third_of_the_memory_serves_everything() {
    for eviction in [Eviction::None, Eviction::Clock] {
        let (role, keys) = full_role(eviction);
        let mut role = stand_in_within(role, SMALL);
        for i in 0..keys {
            get(&mut role, &key(i * 7919 % keys));
            assert!(role.budget.total_used() <= SMALL);
        }
        let extents = role.store.stats().extents;
        assert!((3..=4).contains(&extents) && role.surrendered > 100, "{extents}, {}", role.surrendered);
        role.check();
        role.check_present();
        let Role { store, budget, .. } = role;
        drop(store);
        assert_eq!(budget.total_used(), 0);
    }
}

#[test]
fn writes_find_the_free_slots_of_extents_that_are_not_here() {
    let (role, keys) = full_role(Eviction::None);
    let mut role = stand_in_within(role, SMALL);
    let mut stored = 0;
    for i in 0..2 * keys {
        let at = i * 7919 % keys;
        match i % 4 {
            0 => assert!(role.delete(&key(at)) || i >= keys),
            1 => get(&mut role, &key(at)),
            _ => stored += usize::from(role.set(&key(at), &value(at, i)).is_ok()),
        }
        assert!(role.budget.total_used() <= SMALL);
    }
    assert!(stored > keys as usize / 2, "{stored} of {keys}");
    role.check();
    role.check_present();
}

#[test]
fn a_cache_goes_on_evicting_without_memory() {
    let (role, keys) = full_role(Eviction::Clock);
    let mut role = stand_in_within(role, SMALL);
    for i in 0..2 * keys {
        role.set(&key(i * 7919 % (2 * keys)), &value(i, 1)).unwrap();
        get(&mut role, &key(i * 31 % keys));
        assert!(role.budget.total_used() <= SMALL);
    }
    assert!(role.evicted > 0 && role.surrendered > 0);
    role.check();
    role.check_present();
}

#[test]
fn a_full_store_refuses_instead_of_searching_for_ever() {
    let (role, keys) = full_role(Eviction::None);
    let mut role = stand_in_within(role, SMALL);
    // Every slot of this class is taken, and no run is free.
    let refused = (0..40).filter(|i| role.set(&key(keys + i), &[1; 60_000]) == Err(NoRoom)).count();
    assert!(refused > 30, "{refused}");
    assert_eq!(role.set(b"large", &vec![1; 900_000]), Err(NoRoom));
    role.check();
}

#[test]
fn items_that_lie_over_two_extents_are_served() {
    let mut role = Role::new(EXTENTS, Eviction::None, 64 << 20);
    (0..14).for_each(|i| role.set(&key(i), &vec![i as u8; 800_000]).unwrap());
    role.commit_all();
    let mut role = stand_in_within(role, 5 << 19);
    for i in 0..60 {
        get(&mut role, &key(i * 5 % 14));
    }
    assert!(role.store.stats().extents <= 2 && role.surrendered > 20);
    role.check_present();
}

#[test]
fn the_only_free_slots_are_found_wherever_they_are() {
    let (mut role, keys) = full_role(Eviction::None);
    let extent_of = |role: &Role, i| match role.store.find(hash(&key(i)), &key(i)) {
        Found::Hit(addr, _) => addr.byte() / EXTENT_BYTES,
        other => panic!("{other:?}"),
    };
    let in_ninth: Vec<u32> = (0..keys).filter(|i| extent_of(&role, *i) == 9).collect();
    let in_first: Vec<u32> = (0..keys).filter(|i| extent_of(&role, *i) < 4).collect();
    in_ninth.iter().for_each(|i| assert!(role.delete(&key(*i))));
    role.commit_all();
    let mut role = stand_in_within(role, SMALL);
    in_first.iter().for_each(|i| get(&mut role, &key(*i)));
    assert!(!role.store.area().is_committed(9));
    (0..10).for_each(|i| role.set(&key(keys + i), &[1; 50_000]).unwrap());
    role.commit_all();
    assert!((0..10).all(|i| extent_of(&role, keys + i) == 9));
    role.check();
}

#[test]
fn a_window_for_a_large_item_goes_with_its_extent() {
    let mut role = partly_repaired(EXTENTS as u32 - 1, Eviction::Clock);
    while let Reclaim::Remove(victims) = role.store.reclaiming().propose(900_000, role.now) {
        for Victim { hash, addr } in victims {
            role.store.apply_op(&IndexOp::Remove { hash, addr, cohort: Cohort::default() });
        }
    }
    while role.store.surrender(u32::MAX).is_some() {}
    let refused = role.store.allocate(900_000).unwrap_err();
    assert!(matches!(refused, Shortage::Absent(_)), "{refused:?}");
}

/// A stand-in of which the first `extents` are wholly here.
fn partly_repaired(extents: u32, eviction: Eviction) -> Role {
    let (role, _) = full_role(eviction);
    let mut role = stand_in_within(role, 64 << 20);
    for page in 0..extents * 256 {
        let pages = PageRange { first: page, count: 1 };
        if !role.store.pages_present(pages) {
            role.repair(pages);
        }
    }
    role
}

#[test]
fn an_extent_that_an_uncommitted_record_touches_stays() {
    let mut role = partly_repaired(2, Eviction::None);
    assert_eq!(role.store.surrender(0), Some(1));
    let Some(pages) = role.store.next_absent(256).filter(|pages| pages.first == 256) else { panic!() };
    role.repair(pages);
    assert_eq!(role.store.surrender(1), Some(0));
    let in_one = |(addr, _): &(types::Addr, store::Item<'_>)| addr.byte() / EXTENT_BYTES == 1;
    let addr = role.store.iter_items().find(in_one).unwrap().0;
    role.store.pin(addr);
    assert_eq!(role.store.surrender(0), None);
    role.store.unpin(addr);
    let item = role.store.item(addr);
    let hash = hash(item.key).into();
    role.store.apply_op(&IndexOp::Remove { hash, addr, cohort: Cohort::default() });
    // The slot that became free is handed out again, and its record is not applied yet.
    let slot_len = types::slot_bytes(role.store.replica().class((addr.byte() / types::RUN_BYTES) as u32));
    role.store.growth().refuse();
    let allocation = role.store.allocate(slot_len).unwrap();
    assert_eq!(role.store.surrender(0), None);
    role.store.cancel(allocation.addr, slot_len);
    assert_eq!(role.store.surrender(0), Some(1));
}

#[test]
fn an_extent_into_which_a_pinned_item_reaches_stays() {
    let mut role = Role::new(4, Eviction::None, 64 << 20);
    (0..3).for_each(|i| role.set(&key(i), &vec![1; 700_000]).unwrap());
    role.commit_all();
    let mut role = stand_in_within(role, 64 << 20);
    let addr = |role: &Role, i| match role.store.find(hash(&key(i)), &key(i)) {
        Found::Hit(addr, _) => addr,
        other => panic!("{other:?}"),
    };
    // The second one lies in extents 0 and 1.
    get(&mut role, &key(0));
    get(&mut role, &key(1));
    let second = addr(&role, 1);
    assert_eq!((second.byte() / EXTENT_BYTES, (second.byte() + 700_000) / EXTENT_BYTES), (0, 1));
    role.store.pin(second);
    assert_eq!(role.store.surrender(u32::MAX), None);
    role.store.unpin(second);
    assert_eq!((role.store.surrender(0), role.store.surrender(u32::MAX)), (Some(1), Some(0)));
    assert_eq!((role.store.surrender(u32::MAX), role.budget.used(Category::Area)), (None, 0));
    role.check();
}

#[test]
fn an_extent_that_comes_back_is_zero_where_nothing_was_written() {
    let mut role = partly_repaired(2, Eviction::None);
    role.store.surrender(0).unwrap();
    let touched = role.store.replica().touched().clone();
    let pages = role.store.next_absent(256).unwrap();
    role.repair(PageRange { first: pages.first, count: 1 });
    for page in (256..512).filter(|page| !touched.contains(*page)) {
        assert_eq!(role.store.page_bytes(PageRange { first: page, count: 1 }), [0; PAGE_BYTES]);
    }
    role.check_present();
}

#[test]
fn growth_finds_an_extent_again_that_was_given_up() {
    let mut role = Role::new(3, Eviction::None, 64 << 20);
    role.set(&key(0), &[1; 100]).unwrap();
    role.commit_all();
    let mut role = stand_in_within(role, 64 << 20);
    (0..3).for_each(|extent| role.store.commit_extent(Reach::whole(extent)).unwrap());
    let slots: Vec<_> = std::iter::from_fn(|| role.store.allocate(60_000).ok()).collect();
    slots.into_iter().for_each(|slot| role.store.cancel(slot.addr, 60_000));
    (0..3).for_each(|_| assert!(role.store.surrender(u32::MAX).is_some()));
    // The first one waits for the repair of what was written there.
    assert_eq!(role.store.allocate(60_000), Err(Shortage::Extent(Reach::whole(1))));
    role.check();
}

#[test]
fn a_whole_store_gives_nothing_up() {
    let mut role = Role::new(8, Eviction::None, 64 << 20);
    (0..200).for_each(|i| role.set(&key(i), &value(i, 0)).unwrap());
    role.commit_all();
    assert_eq!(role.store.surrender(u32::MAX), None);
    let mut role = stand_in_within(role, 64 << 20);
    while let Some(pages) = role.store.next_absent(0) {
        role.repair(pages);
    }
    assert_eq!(role.store.surrender(u32::MAX), None);
}

#[derive(Clone, Debug)]
enum Step {
    Set { key: u32, len: usize, expiry: u32 },
    Get { key: u32 },
    Delete { key: u32 },
    Surrender { keep: u32 },
    Wait { seconds: u32 },
    Commit,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![6 => 0usize..5000, 3 => 20_000usize..70_000, 1 => 100_000usize..400_000];
    let expiry = prop_oneof![4 => Just(0), 1 => 1000u32..1100];
    prop_oneof![
        30 => (0u32..150, len, expiry).prop_map(|(key, len, expiry)| Step::Set { key, len, expiry }),
        30 => (0u32..150).prop_map(|key| Step::Get { key }),
        10 => (0u32..150).prop_map(|key| Step::Delete { key }),
        5 => (0u32..8).prop_map(|keep| Step::Surrender { keep }),
        5 => (1u32..20).prop_map(|seconds| Step::Wait { seconds }),
        5 => Just(Step::Commit),
        1 => Just(Step::Flush),
    ]
}

fn run(role: &mut Role, step: &Step) {
    match *step {
        Step::Set { key: i, len, expiry } => {
            let outcome = role.set_with_expiry(&key(i), &vec![i as u8; len], expiry);
            let may_refuse = role.config.eviction == Eviction::None || len > 60_000;
            assert!(outcome.is_ok() || may_refuse, "{len} bytes: {:?}", role.store.stats());
        }
        Step::Get { key: i } => get(role, &key(i)),
        Step::Delete { key: i } => drop(role.delete(&key(i))),
        Step::Surrender { keep } => drop(role.store.surrender(keep)),
        Step::Wait { seconds } => role.now.0 += seconds,
        Step::Commit => role.commit_all(),
        Step::Flush => role.flush(),
    }
    assert!(role.budget.total_used() <= role.budget.limit());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn behaves_as_a_map_with_room_for_a_part_of_it(
        steps in proptest::collection::vec(step(), 1..300),
        clock in any::<bool>(),
        window in 0usize..12,
    ) {
        let eviction = if clock { Eviction::Clock } else { Eviction::None };
        let mut role = Role::new(EXTENTS, eviction, 64 << 20);
        (0..150).for_each(|i| role.set(&key(i), &value(i, 0).repeat(1 + i as usize % 17)).unwrap());
        role.commit_all();
        let mut role = stand_in_within(role, SMALL);
        role.window = window;
        for step in &steps {
            run(&mut role, step);
        }
        role.check();
        role.check_present();
        let Role { store, budget, .. } = role;
        drop(store);
        prop_assert_eq!(budget.total_used(), 0);
    }
}
