//! What planners are asked.

use codec::Code;
use types::{NodeId, RoleIndex};

use super::choice::Aim;
use super::refusal::Unplannable;
use crate::graph::{Execution, Place};
use crate::limits::MAX_STRAND_BYTES;
use crate::model::Links;

/// A chunk that can be read: those of this role, at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Whose chunk.
    pub role: RoleIndex,
    /// Where it is.
    pub node: NodeId,
}

/// A chunk that is wanted: those of this role, to be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Whose chunk.
    pub role: RoleIndex,
    /// Where it shall be.
    pub to: Place,
}

/// What is to be read, decoded or repaired.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The code.
    pub code: &'a Code,
    /// What can be read. A role may be at several nodes; a node may have several roles.
    pub sources: &'a [Source],
    /// What is wanted, each role once; roles that can be read are copied.
    pub wanted: &'a [Wanted],
    /// Bytes of the strand.
    pub len: u32,
    /// What links are worth.
    pub links: &'a Links,
    /// Nodes that are only used where there is no other way.
    pub avoided: &'a [NodeId],
    /// What is good.
    pub aim: Aim,
    /// How steps work.
    pub execution: Execution,
}

impl Question<'_> {
    pub(super) fn check(&self) -> Result<(), Unplannable> {
        let n = self.code.n();
        let roles = self.sources.iter().map(|source| source.role).chain(self.wanted.iter().map(|w| w.role));
        if roles.into_iter().any(|role| usize::from(role.0) >= n) {
            return Err(Unplannable::Question("a role that the code does not have"));
        }
        let is_twice =
            |(at, one): (usize, &Wanted)| self.wanted[..at].iter().any(|other| other.role == one.role);
        if self.wanted.iter().enumerate().any(is_twice) {
            return Err(Unplannable::Question("a role that is wanted twice"));
        }
        let already = |wanted: &Wanted| {
            let here = |source: &Source| source.role == wanted.role && Place::Node(source.node) == wanted.to;
            self.sources.iter().any(here)
        };
        if self.wanted.iter().any(already) {
            return Err(Unplannable::Question("a chunk that is wanted where it is"));
        }
        check_len(self.wanted.len(), self.len)
    }
}

/// Which chunks of a new stripe go where: the asker has those of the data roles.
#[derive(Clone, Debug)]
pub struct EncodeQuestion<'a> {
    /// The code.
    pub code: &'a Code,
    /// The holder of each role, data roles first.
    pub holders: &'a [NodeId],
    /// Bytes of a chunk.
    pub len: u32,
    /// What links are worth.
    pub links: &'a Links,
    /// What is good.
    pub aim: Aim,
    /// How steps work.
    pub execution: Execution,
}

impl EncodeQuestion<'_> {
    pub(super) fn check(&self) -> Result<(), Unplannable> {
        if self.holders.len() == self.code.n() {
            check_len(self.holders.len(), self.len)
        } else {
            Err(Unplannable::Question("there is not one holder for each role"))
        }
    }
}

fn check_len(wanted: usize, len: u32) -> Result<(), Unplannable> {
    match (wanted, len) {
        (0, _) => Err(Unplannable::Question("nothing is wanted")),
        (_, 0) => Err(Unplannable::Question("chunks of no bytes")),
        (_, len) if len > MAX_STRAND_BYTES => Err(Unplannable::Question("more bytes than a graph may move")),
        _ => Ok(()),
    }
}
