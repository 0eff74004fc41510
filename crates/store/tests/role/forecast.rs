//! What a role is said to need is what it takes.

use store::forecast::{Forecast, Portion};
use store::{Category, Eviction, Memory, encoded_len};

use crate::driver::Role;

/// Fills a role with `items` of `value_bytes` and compares the parts of its memory, each within `percent`.
fn check(items: u64, value_bytes: usize, percent: u64) {
    let mut role = Role::new(256, Eviction::None, 1 << 30);
    let value = vec![7; value_bytes];
    for item in 0..items {
        role.set(&item.to_be_bytes(), &value).expect("there is room");
    }
    role.commit_all();
    let forecast = Forecast::default().role(&[Portion { item_bytes: encoded_len(8, value_bytes), items }]);
    let Memory { replica, allocator, .. } = role.store.memory();
    let said = [
        // The other half of a large page is paid for, and not committed.
        ("area", forecast.area_bytes(), role.budget.used(Category::Area) as usize),
        ("replica", forecast.index_bytes + forecast.table_bytes, replica),
        ("allocator", forecast.slot_state_bytes, allocator),
    ];
    for (part, said, is) in said {
        let is = is as u64;
        assert!(
            said.abs_diff(is) * 100 <= is * percent,
            "{items} of {value_bytes} B, {part}: {said}, is {is}"
        );
    }
    assert_eq!(forecast.slot_bytes, role.store.stats().slot_bytes as u64);
}

#[test]
fn a_role_takes_what_was_foretold() {
    check(0, 100, 0);
    check(700, 100, 3);
    check(20_000, 100, 2);
    check(20_000, 1024, 2);
    check(9_000, 5_000, 2);
    check(600, 40_000, 2);
    check(90, 300_000, 5);
}
