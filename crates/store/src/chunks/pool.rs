//! The pages that a worker's chunks lie in: which are free, and when an extent comes and goes.
//!
//! Extents are taken from the budget one by one and given back to it as soon as all their pages are free. Their memory stays a
//! while, idle: it goes back to the system some extents at a time ([`ChunkPages::trim`]), or when the budget needs it.
//! Where pages are taken: those right behind what the chunk has, else the lowest extent with a free run that is long enough
//! (so that high extents empty and go), else several runs, the longest first, else a new extent. To find them takes a few steps
//! for each bit of the number of extents (`room`), and a look at the 1,024 bits of each extent that gives some.
//!
//! **The lock.** Pages are taken by the worker whose pool it is, and given back by whoever lets go of a chunk last: nearly always
//! the same worker, now and then the thread of a socket that has sent the last bytes of a removed chunk. So nobody waits for it
//! as a rule; it is held for a microsecond, or for the calls that get an extent's memory or give it back. Bytes are read and written
//! without it.
//!
//! What `leased` relies on: a page that was taken is neither taken again nor without memory until it is given back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use smallvec::{SmallVec, smallvec};
use types::{CHUNK_PAGE_BYTES, ChunkPageRange, EXTENT_BYTES};

use super::bits::{Bits, EXTENT_PAGES};
use super::room::Room;
use crate::area::all_runs_of;
use crate::arena::Arena;
use crate::idle::Keeper;
use crate::{AreaError, Budget, Category, Charge, OutOfMemory};

/// Longest pool: the numbers of its pages fit into 32 bits with room to spare.
const MAX_POOL_BYTES: u64 = 2 << 40;

/// See [`ChunkPages::shortage`].
const RESERVE_SHARE: u64 = 64;
const MIN_RESERVE_BYTES: u64 = 2 * EXTENT_BYTES as u64;

/// One part in this many of the extents that were idle since the last look are given back at a time, and at most so many.
const TRIMMED_SHARE: usize = 32;
const MAX_TRIMMED: usize = 16;

/// A worker's pages for chunks. Clones share them; they live until the last handle, chunk and slice of bytes are gone.
#[derive(Clone, Debug)]
pub struct ChunkPages(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    budget: Budget,
    pool: Mutex<Pool>,
}

/// Runs that one request was given, in the order of the bytes to be.
pub(super) type Runs = SmallVec<[ChunkPageRange; 2]>;

impl ChunkPages {
    /// Reserves as much address space as the budget's limit, which costs no memory.
    ///
    /// # Errors
    /// If the system has no address space ([`AreaError::Map`]).
    pub fn new(budget: Budget) -> Result<Self, AreaError> {
        let limit = budget.limit().clamp(1, MAX_POOL_BYTES) as usize;
        let arena = Arena::reserve(limit.next_multiple_of(EXTENT_BYTES)).map_err(AreaError::Map)?;
        let pool = Mutex::new(Pool::new(arena, budget.clone()));
        let inner = Arc::new(Inner { budget, pool });
        let keeper: Weak<dyn Keeper> = Arc::downgrade(&inner) as _;
        inner.budget.register(keeper);
        Ok(Self(inner))
    }

