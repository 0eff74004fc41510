//! What the primary of a data role keeps: area, allocator, index, and which pages are present.
//!
//! The committed part (index, run table, touched pages) is a [`Replica`], equal to that of every parity which has
//! applied the same records. The allocator runs ahead of it: a slot is *pending* from [`DataStore::allocate`] until its
//! record is applied or cancelled. Nothing is ever freed but by an applied record, reclaiming included: the store
//! proposes, the protocol logs.
//!
//! The area of a stand-in that is rebuilding is a cache of what the parities encode: `surrender` takes extents back. Those of a
//! whole store go back when all of their runs are free, once they have been written with zeros: `vacate`.
//!
//! A write, from the protocol's side: `allocate`, encode the item, `delta`, log `allocation.assign` + the index operation; when
//! the record is committed: `apply_write`, then `apply_op` for each operation in order.

mod access;
mod config;
mod contents;
mod growth;
mod read;
mod reclaim;
mod room;
mod scrub;
mod slots;
mod stats;
mod surrender;
mod vacate;

pub use access::Access;
pub use config::{Allocation, Eviction, Shortage, StoreConfig};
pub use read::Found;
pub use reclaim::{CrawlCursor, Reclaim, Victim};
pub use stats::{ClassUse, Memory, Stats};
pub use vacate::Wipe;

use bytes::Bytes;
use types::{KeyHash, UnixSeconds};

use crate::alloc::{Allocator, SlotAt};
use crate::{Area, AreaError, Budget, Category, Charge, Item, OutOfMemory, PageSet, Replica};
use contents::{Contents, PAGES_PER_EXTENT, PAGES_PER_RUN};
use growth::Growth;
use reclaim::{Ground, Reclaimer};
use room::Room;
use slots::Slots;
use surrender::{Hand, runs_of};
use types::class::{SPAN_RUNS, class_in_one_run, runs_of_large, span_of};
use types::{Addr, EXTENT_BYTES, IndexOp, MAX_ITEM_BYTES, PAGE_BYTES, PageRange, RUN_BYTES, RunClass};

/// Why a replica could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// No address space.
    #[error(transparent)]
    Area(#[from] AreaError),
    /// The replica is of a longer area.
    #[error("the replica belongs to a longer area")]
    LongerArea,
    /// Index and run table contradict each other: two items in one slot, or an item where no slot is.
    #[error("the replica's index contradicts its run table")]
    Contradiction,
}

/// The memory of a data role at its primary.
#[derive(Debug)]
pub struct DataStore {
    eviction: Eviction,
    /// Bytes, index, and which pages are there.
    contents: Contents,
    /// Which slots are free, and who needs the others.
    slots: Slots,
    growth: Growth,
    reclaimer: Reclaimer,
    /// Which extent of a stand-in goes next when another one is needed more.
    hand: Hand,
    charge: Charge,
}

impl DataStore {
    /// An empty store.
    ///
    /// # Errors
    /// If there is no address space for the area.
    pub fn new(config: StoreConfig, budget: Budget) -> Result<Self, AreaError> {
        let area = Area::reserve(config.area_limit_bytes, budget.clone(), Category::Area)?;
        let replica = Replica::new(budget.clone());
        let allocator = Allocator::new(budget.clone());
        Ok(Self::assemble(config, budget, area, replica, allocator, PageSet::new()))
    }

    /// The store of a stand-in: touched pages are absent, all others are present and zero; slots that the index does not
    /// name are free. No extent is committed yet: [`Self::fill`] and [`Self::commit_extent`] do that.
    ///
    /// # Errors
    /// If there is no address space, or the replica cannot be that of this area.
    pub fn from_replica(config: StoreConfig, budget: Budget, replica: Replica) -> Result<Self, AdoptError> {
        let area = Area::reserve(config.area_limit_bytes, budget.clone(), Category::Area)?;
        let runs = area.limit_bytes() / RUN_BYTES;
        let pages = (area.limit_bytes() / PAGE_BYTES) as u32;
        if replica.classes().len() > runs || replica.touched().first_present(pages).is_some() {
            return Err(AdoptError::LongerArea);
        }
        let allocator = Allocator::from_replica(&replica, budget.clone()).ok_or(AdoptError::Contradiction)?;
        let absent = replica.touched().clone();
        Ok(Self::assemble(config, budget, area, replica, allocator, absent))
    }

