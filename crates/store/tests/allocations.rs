//! What the structures say of their memory, held against what the allocator gave: an index entry costs at most 12 bytes a
//! copy, no item has an allocation of its own, and a chunk costs 255 bytes and 4 for each cell.

#![allow(clippy::unwrap_used)] // a panic is how a test reports
#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use store::{
    Allocation, Budget, Category, Checksums, ChunkBuilder, ChunkHeader, ChunkPages, ChunkStore, DataStore,
    Eviction, Found, Index, ItemSpec, ItemState, Replica, Shortage, StoreConfig,
};
use types::{
    Addr, ChunkId, ClusterId, Cohort, EXTENT_BYTES, Geometry, GroupId, IndexHash, IndexOp, KeyHash, MemberId,
    NamespaceId, ObjectId, RoleIndex, Term, Time, UnixSeconds,
};

/// What this thread has allocated.
#[derive(Clone, Copy, Debug, Default)]
struct Heap {
    /// Blocks that live.
    blocks: i64,
    /// Bytes that live.
    bytes: i64,
    /// Calls that gave a block, or moved one.
    calls: i64,
}

thread_local! {
    static HEAP: Cell<Heap> = const { Cell::new(Heap { blocks: 0, bytes: 0, calls: 0 }) };
}

struct Counting;

fn note(blocks: i64, bytes: i64, calls: i64) {
    // Without a destructor the counter can be reached at any time.
    HEAP.with(|heap| {
        let before = heap.get();
        heap.set(Heap {
            blocks: before.blocks + blocks,
            bytes: before.bytes + bytes,
            calls: before.calls + calls,
        });
    });
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64, 1);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-1, -(layout.size() as i64), 0);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(0, size as i64 - layout.size() as i64, 1);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn heap() -> Heap {
    HEAP.with(Cell::get)
}

const CLUSTER: ClusterId = ClusterId(7);

fn hash(i: u64) -> IndexHash {
    KeyHash::of(CLUSTER, &i.to_le_bytes()).into()
}

/// At every size from 20,000 items on, so also just after each growth.
#[test]
fn an_index_entry_costs_at_most_twelve_bytes_of_what_the_allocator_gave() {
    let before = heap();
    let mut index = Index::new(Budget::new(u64::MAX));
    let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
    for i in 0..1_000_000u64 {
        index.insert(hash(i), Addr(i as u32 * 6));
        if index.len() >= 20_000 {
            let bytes = heap().bytes - before.bytes;
            let of_entry = bytes as f64 / index.len() as f64;
            (worst, sum, count) = (worst.max(of_entry), sum + of_entry, count + 1.0);
        }
    }
    let held = (heap().bytes - before.bytes) as usize;
    assert!(held.abs_diff(index.memory_bytes()) < 1024, "{held} held, {} told", index.memory_bytes());
    println!("bytes an entry: {:.2} on average over all sizes, {worst:.2} at worst", sum / count);
    assert!(worst < 12.0 && sum / count < 10.5);
}

/// A primary's store, the replica at a parity, and the smallest protocol between them.
struct Role {
    store: DataStore,
    parity: Replica,
    budget: Budget,
}

impl Role {
    fn new() -> Self {
        let config =
            StoreConfig { cluster: CLUSTER, area_limit_bytes: 256 * EXTENT_BYTES, eviction: Eviction::None };
        let budget = Budget::new(1 << 40);
        let store = DataStore::new(config, budget.clone()).unwrap();
        Self { store, parity: Replica::new(budget.clone()), budget }
    }

    fn set(&mut self, key: u64, value: &[u8]) {
        let key = key.to_le_bytes();
        let state = ItemState::default();
        let item = ItemSpec { key: &key, value: [value, b""], client_flags: 0, expiry: 0, version: 1, state };
        let mut image = Vec::with_capacity(item.len_bytes());
        item.encode(&mut image);
        let allocation = self.allocate(image.len());
        let (hash, addr) = (KeyHash::of(CLUSTER, &key), allocation.addr);
        let op = match self.store.find(hash, &key) {
            Found::Hit(old, _) => {
                IndexOp::Replace { hash: hash.into(), old, new: addr, cohort: Cohort::default() }
            }
            _ => IndexOp::Insert { hash: hash.into(), addr, cohort: Cohort::default() },
        };
        let delta = self.store.delta(addr, image);
        self.store.apply_write(addr, &delta);
        self.parity.touch(addr, delta.len());
        for op in allocation.assign.iter().chain([&op]) {
            self.store.apply_op(op);
            self.parity.apply(op);
        }
    }