    /// What the extents are paid from.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Bytes of pages in use, by chunks that are arriving, are kept, or were removed while bytes of them are still read.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        let pool = self.lock();
        pool.charge.bytes() - pool.free_count as usize * CHUNK_PAGE_BYTES
    }

    /// Bytes of pages that have memory and are not in use: the rest of the extents that are paid for, and those that are idle.
    #[must_use]
    pub fn unused_bytes(&self) -> usize {
        let pool = self.lock();
        pool.free_count as usize * CHUNK_PAGE_BYTES + pool.idle.len() * EXTENT_BYTES
    }

    /// Bytes of the extents that they are cut from, all charged to [`Category::Chunks`].
    #[must_use]
    pub fn extent_bytes(&self) -> usize {
        self.lock().charge.bytes()
    }

    /// Gives some memory back that was not used since the last call. To be called now and then, as long as something is kept.
    pub fn trim(&self) {
        self.lock().trim();
    }

    /// Whether there are extents that nobody uses or pays for, and whose memory is kept all the same.
    #[must_use]
    pub fn keeps_idle(&self) -> bool {
        self.0.budget.idle_bytes() > 0 && !self.lock().idle.is_empty()
    }

    /// How many bytes are missing to what is to be free for chunks to come: one part in `RESERVE_SHARE` of the budget's limit.
    #[must_use]
    pub fn shortage(&self) -> u64 {
        let reserve = (self.0.budget.limit() / RESERVE_SHARE).max(MIN_RESERVE_BYTES);
        reserve.saturating_sub(self.room())
    }

    /// Bytes of pages that could be taken now, if nobody else takes any: those that are free, and whole extents of what is left of
    /// the budget.
    #[must_use]
    pub fn room(&self) -> u64 {
        let extents = self.0.budget.room_for_chunks() / EXTENT_BYTES as u64;
        u64::from(self.lock().free_count) * CHUNK_PAGE_BYTES as u64 + extents * EXTENT_BYTES as u64
    }

    /// Whether so many bytes of what clients write may come: of the budget what is kept for members that are to come is not theirs.
    #[must_use]
    pub fn has_room_to_grow(&self, bytes: usize) -> bool {
        let kept = self.0.budget.kept();
        kept == 0 || {
            let new = self.0.budget.room_for_chunks().saturating_sub(kept);
            u64::from(self.lock().free_count) * CHUNK_PAGE_BYTES as u64 + new >= bytes as u64
        }
    }

    /// Whether chunks have less than their share of the memory ([`crate::CHUNK_SHARE`]).
    #[must_use]
    pub fn lacks_share(&self) -> bool {
        self.0.budget.chunks_lack() >= EXTENT_BYTES as u64
    }

    /// As long as a pool `claims`, areas do not grow into the share of chunks.
    pub fn claim(&self, claims: bool) {
        let mut pool = self.lock();
        match (std::mem::replace(&mut pool.claims, claims), claims) {
            (false, true) => self.0.budget.begin_claim(),
            (true, false) => self.0.budget.end_claim(),
            _ => {}
        }
    }

    /// Whether `other` is a handle of the same pool.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// That free pages are counted and found, and that extents are paid for as long as a page of theirs is in use.
    ///
    /// # Panics
    /// If something does not hold.
    pub fn check_invariants(&self) {
        self.lock().check_invariants();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pool> {
        // What is asserted is asserted before anything is changed: who panicked has at most lost pages.
        self.0.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for Inner {
    fn give_back(&self, bytes: u64) {
        // Whoever has the lock may be the caller: it is about to pay for an extent.
        let mut pool = match self.pool.try_lock() {
            Ok(pool) => pool,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        pool.give_back(bytes.div_ceil(EXTENT_BYTES as u64) as usize);
    }
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct Pool {
    arena: Arena,
    /// The free pages of each extent that is or was there; of one that is not, none.
    free: Vec<Bits>,
    room: Room,
    /// Extents below the end of `free` that are neither there nor idle.
    gone: BTreeSet<u32>,
    /// Extents that nobody uses or pays for, and that have memory.
    idle: BTreeSet<u32>,
    /// As many were idle all the time since the last trim.
    idle_for_long: usize,
    /// Pages, of all extents.
    free_count: u32,
    charge: Charge,
    /// Whether areas are held back for it.
    claims: bool,
}

impl Pool {
    fn new(arena: Arena, budget: Budget) -> Self {
        Self {
            arena,
            free: Vec::new(),
            room: Room::new(),
            gone: BTreeSet::new(),
            idle: BTreeSet::new(),
            idle_for_long: 0,
            free_count: 0,
            charge: Charge::empty(budget, Category::Chunks),
            claims: false,
        }
    }

    /// Where the pages are.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// `count` pages, at most an extent's, if possible from `wish` on. They are the caller's until it gives them back.
    ///
    /// # Errors
    /// If neither the pool nor the budget nor the system has as many; nothing is taken then.
    pub(super) fn take(&mut self, count: u32, wish: Option<u32>) -> Result<Runs, OutOfMemory> {
        debug_assert!((1..=EXTENT_PAGES).contains(&count), "{count} pages at once");
        if let Some(first) = self.place_of(count, wish) {
            return Ok(smallvec![self.claim(first, count)]);
        }
        if self.free_count >= count {
            return Ok(self.take_pieces(count, wish));
        }
        let first = self.add_extent()? * EXTENT_PAGES;
        Ok(smallvec![self.claim(first, count)])
    }

    /// Gives back what was taken, by its owner, once.
    pub(super) fn give(&mut self, pages: ChunkPageRange) {
        let mut left = pages;
        while left.count > 0 {
            let (extent, within) = extent_of(left);
            let (free, given) = (self.free[extent as usize], Bits::of(within.clone()));
            assert!(!free.has_any(given), "pages {within:?} of extent {extent} were free already");
            self.set_free(extent, free.with(given));
            self.remove_if_free(extent);
            let count = within.end - within.start;
            left = ChunkPageRange { first: left.first + count, count: left.count - count };
        }
    }

    /// Whether somebody has all of `pages`.
    pub(super) fn are_taken(&self, pages: ChunkPageRange) -> bool {
        pages.iter().all(|page| {
            let (extent, within) = extent_of(ChunkPageRange { first: page, count: 1 });
            let is_there = self.arena.covers(page as usize * CHUNK_PAGE_BYTES, CHUNK_PAGE_BYTES);
            is_there && !self.idle.contains(&extent) && !self.free[extent as usize].has_any(Bits::of(within))
        })
    }

    /// The first page of a free run of `count`: from `wish` on, else in the lowest extent that has one.
    fn place_of(&self, count: u32, wish: Option<u32>) -> Option<u32> {
        wish.filter(|page| self.free_from(*page) >= count).or_else(|| {
            let extent = self.room.lowest(count)?;
            let run = self.free[extent as usize].first_run(count)?;
            Some(extent * EXTENT_PAGES + run.start)
        })
    }

    /// How many pages of its extent are free from `page` on.
    fn free_from(&self, page: u32) -> u32 {
        let free = self.free.get((page / EXTENT_PAGES) as usize);
        free.map_or(0, |free| free.run_from(page % EXTENT_PAGES).len() as u32)
    }

    /// `count` pages of as many that are free, though no run has as many: those from `wish` on, then the longest runs.
    fn take_pieces(&mut self, count: u32, wish: Option<u32>) -> Runs {
        let mut taken = Runs::new();
        let mut left = count;
        if let Some((first, free)) =
            wish.map(|page| (page, self.free_from(page))).filter(|(_, free)| *free > 0)
        {
            taken.push(self.claim(first, free));
            left -= free;
        }
        while left > 0 {
            let wanted = left.min(self.room.max());
            let first = self.place_of(wanted, None).expect("as many pages are free");
            taken.push(self.claim(first, wanted));
            left -= wanted;
        }
        taken
    }

    /// Marks pages of one extent as taken.
    fn claim(&mut self, first: u32, count: u32) -> ChunkPageRange {
        let pages = ChunkPageRange { first, count };
        let (extent, within) = extent_of(pages);
        let (free, taken) = (self.free[extent as usize], Bits::of(within.clone()));
        assert!(count > 0 && within.len() == count as usize && free.has_all(taken), "{pages:?} are not free");
        self.set_free(extent, free.without(taken));
        pages
    }

    /// An extent comes, all free: one that is idle, else a new one.
    fn add_extent(&mut self) -> Result<u32, OutOfMemory> {
        let extent = match self.idle.first().copied() {
            Some(extent) => self.wake(extent)?,
            None => self.add_new_extent()?,
        };
        self.set_free(extent, Bits::ALL);
        Ok(extent)
    }

    /// What is idle is paid for again.
    fn wake(&mut self, extent: u32) -> Result<u32, OutOfMemory> {
        let budget = self.charge.budget();
        // It is what is paid for: together they would count twice.
        budget.end_idle(EXTENT_BYTES as u64);
        if let Err(refused) = budget.try_reserve_for_chunks(EXTENT_BYTES) {
            self.begin_idle();
            return Err(refused);
        }
        self.charge.adopt(EXTENT_BYTES);
        self.idle.remove(&extent);
        self.idle_for_long = self.idle_for_long.min(self.idle.len());
        Ok(extent)
    }

    /// The lowest extent that is not there.
    fn add_new_extent(&mut self) -> Result<u32, OutOfMemory> {
        let budget = self.charge.budget();
        let out_of_memory = || budget.out_of_memory(Category::Chunks, EXTENT_BYTES);
        let extent = self.gone.first().copied().unwrap_or(self.free.len() as u32);
        if extent as usize >= self.arena.len() / EXTENT_BYTES {
            return Err(out_of_memory());
        }
        // Paid for first: other workers pay from the same budget, and memory that is there already cannot be refused.
        budget.try_reserve_for_chunks(EXTENT_BYTES)?;
        if self.arena.commit(all_runs_of(extent)).is_err() {
            budget.release(Category::Chunks, EXTENT_BYTES);
            return Err(out_of_memory());
        }
        self.arena.populate(all_runs_of(extent));
        self.charge.adopt(EXTENT_BYTES);
        if !self.gone.remove(&extent) {
            self.free.push(Bits::NONE);
        }
        Ok(extent)
    }

    /// An extent without a page in use is no longer paid for.
    fn remove_if_free(&mut self, extent: u32) {
        if self.free[extent as usize] != Bits::ALL {
            return;
        }
        self.set_free(extent, Bits::NONE);
        self.charge.set(self.charge.bytes() - EXTENT_BYTES);
        self.idle.insert(extent);
        self.begin_idle();
    }

    /// One more extent is idle, for which the budget may have no room.
    fn begin_idle(&mut self) {
        self.charge.budget().begin_idle(EXTENT_BYTES as u64);
        self.give_back(self.extents_over());
    }

    fn extents_over(&self) -> usize {
        self.charge.budget().bytes_over().div_ceil(EXTENT_BYTES as u64) as usize
    }

    /// Gives back what was idle for long, a part at a time, and at least what the budget has no room for.
    fn trim(&mut self) {
        let share = self.idle_for_long.div_ceil(TRIMMED_SHARE).min(MAX_TRIMMED);
        self.give_back(share.max(self.extents_over()));
        self.idle_for_long = self.idle.len();
    }

    /// Gives the memory of `count` idle extents back, the highest first, or of all. They stay if the system refuses (locked memory).
    fn give_back(&mut self, count: usize) {
        for _ in 0..count {
            let Some(extent) = self.idle.last().copied() else { break };
            if self.arena.decommit(all_runs_of(extent)).is_err() {
                break;
            }
            self.idle.remove(&extent);
            self.gone.insert(extent);
            self.charge.budget().end_idle(EXTENT_BYTES as u64);
        }
        self.idle_for_long = self.idle_for_long.min(self.idle.len());
    }

    /// The one place where pages become free or are no longer.
    fn set_free(&mut self, extent: u32, free: Bits) {
        let before = std::mem::replace(&mut self.free[extent as usize], free);
        self.free_count = self.free_count - before.count() + free.count();
        self.room.set(extent, free.longest());
    }

    fn check_invariants(&self) {
        let count: u32 = self.free.iter().map(|free| free.count()).sum();
        assert_eq!(self.free_count, count, "free pages are counted");
        let longest = self.free.iter().map(|free| free.longest()).max().unwrap_or(0);
        assert_eq!(self.room.max(), longest, "the longest free run is known");
        for (extent, free) in (0..).zip(&self.free) {
            let is_there = self.arena.covers(extent as usize * EXTENT_BYTES, EXTENT_BYTES);
            assert_eq!(is_there, !self.gone.contains(&extent), "extent {extent} is there or gone");
            let is_there = is_there && !self.idle.contains(&extent);
            assert!(is_there || *free == Bits::NONE, "pages of extent {extent} are free, which is not there");
        }
        let there = self.free.len() - self.gone.len() - self.idle.len();
        assert_eq!(self.charge.bytes(), there * EXTENT_BYTES, "the extents of chunks are paid for");
        let used = self.charge.budget().used(Category::Chunks);
        assert!(self.charge.bytes() as u64 <= used, "the extents of chunks are in no budget");
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let budget = self.charge.budget();
        if self.claims {
            budget.end_claim();
        }
        budget.end_idle((self.idle.len() * EXTENT_BYTES) as u64);
    }
}

/// The extent of the first of `pages`, and which of its pages they are, as far as they lie in it.
fn extent_of(pages: ChunkPageRange) -> (u32, std::ops::Range<u32>) {
    let first = pages.first % EXTENT_PAGES;
    (pages.first / EXTENT_PAGES, first..EXTENT_PAGES.min(first + pages.count))
}
