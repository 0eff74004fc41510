//! What the nemesis has planned is done, and undone.

use super::{World, conversions, probes};
use crate::cluster::process::Life;
use crate::nemesis::{Deed, Strike, Undo, plan};
use crate::stage::queue::Event;

impl World {
    /// Lets faults begin.
    pub(crate) fn unleash(&mut self) {
        self.nemesis.later(&mut self.stage);
        self.reign().scrub_later();
        probes::later(self);
        self.reign().change_catalog_later();
        conversions::later(self);
    }

    /// A fault is due: now, or when certain messages are under way.
    pub(super) fn next_fault(&mut self) {
        if self.nemesis.is_over() {
            return;
        }
        // Not at once: clients and further faults are to meet roles that are lost and not accepted.
        if self.cluster.has_lost_roles() && self.stage.rng.faults.percent(30) {
            self.reign().accept_losses();
        }
        if let Some(fault) = self.nemesis.draw(&mut self.stage) {
            self.fault_hits(fault);
        }
    }

    pub(super) fn fault_hits(&mut self, fault: u64) {
        let Some(kind) = self.nemesis.hit(&mut self.stage, fault) else { return };
        let Strike { deeds, lasting } = plan(&mut self.stage, &self.cluster, &self.nemesis, kind);
        deeds.into_iter().for_each(|deed| self.commit(deed));
        lasting.into_iter().for_each(|lasting| self.nemesis.begin(&mut self.stage, lasting));
        self.nemesis.later(&mut self.stage);
    }

    fn commit(&mut self, deed: Deed) {
        match deed {
            Deed::Pause(node) => self.cluster.nodes.pause(&mut self.stage, node),
            Deed::Block(a, b) => self.wires.block(&mut self.stage, a, b),
            Deed::BlockLine(node) => self.lines.block(&mut self.stage, &self.cluster, node),
            Deed::Cut(a, b) => self.wires.cut_between(&mut self.stage, a, b),
            Deed::Slow { from, to, extra_us } => self.wires.slow(from, to, extra_us),
            Deed::NobodyDecides => self.nemesis.nobody_decides(&self.stage),
            Deed::PauseCoordinator(number) => self.cluster.coordinators.pause(&mut self.stage, number),
            Deed::EndCoordinator(number) => self.reign().end(number),
            Deed::EndCoordinatorAfter { number, actions } => {
                if let Some(process) = self.cluster.coordinators.get_mut(number) {
                    process.ends_after = Some(actions);
                }
            }
            Deed::Depose(number) => {
                self.reign().depose(number);
                self.cluster.coordinators.notices_later(&mut self.stage, number);
            }
            Deed::IsolateCoordinator(number) => self.reign().isolate(number),
            Deed::Move { member, host } => self.reign().move_role(member, host),
            Deed::Halves(few) => {
                self.nemesis.begin_halves(few);
                self.turn_halves(0);
            }
        }
    }

    pub(super) fn crash_due(&mut self, node: usize) {
        // What it hosts may have changed since the crash was planned.
        if self.nemesis.can_still_crash(&self.stage, &self.cluster, node) {
            self.crash(node);
        }
    }

    /// Coordinators hear the next part of the nodes.
    pub(super) fn turn_halves(&mut self, step: u8) {
        let Some(turn) = self.nemesis.turn_halves(&self.stage, step) else { return };
        turn.heard.iter().for_each(|node| self.lines.unblock(*node));
        if turn.leader_ends
            && let Some(number) = self.cluster.coordinators.leader()
        {
            self.reign().end(number);
        }
        if let Some(fault) = turn.over {
            return self.mend(fault);
        }
        for node in turn.silenced {
            self.lines.block(&mut self.stage, &self.cluster, node);
        }
        self.nemesis.turn_halves_later(&mut self.stage, step);
    }

    /// A fault ends.
    pub(super) fn mend(&mut self, fault: usize) {
        for undo in self.nemesis.mend(&self.stage, fault) {
            match undo {
                Undo::Unblock(a, b) => self.wires.unblock(a, b),
                Undo::UnblockLine(node) => self.lines.unblock(node),
                Undo::Quicken(from, to) => self.wires.slow(from, to, 0),
            }
        }
    }

    /// Ends all faults: everybody runs, everybody reaches everybody.
    pub(crate) fn heal(&mut self) {
        note!(self.stage.book, "all faults end");
        // First: crashes and aimed faults that are in the queue still ask whether they may happen.
        self.nemesis.end();
        for fault in 0..self.nemesis.count() {
            self.mend(fault);
        }
        for node in self.nemesis.end_halves() {
            self.lines.unblock(node);
        }
        self.reign().heal();
        for node in 0..self.cluster.nodes.count() {
            self.resume(node);
            if self.cluster.nodes[node].state == Life::Down {
                self.heal_ended(node);
            }
        }
    }

    fn heal_ended(&mut self, node: usize) {
        if self.stage.options.faults.restart_percent > 0 {
            return self.restart(node);
        }
        // An operator says so: where most nodes are silent, the coordinator gives nobody up.
        let life = self.cluster.nodes[node].life;
        self.stage.after(0, Event::Exited { node: node as u16, life });
    }
}