    fn allocate(&mut self, len_bytes: usize) -> Allocation {
        loop {
            match self.store.allocate(len_bytes) {
                Ok(allocation) => return allocation,
                Err(Shortage::Extent(extent)) => self.store.commit_extent(extent).unwrap(),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

/// New items cost memory in blocks for many of them, and overwriting them costs none.
#[test]
fn no_item_has_an_allocation_of_its_own() {
    const ITEMS: u64 = 200_000;
    let value = [7; 100];
    let before = heap();
    let mut role = Role::new();
    (0..ITEMS).for_each(|key| role.set(key, &value));
    let full = heap();
    (ITEMS..2 * ITEMS).for_each(|key| role.set(key, &value));
    let grown = heap();
    (0..ITEMS).for_each(|key| role.set(key, &value));
    let overwritten = heap();
    // Segments of the indexes move as they grow; tables of slots come one by one, each for hundreds of items.
    let (more, same) = (grown.blocks - full.blocks, overwritten.blocks - grown.blocks);
    let calls = |from: Heap, to: Heap| (to.calls - from.calls) as f64 / ITEMS as f64;
    println!("{ITEMS} new items: {more} more blocks, {:.3} calls of the allocator each", calls(full, grown));
    println!("overwritten: {same} more blocks, {:.3} calls each", calls(grown, overwritten));
    assert!(more < ITEMS as i64 / 200 && same < ITEMS as i64 / 1000);
    // The image of the item, and the handle by which it is shared once it is a delta.
    assert!(calls(full, grown) < 2.05 && calls(grown, overwritten) < 2.05);
    // What is told of the memory is what there is.
    let memory = role.store.memory();
    let told = memory.total() - memory.area + role.parity.memory_bytes();
    assert_eq!(role.budget.used(Category::Index) as usize, told);
    let held = (heap().bytes - before.bytes) as usize;
    assert!(held.abs_diff(told) < told / 50, "{held} bytes held, {told} told");
}

/// Of RS(3,2), kept.
fn add_chunk(store: &mut ChunkStore, number: u64, rows: u32) {
    let mut builder = ChunkBuilder::new(store.pages(), 64, rows);
    (0..rows).for_each(|_| builder.push(&[7; 64]).unwrap());
    let chunk = builder.finish().unwrap();
    let owner = MemberId { group: GroupId(1), role: RoleIndex(0) };
    let object = ObjectId { owner, term: Term(1), number, salt: number << 7, namespace: NamespaceId(1) };
    let id = ChunkId { object, stripe: 0 };
    let header = ChunkHeader {
        key_hash: KeyHash(number),
        geometry: Geometry { len: 100, chunk_len: 1 << 20, k: 3, layout: types::ObjectLayout::Spread },
        trailer: Checksums::from_slice(&[chunk.checksum(), 2, 3, 4, 5]),
        received_at: Time(0),
        last_access: UnixSeconds(0),
    };
    store.insert(id, header, chunk);
    assert!(store.keep(id));
}

#[test]
fn a_chunk_costs_255_bytes_beyond_its_pages_and_4_for_each_cell() {
    const CHUNKS: u64 = 20_000;
    for rows in [1, 16] {
        let pages = ChunkPages::new(Budget::new(1 << 30)).unwrap();
        let mut store = ChunkStore::new(RoleIndex(0), &pages);
        let before = heap();
        (0..CHUNKS).for_each(|number| add_chunk(&mut store, number, rows));
        let (held, told) = ((heap().bytes - before.bytes) as usize, store.header_bytes());
        assert_eq!(pages.budget().used(Category::Index) as usize, told);
        let (held_each, told_each) = (held / CHUNKS as usize, told / CHUNKS as usize);
        println!("{rows} cells: a chunk holds {held_each} bytes, {told_each} are told");
        assert!(told_each <= 255 + 4 * rows as usize && held.abs_diff(told) < told / 50);
        store.check_invariants();
    }
}
