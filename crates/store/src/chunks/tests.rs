mod quotas;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use types::{
    CHUNK_PAGE_BYTES, ChunkId, EXTENT_BYTES, Geometry, GroupId, KeyHash, MAX_CELL_BYTES, MemberId,
    NamespaceId, ObjectId, ObjectLayout, RoleIndex, Term, Time, UnixSeconds, checksum,
};

use super::*;
use crate::{Budget, Category};

const ROLE: RoleIndex = RoleIndex(1);
const CELL: u32 = MAX_CELL_BYTES;
/// Extents that a small budget does not give to chunks.
const LEFT_TO_AREAS: usize = 2;

/// A pool that has memory for so many extents, beside what is left to areas.
fn pool(extents: usize) -> ChunkPages {
    let limit = ((extents + LEFT_TO_AREAS) * EXTENT_BYTES) as u64 * 32 / 31 + 32;
    ChunkPages::new(Budget::new(limit)).unwrap()
}

/// Bytes of all pages in use, and of all extents.
fn used(pages: &ChunkPages) -> (usize, usize) {
    pages.check_invariants();
    (pages.used_bytes(), pages.extent_bytes())
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let word = |at: u64| ((at + 1) ^ (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ seed;
    (0..len.div_ceil(8) as u64).for_each(|at| bytes.extend_from_slice(&word(at).to_le_bytes()));
    bytes.truncate(len);
    bytes
}

fn try_build(pages: &ChunkPages, cell_len: u32, content: &[u8]) -> Result<Chunk, PushError> {
    let rows = content.len() / cell_len as usize;
    let mut builder = ChunkBuilder::new(pages, cell_len, rows as u32);
    content.chunks(cell_len as usize).try_for_each(|cell| builder.push(cell))?;
    Ok(builder.finish().unwrap())
}

/// A chunk of `rows` cells, whose bytes are those of `seed`.
fn build(pages: &ChunkPages, cell_len: u32, rows: u32, seed: u64) -> Chunk {
    try_build(pages, cell_len, &bytes(seed, (cell_len * rows) as usize)).unwrap()
}

fn content(chunk: &Chunk) -> Vec<u8> {
    (0..chunk.rows()).flat_map(|row| chunk.cell(row).unwrap()).collect()
}

fn object(number: u64) -> ObjectId {
    let owner = MemberId { group: GroupId(3), role: RoleIndex(0) };
    ObjectId { owner, term: Term(2), number, salt: 9, namespace: NamespaceId(4) }
}

fn id(number: u64, stripe: u32) -> ChunkId {
    ChunkId { object: object(number), stripe }
}

fn header(at: u32, chunk: &Chunk) -> ChunkHeader {
    ChunkHeader {
        key_hash: KeyHash(7),
        geometry: Geometry { len: 1 << 20, chunk_len: 1 << 20, k: 3, layout: ObjectLayout::Spread },
        trailer: Checksums::from_slice(&[1, chunk.checksum(), 3, 4, 5]),
        received_at: Time(5),
        last_access: UnixSeconds(at),
    }
}

/// Puts a chunk into a store.
fn insert(store: &mut ChunkStore, id: ChunkId, at: u32, chunk: Chunk) -> Inserted {
    store.insert(id, header(at, &chunk), chunk)
}

/// A store with chunks of `count` objects, all kept, last read in the order of `at`.
fn kept_store(pages: &ChunkPages, count: u32, at: impl Fn(u32) -> u32) -> ChunkStore {
    let mut store = ChunkStore::new(ROLE, pages);
    for number in 0..count {
        let chunk = build(pages, 64, 1, number.into());
        insert(&mut store, id(number.into(), 0), at(number), chunk);
        assert!(store.keep(id(number.into(), 0)));
    }
    store
}

fn numbers(ids: &[ChunkId]) -> Vec<u64> {
    ids.iter().map(|id| id.object.number).collect()
}

#[test]
fn nothing_is_reserved_by_a_declared_length() {
    let pages = pool(2);
    let mut builder = ChunkBuilder::new(&pages, CELL, u32::MAX);
    assert_eq!((builder.rows_there(), builder.allocated_bytes(), used(&pages)), (0, 0, (0, 0)));
    builder.push(&bytes(1, CELL as usize)).unwrap();
    assert_eq!((builder.rows_there(), builder.len_bytes()), (1, CELL as usize));
    assert_eq!(used(&pages), (CELL as usize, EXTENT_BYTES));
    drop(builder);
    assert_eq!((used(&pages), pages.budget().total_used()), ((0, 0), 0));
}

#[test]
fn cells_share_pages_with_their_neighbours() {
    let pages = pool(1);
    let mut builder = ChunkBuilder::new(&pages, 5056, 3);
    let cells = bytes(1, 3 * 5056);
    let allocated: Vec<usize> = cells
        .chunks(5056)
        .map(|cell| {
            builder.push_checked(cell, checksum(cell)).unwrap();
            assert_eq!(builder.allocated_bytes(), pages.used_bytes());
            builder.allocated_bytes() / CHUNK_PAGE_BYTES
        })
        .collect();
    assert_eq!(allocated, [5, 10, 15]);
    let chunk = builder.finish().unwrap();
    assert_eq!((chunk.len_bytes(), chunk.pages(), content(&chunk)), (15_168, 15, cells));
}

#[test]
fn a_cell_of_another_length_and_one_too_many_are_refused() {
    let pages = pool(1);
    let mut builder = ChunkBuilder::new(&pages, 128, 1);
    assert_eq!(builder.push(&[7; 127]), Err(PushError::Length { len: 127, cell_len: 128 }));
    builder = builder.finish().unwrap_err();
    builder.push(&[7; 128]).unwrap();
    assert_eq!(builder.push(&[7; 128]), Err(PushError::Full(1)));
    assert_eq!(builder.finish().unwrap().rows(), 1);
}

#[test]
fn a_chunk_without_cells_has_no_pages() {
    let pages = pool(1);
    let chunk = ChunkBuilder::new(&pages, 64, 0).finish().unwrap();
    assert_eq!((chunk.pages(), chunk.checksum(), chunk.cell(0)), (0, checksum(b""), None));
    assert!(chunk.verify_all() && !chunk.verify(0));
    assert_eq!(used(&pages), (0, 0));
}

#[test]
fn cells_and_parts_of_them_are_read_without_a_copy() {
    let pages = pool(1);
    let chunk = build(&pages, 5056, 3, 1);
    let whole = bytes(1, 3 * 5056);
    let first = chunk.cell(0).unwrap();
    let part = chunk.part(2, 100..5000).unwrap();
    assert_eq!(part, whole[2 * 5056 + 100..2 * 5056 + 5000]);
    assert_eq!(part.as_ptr() as usize - first.as_ptr() as usize, 2 * 5056 + 100);
    assert_eq!(chunk.part(1, 7..7), Some(Bytes::new()));
    #[allow(clippy::reversed_empty_ranges)] // as a peer may name it
    let wrong = [chunk.part(0, 0..5057), chunk.part(3, 0..1), chunk.part(0, 8..7)];
    assert!(wrong.iter().all(Option::is_none) && chunk.cell(3).is_none());
}

#[test]
fn the_checksum_of_a_chunk_is_that_of_its_bytes() {
    let pages = pool(1);
    let chunk = build(&pages, 5056, 3, 1);
    let whole = bytes(1, 3 * 5056);
    assert_eq!(chunk.checksum(), checksum(&whole));
    let cells: Vec<u32> = whole.chunks(5056).map(checksum).collect();
    assert_eq!((chunk.cell_checksums(), chunk.verify_all()), (&cells[..], true));
}

#[test]
fn chunks_and_their_bytes_may_go_to_other_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<(ChunkPages, ChunkBuilder, Chunk, ChunkStore)>();
    let pages = pool(1);
    let cell = build(&pages, 64, 1, 1).cell(0).unwrap();
    std::thread::scope(|scope| scope.spawn(move || assert_eq!(cell, bytes(1, 64))).join().unwrap());
    assert_eq!((used(&pages), pages.budget().total_used()), ((0, 0), 0));
}

#[test]
fn a_worker_goes_on_while_others_read_and_let_go() {
    let pages = pool(1);
    let (send, receive) = std::sync::mpsc::channel::<(u64, Bytes)>();
    let rounds = if cfg!(miri) { 10 } else { 2000 };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (seed, cell) in receive {
                assert_eq!(cell, bytes(seed, 3 * 2048)[2048..4096]);
            }
        });
        for seed in 0..rounds {
            // As many as the reader leaves room for.
            if let Ok(chunk) = try_build(&pages, 2048, &bytes(seed, 3 * 2048)) {
                send.send((seed, chunk.cell(1).unwrap())).unwrap();
            }
        }
        drop(send);
    });
    assert_eq!((used(&pages), pages.budget().total_used()), ((0, 0), 0));
}

