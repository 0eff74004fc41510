//! Who was read when: the access word of each slot, and the pins of uncommitted records.

use cluster::UnixSeconds;

use super::DataStore;
use crate::Addr;
use crate::alloc::SlotState;

/// What is known of the reads of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether it was read since it was written.
    pub fetched: bool,
    /// When it was read or written last; good to within 4 years.
    pub last_access: UnixSeconds,
}

impl DataStore {
    /// The wall time, for what is stamped without a time of its own (items at commit). Never goes back.
    pub fn set_now(&mut self, now: UnixSeconds) {
        self.newest = self.newest.max(now);
    }

    /// What is known of the reads of the item at `addr`.
    #[must_use]
    pub fn access(&self, addr: Addr) -> Access {
        let Some(slot) = self.allocator.slot(addr).filter(|slot| slot.is_live()) else {
            return Access::default();
        };
        Access { fetched: slot.fetched(), last_access: slot.last_access(self.newest) }
    }

    /// The item at `addr` was read: it is fetched, and further from eviction.
    pub fn bump(&mut self, addr: Addr, now: UnixSeconds) {
        self.set_now(now);
        self.note_use(addr);
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

    /// An uncommitted record refers to the item at `addr`: it is not handed out for reclaim. Pins count.
    pub fn pin(&mut self, addr: Addr) {
        let capacity = self.pins.capacity();
        *self.pins.entry(addr).or_insert(0) += 1;
        if self.pins.capacity() != capacity {
            self.recharge();
        }
    }

    /// Takes one [`Self::pin`] back.
    pub fn unpin(&mut self, addr: Addr) {
        let count = self.pins.get_mut(&addr);
        debug_assert!(count.is_some(), "{addr} is not pinned");
        match count {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.pins.remove(&addr);
            }
        }
    }

    pub(super) fn is_pinned(&self, addr: Addr) -> bool {
        !self.pins.is_empty() && self.pins.contains_key(&addr)
    }

    /// An item that was moved by compaction keeps its history.
    pub(super) fn inherit_access(&mut self, old: Addr, new: Addr) {
        let Some(old) = self.allocator.slot(old).filter(|slot| slot.state() == SlotState::Claimed) else {
            return;
        };
        if let Some(slot) = self.allocator.slot_mut(new) {
            *slot = slot.with_access_of(old);
        }
    }
}
