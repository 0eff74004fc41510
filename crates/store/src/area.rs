//! An area: the address space of a data role, or the parity of one, used extent by extent within the budget. Of an extent that
//! is in use the first runs are there, or all ([`Reach`]).

use crate::arena::{self, Arena};
use crate::{Budget, Category, Charge, OutOfMemory, PageSet};
use types::{EXTENT_BYTES, MAX_AREA_BYTES, MAX_ITEM_BYTES, PageRange, RUN_BYTES, RUNS_PER_EXTENT, Reach};

/// Extents of an area whose resident bytes the system is asked for at a time.
const RESIDENT_SAMPLES: usize = 128;

/// Extents of a stand-in that may be paid from the headroom: the longest item crosses one boundary, and a write needs an
/// old item and a free slot at the same time.
const REPAIR_EXTENTS: usize = 2;
const _: () = assert!(MAX_ITEM_BYTES <= EXTENT_BYTES);

/// From so many extents on an area grows by large pages of two extents each: they spare the processor most of its
/// address translation, and half a page that is not needed yet is little by then.
const HUGE_FROM_EXTENTS: usize = 16;

/// Why no area could be reserved.
#[derive(Debug, thiserror::Error)]
pub enum AreaError {
    /// Longer than an address can name.
    #[error("an area of {0} bytes is longer than {MAX_AREA_BYTES}")]
    TooLarge(usize),
    /// The system gives no address space.
    #[error("cannot reserve address space")]
    Map(#[source] std::io::Error),
}

/// Reserved address space whose extents are committed one by one. Fresh bytes are zero. Dropping it returns all
/// memory to the system and to the budget.
#[derive(Debug)]
pub struct Area {
    arena: Arena,
    charge: Charge,
    category: Category,
    /// Whole extents that are paid for, since they share a large page with their neighbours, but not usable yet.
    ahead: PageSet,
}

impl Area {
    /// Reserves `limit_bytes`, rounded up to whole extents (at least one), of address space. Costs no memory.
    ///
    /// # Errors
    /// If that is more than [`MAX_AREA_BYTES`], or more than the system has.
    pub fn reserve(limit_bytes: usize, budget: Budget, category: Category) -> Result<Self, AreaError> {
        if limit_bytes > MAX_AREA_BYTES {
            return Err(AreaError::TooLarge(limit_bytes));
        }
        let len = limit_bytes.max(1).next_multiple_of(EXTENT_BYTES);
        let arena = Arena::reserve(len).map_err(AreaError::Map)?;
        Ok(Self { arena, charge: Charge::empty(budget, category), category, ahead: PageSet::new() })
    }

    /// What its memory is counted as from now on.
    pub(crate) fn recategorize(&mut self, category: Category) {
        let bytes = self.charge.bytes();
        let mut charge = Charge::empty(self.charge.budget().clone(), category);
        // Given back before it is taken: the other way round a full node would seem to hold twice as much as it does.
        self.charge.set(0);
        charge.set(bytes);
        self.charge = charge;
        self.category = category;
    }

    /// Length of the address space in bytes; a multiple of [`EXTENT_BYTES`].
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Makes an extent usable so far; nothing happens if it is already.
    ///
    /// # Errors
    /// If the budget or the system has no memory for it, or it lies outside of the area.
    pub fn commit(&mut self, reach: Reach) -> Result<(), OutOfMemory> {
        self.commit_paid_by(reach, Budget::try_reserve_extent)
    }

    /// As [`Self::commit`], for pages that come back by repair: the first few extents may use the budget's headroom, as
    /// nothing of the role could be served without them.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_for_repair(&mut self, reach: Reach) -> Result<(), OutOfMemory> {
        if self.may_use_headroom() {
            self.commit_paid_by(reach, Budget::try_reserve_for_repair)
        } else {
            self.commit(reach)
        }
    }

    /// Whether [`Self::commit_for_repair`] would find room in the budget now.
    #[must_use]
    pub fn has_room_for_repair(&self) -> bool {
        let budget = self.charge.budget();
        if self.may_use_headroom() {
            budget.has_room_for_repair(EXTENT_BYTES)
        } else {
            budget.has_room_for_extent(EXTENT_BYTES)
        }
    }

