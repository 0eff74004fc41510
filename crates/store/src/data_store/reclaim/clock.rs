//! Eviction by CLOCK: one hand over all slots in the order of their addresses, two bits of frequency each.

use super::ground::{Ground, MAX_BATCH, MAX_BATCH_BYTES, Victim};
use crate::alloc::{Hold, SlotState};
use types::{Addr, NamespaceId, RUN_BYTES, RunClass};

/// After so many slots that were spared in one batch, an item is spared only if it was read once more than before.
const MAX_SPARED: usize = 16 * 1024;
/// Items of others that one batch passes by, at most: where hardly any may go, the next batch goes on from there.
const MAX_PASSED: usize = 4 * MAX_SPARED;
/// Turns of the hand in which even the hottest items are cold.
const TURNS: usize = 4;
/// A batch is not more than this part of what is committed: a small role does not lose half of its items at once.
const BATCH_PART: usize = 32;

/// Where the hand stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hand {
    run: u32,
    slot: u16,
}

/// What the hand has found so far.
#[derive(Debug, Default)]
struct Batch {
    /// Whose items are wanted; none = of all that may go.
    only: Option<NamespaceId>,
    /// Of which class they are; none = of any.
    class: Option<RunClass>,
    victims: Vec<Victim>,
    slot_bytes: usize,
    /// Bytes of slots that are enough.
    wanted_bytes: usize,
    /// Slots that were looked at and not handed out, or handed out in spite of being hot.
    spared: usize,
    /// Items that are of somebody whose items are not wanted.
    passed: usize,
}

impl Batch {
    fn is_full(&self) -> bool {
        let weary = self.spared > 2 * MAX_SPARED && !self.victims.is_empty() || self.passed >= MAX_PASSED;
        weary || self.victims.len() == MAX_BATCH || self.slot_bytes >= self.wanted_bytes
    }

    /// Whether the item at `addr` is one of those that are wanted.
    fn wants(&self, ground: &Ground<'_>, addr: Addr) -> bool {
        match self.only {
            None => ground.may_evict(addr),
            Some(namespace) => ground.is_of(addr, namespace),
        }
    }

    /// Whether an item that was read so often stays.
    fn spares(&self, frequency: u32) -> bool {
        frequency as usize > self.spared / MAX_SPARED
    }
}

impl Hand {
    /// Up to a batch of items that were not read since the hand last came by.
    pub(super) fn batch(&mut self, ground: &mut Ground<'_>) -> Vec<Victim> {
        let committed_bytes = ground.contents.area().committed_bytes();
        self.sweep(ground, Batch { wanted_bytes: part_of(committed_bytes), ..Batch::default() })
    }

    /// The same of items of one class.
    pub(super) fn batch_in(&mut self, ground: &mut Ground<'_>, class: RunClass) -> Vec<Victim> {
        let wanted_bytes = part_of(ground.contents.area().committed_bytes());
        self.sweep(ground, Batch { class: Some(class), wanted_bytes, ..Batch::default() })
    }

    /// The same of one namespace, so that `bytes` of its slots are free at the end if it has as many.
    pub(super) fn batch_of(
        &mut self,
        ground: &mut Ground<'_>,
        namespace: NamespaceId,
        bytes: usize,
    ) -> Vec<Victim> {
        let has_bytes = usize::try_from(ground.contents.replica().cohorts().bytes_of(namespace));
        let wanted_bytes = part_of(has_bytes.unwrap_or(usize::MAX)).max(bytes).min(MAX_BATCH_BYTES);
        self.sweep(ground, Batch { only: Some(namespace), wanted_bytes, ..Batch::default() })
    }

    fn sweep(&mut self, ground: &mut Ground<'_>, mut batch: Batch) -> Vec<Victim> {
        // As many turns as it takes to cool the hottest.
        for _ in 0..=TURNS * ground.allocator().runs().len() {
            if self.sweep_run(ground, &mut batch) {
                break;
            }
        }
        batch.victims
    }

    /// Goes on to the end of the hand's run; true once the batch is full, or the work is enough.
    fn sweep_run(&mut self, ground: &mut Ground<'_>, batch: &mut Batch) -> bool {
        let at = self.run;
        let Some(run) = ground.allocator().run(at) else {
            *self = Self::default();
            return false;
        };
        let is_other = batch.class.is_some_and(|class| class != run.class);
        let is_held = run.hold != Hold::None;
        let skip =
            run.live() == 0 || is_other || is_held || ground.slots.is_wholly_absent(ground.contents, at);
        let slots = if skip { 0 } else { run.slots.len() as u16 };
        let bytes = if skip { 0 } else { ground.allocator().slot_bytes(at) };
        while self.slot < slots {
            let addr = Addr::from_byte(at as usize * RUN_BYTES + usize::from(self.slot) * bytes);
            self.slot += 1;
            if let Some(victim) = judge(ground, addr, batch) {
                batch.victims.push(victim);
                batch.slot_bytes += bytes;
            }
            if batch.is_full() {
                return true;
            }
        }
        *self = Self { run: at + 1, slot: 0 };
        false
    }
}

/// How much of so many bytes one batch evicts.
fn part_of(bytes: usize) -> usize {
    (bytes / BATCH_PART).min(MAX_BATCH_BYTES)
}

/// The item at `addr` goes, or is spared and cooler.
fn judge(ground: &mut Ground<'_>, addr: Addr, batch: &mut Batch) -> Option<Victim> {
    ground.allocator().slot(addr).filter(|slot| slot.state() == SlotState::Live)?;
    // Whoever may not go is as hot as before: others come by for other reasons.
    if !batch.wants(ground, addr) {
        batch.passed += 1;
        return None;
    }
    let slot = ground.slots.allocator_mut().slot_mut(addr)?;
    let spares = batch.spares(slot.frequency());
    batch.spared += 1;
    if spares {
        *slot = slot.cooled();
        return None;
    }
    ground.claim(addr)
}