    /// The store of a primary that was the role's mirror: every page is present. Extents without a touched page go back: the
    /// parities may not have reserved them.
    ///
    /// # Errors
    /// If the replica cannot be that of this area.
    pub fn from_mirror(
        config: StoreConfig,
        budget: Budget,
        mut area: Area,
        replica: Replica,
    ) -> Result<Self, AdoptError> {
        let allocator = Allocator::from_replica(&replica, budget.clone()).ok_or(AdoptError::Contradiction)?;
        area.recategorize(Category::Area);
        let mut store = Self::assemble(config, budget, area, replica, allocator, PageSet::new());
        let extents: Vec<u32> = store.extents().collect();
        for extent in extents {
            let touched = store.replica().touched().first_present(extent * PAGES_PER_EXTENT);
            let in_use = touched.is_some_and(|page| page < (extent + 1) * PAGES_PER_EXTENT);
            if in_use || !store.contents.area_mut().decommit(extent) {
                store.begin_extent(extent);
            }
        }
        store.recharge();
        Ok(store)
    }

    fn assemble(
        config: StoreConfig,
        budget: Budget,
        area: Area,
        replica: Replica,
        allocator: Allocator,
        absent: PageSet,
    ) -> Self {
        let mut store = Self {
            eviction: config.eviction,
            contents: Contents::new(config.cluster, area, replica, absent),
            slots: Slots::new(allocator),
            growth: Growth::new(),
            reclaimer: Reclaimer::default(),
            hand: Hand::default(),
            charge: Charge::empty(budget, Category::Index),
        };
        store.recharge();
        store
    }

    /// When all keys will be gone (`IndexOp::FlushAt`).
    #[must_use]
    pub fn flush_at(&self) -> Option<UnixSeconds> {
        self.contents.replica().flush_at()
    }

