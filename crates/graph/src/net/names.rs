//! Processes by their names, how they are, and what goes wrong with them.

use types::{NodeId, RoleIndex, ViewVersion};

use crate::asker::Outcome;
use crate::graph::AskerId;

/// A process by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A node.
    Node(NodeId),
    /// Who asks, be it a client or a worker of a node.
    Asker(AskerId),
}

/// How a task ended, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// When, in microseconds.
    pub at_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Alive,
    Stopped,
    Dead,
}

/// Something that goes wrong, or is well again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The process ends; its connections are closed.
    Kill(NodeId),
    /// The machine is gone: nobody hears of it.
    Vanish(NodeId),
    /// The process stands still, with its connections open.
    Stop(NodeId),
    /// It goes on.
    Resume(NodeId),
    /// The node's links become slower by this factor.
    Slow(NodeId, f64),
    /// The chunks of a role are gone.
    Lose(NodeId, RoleIndex),
    /// The chunks of a role are not what they were, and the node knows.
    Rot(NodeId, RoleIndex),
    /// The chunks of a role are not what they were, and nobody knows.
    Corrupt(NodeId, RoleIndex),
    /// The node has this view.
    View(NodeId, ViewVersion),
}
