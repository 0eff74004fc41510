//! The hard cap on what a node keeps in memory, shared by all its workers.
//!
//! Every byte that grows with data is charged here before it is touched. Two ways to pay: [`Budget::try_reserve`] may
//! refuse; [`Budget::charge`] may not, and can take the total over the limit. Only indexes, run tables, slot words and
//! the headers of chunks use the second one, because a committed record must never fail to apply, nor a chunk that is there. What bounds this overdraft:
//!
//! - at a primary, `DataStore::allocate` hands out no slot for a further item once the limit is reached, so
//!   the index stays within the growth that random unevenness of its segments causes (about a tenth of itself);
//! - at a parity, a replica has as many entries as the index of its primary, which is bounded by the primary's budget
//!   and by the extents that this very node has granted: at most 12 bytes for each 48 of them, with items of
//!   100 bytes 6 %;
//! - at a chunk store, each header stands for a chunk of at least one page, which is paid from the same budget by extents:
//!   at most 7 %, with chunks of 1 MiB 0.03 %;
//! - extents leave one part in [`HEADROOM_SHARE`] of the limit to all that, and none is granted while the rest is used.
//!
//! What nobody uses and is kept all the same (`idle`) is no use, and goes where it would take the sum over the limit.
//!
//! One kind of extent may use the headroom: the first few of a stand-in ([`Budget::try_reserve_for_repair`]), without which
//! a full node could serve nothing of a role that it took over.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use types::EXTENT_BYTES;

use crate::idle::{Idle, Keeper};

/// One part in this many of the limit is never given to extents: indexes, logs and buffers grow after them.
pub const HEADROOM_SHARE: u64 = 32;

/// What is only of possible use goes when less than one part in this many of the limit is free.
pub const SPARE_SHARE: u64 = 16;

/// Of the limit, one part in this many is chunks' if they need it, and the rest areas': where all of it is used items make way for chunks
/// until those have so much, and chunks make way for chunks beyond.
pub const CHUNK_SHARE: u64 = 4;

/// What stand-ins leave of the headroom, at most: the parities of the same node need room for the sessions of others.
const SESSION_ROOM_BYTES: u64 = 1 << 20;

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Extents of data areas.
    Area,
    /// Extents of parity areas.
    Parity,
    /// Indexes, run tables, access words, headers of chunks.
    Index,
    /// Records that are not yet committed everywhere.
    Log,
    /// Connections and messages.
    Buffers,
    /// Repair sessions.
    Repair,
    /// Extents of chunks of large values.
    Chunks,
}

impl Category {
    /// All of them, in declaration order.
    pub const ALL: [Self; 7] =
        [Self::Area, Self::Parity, Self::Index, Self::Log, Self::Buffers, Self::Repair, Self::Chunks];

    /// The name that metrics use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Parity => "parity",
            Self::Index => "index",
            Self::Log => "log",
            Self::Buffers => "buffers",
            Self::Repair => "repair",
            Self::Chunks => "chunks",
        }
    }
}

/// The limit would be passed, or the system has no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {wanted} bytes for {} do not fit into a limit of {limit} of which {used} are used", category.name())]
pub struct OutOfMemory {
    /// What it was for.
    pub category: Category,
    /// Bytes that were asked for.
    pub wanted: u64,
    /// Bytes in use by all categories.
    pub used: u64,
    /// The limit in bytes.
    pub limit: u64,
}

/// A memory limit. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    total: AtomicU64,
    used: [AtomicU64; Category::ALL.len()],
    /// For how many pools of chunks items make way.
    claims: AtomicUsize,
    /// Of the limit, what growth leaves to members that are to come.
    kept: AtomicU64,
    idle: Idle,
}

impl Budget {
    /// Nothing is used of `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        let (total, used, kept) = (AtomicU64::new(0), Default::default(), AtomicU64::new(0));
        let (claims, idle) = (AtomicUsize::new(0), Idle::default());
        Self(Arc::new(Inner { limit: limit_bytes, total, used, claims, kept, idle }))
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// If that would pass the limit; nothing is taken then.
    pub fn try_reserve(&self, category: Category, bytes: usize) -> Result<(), OutOfMemory> {
        self.reserve_below(self.0.limit, category, bytes as u64)
    }

    /// As [`Self::try_reserve`], for extents of areas: one part in [`HEADROOM_SHARE`] of the limit stays out of reach, and what chunks
    /// lack of their share ([`CHUNK_SHARE`]) while items make way for them.
    ///
    /// # Errors
    /// If that would eat into what is left out; nothing is taken then.
    pub fn try_reserve_extent(&self, category: Category, bytes: usize) -> Result<(), OutOfMemory> {
        self.reserve_below(self.area_limit(), category, bytes as u64)
    }

