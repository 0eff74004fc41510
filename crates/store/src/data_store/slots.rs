//! The slots, and who needs them: the allocator, the access word of each slot, and the pins of uncommitted records.

use types::{FastMap, UnixSeconds};

use super::access::Access;
use super::config::{Allocation, Shortage};
use super::contents::Contents;
use crate::Replica;
use crate::alloc::{Allocator, Run, SlotAt, SlotState};
use types::{Addr, IndexOp, RunClass};

/// See the module.
#[derive(Debug)]
pub(super) struct Slots {
    allocator: Allocator,
    /// Slots that uncommitted records refer to, with the number of such records.
    pins: FastMap<Addr, u32>,
    /// Places of the table of pins, which never shrinks. What the table itself says goes up and down with what was removed.
    pin_places: usize,
    /// The wall time, for what is stamped without a time of its own. Never goes back.
    newest: UnixSeconds,
}

impl Slots {
    pub(super) fn new(allocator: Allocator) -> Self {
        Self { allocator, pins: FastMap::default(), pin_places: 0, newest: UnixSeconds(0) }
    }

    pub(super) fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    pub(super) fn allocator_mut(&mut self) -> &mut Allocator {
        &mut self.allocator
    }

    pub(super) fn pins_memory_bytes(&self) -> usize {
        self.pin_places * (size_of::<(Addr, u32)>() + 1)
    }

    pub(super) fn set_now(&mut self, now: UnixSeconds) {
        self.newest = self.newest.max(now);
    }

    /// What is known of the reads of the item at `addr`.
    pub(super) fn access(&self, addr: Addr) -> Access {
        let Some(slot) = self.allocator.slot(addr).filter(|slot| slot.is_live()) else {
            return Access::default();
        };
        Access { fetched: slot.fetched(), last_access: slot.known_access(self.newest).unwrap_or_default() }
    }

    /// The item at `addr` was read: it is fetched, and further from eviction.
    #[inline(always)]
    pub(super) fn bump(&mut self, addr: Addr, now: UnixSeconds) {
        self.set_now(now);
        if let Some(slot) = self.allocator.slot_mut(addr)
            && slot.is_live()
        {
            let bumped = slot.bumped(now);
            // A hot item's word does not change within a second: its cache line stays clean.
            if bumped != *slot {
                *slot = bumped;
            }
        }
    }

    /// An uncommitted record refers to the item at `addr`. Whether that took memory.
    pub(super) fn pin(&mut self, addr: Addr) -> bool {
        *self.pins.entry(addr).or_insert(0) += 1;
        let grows = self.pins.capacity() > self.pin_places;
        self.pin_places = self.pin_places.max(self.pins.capacity());
        grows
    }

