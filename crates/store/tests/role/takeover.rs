//! A stand-in begins with the replica: nothing is present, and nothing live is ever handed out.

use std::collections::BTreeMap;

use store::{AdoptError, Budget, Category, DataStore, Eviction, Found, Replica, ReplicaBuilder, Shortage};
use types::{Addr, Cohort, IndexHash, IndexOp, PAGE_BYTES, Reach, RunClass};

use crate::driver::{Role, config, encode, hash};

const LIMIT: u64 = 64 << 20;

fn copy_of(replica: &Replica, budget: &Budget) -> Replica {
    let mut builder = ReplicaBuilder::new(budget.clone());
    let (mut part, mut last) = (0, false);
    while !last {
        let bytes;
        (bytes, last) = replica.encode_part(part, 1000);
        builder.push(&bytes).unwrap();
        part += 1;
    }
    builder.finish().unwrap()
}

/// The stand-in of a role that is lost with everything committed.
fn stand_in(lost: Role) -> Role {
    stand_in_within(lost, LIMIT)
}

/// The same on a node with a budget of `limit` bytes.
pub fn stand_in_within(lost: Role, limit: u64) -> Role {
    let budget = Budget::new(limit);
    let replica = copy_of(&lost.parity, &budget);
    let store = DataStore::from_replica(lost.config.clone(), budget.clone(), replica).unwrap();
    let mut role = Role::around(store, lost.config.clone(), budget, lost.parity, lost.model);
    role.shadow = lost.shadow;
    role
}

fn busy_role(eviction: Eviction) -> Role {
    let mut role = Role::new(6, eviction, LIMIT);
    for i in 0..4000u32 {
        let key = (i * 7 % 3000).to_le_bytes();
        role.set(&key, &vec![i as u8; (i as usize * 37) % 1500]).unwrap();
        if i.is_multiple_of(5) {
            role.delete(&(i * 3 % 3000).to_le_bytes());
        }
    }
    role.set(b"large", &vec![7; 150_000]).unwrap();
    role.commit_all();
    role
}

#[test]
fn every_item_comes_back_page_by_page() {
    let mut role = stand_in(busy_role(Eviction::None));
    assert_eq!(role.store.absent_count(), role.parity.touched().count());
    assert_eq!(role.budget.used(Category::Area), 0);
    role.check();
    while let Some(pages) = role.store.next_absent(0) {
        role.repair(pages);
    }
    role.check();
    assert_eq!(role.store.absent_count(), 0);
}