#[test]
fn an_extent_goes_back_with_its_last_page() {
    let pages = pool(4);
    let chunks: Vec<Chunk> = (0..3).map(|seed| build(&pages, CELL, 10, seed)).collect();
    assert_eq!(used(&pages), (30 * CELL as usize, 2 * EXTENT_BYTES));
    // The second one lies in both extents.
    let [first, second, third] = chunks.try_into().unwrap();
    drop(first);
    assert_eq!(used(&pages), (20 * CELL as usize, 2 * EXTENT_BYTES));
    drop(second);
    assert_eq!(used(&pages), (10 * CELL as usize, EXTENT_BYTES));
    // The lowest number is the next.
    let again = build(&pages, CELL, 8, 4);
    assert_eq!(used(&pages).1, 2 * EXTENT_BYTES);
    assert_eq!((content(&again), third.verify_all()), (bytes(4, 8 * CELL as usize), true));
    drop((again, third));
    assert_eq!((used(&pages), pages.budget().total_used()), ((0, 0), 0));
}

#[test]
fn pages_of_a_removed_chunk_are_not_used_again_while_bytes_of_it_live() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    let first = build(&pages, 4096, 3, 1);
    let lies_at = |chunk: &Chunk| chunk.runs().next().unwrap().first;
    insert(&mut store, id(1, 0), 0, first);
    let on_its_way = store.get(id(1, 0)).unwrap().chunk().part(1, 5..105).unwrap();
    store.remove(id(1, 0));
    assert_eq!((store.bytes(), pages.used_bytes()), (0, 3 * 4096));
    let second = build(&pages, 4096, 3, 2);
    assert_eq!(lies_at(&second) as usize, 3 * 4096 / CHUNK_PAGE_BYTES);
    assert_eq!(on_its_way, bytes(1, 3 * 4096)[4096 + 5..4096 + 105]);
    drop(on_its_way);
    assert_eq!(pages.used_bytes(), 3 * 4096);
    let third = build(&pages, 4096, 3, 3);
    assert_eq!(lies_at(&third), 0);
    assert!(second.verify_all() && third.verify_all());
}

