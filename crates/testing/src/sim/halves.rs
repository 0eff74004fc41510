//! Coordinators without a store that follow each other, and each hear another part of the nodes.
//!
//! The first one hears fewer than half: it may decide what it likes, nothing is in force. The second one hears the others, and
//! goes on with them. The third one hears those whom the first one heard: it must not go on from what only these know.

use super::faults::Active;
use super::queue::Event;
use super::world::World;

/// Such a fault, under way.
#[derive(Debug)]
pub(crate) struct Halves {
    /// Whom the first and the third one hear.
    few: Vec<usize>,
    /// Who reaches no coordinator now.
    cut_off: Vec<usize>,
    /// What counts as at risk meanwhile.
    fault: usize,
}

impl World {
    pub(super) fn begin_halves(&mut self) {
        let few = self.draw_few();
        let is_none = few.is_empty() || self.leader.is_none() || self.nemesis.halves.is_some();
        if is_none || !self.can_bear(&few, &[]) {
            return;
        }
        note!(
            self.stage.book,
            "fault: coordinators hear one after another nodes {few:?}, the others, and {few:?} again"
        );
        self.stage.book.stats.faults += 1;
        let active = Active { nodes: few.clone(), pairs: Vec::new(), undo: Vec::new(), counts_until: None };
        self.nemesis.active.push(active);
        let fault = self.nemesis.active.len() - 1;
        self.nemesis.halves = Some(Halves { few, cut_off: Vec::new(), fault });
        self.next_half(0);
    }

    /// Fewer than half, so that more are silent than the code can make up for.
    fn draw_few(&mut self) -> Vec<usize> {
        let alive = self.map().into_iter().flat_map(|map| &map.nodes).filter(|info| info.alive);
        let mut few: Vec<usize> = alive.map(|info| usize::from(info.host.node.0)).collect();
        let most = (few.len().saturating_sub(1) / 2).min(few.len().saturating_sub(self.stage.options.m + 1));
        while few.len() > most {
            let at = self.stage.rng.faults.index(few.len());
            few.swap_remove(at);
        }
        few
    }

    /// The next part is heard from now on; every part but the first by another coordinator.
    pub(crate) fn next_half(&mut self, step: u8) {
        let Some(mut halves) = self.nemesis.halves.take() else { return };
        halves.cut_off.drain(..).for_each(|node| self.unblock_line(node));
        if step > 0
            && let Some(number) = self.leader
        {
            self.end_coordinator(number);
        }
        let hears_few = match step {
            0 | 2 => true,
            1 => false,
            _ => return self.mend(halves.fault),
        };
        halves.cut_off =
            (0..self.stage.options.nodes).filter(|node| halves.few.contains(node) != hears_few).collect();
        halves.cut_off.iter().for_each(|node| self.block_line(*node));
        self.nemesis.halves = Some(halves);
        // An election takes up to two leases, and a coordinator waits for two more.
        let least = if step == 0 { 1 } else { 4 };
        let lease_us = self.stage.options.timing.node_lease_us;
        let after = least * lease_us + self.stage.rng.faults.below(3 * lease_us);
        self.stage.after(after, Event::NextHalf { step: step + 1 });
    }

    /// All nodes reach the coordinator.
    pub(super) fn end_halves(&mut self) {
        let Some(halves) = self.nemesis.halves.take() else { return };
        halves.cut_off.into_iter().for_each(|node| self.unblock_line(node));
    }
}