    /// As [`Self::try_reserve`], for what a stand-in cannot do without: all of the headroom but a little for sessions.
    ///
    /// # Errors
    /// If that would pass the limit; nothing is taken then.
    pub fn try_reserve_for_repair(&self, category: Category, bytes: usize) -> Result<(), OutOfMemory> {
        self.reserve_below(self.repair_limit(), category, bytes as u64)
    }

    /// Whether [`Self::try_reserve_for_repair`] would give `bytes` now.
    #[must_use]
    pub fn has_room_for_repair(&self, bytes: usize) -> bool {
        self.total_used().saturating_add(bytes as u64) <= self.repair_limit()
    }

    /// Whether [`Self::try_reserve_extent`] would give `bytes` now.
    #[must_use]
    pub fn has_room_for_extent(&self, bytes: usize) -> bool {
        self.total_used().saturating_add(bytes as u64) <= self.area_limit()
    }

    /// From now on what clients write leaves `bytes` to members that are to come here, which find the room of these taken else.
    pub fn keep_for_members(&self, bytes: u64) {
        self.0.kept.store(bytes, Ordering::Relaxed);
    }

    /// Whether `bytes` may be taken for extents of what clients write: [`Self::try_reserve_extent`] would give them, and what is kept for members that
    /// are to come is left.
    #[must_use]
    pub fn has_room_to_grow(&self, bytes: usize) -> bool {
        self.total_used().saturating_add(bytes as u64) <= self.area_limit().saturating_sub(self.kept())
    }

    /// Whether members are to come, and what is kept for them is not free.
    #[must_use]
    pub fn lacks_what_it_keeps(&self) -> bool {
        self.kept() > 0 && !self.has_room_to_grow(0)
    }

