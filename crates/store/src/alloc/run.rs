//! One run as the primary's allocator sees it: the state of each slot, and the list of its free ones.

use types::UnixSeconds;

use types::RunClass;
use types::class::{slots_in_span, span_of};

const NO_SLOT: u16 = u16::MAX;

/// What is known of a slot, in 4 bytes: 2 bits state | 2 bits frequency | fetched | 27 bits last access.
/// A free slot holds the number of the next free one instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Free,
    /// Handed out, not yet in the index.
    Pending,
    /// In the index.
    Live,
    /// In the index, and handed out as something to remove or to move.
    Claimed,
}

const ACCESS_BITS: u32 = 27;
const ACCESS_MASK: u32 = (1 << ACCESS_BITS) - 1;
const FETCHED: u32 = 1 << ACCESS_BITS;
const FREQUENCY_SHIFT: u32 = 28;
const MAX_FREQUENCY: u32 = 3;
const STATE_SHIFT: u32 = 30;

impl Slot {
    const fn free(next: u16) -> Self {
        Self(next as u32)
    }

    pub(crate) fn state(self) -> SlotState {
        match self.0 >> STATE_SHIFT {
            0 => SlotState::Free,
            1 => SlotState::Pending,
            2 => SlotState::Live,
            _ => SlotState::Claimed,
        }
    }

    pub(crate) fn is_live(self) -> bool {
        matches!(self.state(), SlotState::Live | SlotState::Claimed)
    }

    pub(crate) fn with_state(self, state: SlotState) -> Self {
        let bits = match state {
            SlotState::Free => 0,
            SlotState::Pending => 1,
            SlotState::Live => 2,
            SlotState::Claimed => 3,
        };
        Self(self.0 & !(3 << STATE_SHIFT) | bits << STATE_SHIFT)
    }

    fn next_free(self) -> u16 {
        self.0 as u16
    }

    pub(crate) fn frequency(self) -> u32 {
        self.0 >> FREQUENCY_SHIFT & MAX_FREQUENCY
    }

    /// One turn of the clock: the frequency goes down by one.
    pub(crate) fn cooled(self) -> Self {
        debug_assert!(self.frequency() > 0);
        Self(self.0 - (1 << FREQUENCY_SHIFT))
    }

    pub(crate) fn fetched(self) -> bool {
        self.0 & FETCHED != 0
    }

    /// Seconds of the last access, modulo 2^27 (4.2 years), made whole by the `newest` time that is known.
    pub(crate) fn last_access(self, newest: UnixSeconds) -> UnixSeconds {
        // Modulo 2^27 on both sides: right as long as the access was less than 4 years ago.
        let age = newest.0.wrapping_sub(self.0) & ACCESS_MASK;
        UnixSeconds(newest.0.saturating_sub(age))
    }

    /// The same; none if it was neither read nor written here.
    pub(crate) fn known_access(self, newest: UnixSeconds) -> Option<UnixSeconds> {
        (self.0 & ACCESS_MASK != 0).then(|| self.last_access(newest))
    }

    /// After a read at `now`.
    pub(crate) fn bumped(self, now: UnixSeconds) -> Self {
        let warmer = if self.frequency() < MAX_FREQUENCY { 1 << FREQUENCY_SHIFT } else { 0 };
        Self((self.0 + warmer) | FETCHED).written_at(now)
    }

    pub(crate) fn written_at(self, now: UnixSeconds) -> Self {
        Self(self.0 & !ACCESS_MASK | now.0 & ACCESS_MASK)
    }

    /// The access bits of `other` with the state of `self`.
    pub(crate) fn with_access_of(self, other: Self) -> Self {
        let state = 3 << STATE_SHIFT;
        Self(self.0 & state | other.0 & !state)
    }
}

/// Why a run is kept out of allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is not.
    #[default]
    None,
    /// Its items are being moved away, so that it becomes free.
    Compacting,
    /// It is part of the window that is being emptied for a large item; kept even when free.
    Window,
}

/// A run: free, cut into slots, or part of a longer span or a large item (then the first run has all slots).
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) class: RunClass,
    pub(crate) hold: Hold,
    /// The fullness list that it is in.
    pub(crate) list: Option<u8>,
    /// Head of the list of freed slots; those from `fresh` on were never used and are in no list.
    free_head: u16,
    fresh: u16,
    /// Slots that are not free.
    pub(crate) used: u16,
    /// Slots that are handed out and not yet in the index.
    pub(crate) pending: u16,
    /// Runs of the span or the large item that starts here; 0 in all others.
    pub(crate) span: u16,
    pub(crate) previous: Option<u32>,
    pub(crate) next: Option<u32>,
    /// No live item in it expires before; 0 = not known.
    pub(crate) min_expiry: u32,
    /// Bytes of the live items in it.
    pub(crate) item_bytes: u32,
    pub(crate) slots: Box<[Slot]>,
}