#[test]
fn the_pool_outlives_its_handles_while_bytes_live() {
    let pages = pool(1);
    let budget = pages.budget().clone();
    let mut store = ChunkStore::new(ROLE, &pages);
    insert(&mut store, id(1, 0), 0, build(&pages, 4096, 2, 1));
    let cell = store.get(id(1, 0)).unwrap().chunk().cell(1).unwrap();
    drop((store, pages));
    assert_eq!(budget.total_used(), EXTENT_BYTES as u64);
    assert_eq!(cell, bytes(1, 2 * 4096)[4096..]);
    drop(cell);
    assert_eq!(budget.total_used(), 0);
}

#[test]
fn memory_that_ends_in_the_middle_of_a_chunk_takes_no_part_of_a_cell() {
    let pages = pool(1);
    let small = build(&pages, 64, 1, 9);
    let cells = bytes(1, 16 * CELL as usize);
    let mut cells = cells.chunks(CELL as usize);
    let mut builder = ChunkBuilder::new(&pages, CELL, 16);
    cells.by_ref().take(15).for_each(|cell| builder.push(cell).unwrap());
    let last = cells.next().unwrap();
    let before = used(&pages);
    let Err(PushError::Memory(refused)) = builder.push(last) else { panic!("there is no memory") };
    assert_eq!((refused.category, refused.wanted), (Category::Chunks, EXTENT_BYTES as u64));
    assert_eq!((builder.rows_there(), used(&pages)), (15, before));
    drop(small);
    builder.push(last).unwrap();
    let chunk = builder.finish().unwrap();
    assert_eq!((content(&chunk), chunk.verify_all()), (bytes(1, 16 * CELL as usize), true));
}

#[test]
fn others_who_take_the_memory_are_told_from_a_pool_that_is_full() {
    let pages = pool(4);
    pages.budget().try_reserve_extent(Category::Area, 3 * EXTENT_BYTES + CHUNK_PAGE_BYTES).unwrap();
    assert!(matches!(ChunkBuilder::new(&pages, 64, 1).push(&[0; 64]), Err(PushError::Memory(_))));
    assert_eq!(used(&pages), (0, 0));
    pages.budget().release(Category::Area, CHUNK_PAGE_BYTES);
    build(&pages, 64, 1, 1);
}

/// As many idle extents, which nobody pays for.
fn idle(pages: &ChunkPages) -> usize {
    pages.check_invariants();
    let bytes = pages.budget().idle_bytes();
    assert_eq!(bytes > 0, pages.keeps_idle());
    bytes as usize / EXTENT_BYTES
}