    /// The committed index, run table and touched pages: what the parities have, too.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        self.contents.replica()
    }

    /// A slot for an item of `len_bytes`. It stays handed out until its record is applied, or [`Self::cancel`].
    ///
    /// # Errors
    /// A [`Shortage`] that says what to do.
    pub fn allocate(&mut self, len_bytes: usize) -> Result<Allocation, Shortage> {
        if len_bytes > MAX_ITEM_BYTES || len_bytes > self.contents.area().limit_bytes() {
            return Err(Shortage::TooLarge);
        }
        if !self.slots.fit_into_index(&self.contents) {
            return Err(self.slots.nothing_free());
        }
        let class = self.contents.class_for(len_bytes);
        let slot = match class {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            _ if span_of(class) == SPAN_RUNS => self.take_in_span(class, len_bytes),
            _ => self.take_slot(class),
        };
        match slot {
            Some(slot) => Ok(self.slots.allocation(self.replica(), slot)),
            None => Err(self.shortage(class)),
        }
    }

    /// Gives back a slot that was allocated for an item of `len` bytes and never logged.
    pub fn cancel(&mut self, addr: Addr, len: usize) {
        debug_assert!(self.slots.allocator().slot_len(addr).is_some_and(|slot| len <= slot));
        self.slots.allocator_mut().free(addr, None);
    }

    /// Whether `extent` is committed here.
    #[must_use]
    pub fn extent_committed(&self, extent: u32) -> bool {
        self.contents.area().is_committed(extent)
    }

    /// Uses `extent` from now on; every parity must have reserved it.
    ///
    /// # Errors
    /// If this node has no memory for it; no further extent is asked for then until [`Self::allow_growth`].
    pub fn commit_extent(&mut self, extent: u32) -> Result<(), OutOfMemory> {
        let committed = self.contents.area_mut().commit(extent);
        match committed {
            Ok(()) => self.begin_extent(extent),
            Err(_) => self.growth.refuse(),
        }
        committed
    }

    fn begin_extent(&mut self, extent: u32) {
        self.slots.allocator_mut().activate(extent);
        if !self.contents.is_whole() && self.hand.spare(extent) {
            self.recharge();
        }
    }

    /// A parity has no memory for `extent`: no further one is asked for until [`Self::allow_growth`].
    pub fn refuse_extent(&mut self, extent: u32) {
        debug_assert!(!self.extent_committed(extent));
        self.growth.refuse();
    }

    /// Memory may have become free somewhere: extents may be asked for again.
    pub fn allow_growth(&mut self) {
        self.growth.allow();
    }

    /// The extents in use, ascending.
    pub fn extents(&self) -> impl Iterator<Item = u32> + '_ {
        self.contents.area().extents()
    }

    /// Looks `key` up in the committed state.
    #[must_use]
    #[inline]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Found<'_> {
        self.contents.find(self.slots.allocator(), hash, key)
    }

    /// Hints that `hash` will be looked up soon.
    pub fn prefetch(&self, hash: KeyHash) {
        self.replica().index().prefetch(hash.into());
    }

    /// The item in the slot at `addr`.
    ///
    /// # Panics
    /// If no item lies there, or not all of its pages are present: [`Self::find`] and [`Self::reclaim`] say when they are.
    #[must_use]
    pub fn item(&self, addr: Addr) -> Item<'_> {
        self.try_item(addr).expect("the caller knows that a present item lies there")
    }

    /// The item in the slot at `addr`; none if there is no slot, pages are absent, or the bytes are no item.
    #[must_use]
    pub fn try_item(&self, addr: Addr) -> Option<Item<'_>> {
        self.contents.read(self.slots.allocator(), addr).ok()
    }

    /// All items that can be read, in the order of the index.
    pub fn iter_items(&self) -> impl Iterator<Item = (Addr, Item<'_>)> {
        self.replica().index().iter().filter_map(|(_, addr)| Some((addr, self.try_item(addr)?)))
    }

    /// The `len` bytes at `addr`.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[must_use]
    pub fn bytes(&self, addr: Addr, len: usize) -> &[u8] {
        self.contents.bytes(addr, len)
    }

    /// The bytes of `pages`; zeros where nothing was ever written.
    ///
    /// # Panics
    /// If they span more than a run.
    #[must_use]
    pub fn page_bytes(&self, pages: PageRange) -> &[u8] {
        self.contents.page_bytes(pages)
    }

    /// `image` XOR the bytes that lie at `addr`.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[must_use]
    pub fn delta(&self, addr: Addr, image: Vec<u8>) -> Bytes {
        self.contents.delta(addr, image)
    }

    /// A committed write: XORs `delta` into the area.
    ///
    /// # Panics
    /// If the area does not cover it.
    pub fn apply_write(&mut self, addr: Addr, delta: &[u8]) {
        self.contents.apply_write(addr, delta);
        self.slots.note_expiry(&self.contents, addr);
    }

    /// A committed index operation, after the writes of its record: switches the index, frees old slots.
    pub fn apply_op(&mut self, op: &IndexOp) {
        let (slots, contents) = (&mut self.slots, &self.contents);
        match *op {
            IndexOp::Insert { addr, .. } => slots.commit(contents, addr),
            IndexOp::Replace { old, new, .. } if old != new => {
                slots.commit(contents, new);
                slots.inherit_access(old, new);
                slots.release(contents, old);
            }
            IndexOp::Remove { addr, .. } => slots.release(contents, addr),
            IndexOp::Clear => slots.allocator_mut().clear(),
            IndexOp::Assign { .. } | IndexOp::Replace { .. } | IndexOp::FlushAt(_) => {}
        }
        self.contents.replica_mut().apply(op);
    }

    /// The wall time, for what is stamped without a time of its own (items at commit). Never goes back.
    pub fn set_now(&mut self, now: UnixSeconds) {
        self.slots.set_now(now);
    }

    /// What is known of the reads of the item at `addr`.
    #[must_use]
    pub fn access(&self, addr: Addr) -> Access {
        self.slots.access(addr)
    }

    /// The item at `addr` was read: it is fetched, and further from eviction.
    #[inline]
    pub fn bump(&mut self, addr: Addr, now: UnixSeconds) {
        if !self.contents.is_whole() {
            self.hand.note_use(self.contents.area(), addr);
        }
        self.slots.bump(addr, now);
    }

    /// An uncommitted record refers to the item at `addr`: it is not handed out for reclaim. Pins count.
    pub fn pin(&mut self, addr: Addr) {
        if self.slots.pin(addr) {
            self.recharge();
        }
    }

    /// Takes one [`Self::pin`] back.
    pub fn unpin(&mut self, addr: Addr) {
        self.slots.unpin(addr);
    }

    /// Whether all of `pages` are present.
    #[must_use]
    pub fn pages_present(&self, pages: PageRange) -> bool {
        self.contents.has(pages)
    }

    /// The next pages from `from` on that must be repaired: at most 16, within one run.
    #[must_use]
    pub fn next_absent(&self, from: u32) -> Option<PageRange> {
        self.contents.next_absent(from)
    }

    /// How many pages must be repaired.
    #[must_use]
    pub fn absent_count(&self) -> u32 {
        self.contents.absent().count()
    }

    /// Stores what a repair brought and marks the pages present. Pages that are present already keep their bytes.
    ///
    /// # Errors
    /// If this node has no memory for them; no page has changed then. [`Self::surrender`] may help.
    ///
    /// # Panics
    /// If `bytes` is not as long as `pages`, or they lie outside of the area.
    pub fn fill(&mut self, pages: PageRange, bytes: &[u8]) -> Result<(), OutOfMemory> {
        assert_eq!(bytes.len(), pages.len_bytes(), "a page has {PAGE_BYTES} bytes");
        for page in pages.iter() {
            if self.contents.absent().contains(page) {
                // It was touched before, so that the parities have the extent.
                let extent = page / PAGES_PER_EXTENT;
                self.contents.area_mut().commit_for_repair(extent)?;
                self.begin_extent(extent);
            }
        }
        self.contents.fill(pages, bytes);
        let end = (pages.first + pages.count).div_ceil(PAGES_PER_RUN);
        (pages.first / PAGES_PER_RUN..end).for_each(|run| self.slots.refresh_run(&self.contents, run));
        Ok(())
    }

    /// Takes back the memory of one committed extent other than `keep`: its touched pages are absent again. The extent, or
    /// none if none can go now. Repair sessions over it must be forgotten. Only a store with absent pages gives anything up.
    pub fn surrender(&mut self, keep: u32) -> Option<u32> {
        if self.contents.is_whole() {
            return None;
        }
        // Two turns: the first may find only extents that it spares.
        for _ in 0..2 * self.contents.area().committed_bytes() / EXTENT_BYTES {
            let Some(extent) = self.hand.next(self.contents.area(), &self.slots, keep)? else { continue };
            if self.take_back(extent) {
                return Some(extent);
            }
        }
        None
    }

    fn take_back(&mut self, extent: u32) -> bool {
        if !self.contents.area_mut().decommit(extent) {
            return false;
        }
        self.reclaimer.release_window_over(&mut self.slots, runs_of(extent));
        self.slots.allocator_mut().deactivate(extent);
        self.contents.lose(extent);
        self.growth.note_free(extent);
        self.recharge();
        true
    }

    /// Makes room for an item of `len_bytes`, after `allocate` answered `Shortage::Reclaim`.
    pub fn reclaim(&mut self, len_bytes: usize, now: UnixSeconds) -> Reclaim {
        self.set_now(now);
        let Self { slots, contents, eviction, .. } = self;
        self.reclaimer.reclaim(&mut Ground { slots, contents, eviction: *eviction }, len_bytes, now)
    }

    /// The protocol did not remove or move this item after all.
    pub fn unreclaim(&mut self, addr: Addr) {
        self.slots.allocator_mut().unclaim(addr);
    }

    /// Goes on from `cursor` over at most `limit` runs, and hands out the expired items in them, at most 64. The next
    /// cursor is the beginning again after the last run.
    pub fn crawl(&mut self, cursor: CrawlCursor, limit: u32, now: UnixSeconds) -> (Vec<Victim>, CrawlCursor) {
        self.set_now(now);
        let Self { slots, contents, eviction, .. } = self;
        reclaim::crawl(&mut Ground { slots, contents, eviction: *eviction }, cursor, limit, now)
    }

    fn room(&self) -> Room<'_> {
        Room { contents: &self.contents, slots: &self.slots, eviction: self.eviction }
    }

    fn take_slot(&mut self, class: RunClass) -> Option<SlotAt> {
        let allocator = self.slots.allocator_mut();
        if self.contents.is_whole() {
            let slot = allocator.take(class);
            return slot.or_else(|| self.open_run(class)).or_else(|| self.take_held(class));
        }
        let slot = allocator.take_present(class, self.contents.absent());
        slot.or_else(|| self.open_run(class))
    }

    /// A slot in a span of several runs. Where nothing may be evicted for a span, single runs are better used than left.
    fn take_in_span(&mut self, class: RunClass, len_bytes: usize) -> Option<SlotAt> {
        let slot = self.slots.allocator_mut().take(class).or_else(|| {
            let first = match self.reclaimer.take_window(&mut self.slots, SPAN_RUNS, SPAN_RUNS) {
                Some(first) => first,
                None => self.slots.allocator().pool().first_aligned(SPAN_RUNS)?,
            };
            self.slots.allocator_mut().open(first, class)
        });
        if slot.is_some() || self.eviction == Eviction::Clock || self.next_extent().is_some() {
            return slot;
        }
        match class_in_one_run(len_bytes) {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            class => self.take_slot(class),
        }
    }

    /// Cuts a free run, whose pages are present, into slots of `class`.
    fn open_run(&mut self, class: RunClass) -> Option<SlotAt> {
        let run = self.room().free_run()?;
        self.slots.allocator_mut().open(run, class)
    }

    /// Where nothing may be evicted, a run that is held is better used than left.
    fn take_held(&mut self, class: RunClass) -> Option<SlotAt> {
        if self.eviction == Eviction::Clock
            || self.next_extent().is_some()
            || !self.reclaimer.release_hold_for(&mut self.slots, class)
        {
            return None;
        }
        self.slots.allocator_mut().take(class).or_else(|| self.open_run(class))
    }

    fn take_large(&mut self, span: u32) -> Option<SlotAt> {
        let first = match self.reclaimer.take_window(&mut self.slots, span, 1) {
            Some(first) => first,
            None => self.room().free_stretch(span)?,
        };
        self.slots.allocator_mut().open_large(first, span)
    }

    fn shortage(&mut self, class: RunClass) -> Shortage {
        // What waits for repair comes last: it holds little that is free, and a stand-in would have to ask for one such extent
        // after another.
        let (contents, budget) = (&self.contents, self.charge.budget());
        let unwritten = |extent| !contents.awaits_repair(extent);
        if let Some(extent) = self.growth.next_extent(contents.area(), budget, unwritten) {
            return Shortage::Extent(extent);
        }
        if let Some(pages) = self.room().absent(class) {
            return Shortage::Absent(pages);
        }
        if let Some(extent) = self.next_extent() {
            return Shortage::Extent(extent);
        }
        self.slots.nothing_free()
    }

    /// The lowest extent that is not committed, if the area may grow and the budget has room for one.
    fn next_extent(&mut self) -> Option<u32> {
        self.growth.next_extent(self.contents.area(), self.charge.budget(), |_| true)
    }

    fn recharge(&mut self) {
        let absent = self.contents.absent().memory_bytes();
        self.charge.set(absent + self.hand.memory_bytes() + self.slots.pins_memory_bytes());
    }
}