impl Default for Run {
    fn default() -> Self {
        Self::new(RunClass::FREE, 0)
    }
}

impl Run {
    /// The first run of a span of `class` with all its slots free.
    pub(crate) fn of_class(class: RunClass) -> Self {
        Self { span: span_of(class) as u16, ..Self::new(class, slots_in_span(class)) }
    }

    /// The first run of a large item of `span` runs; its slot is free.
    pub(crate) fn of_large(span: u16) -> Self {
        Self { span, ..Self::new(RunClass::LARGE, 1) }
    }

    /// A further run of what `self` starts.
    pub(crate) fn continued(&self) -> Self {
        let large = self.class == RunClass::LARGE;
        Self::new(if large { RunClass::LARGE_CONTINUED } else { RunClass::SPAN_CONTINUED }, 0)
    }

    fn new(class: RunClass, slots: usize) -> Self {
        Self {
            class,
            hold: Hold::None,
            list: None,
            free_head: NO_SLOT,
            fresh: 0,
            used: 0,
            pending: 0,
            span: 0,
            previous: None,
            next: None,
            min_expiry: u32::MAX,
            item_bytes: 0,
            slots: vec![Slot(0); slots].into_boxed_slice(),
        }
    }

    pub(crate) fn free_slots(&self) -> usize {
        self.slots.len() - usize::from(self.used)
    }

    pub(crate) fn live(&self) -> usize {
        usize::from(self.used - self.pending)
    }

    /// Takes the slot that was freed last, or a fresh one.
    pub(crate) fn take(&mut self) -> Option<u16> {
        // Slots that were never used are in no list: to put them there would touch the memory of all at once.
        let slot = match self.free_head {
            NO_SLOT if usize::from(self.fresh) == self.slots.len() => return None,
            NO_SLOT => {
                self.fresh += 1;
                self.fresh - 1
            }
            head => {
                self.free_head = self.slots[usize::from(head)].next_free();
                head
            }
        };
        self.mark_pending(slot);
        Some(slot)
    }

    /// Takes the first free slot for which `suits` holds.
    pub(crate) fn take_where(&mut self, suits: impl Fn(u16) -> bool) -> Option<u16> {
        self.thread_fresh_slots();
        let mut before = NO_SLOT;
        let mut at = self.free_head;
        while at != NO_SLOT && !suits(at) {
            before = at;
            at = self.slots[usize::from(at)].next_free();
        }
        if at == NO_SLOT {
            return None;
        }
        let after = self.slots[usize::from(at)].next_free();
        match before {
            NO_SLOT => self.free_head = after,
            before => self.slots[usize::from(before)] = Slot::free(after),
        }
        self.mark_pending(at);
        Some(at)
    }

    /// The slot that [`Self::take`] would give.
    pub(crate) fn peek(&self) -> Option<u16> {
        match self.free_head {
            NO_SLOT if usize::from(self.fresh) == self.slots.len() => None,
            NO_SLOT => Some(self.fresh),
            head => Some(head),
        }
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u16) {
        let word = &mut self.slots[usize::from(slot)];
        debug_assert_ne!(word.state(), SlotState::Free, "slot {slot} is freed twice");
        self.pending -= u16::from(word.state() == SlotState::Pending);
        *word = Slot::free(self.free_head);
        self.free_head = slot;
        self.used -= 1;
    }

    /// Rebuilding from an index: this slot holds an item. False if it is taken already or does not exist.
    pub(crate) fn occupy(&mut self, slot: usize) -> bool {
        match self.slots.get_mut(slot) {
            Some(word) if word.state() == SlotState::Free => {
                *word = Slot(0).with_state(SlotState::Live);
                self.used += 1;
                true
            }
            _ => false,
        }
    }