/// Chunks that fill so many extents.
fn fill(pages: &ChunkPages, extents: u32) -> Vec<Chunk> {
    (0..extents).map(|seed| build(pages, CELL, EXTENT_BYTES as u32 / CELL, u64::from(seed))).collect()
}

#[test]
fn what_was_freed_is_used_again_before_new_memory_is() {
    let pages = pool(16);
    drop(fill(&pages, 8));
    assert_eq!((used(&pages), pages.budget().total_used(), idle(&pages)), ((0, 0), 0, 8));
    let three = fill(&pages, 3);
    assert_eq!((used(&pages).1, idle(&pages), pages.unused_bytes()), (3 * EXTENT_BYTES, 5, 5 * EXTENT_BYTES));
    assert_eq!(content(&three[2]), bytes(2, EXTENT_BYTES), "as if the memory were new");
    let more = fill(&pages, 8);
    assert_eq!((used(&pages).1, idle(&pages)), (11 * EXTENT_BYTES, 0));
    drop((three, more));
    let budget = pages.budget().clone();
    drop(pages);
    assert_eq!(budget.idle_bytes(), 0, "nothing is kept by nobody");
}

#[test]
fn what_is_idle_for_long_goes_back_a_part_at_a_time() {
    let pages = pool(80);
    drop(fill(&pages, 64));
    pages.trim();
    assert_eq!(idle(&pages), 64, "it was in use since the last look");
    pages.trim();
    assert_eq!(idle(&pages), 62);
    let used = fill(&pages, 50);
    drop(used);
    pages.trim();
    assert_eq!(idle(&pages), 61, "twelve were idle all the time");
    let left = std::iter::repeat_with(|| pages.trim()).take_while(|()| pages.keeps_idle()).count();
    assert!(left < 100, "{left} looks until all is gone");
    assert_eq!(idle(&pages), 0);
}

#[test]
fn what_clients_write_leaves_what_is_kept_for_members_and_takes_pages_that_are_free() {
    let budget = Budget::new(32 * EXTENT_BYTES as u64);
    let pages = ChunkPages::new(budget.clone()).unwrap();
    let room = budget.room_for_chunks();
    assert!(pages.has_room_to_grow(usize::MAX), "where nothing is kept whoever takes pages finds out");
    budget.keep_for_members(room - EXTENT_BYTES as u64);
    assert!(pages.has_room_to_grow(EXTENT_BYTES) && !pages.has_room_to_grow(EXTENT_BYTES + 1));
    budget.keep_for_members(room);
    assert!(!pages.has_room_to_grow(1));
    let taken = build(&pages, CELL, 1, 0);
    assert!(pages.has_room_to_grow(EXTENT_BYTES - 2 * CELL as usize), "the rest of its extent is there");
    drop(taken);
}

#[test]
fn whoever_needs_memory_gets_what_is_idle_in_any_pool() {
    let budget = Budget::new(20 * EXTENT_BYTES as u64);
    let pools = [(); 2].map(|()| ChunkPages::new(budget.clone()).unwrap());
    pools.iter().for_each(|pages| drop(fill(pages, 6)));
    assert_eq!(budget.idle_bytes(), 12 * EXTENT_BYTES as u64);
    let within = |budget: &Budget| budget.total_used() + budget.idle_bytes() <= budget.limit();
    budget.try_reserve_extent(Category::Area, 10 * EXTENT_BYTES).unwrap();
    assert_eq!(budget.idle_bytes(), 10 * EXTENT_BYTES as u64, "as much goes as is needed");
    let chunks = fill(&pools[1], 7);
    assert!(within(&budget) && budget.idle_bytes() > 0);
    budget.charge(Category::Index, 2 * EXTENT_BYTES);
    assert!(within(&budget));
    drop(chunks);
    assert!(within(&budget) && budget.idle_bytes() > 0);
    budget.charge(Category::Index, 30 * EXTENT_BYTES);
    assert_eq!(budget.idle_bytes(), 0, "over the limit nothing is kept");
}

#[test]
fn holes_are_filled_before_an_extent_comes() {
    let pages = pool(2);
    let small: Vec<Chunk> = (0..1024).map(|seed| build(&pages, 64, 1, seed)).collect();
    // Every other page is free, and no two of them in a row.
    let kept: Vec<Chunk> = small.into_iter().step_by(2).collect();
    assert_eq!(used(&pages), (EXTENT_BYTES / 2, EXTENT_BYTES));
    let large = build(&pages, CELL, 8, 999);
    assert_eq!((used(&pages), large.runs().count()), ((EXTENT_BYTES, EXTENT_BYTES), 512));
    assert_eq!((content(&large), large.verify_all()), (bytes(999, 8 * CELL as usize), true));
    // Over holes, within and across pages.
    let whole = bytes(999, 8 * CELL as usize);
    for (start, end) in [(0, 4096), (4000, 4200), (1, 65_535)] {
        assert_eq!(large.part(1, start..end).unwrap(), whole[(CELL + start) as usize..(CELL + end) as usize]);
    }
    assert!(kept.iter().zip((0..).step_by(2)).all(|(chunk, seed)| content(chunk) == bytes(seed, 64)));
}

