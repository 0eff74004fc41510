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
mod check;
mod config;
mod contents;
mod growth;
mod read;
mod reclaim;
mod room;
mod scrub;
mod search;
mod slots;
mod stats;
mod surrender;
mod tenants;
mod vacate;
mod walk;

pub use access::Access;
pub use config::{Allocation, Eviction, Shortage, StoreConfig};
pub use growth::Growth;
pub use read::Found;
pub use reclaim::{CrawlCursor, Reclaim, Reclaiming, Victim};
pub use stats::{ClassUse, Memory, Stats};
pub use tenants::Tenants;
pub use vacate::{Vacating, Wipe};
pub use walk::Step;

use bytes::Bytes;
use types::class::{class_in_one_run, runs_of_large, slot_bytes};
use types::{Cohort, IndexHash, KeyHash, NamespaceId, RunClass, UnixSeconds};

use crate::alloc::Allocator;
use crate::{Area, AreaError, Budget, Category, Charge, CohortUse, Item, OutOfMemory, PageSet, Replica};
use contents::{Contents, PAGES_PER_EXTENT, PAGES_PER_RUN};
use reclaim::{Ground, Reclaimer};
use search::Search;
use slots::Slots;
use surrender::{Hand, runs_of};
use types::{Addr, EXTENT_BYTES, IndexOp, PAGE_BYTES, PageRange, RUN_BYTES, Reach};

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
    tenants: Tenants,
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
        // Until now it was paid for as a parity's.
        area.recategorize(Category::Area);
        let mut store = Self::assemble(config, budget, area, replica, allocator, PageSet::new());
        let extents: Vec<u32> = store.area().extents().collect();
        for extent in extents {
            match store.contents.used_reach(extent) {
                Some(reach) => store.keep_mirrored(reach)?,
                // What the system does not take back may as well be used.
                None if !store.contents.area_mut().decommit(extent) => {
                    store.begin_extent(Reach::whole(extent))
                }
                None => {}
            }
        }
        store.recharge();
        Ok(store)
    }

    /// Of the first extent the parities may have reserved less than the mirror; they have all that is in use.
    fn keep_mirrored(&mut self, reach: Reach) -> Result<(), AdoptError> {
        let area = self.contents.area_mut();
        // A mirror has what its primary had, this is for one that was taught something else.
        area.commit_for_repair(reach).map_err(|_| AdoptError::Contradiction)?;
        area.cut(reach);
        self.begin_extent(reach);
        Ok(())
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
            tenants: Tenants::alike(config.eviction),
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

    /// The committed index, run table and touched pages: what the parities have, too.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        self.contents.replica()
    }

    /// The extents, and the bytes in them. Of what is absent nobody knows the bytes: [`Self::page_bytes`].
    #[must_use]
    pub fn area(&self) -> &Area {
        self.contents.area()
    }

    /// A slot for an item of `len_bytes`. It stays handed out until its record is applied, or [`Self::cancel`].
    ///
    /// # Errors
    /// A [`Shortage`] that says what to do.
    pub fn allocate(&mut self, len_bytes: usize) -> Result<Allocation, Shortage> {
        let found = self.search().slot_for(len_bytes);
        self.check_sums();
        found
    }

    /// Gives back a slot that was allocated for an item of `len` bytes and never logged.
    pub fn cancel(&mut self, addr: Addr, len: usize) {
        debug_assert!(self.slots.allocator().slot_len(addr).is_some_and(|slot| len <= slot));
        self.slots.allocator_mut().free(addr, None);
        self.check_sums();
    }

    /// Uses an extent so far from now on; every parity must have reserved it.
    ///
    /// # Errors
    /// If this node has no memory for it; no further extent is asked for then until [`Growth::allow`].
    pub fn commit_extent(&mut self, reach: Reach) -> Result<(), OutOfMemory> {
        // At a stand-in runs may be in use beyond it, which every parity has, too: they come along, for the allocator knows them.
        let reach = self.contents.used_reach(reach.extent()).map_or(reach, |used| reach.max(used));
        let committed = self.contents.area_mut().commit(reach);
        match committed {
            Ok(()) => self.begin_extent(reach),
            Err(_) => self.growth.refuse(),
        }
        self.check_sums();
        committed
    }

    fn begin_extent(&mut self, reach: Reach) {
        self.slots.allocator_mut().activate(reach);
        if !self.contents.is_whole() && self.hand.spare(reach.extent()) {
            self.recharge();
        }
    }

    /// Whether further extents are asked for.
    pub fn growth(&mut self) -> &mut Growth {
        &mut self.growth
    }

    /// Looks `key` up in the committed state.
    #[must_use]
    #[inline]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Found<'_> {
        self.contents.find(self.slots.allocator(), hash, key)
    }

    /// Looks for an item of which no more is known than the hash of its key, flushed or not.
    #[must_use]
    pub fn find_by_hash(&self, hash: KeyHash, is_it: impl Fn(Item<'_>) -> bool) -> Found<'_> {
        self.contents.find_by_hash(self.slots.allocator(), hash, is_it)
    }

    /// The item in the slot at `addr`.
    ///
    /// # Panics
    /// If no item lies there, or not all of its pages are present: [`Self::find`] and [`Reclaiming`] say when they are.
    #[must_use]
    pub fn item(&self, addr: Addr) -> Item<'_> {
        let item = self.contents.read(self.slots.allocator(), addr);
        item.ok().expect("the caller knows that a present item lies there")
    }

    /// All items that can be read, in the order of the index.
    pub fn iter_items(&self) -> impl Iterator<Item = (Addr, Item<'_>)> {
        let read = |addr| self.contents.read(self.slots.allocator(), addr).ok();
        self.replica().index().iter().filter_map(move |(_, addr)| Some((addr, read(addr)?)))
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
        self.check_sums();
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
            IndexOp::Flush { namespace } => self.flush(namespace),
            IndexOp::Assign { .. }
            | IndexOp::Replace { .. }
            | IndexOp::FlushAt { .. }
            | IndexOp::SessionBegins { .. }
            | IndexOp::SessionEnds { .. }
            | IndexOp::WriteDone { .. }
            | IndexOp::WriteCounted { .. } => {}
        }
        self.note_garbage(op);
        self.contents.replica_mut().apply(op);
        self.check_sums();
    }

    /// What was on its way when nobody would ask for it any more comes into a run that may have been looked at already.
    #[inline]
    fn note_garbage(&mut self, op: &IndexOp) {
        let (IndexOp::Insert { addr, cohort, .. } | IndexOp::Replace { new: addr, cohort, .. }) = *op else {
            return;
        };
        if self.tenants.is_garbage(self.contents.replica().cohorts(), cohort) {
            self.slots.allocator_mut().look_at(addr);
        }
    }

    /// A flush is about to be applied: nobody needs the slots any more, or there is something to look for in every run.
    fn flush(&mut self, namespace: NamespaceId) {
        let others = |(cohort, _): (Cohort, CohortUse)| cohort.namespace() != namespace;
        if self.replica().cohorts().uses().any(others) {
            self.slots.allocator_mut().look_everywhere();
        } else {
            self.slots.allocator_mut().clear();
        }
    }

    /// The cohort of what `namespace` writes now.
    #[must_use]
    #[inline]
    pub fn present_cohort(&self, namespace: NamespaceId) -> Cohort {
        self.replica().cohorts().present(namespace)
    }

    /// What holds for the items of which namespace from now on.
    pub fn set_tenants(&mut self, tenants: Tenants) {
        self.tenants = tenants;
        if self.has_garbage() {
            self.slots.allocator_mut().look_everywhere();
        }
    }

    /// What holds for the items of which namespace.
    #[must_use]
    pub fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// Whether items are here that nobody will ask for any more: of namespaces that are gone, or that were flushed.
    #[must_use]
    pub fn has_garbage(&self) -> bool {
        self.tenants.has_garbage(self.replica().cohorts())
    }

    /// Whether the item at `addr`, all of which must be present, has not been flushed.
    #[must_use]
    pub fn is_present(&self, addr: Addr) -> bool {
        self.contents.is_present(&self.item(addr))
    }

    /// Bytes of the slot that an item of `len_bytes` takes at most.
    #[must_use]
    pub fn slot_bytes_for(&self, len_bytes: usize) -> usize {
        let bytes = |class| match class {
            RunClass::LARGE => runs_of_large(len_bytes) as usize * RUN_BYTES,
            class => slot_bytes(class),
        };
        // Where there is no span for the first one, whole runs will do.
        bytes(self.contents.class_for(len_bytes)).max(bytes(class_in_one_run(len_bytes)))
    }

    /// Bytes of the slot at `addr`.
    #[must_use]
    pub fn slot_bytes_at(&self, addr: Addr) -> usize {
        self.slots.allocator().slot_len(addr).unwrap_or(0)
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

    /// What the area takes once all pages are here, in bytes: whole extents, of which every page in use needs one.
    #[must_use]
    pub fn whole_bytes(&self) -> u64 {
        let touched = self.contents.replica().touched();
        let next = |from: u32| touched.first_present(from).map(|page| page / PAGES_PER_EXTENT);
        let extents = std::iter::successors(next(0), |extent| next((extent + 1) * PAGES_PER_EXTENT));
        extents.count() as u64 * EXTENT_BYTES as u64
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
                // It was touched before, so that the parities have the extent so far as it was used.
                let used = self.contents.used_reach(page / PAGES_PER_EXTENT);
                let reach = used.expect("a page that is absent was touched");
                self.contents.area_mut().commit_for_repair(reach)?;
                self.begin_extent(reach);
            }
        }
        self.contents.fill(pages, bytes);
        let end = (pages.first + pages.count).div_ceil(PAGES_PER_RUN);
        (pages.first / PAGES_PER_RUN..end).for_each(|run| self.slots.refresh_run(&self.contents, run));
        self.check_sums();
        Ok(())
    }

    /// Takes back the memory of one committed extent other than `keep`: its touched pages are absent again. The extent, or
    /// none if none can go now. Repair sessions over it must be forgotten. Only a store with absent pages gives anything up.
    pub fn surrender(&mut self, keep: u32) -> Option<u32> {
        if self.contents.is_whole() {
            return None;
        }
        // Two turns: the first may find only extents that it spares.
        for _ in 0..2 * self.contents.area().extents().count() {
            let Some(extent) = self.hand.next(self.contents.area(), &self.slots, keep)? else { continue };
            if self.take_back(extent) {
                return Some(extent);
            }
        }
        None
    }

    fn take_back(&mut self, extent: u32) -> bool {
        // First what may fail: nothing else has changed then.
        if !self.contents.area_mut().decommit(extent) {
            return false;
        }
        self.reclaimer.release_window_over(&mut self.slots, runs_of(extent));
        self.slots.allocator_mut().deactivate(extent);
        self.contents.lose(extent);
        self.growth.note_free(extent);
        self.recharge();
        self.check_sums();
        true
    }

    /// Makes room for items, and finds those that have expired.
    pub fn reclaiming(&mut self) -> Reclaiming<'_> {
        let Self { tenants, contents, slots, reclaimer, .. } = self;
        let eviction = tenants.eviction();
        let has_garbage = tenants.has_garbage(contents.replica().cohorts());
        Reclaiming::new(reclaimer, Ground { slots, contents, tenants, eviction, has_garbage })
    }

    fn search(&mut self) -> Search<'_> {
        let Self { tenants, contents, slots, growth, reclaimer, charge, .. } = self;
        let eviction = tenants.eviction();
        Search { slots, contents, growth, reclaimer, budget: charge.budget(), eviction }
    }

    fn recharge(&mut self) {
        self.charge.set(self.other_bytes());
    }

    fn other_bytes(&self) -> usize {
        let absent = self.contents.absent().memory_bytes();
        absent + self.hand.memory_bytes() + self.slots.pins_memory_bytes()
    }

    /// The hash of a key of this cluster.
    #[must_use]
    pub fn hash_of(&self, key: &[u8]) -> types::KeyHash {
        types::KeyHash::of(self.contents.cluster(), key)
    }

    /// The first items from `from` on. Looks at those of one hash, and never at more of the index than lies between two entries.
    #[must_use]
    pub fn step(&self, from: IndexHash) -> Step<'_> {
        self.contents.step(self.slots.allocator(), from)
    }
}
