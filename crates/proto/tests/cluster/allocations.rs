//! What a cluster keeps on the heap for an item: nothing of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::*;

/// What this thread has allocated.
#[derive(Clone, Copy)]
struct Heap {
    /// Blocks that live.
    blocks: i64,
    /// Calls that gave a block, or moved one.
    calls: i64,
}

thread_local! {
    static HEAP: Cell<Heap> = const { Cell::new(Heap { blocks: 0, calls: 0 }) };
}

struct Counting;

fn note(blocks: i64, calls: i64) {
    // Without a destructor the counter can be reached at any time.
    HEAP.with(|heap| {
        let before = heap.get();
        heap.set(Heap { blocks: before.blocks + blocks, calls: before.calls + calls });
    });
}

// SAFETY: every call is handed to the system's allocator as it is.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, 1);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-1, 0);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(0, 1);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn heap() -> Heap {
    HEAP.with(Cell::get)
}

/// Sets `keys`, and forgets the answers; everything is at rest afterwards.
fn set_all(cluster: &mut Cluster, keys: std::ops::Range<usize>) {
    for i in keys {
        let token = cluster.begin((i % 5) as u16, set(&format!("key-{i:06}"), &[7; 100]));
        let outcome = cluster.answers.remove(&token);
        assert!(matches!(outcome, Some(Outcome::Stored(_))), "key-{i}: {outcome:?}");
    }
    cluster.advance(1000);
}

#[test]
fn an_item_has_no_allocation_of_its_own_at_any_of_its_hosts() {
    const ITEMS: usize = 20_000;
    let mut cluster = Cluster::new(5, "rs(3+2)");
    set_all(&mut cluster, 0..ITEMS);
    let full = heap();
    set_all(&mut cluster, ITEMS..2 * ITEMS);
    let grown = heap();
    set_all(&mut cluster, 0..ITEMS);
    let overwritten = heap();
    let (more, same) = (grown.blocks - full.blocks, overwritten.blocks - grown.blocks);
    let calls = |from: Heap, to: Heap| (to.calls - from.calls) as f64 / ITEMS as f64;
    println!("{ITEMS} new items: {more} more blocks; calls of the allocator each: {:.1}", calls(full, grown));
    println!("overwritten: {same} more blocks; calls each: {:.1}", calls(grown, overwritten));
    // Tables of slots and segments of indexes come one by one, each for dozens of items at this size.
    assert!(more < ITEMS as i64 / 50 && same.abs() < ITEMS as i64 / 200, "{more}, {same}");
}
