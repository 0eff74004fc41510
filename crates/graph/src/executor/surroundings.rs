//! What an executor sees of its process: chunks that lie there, its views, the nodes of its map.

use codec::Coder;
use thiserror::Error;
use types::{ChunkId, GroupId, NodeId, RoleIndex, ViewVersion};

use crate::graph::Graph;
use crate::message::Why;

/// What an executor needs to see of its process.
pub trait Surroundings {
    /// Whether the map has the node.
    fn knows(&self, node: NodeId) -> bool;

    /// The view that this process has of a group.
    fn view(&self, group: GroupId) -> ViewVersion;

    /// Who multiplies and adds up. By default the calling thread.
    fn coder(&self) -> &Coder {
        &codec::PROCESSOR
    }

    /// Bytes of the chunk of `role`, from `offset` on: as many as lie together, at least one. Whoever gives them has checked that
    /// they are what they were.
    ///
    /// # Errors
    /// `Missing` if there is no such chunk or it is shorter, `Rotten` if its checksum is another one.
    fn piece(
        &self,
        group: GroupId,
        role: RoleIndex,
        chunk: ChunkId,
        offset: u32,
    ) -> Result<&[u8], Unreadable>;
}

/// Why bytes of a chunk cannot be had.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not here.
    #[error("there is no such chunk here")]
    Missing,
    /// It is not what it was.
    #[error("the chunk has another checksum")]
    Rotten,
}

/// What the asker is told of a chunk that cannot be read.
pub(super) fn unreadable(
    error: Unreadable,
    graph: &Graph,
    role: RoleIndex,
    around: &impl Surroundings,
) -> Why {
    match error {
        Unreadable::Missing => Why::Missing { role, view: around.view(graph.group) },
        Unreadable::Rotten => Why::Rotten { role },
    }
}
