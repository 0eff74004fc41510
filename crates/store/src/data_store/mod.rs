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
mod presence;
mod read;
mod reclaim;
mod scrub;
mod stats;
mod surrender;
mod vacate;

pub use access::Access;
pub use read::Found;
pub use reclaim::{CrawlCursor, Reclaim, Victim};
pub use stats::{ClassUse, Memory, Stats};
pub use vacate::Wipe;

use bytes::Bytes;
use cluster::{ClusterId, FastMap, UnixSeconds};
use smallvec::SmallVec;

use crate::alloc::{Allocator, SlotAt};
use crate::class::{SPAN_RUNS, class_in_one_run, class_of, runs_of_large, span_of};
use crate::{
    Addr, Area, AreaError, Budget, Category, Charge, EXTENT_BYTES, IndexOp, MAX_ITEM_BYTES, OutOfMemory,
    PAGE_BYTES, PageRange, PageSet, RUN_BYTES, Replica, RunClass,
};
use reclaim::Reclaimer;
use surrender::Hand;

/// How a data role is set up.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The cluster: seed of the key hash, with which victims are named.
    pub cluster: ClusterId,
    /// Length of the area: at most this much is ever used. Rounded up to whole extents.
    pub area_limit_bytes: usize,
    /// What happens when the area or the budget is full.
    pub eviction: Eviction,
}

/// What gives way to new items when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Items that were not read lately (a cache).
    Clock,
    /// Nothing but expired items (a store).
    None,
}

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

/// A slot for a new item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where.
    pub addr: Addr,
    /// To be logged in the same record, before the index operation. Repeated until one of them has been applied.
    pub assign: SmallVec<[IndexOp; 1]>,
}

/// Why there is no slot right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// This extent is needed: have it reserved at the parities, then [`DataStore::commit_extent`], then try again.
    Extent(u32),
    /// Something must give way: call [`DataStore::reclaim`].
    Reclaim,
    /// Free slots lie on absent pages only: repair these, then try again.
    Absent(PageRange),
    /// There is no room, and nothing that could give way.
    Full,
    /// No slot will ever be long enough.
    TooLarge,
}

/// The memory of a data role at its primary.
#[derive(Debug)]
pub struct DataStore {
    config: StoreConfig,
    area: Area,
    replica: Replica,
    allocator: Allocator,
    /// Pages of a stand-in that were written before its time and are not repaired yet.
    absent: PageSet,
    /// Which extent goes next when another one is needed more.
    hand: Hand,
    growth: Growth,
    reclaimer: Reclaimer,
    /// Slots that uncommitted records refer to, with the number of such records.
    pins: FastMap<Addr, u32>,
    newest: UnixSeconds,
    charge: Charge,
}

/// Whether further extents may be asked for, and from where on.
/// Shortest area in which items may lie in spans of several runs.
const MIN_SPANNED_AREA_BYTES: usize = 16 * EXTENT_BYTES;

