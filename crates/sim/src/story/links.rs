//! Wires, links and lines, by hand.
//!
//! A wire is one direction between two nodes, a link is both, and a line is between a node and the coordinator.

use wire::message::FromCoordinator;

use super::told::Story;
use crate::cluster::process::Input;
use crate::network::wires::Arrived;

/// One direction between two nodes.
#[derive(Debug)]
pub struct Wire<'a> {
    story: &'a mut Story,
    from: usize,
    to: usize,
}

/// Both directions between two nodes.
#[derive(Debug)]
pub struct Link<'a> {
    story: &'a mut Story,
    a: usize,
    b: usize,
}

/// Both directions between a node and the coordinator.
#[derive(Debug)]
pub struct Line<'a> {
    story: &'a mut Story,
    node: usize,
}

/// Messages of a coordinator to one node, held back.
#[derive(Debug)]
pub struct Held(Vec<FromCoordinator>);

impl Story {
    /// What `from` sends to `to`.
    pub fn wire(&mut self, from: usize, to: usize) -> Wire<'_> {
        Wire { story: self, from, to }
    }

    /// What two nodes send to each other.
    pub fn link(&mut self, a: usize, b: usize) -> Link<'_> {
        Link { story: self, a, b }
    }

    /// What `node` and the coordinator send to each other.
    pub fn line(&mut self, node: usize) -> Line<'_> {
        Line { story: self, node }
    }
}

impl Wire<'_> {
    /// What is sent waits on the wire.
    pub fn hold(self) {
        let Self { story: Story { world }, from, to } = self;
        note!(world.stage.book, "story: hold node-{from} -> node-{to}");
        world.wires.hold(from, to);
    }

    /// What waits on the wire arrives, and what comes after it.
    pub fn release(self) {
        let Self { story: Story { world }, from, to } = self;
        note!(world.stage.book, "story: release node-{from} -> node-{to}");
        world.wires.release(&mut world.stage, from, to);
    }

    /// Delivers the first message that waits on a held wire; false if none does.
    pub fn deliver_one(self) -> bool {
        let world = &mut self.story.world;
        let Some(Arrived { wire, parcel }) = world.wires.take_held(self.from, self.to) else { return false };
        world.hand_over(wire, parcel);
        self.story.look();
        true
    }
}

impl Link<'_> {
    /// Breaks; the two connect again.
    pub fn cut(self) {
        let Self { story: Story { world }, a, b } = self;
        note!(world.stage.book, "story: break node-{a} - node-{b}");
        world.wires.cut_between(&mut world.stage, a, b);
    }

    /// The two cannot reach each other any more.
    pub fn sever(self) {
        let Self { story: Story { world }, a, b } = self;
        note!(world.stage.book, "story: sever node-{a} - node-{b}");
        world.wires.block(&mut world.stage, a, b);
    }

    /// The two can reach each other again.
    pub fn mend(self) {
        let Self { story: Story { world }, a, b } = self;
        note!(world.stage.book, "story: mend node-{a} - node-{b}");
        world.wires.unblock(a, b);
    }
}

impl Line<'_> {
    /// The node closes its end, as one does that ends, and cannot reach the coordinator any more.
    pub fn shut(self) {
        let Self { story: Story { world }, node } = self;
        note!(world.stage.book, "story: node-{node} closes its line, which is severed");
        world.lines.block(&mut world.stage, &world.cluster, node);
        world.reign().is_parted_from(node);
    }

    /// The two cannot reach each other any more.
    pub fn sever(self) {
        let Self { story: Story { world }, node } = self;
        note!(world.stage.book, "story: sever node-{node} - coordinator");
        world.lines.block(&mut world.stage, &world.cluster, node);
    }

    /// The two can reach each other again.
    pub fn mend(self) {
        let Self { story: Story { world }, node } = self;
        note!(world.stage.book, "story: mend node-{node} - coordinator");
        world.lines.unblock(node);
    }

    /// Messages take `us` microseconds, each way.
    pub fn slow(self, us: u64) {
        self.story.world.lines.slow(self.node, us);
    }

    /// Takes what is under way to the node from its line.
    #[must_use]
    pub fn hold_back(self) -> Held {
        let Self { story: Story { world }, node } = self;
        note!(world.stage.book, "story: what is under way to node-{node} is held back");
        Held(world.lines.hold_back(node))
    }

    /// What was held back arrives, late.
    pub fn deliver_late(self, held: Held) {
        let Self { story, node } = self;
        note!(story.world.stage.book, "story: node-{node} gets what was held back");
        for message in held.0 {
            story.world.give(node, Input::Coordinator(message));
        }
        story.look();
    }
}
