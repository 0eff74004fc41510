//! Compaction: a sparse run's items move into the free slots of the other runs of its class.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::ground::{Ground, Reclaim};
use crate::alloc::{Allocator, Hold, Run};
use crate::data_store::config::Eviction;
use crate::data_store::slots::Slots;
use types::RunClass;
use types::class::{CLASS_COUNT, slot_bytes, slots_in_span};

/// Runs that are emptied at a time.
const MAX_COMPACTING: usize = 4;
/// Runs of a class that are looked at for one that can be emptied.
const MAX_SEARCH: usize = 16;

/// Runs that are being emptied.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    runs: Vec<u32>,
}

impl Compaction {
    /// Items of runs that are being emptied, or of a further run that is worth it.
    pub(super) fn empty(&mut self, ground: &mut Ground<'_>) -> Option<Reclaim> {
        for at in self.runs.clone() {
            if let Some(batch) = move_batch(ground, at) {
                return Some(batch);
            }
        }
        if self.runs.len() == MAX_COMPACTING {
            return None;
        }
        let at = self.next_run(ground)?;
        ground.slots.allocator_mut().set_hold(at, Hold::Compacting);
        self.runs.push(at);
        move_batch(ground, at)
    }

    /// Forgets the runs that have become free, and gives up those whose items find no slots any more.
    pub(super) fn tend(&mut self, slots: &mut Slots) {
        let allocator = slots.allocator_mut();
        self.runs.retain(|&at| {
            let Some(run) = allocator.run(at).filter(|run| run.hold == Hold::Compacting) else {
                return false;
            };
            // Others may have taken the slots that its items were to move to.
            let has_room = allocator.lists().free_slots(run.class) > 0;
            if !has_room {
                allocator.set_hold(at, Hold::None);
            }
            has_room
        });
    }

    /// Lets a run of `class` that is being emptied take items again; whether there was one with free slots.
    pub(super) fn release(&mut self, slots: &mut Slots, class: RunClass) -> bool {
        let useful = |run: &Run| run.class == class && run.free_slots() > 0;
        let found = self.runs.iter().position(|at| slots.allocator().run(*at).is_some_and(useful));
        if let Some(at) = found.map(|at| self.runs.swap_remove(at)) {
            slots.allocator_mut().set_hold(at, Hold::None);
        }
        found.is_some()
    }

    /// Whether run `at` is being emptied.
    pub(super) fn empties(&self, at: u32) -> bool {
        self.runs.contains(&at)
    }

    /// The sparsest run of the class with the most room to gain.
    fn next_run(&self, ground: &Ground<'_>) -> Option<u32> {
        let classes = (1..=CLASS_COUNT as u8).map(RunClass);
        let spare = classes.map(|class| (self.spare_slots(ground.allocator(), class), class));
        let mut worth: SmallVec<[(usize, RunClass); 8]> =
            spare.filter(|(spare, class)| *spare >= slots_in_span(*class)).collect();
        worth.sort_by_key(|(spare, class)| Reverse(spare * slot_bytes(*class)));
        worth.into_iter().find_map(|(_, class)| sparsest_run(ground, class))
    }

    /// Free slots of a class beyond what the runs being emptied will need.
    fn spare_slots(&self, allocator: &Allocator, class: RunClass) -> usize {
        let emptied = self.runs.iter().filter_map(|at| allocator.run(*at));
        let wanted: usize = emptied.filter(|run| run.class == class).map(Run::live).sum();
        allocator.lists().free_slots(class).saturating_sub(wanted)
    }
}

/// As many items of run `at` as there are slots for.
fn move_batch(ground: &mut Ground<'_>, at: u32) -> Option<Reclaim> {
    let class = ground.allocator().run(at)?.class;
    let room = ground.allocator().lists().free_slots(class);
    let claimable = ground.allocator().live_addrs(at).filter(|addr| ground.slots.is_claimable(*addr));
    let items = claimable.take(room).collect();
    ground.claim_batch(items).map(Reclaim::Move)
}

fn sparsest_run(ground: &Ground<'_>, class: RunClass) -> Option<u32> {
    let runs = ground.allocator().runs();
    let sparse = ground.allocator().lists().sparsest_first(runs, class).take(MAX_SEARCH);
    sparse.filter(|at| is_compactable(ground, *at)).min_by_key(|at| runs[*at as usize].used)
}

/// All its items can be moved now, and with eviction as the alternative: it is sparse enough.
fn is_compactable(ground: &Ground<'_>, at: u32) -> bool {
    let run = &ground.allocator().runs()[at as usize];
    let sparse = ground.eviction == Eviction::None || run.live() * 4 <= run.slots.len() * 3;
    let mut items = ground.allocator().live_addrs(at);
    sparse && run.pending == 0 && items.all(|addr| ground.slots.is_claimable(addr))
}