#[derive(Clone, Copy, Debug)]
struct Growth {
    open: bool,
    next: u32,
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
            let pages = (EXTENT_BYTES / PAGE_BYTES) as u32;
            let touched = store.replica.touched().first_present(extent * pages);
            if touched.is_some_and(|page| page < (extent + 1) * pages) || !store.area.decommit(extent) {
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
            config,
            area,
            replica,
            allocator,
            absent,
            hand: Hand::default(),
            growth: Growth { open: true, next: 0 },
            reclaimer: Reclaimer::default(),
            pins: FastMap::default(),
            newest: UnixSeconds(0),
            charge: Charge::empty(budget, Category::Index),
        };
        store.recharge();
        store
    }

    /// When all keys will be gone (`IndexOp::FlushAt`).
    #[must_use]
    pub fn flush_at(&self) -> Option<UnixSeconds> {
        self.replica.flush_at()
    }

    /// The committed index, run table and touched pages: what the parities have, too.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// A slot for an item of `len_bytes`. It stays handed out until its record is applied, or [`Self::cancel`].
    ///
    /// # Errors
    /// A [`Shortage`] that says what to do.
    pub fn allocate(&mut self, len_bytes: usize) -> Result<Allocation, Shortage> {
        if len_bytes > MAX_ITEM_BYTES || len_bytes > self.area.limit_bytes() {
            return Err(Shortage::TooLarge);
        }
        if !self.index_has_room() {
            return Err(self.nothing_free());
        }
        let class = self.class_for(len_bytes);
        let slot = match class {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            _ if span_of(class) == SPAN_RUNS => self.take_in_span(class, len_bytes),
            _ => self.take_slot(class),
        };
        match slot {
            Some(slot) => Ok(self.allocation(slot)),
            None => Err(self.shortage(class)),
        }
    }

    /// The class in which an item of `len_bytes` should lie. In a short area a span of several runs for each size would leave
    /// too little for the others; at a stand-in, pages of eight runs would have to be repaired for one item.
    fn class_for(&self, len_bytes: usize) -> RunClass {
        if self.area.limit_bytes() >= MIN_SPANNED_AREA_BYTES && self.absent.is_empty() {
            class_of(len_bytes)
        } else {
            class_in_one_run(len_bytes)
        }
    }

    /// Gives back a slot that was allocated for an item of `len` bytes and never logged.
    pub fn cancel(&mut self, addr: Addr, len: usize) {
        debug_assert!(self.allocator.slot_len(addr).is_some_and(|slot| len <= slot));
        self.allocator.free(addr, None);
    }

    /// Whether `extent` is committed here.
    #[must_use]
    pub fn extent_committed(&self, extent: u32) -> bool {
        self.area.is_committed(extent)
    }

    /// Uses `extent` from now on; every parity must have reserved it.
    ///
    /// # Errors
    /// If this node has no memory for it; no further extent is asked for then until [`Self::allow_growth`].
    pub fn commit_extent(&mut self, extent: u32) -> Result<(), OutOfMemory> {
        let committed = self.area.commit(extent);
        match committed {
            Ok(()) => self.begin_extent(extent),
            Err(_) => self.growth.open = false,
        }
        committed
    }

    /// As [`Self::commit_extent`], for pages that were touched before, so that the parities have the extent.
    fn commit_for_repair(&mut self, extent: u32) -> Result<(), OutOfMemory> {
        self.area.commit_for_repair(extent)?;
        self.begin_extent(extent);
        Ok(())
    }

    fn begin_extent(&mut self, extent: u32) {
        self.allocator.activate(extent);
        self.spare_extent(extent);
    }

    /// A parity has no memory for `extent`: no further one is asked for until [`Self::allow_growth`].
    pub fn refuse_extent(&mut self, extent: u32) {
        debug_assert!(!self.area.is_committed(extent));
        self.growth.open = false;
    }

    /// Memory may have become free somewhere: extents may be asked for again.
    pub fn allow_growth(&mut self) {
        self.growth.open = true;
    }

    /// The extents in use, ascending.
    pub fn extents(&self) -> impl Iterator<Item = u32> + '_ {
        self.area.extents()
    }

    /// The `len` bytes at `addr`.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[must_use]
    pub fn bytes(&self, addr: Addr, len: usize) -> &[u8] {
        debug_assert!(self.pages_present(PageRange::covering(addr.byte(), len)));
        self.area.bytes(addr.byte(), len)
    }

    /// `image` XOR the bytes that lie at `addr`.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[must_use]
    pub fn delta(&self, addr: Addr, mut image: Vec<u8>) -> Bytes {
        let lying = self.bytes(addr, image.len());
        for (new, old) in image.iter_mut().zip(lying) {
            *new ^= old;
        }
        image.into()
    }

    /// A committed write: XORs `delta` into the area.
    ///
    /// # Panics
    /// If the area does not cover it.
    pub fn apply_write(&mut self, addr: Addr, delta: &[u8]) {
        debug_assert!(self.pages_present(PageRange::covering(addr.byte(), delta.len())));
        self.area.xor(addr.byte(), delta);
        self.replica.touch(addr, delta.len());
        self.note_expiry(addr);
    }

    /// A committed index operation, after the writes of its record: switches the index, frees old slots.
    pub fn apply_op(&mut self, op: &IndexOp) {
        match *op {
            IndexOp::Insert { addr, .. } => self.settle(addr),
            IndexOp::Replace { old, new, .. } if old != new => {
                self.settle(new);
                self.inherit_access(old, new);
                self.release(old);
            }
            IndexOp::Remove { addr, .. } => self.release(addr),
            IndexOp::Clear => self.allocator.clear(),
            IndexOp::Assign { .. } | IndexOp::Replace { .. } | IndexOp::FlushAt(_) => {}
        }
        self.replica.apply(op);
    }

    fn take_slot(&mut self, class: RunClass) -> Option<SlotAt> {
        if self.absent.is_empty() {
            let slot = self.allocator.take(class);
            return slot.or_else(|| self.open_run(class)).or_else(|| self.take_held(class));
        }
        let slot = self.allocator.take_present(class, &self.absent);
        slot.or_else(|| self.open_run(class))
    }

    /// A slot in a span of several runs. Where nothing may be evicted for a span, single runs are better used than left.
    fn take_in_span(&mut self, class: RunClass, len_bytes: usize) -> Option<SlotAt> {
        let slot = self.allocator.take(class).or_else(|| {
            let first = match self.take_window(SPAN_RUNS, SPAN_RUNS) {
                Some(first) => first,
                None => self.allocator.pool().first_aligned(SPAN_RUNS)?,
            };
            self.allocator.open(first, class)
        });
        if slot.is_some()
            || self.config.eviction == Eviction::Clock
            || self.next_extent(|_, _| true).is_some()
        {
            return slot;
        }
        match class_in_one_run(len_bytes) {
            RunClass::LARGE => self.take_large(runs_of_large(len_bytes)),
            class => self.take_slot(class),
        }
    }

    /// Cuts a free run, whose pages are present, into slots of `class`.
    fn open_run(&mut self, class: RunClass) -> Option<SlotAt> {
        let run = self.present_free_run()?;
        self.allocator.open(run, class)
    }

    /// Where nothing may be evicted, a run that is held is better used than left.
    fn take_held(&mut self, class: RunClass) -> Option<SlotAt> {
        if self.config.eviction == Eviction::Clock
            || self.next_extent(|_, _| true).is_some()
            || !self.release_hold_for(class)
        {
            return None;
        }
        self.allocator.take(class).or_else(|| self.open_run(class))
    }

    fn take_large(&mut self, span: u32) -> Option<SlotAt> {
        let first = match self.take_window(span, 1) {
            Some(first) => first,
            None => self.free_stretch(span)?,
        };
        self.allocator.open_large(first, span)
    }

    /// The operations that tell the replicas about the runs of the slot's span, unless they know.
    fn allocation(&self, slot: SlotAt) -> Allocation {
        let runs = &self.allocator.runs()[slot.run as usize..];
        let span = runs.iter().take(usize::from(runs[0].span));
        let classes = (slot.run..).zip(span.map(|run| run.class));
        // The runs of a large item may be on their way to being free.
        let large = runs[0].class == RunClass::LARGE;
        let news = classes.filter(|(run, class)| large || self.replica.class(*run) != *class);
        let assign = news.map(|(run, class)| IndexOp::Assign { run, class }).collect();
        Allocation { addr: self.allocator.addr(slot), assign }
    }

    fn shortage(&mut self, class: RunClass) -> Shortage {
        if let Some(extent) = self.next_extent(|store, extent| !store.awaits_repair(extent)) {
            return Shortage::Extent(extent);
        }
        if let Some(pages) = self.absent_room(class) {
            return Shortage::Absent(pages);
        }
        if let Some(extent) = self.next_extent(|_, _| true) {
            return Shortage::Extent(extent);
        }
        self.nothing_free()
    }

    fn nothing_free(&self) -> Shortage {
        let totals = self.allocator.totals();
        if totals.live == 0 && totals.pending == 0 { Shortage::Full } else { Shortage::Reclaim }
    }

    /// The lowest extent that is not committed and `suits`, if the area may grow and the budget has room for one. What waits for
    /// repair comes last: it holds little that is free, and a stand-in would have to ask for one such extent after another.
    fn next_extent(&mut self, suits: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        if !self.growth.open || !self.charge.budget().has_room_for_extent(EXTENT_BYTES) {
            return None;
        }
        let end = (self.area.limit_bytes() / EXTENT_BYTES) as u32;
        while self.growth.next < end && self.area.is_committed(self.growth.next) {
            self.growth.next += 1;
        }
        (self.growth.next..end).find(|extent| !self.area.is_committed(*extent) && suits(self, *extent))
    }

    /// Every slot that is handed out may become an entry.
    fn index_has_room(&self) -> bool {
        self.replica.index().has_room(self.allocator.totals().pending + 1)
    }

    /// The item at `addr` is committed.
    fn settle(&mut self, addr: Addr) {
        let header = self.header(addr);
        let (len, expiry) = header.map_or((0, 0), |header| (header.len_bytes(), header.expiry));
        let len = len.min(self.allocator.slot_len(addr).unwrap_or(0));
        self.allocator.commit(addr, len, expiry, self.newest);
    }

    /// A header in place may bring an item's expiry nearer.
    fn note_expiry(&mut self, addr: Addr) {
        if self.allocator.slot(addr).is_some_and(|slot| slot.is_live())
            && let Some(header) = self.header(addr)
        {
            self.allocator.note_expiry(addr, header.expiry);
        }
    }

    fn release(&mut self, addr: Addr) {
        let slot_len = self.allocator.slot_len(addr).unwrap_or(0);
        let len = self.header(addr).map(|header| header.len_bytes().min(slot_len));
        self.allocator.free(addr, len);
    }

    fn recharge(&mut self) {
        let pins = self.pins.capacity() * (size_of::<(Addr, u32)>() + 1);
        self.charge.set(self.absent.memory_bytes() + self.hand.memory_bytes() + pins);
    }
}