    /// Gives the memory of `extent` back to the system and to the budget; zero when it is committed again. False, and
    /// nothing has changed, if it was not usable or the system refuses (locked memory). The other half of its large page goes
    /// along if it is not usable.
    pub fn decommit(&mut self, extent: u32) -> bool {
        let done = self.give_back(self.runs_of(extent));
        if done {
            self.decommit_ahead(extent ^ 1);
        }
        done
    }

    /// Gives back what is usable beyond `reach` in its extent. False if nothing is, or the system refuses.
    pub(crate) fn cut(&mut self, reach: Reach) -> bool {
        let (usable, kept) = (self.runs_of(reach.extent()), reach.runs().len() as u32);
        let beyond = usable.count.saturating_sub(kept);
        self.give_back(PageRange { first: usable.first + usable.count - beyond, count: beyond })
    }

    /// Of `runs`, which are usable.
    fn give_back(&mut self, runs: PageRange) -> bool {
        let done = runs.count > 0 && self.arena.decommit(runs).is_ok();
        if done {
            self.charge.set(self.charge.bytes() - runs.count as usize * RUN_BYTES);
        }
        done
    }

    fn decommit_ahead(&mut self, extent: u32) {
        if self.ahead.contains(extent) && self.arena.decommit(all_runs_of(extent)).is_ok() {
            self.ahead.remove(extent);
            self.charge.set(self.charge.bytes() - EXTENT_BYTES);
        }
    }

    /// Gives all extents back.
    pub fn decommit_all(&mut self) {
        let mut from = 0;
        while let Some(extent) = self.next_committed(from) {
            if !self.decommit(extent) {
                // Locked memory cannot be given back, but it can be zero again.
                let usable = self.runs_of(extent);
                self.bytes_mut(usable.first as usize * RUN_BYTES, usable.count as usize * RUN_BYTES).fill(0);
            }
            from = extent + 1;
        }
    }

    /// The first extent from `from` on of which something is usable.
    #[must_use]
    pub fn next_committed(&self, from: u32) -> Option<u32> {
        let run = self.next_run(from.checked_mul(RUNS_PER_EXTENT)?)?;
        Some(run / RUNS_PER_EXTENT)
    }

    /// The first usable run from `from` on.
    #[must_use]
    pub fn next_run(&self, from: u32) -> Option<u32> {
        self.arena.next_committed(from)
    }

