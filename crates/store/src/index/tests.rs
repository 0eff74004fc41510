use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn index() -> (Index, Budget) {
    let budget = Budget::new(1 << 40);
    (Index::new(budget.clone()), budget)
}

/// Spreads `i` over the 40 bits (SplitMix64's finaliser).
fn hash(i: u64) -> IndexHash {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    IndexHash((z ^ z >> 31) & 0xff_ffff_ffff)
}

/// Fixed part: the segments' headers, and the entries of nearly empty segments.
const FIXED_BYTES: usize = 10 * 1024;

#[test]
fn an_item_costs_at_most_twelve_bytes_at_every_size() {
    let (mut index, budget) = index();
    let mut worst = 0.0f64;
    // Miri takes its time.
    let most = if cfg!(miri) { 1_000 } else { 5_000_000 };
    for i in 0..most {
        index.insert(hash(i), Addr(i as u32 * 6));
        let len = index.len();
        if len >= 1000 && len.is_multiple_of(500) {
            let allowed = len * 12 + if len < 20_000 { FIXED_BYTES } else { 0 };
            assert!(index.memory_bytes() <= allowed, "{} bytes for {len} items", index.memory_bytes());
            assert_eq!(budget.used(Category::Index), index.memory_bytes() as u64);
            if len > 20_000 {
                worst = worst.max(index.memory_bytes() as f64 / len as f64);
            }
        }
    }
    assert!(worst < 10.5, "{worst} bytes an item");
}

#[test]
fn a_shrinking_index_returns_its_memory() {
    let (mut index, budget) = index();
    for i in 0..100_000 {
        index.insert(hash(i), Addr(i as u32));
    }
    for i in 0..99_000 {
        assert!(index.remove(hash(i), Addr(i as u32)));
        if index.len() > 20_000 && i.is_multiple_of(1000) {
            assert!(index.memory_bytes() <= index.len() * 12, "{} for {}", index.memory_bytes(), index.len());
        }
    }
    assert!(index.memory_bytes() <= 1000 * 12 + FIXED_BYTES);
    assert_eq!(budget.total_used(), index.memory_bytes() as u64);
    assert!((99_000..100_000).all(|i| index.candidates(hash(i)).eq([Addr(i as u32)])));
    index.clear();
    assert_eq!((index.len(), index.iter().count()), (0, 0));
    drop(index);
    assert_eq!(budget.total_used(), 0);
}

#[test]
fn a_full_budget_is_told_before_and_the_overdraft_is_bounded() {
    let budget = Budget::new(1_000_000);
    let mut index = Index::new(budget.clone());
    let mut next = 0;
    let mut insert = |index: &mut Index| {
        index.insert(hash(next), Addr(next as u32));
        next += 1;
    };
    while index.has_room(1) {
        insert(&mut index);
    }
    let len = index.len();
    assert!(len * 11 > 1_000_000, "{len} items");
    // Ten generations at this size: segments grow and shrink at random, the sum does not creep.
    for oldest in 0..10 * len as u64 {
        assert!(!index.has_room(1));
        assert!(index.remove(hash(oldest), Addr(oldest as u32)));
        insert(&mut index);
        assert!(budget.total_used() < 1_120_000, "{} used", budget.total_used());
    }
    // Whatever is committed is inserted.
    for _ in 0..10_000 {
        insert(&mut index);
    }
    assert_eq!(index.len(), len + 10_000);
    assert_eq!(budget.total_used(), index.memory_bytes() as u64);
}

#[test]
fn entries_come_in_the_same_order_whatever_the_history() {
    let (few, more) = if cfg!(miri) { (50, 90) } else { (5000, 9000) };
    let (mut one, _) = index();
    let (mut other, _) = index();
    for i in 0..few {
        one.insert(hash(i), Addr(i as u32));
        other.insert(hash(few - 1 - i), Addr((few - 1 - i) as u32));
    }
    for i in few..more {
        other.insert(hash(i), Addr(1));
    }
    for i in few..more {
        other.remove(hash(i), Addr(1));
    }
    assert!(one.iter().eq(other.iter()));
    assert!(one.iter().is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Few hashes and addresses, so that they collide.
    #[test]
    fn behaves_as_a_set_of_pairs(
        steps in proptest::collection::vec((0u8..4, 0u64..6, 0u32..8, 0u32..8), 0..400)
    ) {
        let (mut index, _) = index();
        let mut model = BTreeSet::new();
        for (what, bits, addr, other) in steps {
            let hash = IndexHash(bits % 2 * 0xffff_ffff + ((bits / 2) << 38));
            let (addr, other) = (Addr(addr), Addr(other));
            match what {
                0 if model.insert((hash, addr)) => index.insert(hash, addr),
                1 => prop_assert_eq!(index.remove(hash, addr), model.remove(&(hash, addr))),
                2 if !model.contains(&(hash, other)) => {
                    let there = model.remove(&(hash, addr));
                    if there {
                        model.insert((hash, other));
                    }
                    prop_assert_eq!(index.replace(hash, addr, other), there);
                }
                _ => prop_assert_eq!(index.contains(hash, addr), model.contains(&(hash, addr))),
            }
            let found: Vec<Addr> = index.candidates(hash).collect();
            let expected: Vec<Addr> = model.iter().filter(|pair| pair.0 == hash).map(|pair| pair.1).collect();
            prop_assert_eq!(found, expected);
        }
        prop_assert!(index.iter().eq(model));
    }
}

#[test]
#[should_panic(expected = "the entries are counted")]
fn a_wrong_count_is_noticed() {
    let (mut index, _) = index();
    (0..100).for_each(|i| index.insert(hash(i), Addr(i as u32 * 6)));
    index.check_invariants();
    index.len -= 1;
    index.check_invariants();
}

#[test]
fn an_index_takes_what_was_foretold() {
    let grown = GrownIndex::new();
    for (len, percent) in [(0, 0), (1000, 2), (4000, 2), (9000, 2), (100_000, 2)] {
        let mut index = Index::new(Budget::new(u64::MAX));
        for i in 0..len as u64 {
            index.insert(types::KeyHash::of(types::ClusterId(1), &i.to_le_bytes()).into(), Addr(i as u32));
        }
        let (said, is) = (grown.bytes(len), index.memory_bytes());
        assert!(said.abs_diff(is) * 100 <= is * percent, "{len} entries: {said}, is {is}");
    }
}