#[test]
fn small_and_large_chunks_among_each_other_are_read_back_right() {
    let pages = pool(6);
    let rounds = 40;
    // Grown in turn, so that none lies in a row.
    let mut chunks = Vec::new();
    for round in 0..rounds {
        let mut large = ChunkBuilder::new(&pages, 20_032, 3);
        let whole = bytes(round, 3 * 20_032);
        for (cell, small) in whole.chunks(20_032).zip(0..) {
            large.push(cell).unwrap();
            let seed = round * 100 + small;
            chunks.push((seed, build(&pages, 320, 1 + small as u32 * 20, seed)));
        }
        chunks.push((round, large.finish().unwrap()));
    }
    let mut at = 0;
    chunks.retain(|_| {
        at += 1;
        at % 2 == 0
    });
    pages.check_invariants();
    for seed in 5000..5000 + rounds {
        chunks.push((seed, build(&pages, 20_032, 3, seed)));
    }
    assert!(chunks.iter().any(|(_, chunk)| chunk.runs().count() > 1));
    for (seed, chunk) in &chunks {
        assert!(chunk.verify_all() && content(chunk) == bytes(*seed, chunk.len_bytes()), "{seed}");
    }
    let pages_of = |(_, chunk): &(u64, Chunk)| chunk.pages();
    assert_eq!(used(&pages).0, chunks.iter().map(pages_of).sum::<usize>() * CHUNK_PAGE_BYTES);
    drop(chunks);
    assert_eq!((used(&pages), pages.budget().total_used()), ((0, 0), 0));
}

#[test]
fn the_first_chunk_of_a_name_stays() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    let first = build(&pages, 128, 2, 1);
    assert_eq!(insert(&mut store, id(1, 0), 0, first.clone()), Inserted::New);
    assert_eq!(insert(&mut store, id(1, 0), 9, build(&pages, 128, 2, 1)), Inserted::Same);
    assert_eq!(insert(&mut store, id(1, 0), 9, build(&pages, 128, 2, 2)), Inserted::Different);
    // The same bytes in other cells are another chunk: its cells have other checksums.
    assert_eq!(insert(&mut store, id(1, 0), 9, build(&pages, 64, 4, 1)), Inserted::Different);
    let there = store.get(id(1, 0)).unwrap();
    assert!(there.chunk().is_same(&first) && there.last_access() == UnixSeconds(0));
    assert_eq!((store.count(), used(&pages).0), (1, CHUNK_PAGE_BYTES));
    store.check_invariants();
}

#[test]
fn only_the_chunk_that_its_trailer_names_is_taken() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    let chunk = build(&pages, 128, 2, 1);
    let right = header(0, &chunk);
    // Right for another role, or for none.
    for trailer in [&[chunk.checksum(), 2, 3, 4, 5][..], &[]] {
        let trailer = Checksums::from_slice(trailer);
        let wrong = ChunkHeader { trailer, ..right.clone() };
        assert_eq!(store.insert(id(1, 0), wrong, chunk.clone()), Inserted::Wrong);
    }
    assert_eq!(store.count(), 0);
    assert_eq!(store.insert(id(1, 0), right.clone(), chunk), Inserted::New);
    assert!(!store.keep(id(2, 0)));
    assert_eq!((store.tentative_count(), store.tentative_bytes()), (1, CHUNK_PAGE_BYTES as u64));
    assert!(store.keep(id(1, 0)) && store.keep(id(1, 0)), "twice is no harm");
    assert_eq!(store.get(id(1, 0)).unwrap().trailer(), &right.trailer[..]);
    assert_eq!((store.tentative_count(), store.tentative_bytes(), store.count()), (0, 0, 1));
    store.check_invariants();
}

#[test]
fn a_long_trailer_is_paid_for() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    let (short, long) = (build(&pages, 64, 1, 1), build(&pages, 64, 1, 2));
    insert(&mut store, id(1, 0), 0, short);
    let before = store.header_bytes();
    let mut named = header(0, &long);
    named.trailer.extend([6; 9]);
    store.insert(id(2, 0), named, long);
    assert!(store.header_bytes() - before > before);
    store.check_invariants();
}