    /// The extents of which something is usable, ascending.
    pub fn extents(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next_committed(0), |extent| self.next_committed(extent + 1))
    }

    /// The usable runs, ascending.
    pub fn runs(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next_run(0), |run| self.next_run(run + 1))
    }

    /// The usable runs of `extent`: its first ones.
    #[must_use]
    pub fn runs_of(&self, extent: u32) -> PageRange {
        let PageRange { first, count } = all_runs_of(extent);
        let usable = (first..first + count).take_while(|run| self.is_usable(*run)).count();
        PageRange { first, count: usable as u32 }
    }

    /// Whether something of `extent` is usable.
    #[must_use]
    pub fn is_committed(&self, extent: u32) -> bool {
        self.arena.is_committed(extent * RUNS_PER_EXTENT)
    }

    /// Whether all of `extent` is usable.
    #[must_use]
    pub fn is_whole(&self, extent: u32) -> bool {
        self.is_usable(Reach::whole(extent).0)
    }

    /// Whether `run` is usable.
    #[must_use]
    pub fn is_usable(&self, run: u32) -> bool {
        self.arena.is_committed(run)
    }

    /// Whether all of the `len` bytes at `start` are usable.
    #[must_use]
    pub fn covers(&self, start: usize, len: usize) -> bool {
        self.arena.covers(start, len)
    }

    /// The `len` bytes at `start`, if the area covers them.
    #[must_use]
    #[inline]
    pub fn get(&self, start: usize, len: usize) -> Option<&[u8]> {
        self.arena.get(start, len)
    }

    /// The `len` bytes at `start`.
    ///
    /// # Panics
    /// If the area does not cover them.
    #[must_use]
    pub fn bytes(&self, start: usize, len: usize) -> &[u8] {
        self.arena.bytes(start, len)
    }

    /// The `len` bytes at `start`, to be written.
    ///
    /// # Panics
    /// If the area does not cover them.
    pub fn bytes_mut(&mut self, start: usize, len: usize) -> &mut [u8] {
        self.arena.bytes_mut(start, len)
    }

    /// XORs `delta` into the bytes at `start`.
    ///
    /// # Panics
    /// If the area does not cover them.
    pub fn xor(&mut self, start: usize, delta: &[u8]) {
        let target = self.arena.bytes_mut(start, delta.len());
        for (byte, change) in target.iter_mut().zip(delta) {
            *byte ^= change;
        }
    }

    /// Hints that the bytes at `start` will be read soon. No effect where the area does not cover them.
    pub fn prefetch(&self, start: usize) {
        if self.arena.covers(start, 1) {
            arena::prefetch(&self.arena.bytes(start, 1)[0]);
        }
    }

    /// Usable bytes. All are charged to the budget, and so is the other half of a large page.
    #[must_use]
    pub fn committed_bytes(&self) -> usize {
        self.arena.committed_count() * RUN_BYTES
    }

    /// Bytes that memory stands behind, also of the other halves of large pages: what was never touched costs nothing.
    /// Asks the system, whose answers take a microsecond or two for each extent: of a large area every nth extent stands for
    /// its neighbours. 0 where the system does not say.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let count = self.extents().count() + self.ahead.count() as usize;
        let step = count.div_ceil(RESIDENT_SAMPLES).max(1);
        let paid = self.extents().chain(self.ahead.iter()).step_by(step);
        let bytes: usize = paid.map(|extent| self.arena.resident_bytes(extent)).sum();
        // As many extents as were asked stand for all.
        bytes * count / count.div_ceil(step).max(1)
    }

    /// That the extents are counted, paid for, and in the area, and that each begins at its beginning.
    pub fn check_invariants(&self) {
        let paid = self.committed_bytes() + self.ahead.count() as usize * EXTENT_BYTES;
        assert_eq!(self.charge.bytes(), paid, "the extents of an area are paid for");
        let found: u32 = self.extents().map(|extent| self.runs_of(extent).count).sum();
        assert_eq!(
            found as usize,
            self.arena.committed_count(),
            "the usable runs of an extent are its first"
        );
        let end = (self.limit_bytes() / EXTENT_BYTES) as u32;
        let beyond = self.next_committed(end).or_else(|| self.ahead.first_present(end));
        assert_eq!(beyond, None, "an extent lies beyond the area");
        let twice = self.ahead.iter().find(|extent| self.is_committed(*extent));
        assert_eq!(twice, None, "an extent that is used is kept ahead, too");
        self.ahead.check_invariants();
    }

    /// What an area is charged whose first `runs` runs are in use, where the budget has room.
    pub(crate) fn grown_bytes(runs: u32) -> usize {
        let extents = runs.div_ceil(RUNS_PER_EXTENT) as usize;
        match runs.checked_sub(1) {
            None => 0,
            Some(before) if extents == 1 => Reach::step(0, before, 1).runs().len() * RUN_BYTES,
            Some(_) if extents <= HUGE_FROM_EXTENTS => extents * EXTENT_BYTES,
            // The other half of the last large page is paid for, too.
            Some(_) => extents.next_multiple_of(2) * EXTENT_BYTES,
        }
    }

    fn may_use_headroom(&self) -> bool {
        self.committed_bytes() + EXTENT_BYTES <= REPAIR_EXTENTS * EXTENT_BYTES
    }

    fn commit_paid_by(
        &mut self,
        reach: Reach,
        reserve: fn(&Budget, Category, usize) -> Result<(), OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        if self.is_usable(reach.0) {
            return Ok(());
        }
        if reach.0 as usize >= self.limit_bytes() / RUN_BYTES {
            return Err(self.out_of_memory(EXTENT_BYTES));
        }
        let extent = reach.extent();
        // It was paid for when its neighbour came.
        if self.ahead.contains(extent) {
            let all = all_runs_of(extent);
            self.arena.commit(all).map_err(|_| self.out_of_memory(EXTENT_BYTES))?;
            self.ahead.remove(extent);
            return Ok(());
        }
        let usable = self.runs_of(extent);
        let first = usable.first + usable.count;
        let missing = PageRange { first, count: reach.0 + 1 - first };
        let bytes = missing.count as usize * RUN_BYTES;
        // Paid for first: other workers pay from the same budget, and memory that is there already cannot be refused.
        reserve(self.charge.budget(), self.category, bytes)?;
        if self.arena.commit(missing).is_err() {
            self.charge.budget().release(self.category, bytes);
            return Err(self.out_of_memory(bytes));
        }
        // The budget has it already; `set` would take it once more.
        self.charge.adopt(bytes);
        self.widen_to_huge_page(extent);
        Ok(())
    }

    /// Takes the other half of `extent`'s large page along, if the area is large and the budget has room.
    fn widen_to_huge_page(&mut self, extent: u32) {
        let other = extent ^ 1;
        let ends = (other as usize) >= self.limit_bytes() / EXTENT_BYTES;
        // A node has many small areas: half a large page more in each of them would be a lot.
        let small = self.committed_bytes() <= HUGE_FROM_EXTENTS * EXTENT_BYTES;
        // Of the first extent less than the whole may come next.
        let in_steps = extent.min(other) == 0;
        if small || ends || in_steps || self.is_committed(other) {
            return;
        }
        // What is only faster does without, rather than take the last memory from those who need it.
        if self.charge.budget().try_reserve_extent(self.category, EXTENT_BYTES).is_err() {
            return;
        }
        if self.arena.share_huge_page(extent).is_ok() {
            self.charge.adopt(EXTENT_BYTES);
            self.ahead.insert(other);
        } else {
            self.charge.budget().release(self.category, EXTENT_BYTES);
        }
    }

    fn out_of_memory(&self, wanted_bytes: usize) -> OutOfMemory {
        self.charge.budget().out_of_memory(self.category, wanted_bytes)
    }
}

