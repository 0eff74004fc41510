//! What gives way, and what does not.

use store::{CrawlCursor, Eviction, Found, Reclaim, Shortage};
use types::{Cohort, IndexOp, NamespaceId, Reach, UnixSeconds};

use crate::driver::{NoRoom, Role, encode, hash};

const EXTENTS: usize = 2;

fn role(eviction: Eviction) -> Role {
    Role::new(EXTENTS, eviction, 64 << 20)
}

fn fill(role: &mut Role, count: u32) {
    for i in 0..count {
        role.set(&i.to_le_bytes(), &[1; 1000]).unwrap();
    }
    role.commit_all();
}

/// Items of 1030 bytes that fit into the area.
const CAPACITY: u32 = (EXTENTS * 16 * 63) as u32;

#[test]
fn without_eviction_a_full_store_refuses() {
    let mut role = role(Eviction::None);
    let count = (0..).position(|i: u32| role.set(&i.to_le_bytes(), &[1; 1000]) == Err(NoRoom)).unwrap();
    assert!(count as u32 <= CAPACITY && count as u32 > CAPACITY * 9 / 10, "{count}");
    role.check();
    assert!(role.delete(&5u32.to_le_bytes()));
    role.set(b"once more", &[2; 995]).unwrap();
    role.check();
    assert_eq!((role.evicted, role.model.len()), (0, count));
}

#[test]
fn items_that_are_read_outlive_the_others() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, 1000);
    for i in 0..10_000u32 {
        role.set(&(i + 1000).to_le_bytes(), &[2; 1000]).unwrap();
        role.get(&(i % 200).to_le_bytes());
    }
    role.check();
    assert!((0..200u32).all(|i| role.model.contains_key(&i.to_le_bytes()[..])));
}

#[test]
fn the_highest_extent_is_emptied_beside_writes_and_goes_back() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, CAPACITY);
    let before = role.model.len();
    assert!(role.store.vacant_extents().next().is_none(), "all of it is full");
    assert_eq!(role.empty_extent(), Some(EXTENTS as u32 - 1));
    role.check();
    let left = role.model.len();
    assert!(left > before / 3, "what lies in other extents stays: {left} of {before}");
    assert_eq!(role.store.vacant_extents().next(), Some(EXTENTS as u32 - 1));
    assert!(role.vacate_one(), "it goes back");
    assert_eq!(role.store.area().extents().count(), EXTENTS - 1);
    role.check_present();
}

#[test]
fn what_is_read_in_an_extent_that_goes_outlives_what_is_not_elsewhere() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, CAPACITY);
    let keys: Vec<Vec<u8>> =
        role.model.keys().filter(|key| extent_of(&role, key) == EXTENTS - 1).cloned().collect();
    let hot: Vec<Vec<u8>> = keys.chunks(4).flat_map(|four| four[1..].to_vec()).collect();
    assert!(hot.len() > 100, "{}", hot.len());
    hot.iter().for_each(|key| assert!(role.get(key).is_some()));
    assert_eq!(role.empty_extent(), Some(EXTENTS as u32 - 1));
    role.check();
    let kept = hot.iter().filter(|key| role.model.contains_key(*key)).count();
    assert_eq!(kept, hot.len(), "they have moved");
    assert!(role.vacate_one(), "it goes back");
    role.check_present();
}

#[test]
fn an_extent_goes_though_all_is_read() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, CAPACITY);
    let keys: Vec<Vec<u8>> = role.model.keys().cloned().collect();
    (0..3).for_each(|_| keys.iter().for_each(|key| assert!(role.get(key).is_some())));
    assert_eq!(role.empty_extent(), Some(EXTENTS as u32 - 1));
    role.check();
    let left = role.model.len();
    assert!(left > keys.len() / 3, "no more goes elsewhere than there is in it: {left} of {}", keys.len());
}

fn extent_of(role: &Role, key: &[u8]) -> usize {
    match role.store.find(hash(key), key) {
        Found::Hit(addr, _) => addr.byte() / types::EXTENT_BYTES,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_find_room_beside_an_extent_that_is_being_emptied_and_get_it_if_nobody_goes_on() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, CAPACITY);
    let Reclaim::Remove(victims) = role.store.reclaiming().propose_extent(UnixSeconds(0)) else {
        panic!("items are there that may go")
    };
    role.log_victims(&victims);
    role.commit_all();
    let top = |role: &Role| role.model.keys().filter(|key| extent_of(role, key) == EXTENTS - 1).count();
    let held = top(&role);
    for i in CAPACITY..CAPACITY + 200 {
        role.set(&i.to_le_bytes(), &[1; 1000]).unwrap();
    }
    role.commit_all();
    assert!(top(&role) <= held, "nothing is put into it");
    for i in CAPACITY..8 * CAPACITY {
        role.set(&i.to_le_bytes(), &[1; 1000]).unwrap();
    }
    role.commit_all();
    assert!(top(&role) > held, "nobody has gone on");
    role.check();
}

