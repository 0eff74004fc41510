//! Coordinators that follow each other, by hand.

use types::{GroupId, GroupView, Seq, ViewVersion};
use wire::message::FromCoordinator;

use super::Story;
use crate::sim::inspect::Members;
use crate::sim::options::{Options, Succession};
use crate::sim::process::Input;

/// What becomes of the records that a coordinator is writing when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// They are written.
    Done,
    /// They are not.
    Lost,
}

/// Messages of a coordinator to one node, held back.
#[derive(Debug)]
pub struct Held(Vec<FromCoordinator>);

impl Story {
    /// A healthy cluster whose coordinator writes records, each in up to 300 us, and has successors when told so.
    #[must_use]
    pub fn with_successors(k: usize, m: usize, nodes: usize) -> Self {
        let succession = Succession { write_us: 300, gap_us: 0, late_us: 0, lease_us: 0, by_hand: true };
        Self::with(Options { succession: Some(succession), ..Options::quiet(k, m, nodes) })
    }

    pub(super) fn leader(&self) -> u32 {
        self.world.cluster.coordinators.leader().expect("there is a coordinator")
    }

    /// The group's view as the coordinator has decided; it may not be recorded yet.
    ///
    /// # Panics
    /// If there is no coordinator.
    #[must_use]
    pub fn decided(&self) -> &GroupView {
        let map = self.world.cluster.decided();
        map.and_then(|map| map.group(GroupId(0))).expect("the cluster has formed")
    }

    /// Whether the coordinator waits for a record to be written.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.world.cluster.coordinators.leading().is_some_and(|process| !process.writing.is_empty())
    }

    /// The newest view that `node` knows; none while it is down.
    #[must_use]
    pub fn known_to(&self, node: usize) -> Option<ViewVersion> {
        let map = self.world.cluster.nodes.host_of(node, GroupId(0))?.map()?;
        map.group(GroupId(0)).map(|view| view.version)
    }

    /// The newest record of `role` that the parity in row `row` has.
    ///
    /// # Panics
    /// If there is no such parity.
    #[must_use]
    pub fn received(&self, row: usize, role: usize) -> Seq {
        let members = Members::of(&self.world.cluster.nodes, self.view());
        let parity = members.parities.iter().find(|parity| parity.row == row).expect("the parity is in sync");
        parity.stream(role).received
    }

    /// The coordinator ends, and nobody follows yet.
    pub fn kill_coordinator(&mut self, writing: Writing) {
        let number = self.leader();
        let records = self.world.cluster.coordinators.take_writing(number).expect("the leader lives");
        let mut reign = self.world.reign();
        if writing == Writing::Done {
            records.iter().for_each(|record| reign.write(record));
        }
        reign.end(number);
        self.look();
    }

    /// The coordinator may write nothing any more, and has not noticed.
    pub fn depose_coordinator(&mut self) {
        let number = self.leader();
        self.world.reign().depose(number);
    }

    /// Another coordinator goes on from what is recorded.
    pub fn elect_coordinator(&mut self) {
        self.world.reign().elect();
        self.look();
    }

    /// How many coordinators live, deposed ones included.
    #[must_use]
    pub fn coordinators(&self) -> usize {
        self.world.cluster.coordinators.numbers().len()
    }

    /// Messages between `node` and the coordinator take `us` microseconds, each way.
    pub fn slow_coordinator_line(&mut self, node: usize, us: u64) {
        self.world.lines.slow(node, us);
    }

    /// Whether the coordinator has told `node` to settle a stream, and that has not arrived.
    #[must_use]
    pub fn settle_is_under_way_to(&self, node: usize) -> bool {
        let mut down = self.world.lines.under_way_to(node);
        down.any(|message| matches!(message, FromCoordinator::Settle { .. }))
    }

    /// Takes what is under way from the coordinator to `node` from its line.
    pub fn hold_back(&mut self, node: usize) -> Held {
        note!(self.world.stage.book, "story: what is under way to node-{node} is held back");
        Held(self.world.lines.hold_back(node))
    }

    /// What was held back arrives, late.
    pub fn deliver_late(&mut self, node: usize, held: Held) {
        note!(self.world.stage.book, "story: node-{node} gets what was held back");
        for message in held.0 {
            self.world.give(node, Input::Coordinator(message));
        }
        self.look();
    }
}