#[test]
fn an_object_goes_with_all_its_stripes_and_no_other() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    for (number, stripe) in [(1, 0), (2, 0), (2, 7), (2, u32::MAX), (3, 0)] {
        insert(&mut store, id(number, stripe), 0, build(&pages, 64, 1, number));
    }
    assert!(store.of_object(object(2)).map(|(id, _)| id.stripe).eq([0, 7, u32::MAX]));
    assert_eq!((store.remove_object(object(2)), store.remove_object(object(2))), (3, 0));
    assert!(store.list_after(None, 9).map(|(id, _)| id).eq([id(1, 0), id(3, 0)]));
    store.check_invariants();
}

#[test]
fn a_list_goes_on_behind_its_cursor() {
    let pages = pool(1);
    let store = kept_store(&pages, 5, |_| 0);
    let list =
        |cursor, limit| -> Vec<ChunkId> { store.list_after(cursor, limit).map(|(id, _)| id).collect() };
    assert_eq!(numbers(&list(None, 2)), [0, 1]);
    assert_eq!(numbers(&list(Some(id(1, 0)), 9)), [2, 3, 4]);
    // What the cursor names may be gone.
    assert_eq!(numbers(&list(Some(id(1, 5)), 1)), [2]);
    assert!(list(Some(id(4, 0)), 9).is_empty());
}

#[test]
fn the_hand_names_the_coldest_of_those_that_it_passes() {
    let pages = pool(1);
    let mut store = kept_store(&pages, 20, |number| 100 - number);
    // Eight for each one that is asked for, and on from there.
    assert_eq!(numbers(&store.coldest(1, |_| true)), [7]);
    assert_eq!(numbers(&store.coldest(1, |_| true)), [15]);
    store.touch(id(19, 0), UnixSeconds(200));
    store.touch(id(18, 0), UnixSeconds(3));
    // The last four and the first four.
    assert_eq!(numbers(&store.coldest(1, |_| true)), [18]);
    assert!(store.coldest(0, |_| true).is_empty());
    // All of them, once.
    assert_eq!(numbers(&store.coldest(5, |_| true)), [18, 17, 16, 15, 14]);
    assert_eq!(store.coldest(100, |_| true).len(), 20);
}

#[test]
fn a_chunk_that_may_still_be_committed_is_not_cold() {
    let pages = pool(1);
    let mut store = kept_store(&pages, 1, |_| 9);
    insert(&mut store, id(5, 0), 0, build(&pages, 64, 1, 1));
    assert_eq!(numbers(&store.coldest(2, |_| true)), [0]);
    assert!(ChunkStore::new(ROLE, &pages).coldest(2, |_| true).is_empty());
}

#[test]
fn a_dropped_store_gives_all_back() {
    let pages = pool(2);
    let mut store = kept_store(&pages, 10, |_| 0);
    insert(&mut store, id(50, 0), 0, build(&pages, CELL, 3, 1));
    assert_eq!((store.count(), store.bytes()), (11, 10 * CHUNK_PAGE_BYTES as u64 + 3 * u64::from(CELL)));
    assert_eq!(store.len_bytes(), 640 + 3 * u64::from(CELL));
    let budget = pages.budget();
    assert_eq!(budget.used(Category::Index), store.header_bytes() as u64);
    assert_eq!(budget.used(Category::Chunks), EXTENT_BYTES as u64);
    store.check_invariants();
    drop(store);
    assert_eq!((used(&pages), budget.total_used()), ((0, 0), 0));
}

#[test]
fn one_chunk_may_have_two_names() {
    let pages = pool(1);
    let mut store = kept_store(&pages, 1, |_| 0);
    let chunk = store.get(id(0, 0)).unwrap().chunk().clone();
    insert(&mut store, id(1, 0), 0, chunk);
    store.check_invariants();
    assert_eq!((store.bytes(), used(&pages).0), (2 * CHUNK_PAGE_BYTES as u64, CHUNK_PAGE_BYTES));
    store.remove(id(0, 0));
    assert!(store.get(id(1, 0)).unwrap().chunk().verify_all());
    store.check_invariants();
}