#[test]
fn where_nothing_may_be_evicted_no_extent_is_emptied() {
    let mut role = role(Eviction::None);
    fill(&mut role, CAPACITY * 9 / 10);
    assert_eq!(role.empty_extent(), None);
    role.check();
}

#[test]
fn when_all_are_hot_the_oldest_go() {
    let mut role = role(Eviction::Clock);
    fill(&mut role, 1500);
    for i in 1500..6000u32 {
        role.set(&i.to_le_bytes(), &[2; 1000]).unwrap();
        role.commit_all();
        (0..4).for_each(|_| assert!(role.get(&i.to_le_bytes()).is_some()));
    }
    role.check();
    assert!(role.model.len() > 1500);
}

#[test]
fn expired_items_go_before_live_ones() {
    for eviction in [Eviction::Clock, Eviction::None] {
        let mut role = role(eviction);
        for i in 0..1800u32 {
            let expiry = if i.is_multiple_of(3) { 2000 } else { 0 };
            role.set_with_expiry(&i.to_le_bytes(), &[1; 1000], expiry).unwrap();
        }
        role.now = UnixSeconds(2000);
        for i in 2000..2500u32 {
            role.set(&i.to_le_bytes(), &[2; 1000]).unwrap();
        }
        role.check();
        assert!((0..1800u32).all(|i| i.is_multiple_of(3) || role.model.contains_key(&i.to_le_bytes()[..])));
    }
}

#[test]
fn the_crawl_finds_all_expired_items_once() {
    let mut role = Role::new(8, Eviction::None, 64 << 20);
    for i in 0..1500u32 {
        role.set_with_expiry(&i.to_le_bytes(), &vec![1; i as usize], 2000 + i % 4).unwrap();
    }
    role.commit_all();
    let crawl = |role: &mut Role, now: u32| {
        let mut cursor = CrawlCursor::default();
        let mut found = 0;
        loop {
            let (victims, next) = role.store.reclaiming().crawl(cursor, 4, UnixSeconds(now));
            found += victims.len();
            role.log_victims(&victims);
            cursor = next;
            if cursor == CrawlCursor::default() {
                return found;
            }
        }
    };
    assert_eq!(crawl(&mut role, 1999), 0);
    assert_eq!(crawl(&mut role, 2001), 750);
    assert_eq!(crawl(&mut role, 2001), 0);
    assert_eq!(crawl(&mut role, 2002), 375);
    role.check();
    assert_eq!(role.model.len(), 375);
}

#[test]
fn an_expiry_that_is_changed_in_place_is_seen() {
    let mut role = role(Eviction::None);
    role.set(b"key", b"value").unwrap();
    role.commit_all();
    let Found::Hit(addr, _) = role.store.find(hash(b"key"), b"key") else { panic!() };
    let old = role.store.item(addr).bytes().to_vec();
    let new = encode(b"key", b"value", 50);
    let delta: Vec<u8> = old.iter().zip(&new).map(|(old, new)| old ^ new).collect();
    role.store.apply_write(addr, &delta[..26]);
    assert!(role.store.item(addr).verify());
    let (victims, _) = role.store.reclaiming().crawl(CrawlCursor::default(), 100, UnixSeconds(50));
    assert_eq!(victims.len(), 1);
}

#[test]
fn pinned_and_proposed_items_are_not_proposed() {
    let mut role = role(Eviction::Clock);
    let mut count = 0u32;
    while role.evicted == 0 {
        role.set(&count.to_le_bytes(), &[1; 1000]).unwrap();
        count += 1;
    }
    role.commit_all();
    let addrs: Vec<_> = role.store.iter_items().map(|(addr, _)| addr).collect();
    addrs[10..].iter().for_each(|addr| role.store.pin(*addr));
    let Reclaim::Remove(victims) = role.store.reclaiming().propose(1030, role.now) else { panic!() };
    assert_eq!(victims.len(), 10);
    assert!(victims.iter().all(|victim| addrs[..10].contains(&victim.addr)));
    assert_eq!(role.store.reclaiming().propose(1030, role.now), Reclaim::Nothing);
    victims.iter().for_each(|victim| role.store.reclaiming().give_back(victim.addr));
    let Reclaim::Remove(again) = role.store.reclaiming().propose(1030, role.now) else { panic!() };
    assert_eq!(again.len(), 10);
    again.iter().for_each(|victim| role.store.reclaiming().give_back(victim.addr));
    addrs[10..].iter().for_each(|addr| role.store.unpin(*addr));
    role.check();
}