#[test]
fn live_slots_are_never_handed_out() {
    for eviction in [Eviction::None, Eviction::Clock] {
        let mut role = stand_in(busy_role(eviction));
        let live: BTreeMap<Addr, IndexHash> =
            role.store.replica().index().iter().map(|(hash, addr)| (addr, hash)).collect();
        for i in 0..2000usize {
            let image = encode(&i.to_le_bytes(), &vec![1; i * 13 % 2000], 0);
            match role.store.allocate(image.len()) {
                Ok(allocation) => {
                    let (start, end) = (allocation.addr.byte(), allocation.addr.byte() + image.len());
                    let below = live.range(..Addr::from_byte(end.next_multiple_of(8))).next_back();
                    let clash = below.is_some_and(|(addr, _)| *addr >= allocation.addr);
                    assert!(!clash, "{} .. {end} holds a live item", start);
                    // Writable at once: nothing there is absent.
                    let _ = role.store.delta(allocation.addr, image);
                }
                Err(Shortage::Extent(extent)) => role.store.commit_extent(extent).unwrap(),
                Err(Shortage::Absent(pages)) => role.repair(pages),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn a_stand_in_serves_writes_before_it_is_repaired() {
    for eviction in [Eviction::None, Eviction::Clock] {
        let mut role = stand_in(busy_role(eviction));
        for i in 0..1500u32 {
            role.set(&(i * 2).to_le_bytes(), &vec![i as u8; 900]).unwrap();
        }
        assert!(role.store.absent_count() > 0, "the test wants a stand-in under repair");
        role.check();
        // A stand-in of the stand-in.
        let mut role = stand_in(role);
        role.check();
    }
}

#[test]
fn a_stand_in_grows_at_once_beyond_what_waits_for_repair() {
    let mut role = Role::new(8, Eviction::None, LIMIT);
    for i in 0..4_000u32 {
        role.set(&i.to_le_bytes(), &[1; 1000]).unwrap();
    }
    role.commit_all();
    let used = role.store.area().extents().count() as u32;
    let mut role = stand_in(role);
    let mut asked_for = Vec::new();
    for _ in 0..100 {
        match role.store.allocate(1100) {
            Ok(_) => {}
            Err(Shortage::Extent(extent)) => {
                asked_for.push(extent);
                role.store.commit_extent(extent).unwrap();
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(
        asked_for,
        [Reach::whole(used)],
        "one question to the parities, for the first extent that was never used"
    );
}

#[test]
fn a_full_cache_goes_on_evicting_while_it_is_repaired() {
    let mut role = Role::new(2, Eviction::Clock, LIMIT);
    for i in 0..3000u32 {
        role.set(&i.to_le_bytes(), &[1; 1000]).unwrap();
    }
    role.commit_all();
    let mut role = stand_in(role);
    for i in 3000..4000u32 {
        role.set(&i.to_le_bytes(), &vec![2; 500 + i as usize % 3000]).unwrap();
    }
    role.set(b"large", &vec![3; 100_000]).unwrap();
    role.check();
    assert!(role.evicted > 0);
}

#[test]
fn garbage_in_freed_slots_is_repaired_too() {
    let mut role = Role::new(1, Eviction::None, LIMIT);
    role.set(b"first", &[1; 300]).unwrap();
    role.set(b"second", &[2; 300]).unwrap();
    role.delete(b"first");
    role.commit_all();
    let mut role = stand_in(role);
    assert!(matches!(role.store.find(hash(b"second"), b"second"), Found::Absent(_)));
    // The freed slot lies on a page that holds unknown garbage: its delta needs the page first.
    role.set(b"third", &[3; 300]).unwrap();
    role.check();
}

#[test]
fn a_page_that_is_present_keeps_its_bytes() {
    let mut role = stand_in(busy_role(Eviction::None));
    let pages = role.store.next_absent(0).unwrap();
    role.repair(pages);
    let before = role.store.page_bytes(pages).to_vec();
    role.store.fill(pages, &vec![0xee; pages.len_bytes()]).unwrap();
    assert_eq!(role.store.page_bytes(pages), before);
}

#[test]
fn ranges_to_repair_stay_within_a_run() {
    let role = stand_in(busy_role(Eviction::None));
    let (mut from, mut count) = (0, 0);
    while let Some(pages) = role.store.next_absent(from) {
        assert!(pages.count >= 1 && pages.first / 16 == (pages.first + pages.count - 1) / 16);
        from = pages.first + pages.count;
        count += pages.count;
    }
    assert_eq!(count, role.store.absent_count());
}

#[test]
fn damaged_bytes_are_told_from_a_miss() {
    let mut role = Role::new(1, Eviction::None, LIMIT);
    role.set(b"key", b"value").unwrap();
    role.commit_all();
    let Found::Hit(addr, _) = role.store.find(hash(b"key"), b"key") else { panic!() };
    let mut damage = vec![0; 27];
    damage[26] = 1;
    role.store.apply_write(addr, &damage);
    assert_eq!(role.store.find(hash(b"key"), b"key"), Found::Corrupt(addr));
    damage[7] = 0xff;
    role.store.apply_write(addr, &damage);
    assert_eq!(role.store.find(hash(b"key"), b"key"), Found::Corrupt(addr));
}

fn adopt(ops: &[IndexOp]) -> Result<DataStore, AdoptError> {
    let budget = Budget::new(LIMIT);
    let mut replica = Replica::new(budget.clone());
    ops.iter().for_each(|op| replica.apply(op));
    DataStore::from_replica(config(1, Eviction::None), budget, replica)
}

#[test]
fn a_replica_that_contradicts_itself_is_refused() {
    let assign = |run, class| IndexOp::Assign { run, class: RunClass(class) };
    let insert = |bits, byte| IndexOp::Insert {
        hash: IndexHash(bits),
        addr: Addr::from_byte(byte),
        cohort: Cohort::default(),
    };
    assert!(adopt(&[assign(0, 1), insert(1, 48)]).is_ok());
    let contradictions: [&[IndexOp]; 7] = [
        &[insert(1, 0)],
        &[assign(0, 1), insert(1, 40)],
        &[assign(0, 1), insert(1, 48), insert(2, 48)],
        &[assign(0, 1), insert(1, 1365 * 48)],
        &[assign(0, RunClass::LARGE_CONTINUED.0), insert(1, 0)],
        &[assign(0, RunClass::LARGE.0), insert(1, 8)],
        &[
            assign(0, RunClass::LARGE.0),
            assign(1, RunClass::LARGE_CONTINUED.0),
            insert(1, 0),
            insert(1, 65536),
        ],
    ];
    for ops in contradictions {
        assert!(matches!(adopt(ops), Err(AdoptError::Contradiction)), "{ops:?}");
    }
    assert!(matches!(adopt(&[assign(16, 1)]), Err(AdoptError::LongerArea)));
    let budget = Budget::new(LIMIT);
    let mut replica = Replica::new(budget.clone());
    replica.touch(Addr::from_byte(256 * PAGE_BYTES), 1);
    let refused = DataStore::from_replica(config(1, Eviction::None), budget.clone(), replica);
    assert!(matches!(refused, Err(AdoptError::LongerArea)));
    drop(refused);
    assert_eq!(budget.total_used(), 0);
}