#[test]
fn damage_is_found_in_the_cell_where_it_is_and_nowhere_else() {
    let pages = pool(1);
    let mut store = ChunkStore::new(ROLE, &pages);
    insert(&mut store, id(1, 0), 0, build(&pages, 5056, 3, 1));
    let before = store.get(id(1, 0)).unwrap().chunk().clone();
    assert!(store.damage(id(1, 0), 2 * 5056, 1));
    assert!(!store.damage(id(1, 0), 3 * 5056, 1) && !store.damage(id(2, 0), 0, 1));
    let chunk = store.get(id(1, 0)).unwrap().chunk();
    assert_eq!([0, 1, 2].map(|row| chunk.verify(row)), [true, true, false]);
    assert!(!chunk.verify_all() && before.verify_all() && chunk.is_equal(&before));
    store.check_invariants();
    drop(before);
    assert_eq!(used(&pages).0, 15 * CHUNK_PAGE_BYTES);
}

#[test]
#[should_panic(expected = "were free already")]
fn pages_that_are_given_back_twice_are_noticed() {
    let pages = pool(1);
    let chunk = build(&pages, CELL, 2, 1);
    let _other = build(&pages, CELL, 2, 2);
    let run = chunk.runs().next().unwrap();
    pages.lock().give(run);
    // It would be the second time; and dropped while the panic goes on, the third.
    std::mem::forget(chunk);
    pages.lock().give(run);
}

#[test]
#[should_panic(expected = "pages of a chunk are free")]
fn a_chunk_whose_pages_are_free_is_noticed() {
    let pages = pool(1);
    let mut store = kept_store(&pages, 1, |_| 0);
    let chunk = build(&pages, CELL, 2, 1);
    let run = chunk.runs().next().unwrap();
    insert(&mut store, id(9, 0), 0, chunk);
    pages.lock().give(run);
    let store = std::mem::ManuallyDrop::new(store);
    store.check_invariants();
}

/// What a test does with chunks of four objects of two stripes each.
#[derive(Clone, Debug)]
enum Step {
    Begin { cell_len: u32, rows: u32 },
    Push { builder: usize },
    Abandon { builder: usize },
    Finish { builder: usize, name: u8 },
    Keep { name: u8 },
    Remove { name: u8 },
    RemoveObject { name: u8 },
    Hold { name: u8, row: u32 },
    LetGo { held: usize },
    Damage { name: u8, byte: usize },
}

fn step() -> impl Strategy<Value = Step> {
    // Miri takes its time.
    let longest = if cfg!(miri) { 100u32 } else { 1024 };
    let (name, any) = (|| 0u8..8, any::<prop::sample::Index>());
    let at = move || any.clone().prop_map(|index| index.index(1000));
    prop_oneof![
        3 => (1..=longest, 1u32..6).prop_map(|(units, rows)| Step::Begin { cell_len: units * 64, rows }),
        20 => at().prop_map(|builder| Step::Push { builder }),
        1 => at().prop_map(|builder| Step::Abandon { builder }),
        6 => (at(), name()).prop_map(|(builder, name)| Step::Finish { builder, name }),
        2 => name().prop_map(|name| Step::Keep { name }),
        2 => name().prop_map(|name| Step::Remove { name }),
        1 => name().prop_map(|name| Step::RemoveObject { name }),
        3 => (name(), 0u32..6).prop_map(|(name, row)| Step::Hold { name, row }),
        2 => at().prop_map(|held| Step::LetGo { held }),
        1 => (name(), 0usize..300_000).prop_map(|(name, byte)| Step::Damage { name, byte }),
    ]
}

fn named(name: u8) -> ChunkId {
    id(u64::from(name / 2), u32::from(name % 2))
}

struct Arriving {
    builder: ChunkBuilder,
    content: Vec<u8>,
    cell_len: u32,
}

/// Chunks, and the bytes that they should have.
struct Story {
    pages: ChunkPages,
    store: ChunkStore,
    arriving: Vec<Arriving>,
    expected: BTreeMap<ChunkId, Vec<u8>>,
    held: Vec<(Bytes, Vec<u8>)>,
    seed: u64,
}

