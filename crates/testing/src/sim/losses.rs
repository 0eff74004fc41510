//! Data that is lost for good, in the simulator: operators who accept it, and what clients may see then.

use types::op::{FlushAt, Op, Outcome};
use types::{AdminCommand, AdminRequest, MemberId, RoleStatus, SlotRange};

use super::oracle::Fate;
use super::process::{now_at, unix_bounds};
use super::story::Story;
use super::world::World;

impl World {
    /// Whether the loss of a role waits for somebody to accept it.
    pub(crate) fn has_lost_roles(&self) -> bool {
        let views = self.map().into_iter().flat_map(|map| &map.groups);
        views.flat_map(|view| &view.data).any(|role| role.status == RoleStatus::Lost)
    }

    /// An operator accepts whatever is lost, if there is a coordinator to tell.
    pub(crate) fn accept_losses(&mut self) {
        if self.has_lost_roles() {
            self.command(AdminCommand::AcceptLoss { slots: vec![SlotRange::ALL] });
        }
    }

    /// Tells the coordinator, if there is one that listens.
    pub(crate) fn command(&mut self, command: AdminCommand) {
        let Some(number) = self.leader else { return };
        note!(self.stage.book, "an operator: {command:?}");
        let (options, now) = (self.stage.options.clone(), self.stage.now());
        let Some(process) = self.process_mut(number).filter(|process| !process.paused) else { return };
        let now = now_at(&options, &process.clock, now);
        let _ = process.coordinator.administer(now, &AdminRequest { expect: None, command });
        self.after_coordinator(number);
    }

    /// A role that was lost begins anew: at this moment, and at no other, all its keys vanish.
    pub(crate) fn role_begins_anew(&mut self, member: MemberId) {
        note!(self.stage.book, "{member} begins anew");
        self.stage.book.stats.begun_anew += 1;
        let (earliest, latest) = unix_bounds(&self.stage.options, self.stage.now());
        for key in (0..self.keys.len()).filter(|key| self.keys[*key].member == member).collect::<Vec<_>>() {
            let call = self.oracles[key].invoke(Op::Flush(FlushAt::Now), earliest);
            let settled = self.oracles[key].settle(call, Fate::Answered(Outcome::Flushed), latest);
            self.judge(key, settled);
        }
    }
}

impl Story {
    /// An operator accepts whatever is lost.
    pub fn accept_losses(&mut self) {
        self.world.accept_losses();
        self.look();
    }

    /// Waits until `count` parities are in sync.
    pub fn until_protected(&mut self, count: usize) {
        self.run_until("the parities are in sync", |story| story.in_sync().len() == count);
    }

    /// An operator gives everything up.
    pub fn reset_cluster(&mut self) {
        self.world.command(AdminCommand::Reset);
        self.look();
    }
}