/// The runs of an extent, usable or not.
pub(crate) fn all_runs_of(extent: u32) -> PageRange {
    PageRange { first: extent * RUNS_PER_EXTENT, count: RUNS_PER_EXTENT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(limit: usize, budget: &Budget) -> Area {
        Area::reserve(limit, budget.clone(), Category::Area).unwrap()
    }

    #[test]
    fn fresh_bytes_are_zero_and_xor_twice_is_nothing() {
        let budget = Budget::new(64 << 20);
        let mut area = area(3 * EXTENT_BYTES, &budget);
        area.commit(Reach::whole(1)).unwrap();
        assert!(area.bytes(EXTENT_BYTES, EXTENT_BYTES).iter().all(|byte| *byte == 0));
        area.xor(EXTENT_BYTES + 5, b"delta");
        assert_eq!(area.bytes(EXTENT_BYTES + 4, 7), b"\0delta\0");
        area.xor(EXTENT_BYTES + 5, b"delta");
        assert_eq!(area.bytes(EXTENT_BYTES + 4, 7), [0; 7]);
    }

    #[test]
    fn only_committed_extents_are_covered_and_charged() {
        let budget = Budget::new(64 << 20);
        let mut area = area(3 * EXTENT_BYTES - 1, &budget);
        assert_eq!(area.limit_bytes(), 3 * EXTENT_BYTES);
        area.commit(Reach::whole(0)).unwrap();
        area.commit(Reach::whole(0)).unwrap();
        area.commit(Reach::whole(2)).unwrap();
        assert!(area.covers(0, EXTENT_BYTES) && !area.covers(1, EXTENT_BYTES));
        assert!(!area.covers(2 * EXTENT_BYTES, EXTENT_BYTES + 1) && !area.covers(usize::MAX, 2));
        assert_eq!(budget.used(Category::Area), 2 * EXTENT_BYTES as u64);
        drop(area);
        assert_eq!(budget.total_used(), 0);
    }

    #[test]
    fn only_what_was_touched_is_resident() {
        let budget = Budget::new(64 << 20);
        let mut area = area(8 << 20, &budget);
        (0..4).for_each(|extent| area.commit(Reach::whole(extent)).unwrap());
        assert_eq!(area.resident_bytes(), 0);
        area.xor(EXTENT_BYTES - 1, b"xy");
        assert_eq!(area.resident_bytes(), 2 * types::PAGE_BYTES);
        area.bytes_mut(2 * EXTENT_BYTES, EXTENT_BYTES).fill(7);
        assert_eq!(area.resident_bytes(), 2 * types::PAGE_BYTES + EXTENT_BYTES);
        area.decommit(2);
        assert_eq!(area.resident_bytes(), 2 * types::PAGE_BYTES);
    }

    #[test]
    fn of_a_large_area_a_part_stands_for_the_whole() {
        let budget = Budget::new(2 << 30);
        let extents = RESIDENT_SAMPLES as u32 + 2;
        let mut area = area(extents as usize * EXTENT_BYTES, &budget);
        for extent in 0..extents {
            area.commit(Reach::whole(extent)).unwrap();
            area.bytes_mut(extent as usize * EXTENT_BYTES, EXTENT_BYTES).fill(1);
        }
        assert_eq!(area.resident_bytes(), extents as usize * EXTENT_BYTES);
    }

    #[test]
    fn a_full_budget_refuses_the_extent_and_charges_nothing() {
        let budget = Budget::new(3 << 20);
        let mut area = area(8 << 20, &budget);
        area.commit(Reach::whole(0)).unwrap();
        area.commit(Reach::whole(1)).unwrap();
        assert!(area.commit(Reach::whole(2)).is_err());
        assert_eq!((area.committed_bytes(), area.is_committed(2)), (2 << 20, false));
        assert_eq!(budget.total_used(), 2 << 20);
    }

    #[test]
    fn what_was_given_back_is_not_charged_and_is_zero_the_next_time() {
        let budget = Budget::new(64 << 20);
        let mut area = area(4 * EXTENT_BYTES, &budget);
        (0..3).for_each(|extent| area.commit(Reach::whole(extent)).unwrap());
        area.bytes_mut(0, 3 * EXTENT_BYTES).fill(7);
        assert!(area.decommit(1) && !area.decommit(1) && !area.decommit(3));
        assert!(!area.is_committed(1) && !area.covers(EXTENT_BYTES, 1));
        assert_eq!((area.next_committed(1), area.next_committed(3)), (Some(2), None));
        assert_eq!(budget.used(Category::Area), 2 * EXTENT_BYTES as u64);
        area.commit(Reach::whole(1)).unwrap();
        assert_eq!(area.bytes(EXTENT_BYTES, EXTENT_BYTES), [0; EXTENT_BYTES]);
        assert_eq!((area.bytes(EXTENT_BYTES - 1, 1), area.bytes(2 * EXTENT_BYTES, 1)), (&[7][..], &[7][..]));
        drop(area);
        assert_eq!(budget.total_used(), 0);
    }

    #[test]
    fn a_large_area_grows_by_large_pages_and_pays_for_both_halves() {
        let extents = HUGE_FROM_EXTENTS as u32;
        let budget = Budget::new(1 << 30);
        let mut area = area((HUGE_FROM_EXTENTS + 3) * EXTENT_BYTES, &budget);
        let paid = || budget.used(Category::Area) as usize / EXTENT_BYTES;
        (0..extents).for_each(|extent| area.commit(Reach::whole(extent)).unwrap());
        assert_eq!(paid(), HUGE_FROM_EXTENTS);
        area.commit(Reach::whole(extents)).unwrap();
        assert_eq!(
            (paid(), area.committed_bytes()),
            (HUGE_FROM_EXTENTS + 2, (HUGE_FROM_EXTENTS + 1) * EXTENT_BYTES)
        );
        assert!(!area.is_committed(extents + 1) && !area.covers((HUGE_FROM_EXTENTS + 1) * EXTENT_BYTES, 1));
        area.commit(Reach::whole(extents + 1)).unwrap();
        assert_eq!(paid(), HUGE_FROM_EXTENTS + 2);
        // The last extent has no neighbour.
        area.commit(Reach::whole(extents + 2)).unwrap();
        assert_eq!(paid(), HUGE_FROM_EXTENTS + 3);
        area.bytes_mut(HUGE_FROM_EXTENTS * EXTENT_BYTES, 3 * EXTENT_BYTES).fill(7);
        assert!(area.decommit(extents));
        assert_eq!(
            (paid(), area.bytes((HUGE_FROM_EXTENTS + 1) * EXTENT_BYTES, 1)),
            (HUGE_FROM_EXTENTS + 2, &[7][..])
        );
        area.commit(Reach::whole(extents)).unwrap();
        assert_eq!(area.bytes(HUGE_FROM_EXTENTS * EXTENT_BYTES, EXTENT_BYTES), [0; EXTENT_BYTES]);
        drop(area);
        assert_eq!(budget.total_used(), 0);
    }

    #[test]
    fn the_unused_half_of_a_large_page_goes_with_the_used_one() {
        let budget = Budget::new(1 << 30);
        let mut area = area((HUGE_FROM_EXTENTS + 4) * EXTENT_BYTES, &budget);
        let extents = HUGE_FROM_EXTENTS as u32;
        (0..=extents).for_each(|extent| area.commit(Reach::whole(extent)).unwrap());
        area.bytes_mut(HUGE_FROM_EXTENTS * EXTENT_BYTES, EXTENT_BYTES).fill(7);
        assert_eq!(budget.used(Category::Area) as usize, (HUGE_FROM_EXTENTS + 2) * EXTENT_BYTES);
        assert!(area.decommit(extents));
        assert_eq!(budget.used(Category::Area) as usize, HUGE_FROM_EXTENTS * EXTENT_BYTES);
        assert_eq!(area.resident_bytes(), 0);
        area.commit(Reach::whole(extents + 1)).unwrap();
        assert_eq!(area.bytes((HUGE_FROM_EXTENTS + 1) * EXTENT_BYTES, EXTENT_BYTES), [0; EXTENT_BYTES]);
    }

    #[test]
    fn the_first_extents_of_a_repair_may_use_the_headroom() {
        let budget = Budget::new(256 << 20);
        budget.try_reserve_extent(Category::Parity, 248 << 20).unwrap();
        let mut area = area(8 * EXTENT_BYTES, &budget);
        assert!(area.commit(Reach::whole(0)).is_err() && area.has_room_for_repair());
        area.commit_for_repair(Reach::whole(5)).unwrap();
        area.commit_for_repair(Reach::whole(2)).unwrap();
        assert!(!area.has_room_for_repair() && area.commit_for_repair(Reach::whole(0)).is_err());
        assert!(area.decommit(5));
        area.commit_for_repair(Reach::whole(0)).unwrap();
        assert_eq!(budget.total_used(), 250 << 20);
    }

    #[test]
    #[should_panic(expected = "paid for")]
    fn an_extent_that_nobody_paid_for_is_noticed() {
        let mut area = area(8 * EXTENT_BYTES, &Budget::new(64 << 20));
        area.commit(Reach::whole(3)).unwrap();
        area.check_invariants();
        area.arena.commit(all_runs_of(4)).unwrap();
        area.check_invariants();
    }

    #[test]
    fn the_first_extent_is_paid_as_far_as_it_reaches() {
        let budget = Budget::new(64 << 20);
        let mut area = area(2 * EXTENT_BYTES, &budget);
        area.commit(Reach(0)).unwrap();
        assert!(area.covers(0, RUN_BYTES) && !area.covers(1, RUN_BYTES) && !area.is_whole(0));
        area.commit(Reach(3)).unwrap();
        area.commit(Reach(1)).unwrap();
        area.commit(Reach::whole(1)).unwrap();
        assert_eq!(budget.total_used() as usize, 4 * RUN_BYTES + EXTENT_BYTES);
        assert!(area.extents().eq([0, 1]) && area.runs().take(5).eq([0, 1, 2, 3, 16]));
        area.bytes_mut(0, 4 * RUN_BYTES).fill(7);
        assert!(area.cut(Reach(1)) && !area.cut(Reach(1)) && area.covers(0, 2 * RUN_BYTES));
        assert!(!area.covers(0, 2 * RUN_BYTES + 1));
        area.commit(Reach(2)).unwrap();
        assert_eq!(area.bytes(2 * RUN_BYTES - 1, 2), [7, 0]);
        area.check_invariants();
        assert!(area.decommit(0) && !area.is_committed(0));
        assert_eq!(budget.total_used() as usize, EXTENT_BYTES);
    }

    #[test]
    fn an_extent_beyond_the_area_is_refused() {
        let budget = Budget::new(64 << 20);
        let mut area = area(2 * EXTENT_BYTES, &budget);
        assert!(area.commit(Reach::whole(2)).is_err() && area.commit(Reach(u32::MAX)).is_err());
        assert_eq!(budget.total_used(), 0);
    }

    #[test]
    #[should_panic(expected = "not committed")]
    fn uncommitted_bytes_cannot_be_read() {
        let budget = Budget::new(64 << 20);
        let _ = area(EXTENT_BYTES, &budget).bytes(0, 1);
    }

    #[test]
    fn an_area_is_as_long_as_an_address_reaches() {
        let budget = Budget::new(64 << 20);
        assert!(matches!(
            Area::reserve(MAX_AREA_BYTES + 1, budget.clone(), Category::Area),
            Err(AreaError::TooLarge(_))
        ));
        let mut largest = area(MAX_AREA_BYTES, &budget);
        largest.commit(Reach::whole((MAX_AREA_BYTES / EXTENT_BYTES - 1) as u32)).unwrap();
        largest.xor(MAX_AREA_BYTES - 1, &[7]);
        assert_eq!(largest.bytes(MAX_AREA_BYTES - 1, 1), [7]);
    }
}