impl Story {
    fn new() -> Self {
        let pages = pool(3);
        let store = ChunkStore::new(ROLE, &pages);
        let (arriving, expected, held) = Default::default();
        Self { pages, store, arriving, expected, held, seed: 0 }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Begin { cell_len, rows } => {
                let builder = ChunkBuilder::new(&self.pages, cell_len, rows);
                self.arriving.push(Arriving { builder, content: Vec::new(), cell_len });
            }
            Step::Push { builder } => self.push(builder),
            Step::Abandon { builder } if !self.arriving.is_empty() => {
                self.arriving.swap_remove(builder % self.arriving.len());
            }
            Step::Finish { builder, name } if !self.arriving.is_empty() => self.finish(builder, named(name)),
            Step::Keep { name } => self.keep(named(name)),
            Step::Remove { name } => {
                let there = self.expected.remove(&named(name)).is_some();
                assert_eq!(self.store.remove(named(name)).is_some(), there);
            }
            Step::RemoveObject { name } => {
                let object = named(name).object;
                let before = self.expected.len();
                self.expected.retain(|id, _| id.object != object);
                assert_eq!(self.store.remove_object(object), before - self.expected.len());
            }
            Step::Hold { name, row } => self.hold(named(name), row),
            Step::LetGo { held } if !self.held.is_empty() => {
                let (bytes, expected) = self.held.swap_remove(held % self.held.len());
                assert_eq!(bytes, expected);
            }
            Step::Damage { name, byte } => self.damage(named(name), byte),
            Step::Abandon { .. } | Step::Finish { .. } | Step::LetGo { .. } => {}
        }
    }

    fn push(&mut self, builder: usize) {
        let count = self.arriving.len();
        let Some(arriving) = self.arriving.get_mut(builder % count.max(1)) else { return };
        self.seed += 1;
        let cell = bytes(self.seed, arriving.cell_len as usize);
        let before = self.pages.used_bytes();
        match arriving.builder.push(&cell) {
            Ok(()) => arriving.content.extend(cell),
            Err(PushError::Full(rows)) => assert_eq!(rows, arriving.builder.rows_there()),
            Err(PushError::Memory(_)) => assert_eq!(self.pages.used_bytes(), before),
            Err(other) => panic!("{other}"),
        }
    }

    /// What is not whole goes on arriving.
    fn finish(&mut self, builder: usize, id: ChunkId) {
        let Arriving { builder, content, cell_len } =
            self.arriving.swap_remove(builder % self.arriving.len());
        match builder.finish() {
            Ok(chunk) => {
                let expected =
                    if self.expected.contains_key(&id) { Inserted::Different } else { Inserted::New };
                assert_eq!(chunk.checksum(), checksum(&content));
                assert_eq!(insert(&mut self.store, id, self.seed as u32, chunk), expected);
                self.expected.entry(id).or_insert(content);
            }
            Err(builder) => self.arriving.push(Arriving { builder, content, cell_len }),
        }
    }

    fn keep(&mut self, id: ChunkId) {
        assert_eq!(self.store.keep(id), self.expected.contains_key(&id));
    }

    fn hold(&mut self, id: ChunkId, row: u32) {
        let Some(chunk) = self.store.get(id).map(|entry| entry.chunk()) else { return };
        if let Some(cell) = chunk.cell(row) {
            let start = row as usize * chunk.cell_len() as usize;
            self.held.push((cell, self.expected[&id][start..start + chunk.cell_len() as usize].to_vec()));
        }
    }

    /// Changes a byte, and changes it back if there is memory; else the chunk goes.
    fn damage(&mut self, id: ChunkId, byte: usize) {
        if !self.store.damage(id, byte, 0x55) {
            return;
        }
        assert!(!self.store.get(id).unwrap().chunk().verify_all());
        if !self.store.damage(id, byte, 0x55) {
            self.store.remove(id);
            self.expected.remove(&id);
        }
    }

    fn check(&self) {
        self.store.check_invariants();
        assert!(self.store.list_after(None, usize::MAX).map(|(id, _)| id).eq(self.expected.keys().copied()));
        let arriving: usize = self.arriving.iter().map(|arriving| arriving.builder.allocated_bytes()).sum();
        let least = arriving + self.store.bytes() as usize;
        // More only because of what was removed and is held.
        let used = self.pages.used_bytes();
        assert!(used >= least && (used == least || !self.held.is_empty()), "{used} bytes, {least} explained");
        self.pages.budget().check_invariants();
    }

    fn check_bytes(&self) {
        for (id, entry) in self.store.list_after(None, usize::MAX) {
            assert!(entry.chunk().verify_all() && content(entry.chunk()) == self.expected[&id], "{id}");
        }
        assert!(self.held.iter().all(|(bytes, expected)| bytes == expected));
    }
}

proptest! {
    // Nothing is written to the disk: Miri lets nobody.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 })
    })]

    #[test]
    fn every_byte_stays_what_it_was_and_nothing_leaks(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 50 } else { 250 })
    ) {
        let mut story = Story::new();
        for (step, at) in steps.into_iter().zip(0..) {
            story.act(step);
            story.check();
            if at % 32 == 0 {
                story.check_bytes();
            }
        }
        story.check_bytes();
        let Story { pages, store, arriving, held, .. } = story;
        let budget = pages.budget().clone();
        drop((pages, store, arriving));
        assert!(held.iter().all(|(bytes, expected)| bytes == expected));
        drop(held);
        assert_eq!(budget.total_used(), 0);
    }
}