#[test]
fn a_refused_extent_is_not_asked_for_again_until_growth_is_allowed() {
    let mut role = role(Eviction::Clock);
    assert_eq!(role.store.allocate(100), Err(Shortage::Extent(Reach(0))));
    role.store.growth().refuse();
    assert_eq!(role.store.allocate(100), Err(Shortage::Full));
    role.store.growth().allow();
    assert_eq!(role.store.allocate(100), Err(Shortage::Extent(Reach(0))));
    role.store.commit_extent(Reach::whole(0)).unwrap();
    assert!(role.store.area().is_committed(0) && role.store.allocate(100).is_ok());
}

#[test]
fn a_budget_without_room_is_not_asked_for_extents() {
    let mut role = Role::new(8, Eviction::Clock, 5 << 19);
    fill(&mut role, 4000);
    role.check();
    assert_eq!(role.store.stats().extents, 2);
    assert!(role.evicted > 0 && role.budget.total_used() <= role.budget.limit());
}

#[test]
fn many_small_items_stay_within_the_limit() {
    let mut role = Role::new(8, Eviction::Clock, 4 << 20);
    role.window = 32;
    for i in 0..120_000u32 {
        role.set(&i.to_le_bytes(), b"tiny").unwrap();
        if i.is_multiple_of(1000) {
            let used = role.budget.total_used();
            assert!(used <= role.budget.limit() * 101 / 100, "{used} used after {i} items");
        }
    }
    role.check();
}

#[test]
fn the_class_is_repeated_until_a_record_with_it_is_applied() {
    let mut role = role(Eviction::None);
    role.store.commit_extent(Reach::whole(0)).unwrap();
    let first = role.store.allocate(100).unwrap();
    let second = role.store.allocate(100).unwrap();
    assert_eq!((first.assign.len(), &second.assign), (1, &first.assign));
    role.store.cancel(first.addr, 100);
    role.store.apply_op(&second.assign[0]);
    role.store.apply_op(&IndexOp::Insert {
        hash: hash(b"k").into(),
        addr: second.addr,
        cohort: Cohort::default(),
    });
    assert!(role.store.allocate(100).unwrap().assign.is_empty());
}

#[test]
fn an_access_is_remembered_through_a_move() {
    let mut role = role(Eviction::None);
    fill(&mut role, 20);
    role.now = UnixSeconds(5000);
    let key = 3u32.to_le_bytes();
    role.get(&key);
    let Found::Hit(addr, _) = role.store.find(hash(&key), &key) else { panic!() };
    let access = role.store.access(addr);
    assert_eq!((access.fetched, access.last_access), (true, UnixSeconds(5000)));
    role.set(&key, &[2; 1000]).unwrap();
    role.commit_all();
    let Found::Hit(addr, _) = role.store.find(hash(&key), &key) else { panic!() };
    assert!(!role.store.access(addr).fetched, "a new value was never fetched");
}

/// A flush is committed while slots are handed out for records behind it in the log.
#[test]
fn a_flush_keeps_what_is_allocated_and_frees_the_rest() {
    for len in [100, 1000, 200_000] {
        let mut role = Role::new(2, Eviction::None, 64 << 20);
        for i in 0..10u32 {
            role.set(&i.to_le_bytes(), &vec![1; len.min(80_000)]).unwrap();
        }
        role.commit_all();
        let image = encode(b"behind", &vec![2; len], 0);
        let behind = role.store.allocate(image.len()).unwrap();
        let delta = role.store.delta(behind.addr, image.clone());
        role.store.apply_op(&IndexOp::Flush { namespace: NamespaceId::DEFAULT });
        let stats = role.store.stats();
        assert_eq!((stats.items, stats.item_bytes, stats.pending), (0, 0, 1));
        let further: Vec<_> = (0..5).map(|_| role.store.allocate(image.len()).unwrap()).collect();
        assert!(further.iter().all(|further| further.addr != behind.addr));
        role.store.apply_write(behind.addr, &delta);
        behind.assign.iter().for_each(|op| role.store.apply_op(op));
        role.store.apply_op(&IndexOp::Insert {
            hash: hash(b"behind").into(),
            addr: behind.addr,
            cohort: Cohort::default(),
        });
        assert!(
            matches!(role.store.find(hash(b"behind"), b"behind"), Found::Hit(at, _) if at == behind.addr)
        );
        assert_eq!(role.store.item(behind.addr).bytes(), image);
        further.iter().for_each(|further| role.store.cancel(further.addr, image.len()));
        role.store.apply_op(&IndexOp::Remove {
            hash: hash(b"behind").into(),
            addr: behind.addr,
            cohort: Cohort::default(),
        });
        assert_eq!(role.store.stats().free_runs, role.store.area().runs().count());
    }
}