    /// Takes one [`Self::pin`] back.
    pub(super) fn unpin(&mut self, addr: Addr) {
        let count = self.pins.get_mut(&addr);
        debug_assert!(count.is_some(), "{addr} is not pinned");
        match count {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.pins.remove(&addr);
            }
        }
    }

    fn is_pinned(&self, addr: Addr) -> bool {
        !self.pins.is_empty() && self.pins.contains_key(&addr)
    }

    /// Whether the item at `addr` is neither claimed nor pinned.
    pub(super) fn is_claimable(&self, addr: Addr) -> bool {
        let live = self.allocator.slot(addr).is_some_and(|slot| slot.state() == SlotState::Live);
        live && !self.is_pinned(addr)
    }

    /// Whether an uncommitted record or a proposal refers to the span that run `at` starts.
    pub(super) fn is_in_use(&self, at: u32) -> bool {
        let Some(run) = self.allocator.run(at) else { return false };
        run.pending > 0
            || run.slots.iter().any(|slot| slot.state() == SlotState::Claimed)
            || self.allocator.live_addrs(at).any(|addr| self.is_pinned(addr))
    }

    /// Whether no page of the span that `run` starts is there.
    pub(super) fn is_wholly_absent(&self, contents: &Contents, run: u32) -> bool {
        let span = self.allocator.run(run).map_or(1, |run| u32::from(run.span.max(1)));
        contents.lacks_all(run..run + span)
    }

    /// The item at `addr` is committed.
    #[inline]
    pub(super) fn commit(&mut self, contents: &Contents, addr: Addr) {
        let header = contents.header(addr);
        let (len, expiry) = header.map_or((0, 0), |header| (header.len_bytes(), header.expiry));
        // A damaged header may say anything.
        let len = len.min(self.allocator.slot_len(addr).unwrap_or(0));
        self.allocator.commit(addr, len, expiry, self.newest);
    }

    /// A header in place may bring an item's expiry nearer.
    #[inline]
    pub(super) fn note_expiry(&mut self, contents: &Contents, addr: Addr) {
        if self.allocator.slot(addr).is_some_and(|slot| slot.is_live())
            && let Some(header) = contents.header(addr)
        {
            self.allocator.note_expiry(addr, header.expiry);
        }
    }

    /// The item at `addr` is gone.
    #[inline]
    pub(super) fn release(&mut self, contents: &Contents, addr: Addr) {
        let slot_len = self.allocator.slot_len(addr).unwrap_or(0);
        let len = contents.header(addr).map(|header| header.len_bytes().min(slot_len));
        self.allocator.free(addr, len);
    }

    /// An item that was moved by compaction keeps its history.
    #[inline]
    pub(super) fn inherit_access(&mut self, old: Addr, new: Addr) {
        // Only of what was moved as it was: a new value begins a history of its own.
        let Some(old) = self.allocator.slot(old).filter(|slot| slot.state() == SlotState::Claimed) else {
            return;
        };
        if let Some(slot) = self.allocator.slot_mut(new) {
            *slot = slot.with_access_of(old);
        }
    }

    /// Once all items of a run can be read, they are counted by their true lengths.
    pub(super) fn refresh_run(&mut self, contents: &Contents, run: u32) {
        let run = self.allocator.head_of(run);
        if self.allocator.run(run).is_none_or(|run| run.live() == 0) {
            return;
        }
        let slot_bytes = self.allocator.slot_bytes(run);
        let len = |addr| Some(contents.header(addr)?.len_bytes().min(slot_bytes));
        if let Some(sum) = self.allocator.live_addrs(run).map(len).sum::<Option<usize>>() {
            self.allocator.set_item_bytes(run, sum as u32);
        }
    }

    /// That the index names every live slot once, and no other, each in a run of the class that the replicas know.
    pub(super) fn check_invariants(&self, contents: &Contents) {
        self.allocator.check_invariants();
        let replica = contents.replica();
        let mut named: Vec<Addr> = replica.index().iter().map(|(_, addr)| addr).collect();
        named.sort_unstable();
        assert!(named.is_sorted_by(|before, after| before < after), "the index has two items in one slot");
        for addr in &named {
            let is_live = self.allocator.slot(*addr).is_some_and(|slot| slot.is_live());
            assert!(is_live, "the index names {addr}, where no live slot is");
        }
        assert_eq!(named.len(), self.allocator.totals().live, "a live slot is in no index");
        self.check_classes(replica);
        for (addr, count) in &self.pins {
            let is_used = self.allocator.slot(*addr).is_some_and(|slot| slot.state() != SlotState::Free);
            assert!(*count > 0 && is_used, "{addr} is pinned {count} times, and nothing is there");
        }
    }

    /// That what is in use is so here and at the replicas, and that no extent goes while something of it is under way.
    fn check_classes(&self, replica: &Replica) {
        for (at, run) in (0..).zip(self.allocator.runs()).filter(|(_, run)| run.used > 0) {
            assert!(
                self.allocator.is_active(at) || run.pending == 0,
                "run {at} has a pending slot, and no memory"
            );
            if run.live() == 0 {
                continue;
            }
            let continued = run.continued().class;
            let others = at + 1..at + u32::from(run.span);
            let is_known =
                replica.class(at) == run.class && others.clone().all(|at| replica.class(at) == continued);
            assert!(
                is_known,
                "the replicas know run {at} as {:?}, and not as {:?}",
                replica.class(at),
                run.class
            );
        }
    }

    /// Of runs whose items have all been read, that their bytes are counted as they are, and that none of them expires before
    /// its run says. Those that are claimed are looked for by nobody.
    pub(super) fn check_items(&self, contents: &Contents) {
        let known = |run: &Run| run.live() > 0 && run.min_expiry != 0;
        for (at, run) in (0..).zip(self.allocator.runs()).filter(|(_, run)| known(run)) {
            let slot_bytes = self.allocator.slot_bytes(at);
            let mut bytes = 0;
            for addr in self.allocator.live_addrs(at) {
                let Some(header) = contents.header(addr) else { continue };
                bytes += header.len_bytes().min(slot_bytes);
                let expiry = if self.is_claimable(addr) { header.expiry } else { 0 };
                assert!(expiry == 0 || run.min_expiry <= expiry, "{addr} expires before its run says");
            }
            assert_eq!(run.item_bytes as usize, bytes, "the bytes of the items in run {at} are counted");
        }
    }

    /// Every slot that is handed out may become an entry of the index.
    pub(super) fn fit_into_index(&self, contents: &Contents) -> bool {
        contents.replica().index().has_room(self.allocator.totals().pending + 1)
    }

    /// What is short where nothing is free.
    pub(super) fn nothing_free(&self) -> Shortage {
        let totals = self.allocator.totals();
        if totals.live == 0 && totals.pending == 0 { Shortage::Full } else { Shortage::Reclaim }
    }

    /// The slot, with the operations that tell the replicas about the runs of its span, unless they know.
    pub(super) fn allocation(&self, known: &Replica, slot: SlotAt) -> Allocation {
        let runs = &self.allocator.runs()[slot.run as usize..];
        let span = runs.iter().take(usize::from(runs[0].span));
        let classes = (slot.run..).zip(span.map(|run| run.class));
        // The runs of a large item may be on their way to being free.
        let large = runs[0].class == RunClass::LARGE;
        let news = classes.filter(|(run, class)| large || known.class(*run) != *class);
        let assign = news.map(|(run, class)| IndexOp::Assign { run, class }).collect();
        Allocation { addr: self.allocator.addr(slot), assign }
    }
}