    /// Rebuilding from an index: all slots that were not occupied are free, the lowest first.
    pub(crate) fn thread_free_slots(&mut self) {
        self.fresh = self.slots.len() as u16;
        self.free_head = NO_SLOT;
        for slot in (0..self.slots.len()).rev() {
            if self.slots[slot].state() == SlotState::Free {
                self.slots[slot] = Slot::free(self.free_head);
                self.free_head = slot as u16;
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// That the counts of run `at` are those of its slots, and that each free one is found once.
    pub(super) fn check_invariants(&self, at: u32) {
        let count = |state| self.slots.iter().filter(|slot| slot.state() == state).count();
        let free = count(SlotState::Free);
        assert_eq!(self.free_slots(), free, "the used slots of run {at} are counted");
        assert_eq!(
            usize::from(self.pending),
            count(SlotState::Pending),
            "the pending slots of run {at} are counted"
        );
        let first = (self.free_head != NO_SLOT).then_some(self.free_head);
        let next =
            |slot: &u16| Some(self.slots[usize::from(*slot)].next_free()).filter(|next| *next != NO_SLOT);
        // One step more than there are: a list that bites its tail is too long.
        let listed = std::iter::successors(first, next).take(free + 1);
        let found = listed.filter(|slot| self.slots[usize::from(*slot)].state() == SlotState::Free).count();
        assert_eq!(
            found + self.slots.len() - usize::from(self.fresh),
            free,
            "the free slots of run {at} are found"
        );
    }

    fn mark_pending(&mut self, slot: u16) {
        self.slots[usize::from(slot)] = Slot(0).with_state(SlotState::Pending);
        self.used += 1;
        self.pending += 1;
    }

    fn thread_fresh_slots(&mut self) {
        if usize::from(self.fresh) < self.slots.len() {
            self.thread_free_slots();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_not_used_here_nobody_knows_when_it_was() {
        let now = UnixSeconds(1_795_000_000);
        let taken_over = Slot(0);
        assert_eq!(taken_over.known_access(now), None);
        assert_eq!(taken_over.bumped(UnixSeconds(now.0 - 5)).known_access(now), Some(UnixSeconds(now.0 - 5)));
    }

    #[test]
    fn slots_come_fresh_first_then_the_last_freed() {
        let mut run = Run::of_class(types::class_of(10_000));
        let count = run.slots.len() as u16;
        let taken: Vec<u16> = std::iter::from_fn(|| run.take()).collect();
        assert!(taken.iter().copied().eq(0..count));
        run.release(1);
        run.release(3);
        assert_eq!((run.peek(), run.take(), run.take(), run.take()), (Some(3), Some(3), Some(1), None));
    }

    #[test]
    fn a_wanted_slot_is_taken_from_the_middle_of_the_list() {
        let mut run = Run::of_class(types::class_of(6_000));
        run.take();
        assert_eq!(run.take_where(|slot| slot == 4), Some(4));
        assert_eq!(run.take_where(|slot| slot == 4), None);
        let rest: Vec<u16> = std::iter::from_fn(|| run.take()).collect();
        assert!(rest.iter().copied().eq((1..run.slots.len() as u16).filter(|slot| *slot != 4)));
        assert_eq!(run.free_slots(), 0);
    }

    #[test]
    fn the_access_word_keeps_its_parts_apart() {
        let slot = Slot(0).with_state(SlotState::Live).written_at(UnixSeconds(1_800_000_000));
        assert_eq!((slot.frequency(), slot.fetched()), (0, false));
        let hot = (0..9).fold(slot, |slot, _| slot.bumped(UnixSeconds(1_800_000_007)));
        assert_eq!((hot.frequency(), hot.fetched(), hot.state()), (3, true, SlotState::Live));
        assert_eq!(hot.last_access(UnixSeconds(1_900_000_000)), UnixSeconds(1_800_000_007));
        assert_eq!(hot.cooled().frequency(), 2);
        let claimed = slot.with_state(SlotState::Claimed).with_access_of(hot);
        assert_eq!((claimed.state(), claimed.frequency()), (SlotState::Claimed, 3));
        assert_eq!(slot.last_access(UnixSeconds(1_800_000_000)), UnixSeconds(1_800_000_000));
    }

    #[test]
    #[should_panic(expected = "the free slots of run 0 are found")]
    fn a_free_slot_that_nobody_finds_is_noticed() {
        let mut run = Run::of_class(types::class_of(10_000));
        (0..4).for_each(|_| assert!(run.take().is_some()));
        run.release(1);
        run.release(3);
        run.check_invariants(0);
        run.free_head = 1;
        run.check_invariants(0);
    }

    #[test]
    fn times_near_zero_do_not_wrap() {
        let slot = Slot(0).written_at(UnixSeconds(5));
        assert_eq!(slot.last_access(UnixSeconds(9)), UnixSeconds(5));
        assert_eq!(slot.last_access(UnixSeconds(3)), UnixSeconds(0));
    }
}