    /// Bytes of the limit that are kept for members that are to come.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.0.kept.load(Ordering::Relaxed)
    }

    /// As [`Self::try_reserve`], for extents of chunks: one part in `SPARE_SHARE` of the limit is left to areas, so that items,
    /// descriptors among them, find room whatever long values there are; unless items make way for chunks that have not their share.
    ///
    /// # Errors
    /// If that would eat into the headroom or into what is left to areas; nothing is taken then.
    pub fn try_reserve_for_chunks(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let is_claimed = bytes as u64 <= self.claimed();
        let limit = if is_claimed { self.extent_limit() } else { self.chunk_limit() };
        self.reserve_below(limit, Category::Chunks, bytes as u64)
    }

    /// Bytes that [`Self::try_reserve_for_chunks`] would still give.
    #[must_use]
    pub fn room_for_chunks(&self) -> u64 {
        let used = self.total_used();
        let of_share = self.claimed().min(self.extent_limit().saturating_sub(used));
        self.chunk_limit().saturating_sub(used).max(of_share)
    }

    /// What chunks may still take before they have their share.
    #[must_use]
    pub fn chunks_lack(&self) -> u64 {
        (self.0.limit / CHUNK_SHARE).saturating_sub(self.used(Category::Chunks))
    }

    /// Items make way for a pool of chunks: until [`Self::end_claim`] areas do not grow into the share of chunks.
    pub(crate) fn begin_claim(&self) {
        self.0.claims.fetch_add(1, Ordering::Relaxed);
    }

    /// They need not any more.
    pub(crate) fn end_claim(&self) {
        self.0.claims.fetch_sub(1, Ordering::Relaxed);
    }

    /// Most bytes of chunks that there can ever be.
    #[must_use]
    pub fn chunk_limit(&self) -> u64 {
        self.extent_limit().saturating_sub(self.spare())
    }

    /// The least limit at which extents of so many bytes are possible, where some of them are chunks' or none.
    #[must_use]
    pub fn least_limit(bytes: u64, has_chunks: bool) -> u64 {
        // Parts of HEADROOM_SHARE that are left out; and of a small limit chunks leave two extents.
        let left = if has_chunks { 1 + HEADROOM_SHARE / SPARE_SHARE } else { 1 };
        let whole = u128::from(HEADROOM_SHARE);
        let limit = (u128::from(bytes) * whole).div_ceil(whole - u128::from(left));
        let least = if has_chunks { bytes.saturating_add(4 * EXTENT_BYTES as u64) } else { 0 };
        u64::try_from(limit).unwrap_or(u64::MAX).max(least)
    }

    /// Whether there is room for what is kept only in case that it is of use: one part in `SPARE_SHARE` stays free of it.
    #[must_use]
    pub fn has_room_to_spare(&self) -> bool {
        self.total_used().saturating_add(self.spare()) <= self.extent_limit()
    }

    /// Whether [`Self::try_reserve`] would give `bytes` now.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.total_used().saturating_add(bytes as u64) <= self.0.limit
    }

    /// Takes `bytes` even if that passes the limit. For what must not fail and has its own bound.
    pub fn charge(&self, category: Category, bytes: usize) {
        self.0.total.fetch_add(bytes as u64, Ordering::Relaxed);
        self.0.used[category as usize].fetch_add(bytes as u64, Ordering::Relaxed);
        self.make_room();
    }

    /// Gives `bytes` back.
    pub fn release(&self, category: Category, bytes: usize) {
        let before = self.0.used[category as usize].fetch_sub(bytes as u64, Ordering::Relaxed);
        debug_assert!(
            before >= bytes as u64,
            "{} bytes of {} returned, {before} taken",
            bytes,
            category.name()
        );
        self.0.total.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes in use by `category`.
    #[must_use]
    pub fn used(&self, category: Category) -> u64 {
        self.0.used[category as usize].load(Ordering::Relaxed)
    }

    /// Bytes that nobody uses and that were not given back to the system, in case that they are of use soon. They are in no
    /// other number.
    #[must_use]
    pub fn idle_bytes(&self) -> u64 {
        self.0.idle.bytes()
    }

    /// Bytes in use.
    #[must_use]
    pub fn total_used(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// That the uses add up to the total. Only where nobody pays or gives back meanwhile: the two are not changed at once.
    pub fn check_invariants(&self) {
        let sum: u64 = Category::ALL.iter().map(|category| self.used(*category)).sum();
        assert_eq!(sum, self.total_used(), "the uses of a budget add up to its total");
    }

    /// What to say of `wanted_bytes` that the system refuses.
    pub(crate) fn out_of_memory(&self, category: Category, wanted_bytes: usize) -> OutOfMemory {
        OutOfMemory { category, wanted: wanted_bytes as u64, used: self.total_used(), limit: self.limit() }
    }

    /// Makes `keeper` one of those who keep what nobody uses.
    pub(crate) fn register(&self, keeper: Weak<dyn Keeper>) {
        self.0.idle.register(keeper);
    }

    /// What was just released stays with its keeper, who looks at [`Self::bytes_over`] next.
    pub(crate) fn begin_idle(&self, bytes: u64) {
        self.0.idle.add(bytes);
    }

    /// What was kept is about to be used, or was given back.
    pub(crate) fn end_idle(&self, bytes: u64) {
        self.0.idle.subtract(bytes);
    }

    /// By how much the limit is passed by what is used and what is kept; never more than what is kept.
    pub(crate) fn bytes_over(&self) -> u64 {
        let idle = self.idle_bytes();
        self.total_used().saturating_add(idle).saturating_sub(self.0.limit).min(idle)
    }

    #[inline]
    fn make_room(&self) {
        if self.idle_bytes() != 0 && self.bytes_over() != 0 {
            self.0.idle.shrink(|| self.bytes_over());
        }
    }

    fn spare(&self) -> u64 {
        (self.0.limit / SPARE_SHARE).max(2 * EXTENT_BYTES as u64)
    }

    fn extent_limit(&self) -> u64 {
        self.0.limit - self.0.limit / HEADROOM_SHARE
    }

    fn area_limit(&self) -> u64 {
        self.extent_limit().saturating_sub(self.claimed())
    }

    /// What is kept from areas for chunks that have not their share.
    fn claimed(&self) -> u64 {
        if self.0.claims.load(Ordering::Relaxed) > 0 { self.chunks_lack() } else { 0 }
    }

    fn repair_limit(&self) -> u64 {
        let headroom = self.0.limit / HEADROOM_SHARE;
        self.0.limit - (headroom / 2).min(SESSION_ROOM_BYTES)
    }

    fn reserve_below(&self, limit: u64, category: Category, bytes: u64) -> Result<(), OutOfMemory> {
        let fits = |total: u64| total.checked_add(bytes).filter(|sum| *sum <= limit);
        // The total alone decides, so that two workers cannot both get the last bytes. The use is told apart afterwards.
        self.0
            .total
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|used| OutOfMemory { category, wanted: bytes, used, limit: self.0.limit })?;
        self.0.used[category as usize].fetch_add(bytes, Ordering::Relaxed);
        self.make_room();
        Ok(())
    }
}

/// Bytes taken from a budget for as long as this lives.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    category: Category,
    bytes: usize,
}

