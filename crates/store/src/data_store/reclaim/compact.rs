//! Compaction: a sparse run's items move into the free slots of the other runs of its class.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::Reclaim;
use crate::RunClass;
use crate::alloc::{Hold, Run};
use crate::class::{CLASS_COUNT, slot_bytes, slots_in_span};
use crate::data_store::{DataStore, Eviction};

/// Runs that are emptied at a time.
const MAX_COMPACTING: usize = 4;
/// Runs of a class that are looked at for one that can be emptied.
const MAX_SEARCH: usize = 16;

impl DataStore {
    /// Items of runs that are being emptied, or of a further run that is worth it.
    pub(super) fn compact(&mut self) -> Option<Reclaim> {
        for at in self.reclaimer.compacting.clone() {
            if let Some(batch) = self.move_batch(at) {
                return Some(batch);
            }
        }
        if self.reclaimer.compacting.len() == MAX_COMPACTING {
            return None;
        }
        let at = self.run_to_compact()?;
        self.allocator.set_hold(at, Hold::Compacting);
        self.reclaimer.compacting.push(at);
        self.move_batch(at)
    }

    /// Forgets the runs that have become free, and gives up those whose items find no slots any more.
    pub(super) fn tend_compacting(&mut self) {
        for at in std::mem::take(&mut self.reclaimer.compacting) {
            let Some(run) = self.allocator.run(at).filter(|run| run.hold == Hold::Compacting) else {
                continue;
            };
            if self.allocator.lists().free_slots(run.class) > 0 {
                self.reclaimer.compacting.push(at);
            } else {
                self.allocator.set_hold(at, Hold::None);
            }
        }
    }

    /// Lets a run of `class` that is being emptied take items again; whether there was one with free slots.
    pub(super) fn release_compacting(&mut self, class: RunClass) -> bool {
        let useful = |run: &Run| run.class == class && run.free_slots() > 0;
        let found =
            self.reclaimer.compacting.iter().position(|at| self.allocator.run(*at).is_some_and(useful));
        if let Some(at) = found.map(|at| self.reclaimer.compacting.swap_remove(at)) {
            self.allocator.set_hold(at, Hold::None);
        }
        found.is_some()
    }

    /// As many items of run `at` as there are slots for.
    fn move_batch(&mut self, at: u32) -> Option<Reclaim> {
        let class = self.allocator.run(at)?.class;
        let room = self.allocator.lists().free_slots(class);
        let items = self.live_addrs(at).filter(|addr| self.is_claimable(*addr)).take(room).collect();
        self.claim_batch(items).map(Reclaim::Move)
    }

    /// The sparsest run of the class with the most room to gain.
    fn run_to_compact(&self) -> Option<u32> {
        let classes = (1..=CLASS_COUNT as u8).map(RunClass);
        let spare = classes.map(|class| (self.spare_slots(class), class));
        let mut worth: SmallVec<[(usize, RunClass); 8]> =
            spare.filter(|(spare, class)| *spare >= slots_in_span(*class)).collect();
        worth.sort_by_key(|(spare, class)| Reverse(spare * slot_bytes(*class)));
        worth.into_iter().find_map(|(_, class)| self.sparsest_run(class))
    }

    fn sparsest_run(&self, class: RunClass) -> Option<u32> {
        let sparse = self.allocator.lists().sparsest_first(self.allocator.runs(), class).take(MAX_SEARCH);
        sparse.filter(|at| self.is_compactable(*at)).min_by_key(|at| self.allocator.runs()[*at as usize].used)
    }

    /// Free slots of a class beyond what the runs being emptied will need.
    fn spare_slots(&self, class: RunClass) -> usize {
        let emptied = self.reclaimer.compacting.iter().filter_map(|at| self.allocator.run(*at));
        let wanted: usize = emptied.filter(|run| run.class == class).map(Run::live).sum();
        self.allocator.lists().free_slots(class).saturating_sub(wanted)
    }

    /// All its items can be moved now, and with eviction as the alternative: it is sparse enough.
    fn is_compactable(&self, at: u32) -> bool {
        let run = &self.allocator.runs()[at as usize];
        let sparse = self.config.eviction == Eviction::None || run.live() * 4 <= run.slots.len() * 3;
        sparse && run.pending == 0 && self.live_addrs(at).all(|addr| self.is_claimable(addr))
    }
}
