//! Items against their checksums.

use store::{Eviction, Found};
use types::{Addr, PAGE_BYTES, PageRange, RUN_BYTES};

use crate::driver::{Role, hash};

const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// A small item, a large one over several runs, and the slots of both.
fn filled() -> (Role, Addr, Addr) {
    let mut role = Role::new(4, Eviction::None, 64 << 20);
    role.set(b"small", b"value").unwrap();
    role.set(b"large", &[7; 200_000]).unwrap();
    role.set(b"gone", b"value").unwrap();
    role.delete(b"gone");
    role.commit_all();
    let slot = |key: &[u8]| match role.store.find(hash(key), key) {
        Found::Hit(addr, _) => addr,
        other => panic!("{other:?}"),
    };
    let (small, large) = (slot(b"small"), slot(b"large"));
    (role, small, large)
}

fn run_of(byte: usize) -> PageRange {
    PageRange { first: (byte / RUN_BYTES) as u32 * RUN_PAGES, count: RUN_PAGES }
}

fn all_wrong(role: &Role) -> Vec<Addr> {
    let runs = (0..role.config.area_limit_bytes).step_by(RUN_BYTES);
    let mut wrong: Vec<Addr> = runs.flat_map(|byte| role.store.wrong_items(run_of(byte), 16)).collect();
    wrong.dedup();
    wrong
}

#[test]
fn every_byte_of_an_item_that_changes_makes_it_wrong_and_no_other() {
    let (mut role, small, _) = filled();
    assert_eq!(all_wrong(&role), []);
    let len = role.store.item(small).len_bytes();
    for byte in small.byte()..small.byte() + len {
        for mask in [1, 0x80] {
            role.store.damage(byte, mask);
            assert_eq!(all_wrong(&role), [small], "byte {byte}");
            role.store.damage(byte, mask);
        }
    }
    assert_eq!(all_wrong(&role), []);
}

#[test]
fn a_large_item_is_wrong_in_each_of_its_runs_and_beyond_it_nothing_is() {
    let (mut role, _, large) = filled();
    let end = large.byte() + role.store.item(large).len_bytes();
    role.store.damage(end - 1, 1);
    for byte in (large.byte()..end).step_by(RUN_BYTES) {
        assert_eq!(role.store.wrong_items(run_of(byte), 16), [large]);
    }
    role.store.damage(end - 1, 1);
    // What nobody uses has no checksum.
    role.store.damage(end, 1);
    assert_eq!(all_wrong(&role), []);
}

#[test]
fn not_more_are_named_than_wanted_and_none_where_nothing_is() {
    let mut role = Role::new(2, Eviction::None, 64 << 20);
    for n in 0..40u32 {
        role.set(&n.to_be_bytes(), b"value").unwrap();
    }
    role.commit_all();
    let addrs: Vec<Addr> = role.store.iter_items().map(|(addr, _)| addr).collect();
    for addr in &addrs {
        role.store.damage(addr.byte() + 27, 1);
    }
    assert_eq!(role.store.wrong_items(run_of(0), 16).len(), 16);
    assert_eq!(role.store.wrong_items(PageRange { first: u32::MAX - 16, count: 16 }, 16), []);
}
