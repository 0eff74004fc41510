//! Coordinators that follow each other, by hand.

use types::{GroupId, GroupView, Seq, ViewVersion};
use wire::message::FromCoordinator;

use super::told::Story;
use crate::cluster::inspect::Members;
use crate::options::{Options, Succession};

/// What becomes of the records that a coordinator is writing when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// They are written.
    Done,
    /// They are not.
    Lost,
}

/// The elected coordinator of a story, or whoever follows it.
#[derive(Debug)]
pub struct Elected<'a> {
    story: &'a mut Story,
}

impl Story {
    /// A healthy cluster whose coordinator writes records, each in up to 300 us, and has successors when told so.
    #[must_use]
    pub fn with_successors(k: usize, m: usize, nodes: usize) -> Self {
        Self::with_successors_of(Options::quiet(k, m, nodes))
    }

    /// The same, made of `options`.
    #[must_use]
    pub fn with_successors_of(options: Options) -> Self {
        let succession = Succession { write_us: 300, gap_us: 0, late_us: 0, lease_us: 0, by_hand: true };
        Self::with(Options { succession: Some(succession), ..options })
    }

    fn leader(&self) -> u32 {
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

    /// The elected coordinator, or whoever follows it.
    pub fn coordinator(&mut self) -> Elected<'_> {
        Elected { story: self }
    }

    /// How many coordinators live, deposed ones included.
    #[must_use]
    pub fn coordinators(&self) -> usize {
        self.world.cluster.coordinators.numbers().len()
    }

    /// Whether the coordinator has told `node` to settle a stream, and that has not arrived.
    #[must_use]
    pub fn settle_is_under_way_to(&self, node: usize) -> bool {
        let mut down = self.world.lines.under_way_to(node);
        down.any(|message| matches!(message, FromCoordinator::Settle { .. }))
    }
}

impl Elected<'_> {
    /// It stands still.
    pub fn stop(self) {
        let (number, world) = (self.story.leader(), &mut self.story.world);
        world.cluster.coordinators.pause(&mut world.stage, number);
    }

    /// It goes on.
    pub fn go_on(self) {
        let number = self.story.leader();
        self.story.world.reign().resume(number);
        self.story.look();
    }

    /// It ends, and nobody follows yet.
    pub fn kill(self, writing: Writing) {
        let (number, world) = (self.story.leader(), &mut self.story.world);
        let records = world.cluster.coordinators.take_writing(number).expect("the leader lives");
        let mut reign = world.reign();
        if writing == Writing::Done {
            records.iter().for_each(|record| reign.write(record));
        }
        reign.end(number);
        self.story.look();
    }

    /// It may write nothing any more, and has not noticed.
    pub fn depose(self) {
        let number = self.story.leader();
        self.story.world.reign().depose(number);
    }

    /// Another one goes on from what is recorded.
    pub fn elect(self) {
        self.story.world.reign().elect();
        self.story.look();
    }
}