impl Charge {
    /// Nothing yet.
    #[must_use]
    pub fn empty(budget: Budget, category: Category) -> Self {
        Self { budget, category, bytes: 0 }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where they come from.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Holds `bytes` from now on.
    ///
    /// # Errors
    /// If the limit does not allow it; what was held stays held.
    pub fn try_set(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        if bytes > self.bytes {
            self.budget.try_reserve(self.category, bytes - self.bytes)?;
        } else if bytes < self.bytes {
            self.budget.release(self.category, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Holds also `bytes` that the caller has reserved from the same budget and category.
    pub fn adopt(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Holds `bytes` from now on, over the limit if need be.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.charge(self.category, bytes - self.bytes);
        } else if bytes < self.bytes {
            self.budget.release(self.category, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.category, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_reservation_takes_nothing() {
        let budget = Budget::new(100);
        budget.try_reserve(Category::Log, 60).unwrap();
        let refused = budget.try_reserve(Category::Area, 41).unwrap_err();
        assert_eq!((refused.wanted, refused.used, refused.limit), (41, 60, 100));
        assert_eq!((budget.used(Category::Area), budget.total_used()), (0, 60));
        budget.try_reserve(Category::Area, 40).unwrap();
        budget.release(Category::Log, 60);
        assert_eq!(budget.total_used(), 40);
    }

    #[test]
    fn what_clients_write_leaves_what_is_kept_for_members() {
        let budget = Budget::new(3200);
        budget.try_reserve_extent(Category::Area, 2000).unwrap();
        assert!(budget.has_room_to_grow(1100) && !budget.has_room_to_grow(1101));
        budget.keep_for_members(1000);
        assert!(budget.has_room_to_grow(100) && !budget.has_room_to_grow(101));
        assert!(!budget.lacks_what_it_keeps());
        budget.try_reserve_extent(Category::Parity, 1100).expect("members have all of it");
        assert!(budget.lacks_what_it_keeps());
        budget.keep_for_members(0);
        assert!(!budget.lacks_what_it_keeps());
    }

    #[test]
    fn extents_leave_headroom_and_overdraft_is_accounted() {
        let budget = Budget::new(3200);
        assert!(budget.try_reserve_extent(Category::Parity, 3101).is_err());
        budget.try_reserve_extent(Category::Parity, 3100).unwrap();
        budget.charge(Category::Index, 200);
        assert_eq!(budget.total_used(), 3300);
        assert!(!budget.has_room(0));
        assert!(budget.try_reserve(Category::Log, 1).is_err());
    }

    #[test]
    fn repair_may_use_the_headroom_but_for_what_sessions_need() {
        let budget = Budget::new(3200);
        budget.try_reserve_extent(Category::Area, 3100).unwrap();
        assert!(!budget.has_room_for_extent(1) && budget.has_room_for_repair(50));
        assert!(!budget.has_room_for_repair(51));
        assert!(budget.try_reserve_for_repair(Category::Area, 51).is_err());
        budget.try_reserve_for_repair(Category::Area, 50).unwrap();
        assert_eq!(budget.total_used(), 3150);
        let large = Budget::new(1 << 40);
        assert!(large.has_room_for_repair((1 << 40) - (1 << 20)));
        assert!(!large.has_room_for_repair((1 << 40) - (1 << 20) + 1));
    }

    #[test]
    fn the_least_limit_has_room_for_what_it_is_for() {
        for bytes in [1, 1 << 20, 123_456_789, 1 << 40] {
            for has_chunks in [false, true] {
                let budget = Budget::new(Budget::least_limit(bytes, has_chunks));
                let limit = if has_chunks { budget.chunk_limit() } else { budget.extent_limit() };
                assert!(limit >= bytes, "{bytes} {has_chunks}: {limit}");
                assert!(limit < bytes + bytes / 100 + (8 << 20), "{bytes} {has_chunks}: {limit}");
            }
        }
    }

    #[test]
    fn what_is_of_possible_use_leaves_a_sixteenth_free() {
        let budget = Budget::new(64 << 20);
        budget.charge(Category::Area, 57 << 20);
        assert!(budget.has_room_to_spare());
        budget.charge(Category::Area, 2 << 20);
        assert!(!budget.has_room_to_spare() && budget.has_room_for_extent(EXTENT_BYTES));
        assert!(!Budget::new(2 << 20).has_room_to_spare(), "two extents are more than that");
    }

    #[test]
    #[should_panic(expected = "add up to its total")]
    fn bytes_that_are_lost_between_the_sums_are_noticed() {
        let budget = Budget::new(100);
        budget.charge(Category::Log, 60);
        budget.check_invariants();
        budget.0.total.fetch_sub(1, Ordering::Relaxed);
        budget.check_invariants();
    }

    #[test]
    fn a_charge_returns_what_it_holds() {
        let budget = Budget::new(100);
        let mut charge = Charge::empty(budget.clone(), Category::Buffers);
        charge.try_set(80).unwrap();
        assert!(charge.try_set(101).is_err());
        charge.set(120);
        charge.set(10);
        assert_eq!(budget.used(Category::Buffers), 10);
        drop(charge);
        assert_eq!(budget.total_used(), 0);
    }
}
