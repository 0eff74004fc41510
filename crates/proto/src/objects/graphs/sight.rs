//! What graphs see of this host: its map, and the chunks of its holders, each cell compared with its checksum before it is read.

use std::cell::RefCell;
use std::collections::VecDeque;

use codec::Coder;
use graph::{Surroundings, Unreadable};
use types::{ChunkId, GroupId, MemberId, NodeId, RoleIndex, ViewVersion};

use crate::host::Views;
use crate::objects::holders::Holders;
use crate::rules::Rules;

/// Cells that were found right and are read slice by slice.
const KNOWN_CELLS: usize = 64;

/// A cell of a chunk of a role.
type CellName = (MemberId, ChunkId, u32);

/// What was seen of cells.
#[derive(Default)]
pub(super) struct Seen {
    right: VecDeque<CellName>,
    /// Chunks with a cell that is not what it was.
    rotten: Vec<(MemberId, ChunkId)>,
}

impl Seen {
    fn note(&mut self, cell: CellName) {
        if self.right.len() == KNOWN_CELLS {
            self.right.pop_front();
        }
        self.right.push_back(cell);
    }

    /// Chunks that were found rotten since this was asked last.
    pub(super) fn take_rotten(&mut self) -> Vec<(MemberId, ChunkId)> {
        std::mem::take(&mut self.rotten)
    }
}

/// See the module.
pub(super) struct Sight<'a> {
    pub views: &'a Views,
    pub holders: &'a Holders,
    pub seen: &'a RefCell<Seen>,
    pub coder: &'a Coder,
    pub rules: Rules,
}

impl Surroundings for Sight<'_> {
    fn knows(&self, node: NodeId) -> bool {
        self.views.map().is_some_and(|map| map.nodes.iter().any(|info| info.host.node == node))
    }

    fn view(&self, group: GroupId) -> ViewVersion {
        self.views.group(group).map_or(ViewVersion(0), |view| view.version)
    }

    fn coder(&self) -> &Coder {
        self.coder
    }

    fn piece(
        &self,
        group: GroupId,
        role: RoleIndex,
        chunk: ChunkId,
        offset: u32,
    ) -> Result<&[u8], Unreadable> {
        let member = MemberId { group, role };
        let entry = self.holders.get(member).and_then(|holder| holder.chunks().get(chunk));
        let there = entry.ok_or(Unreadable::Missing)?.chunk();
        let piece = there.piece(offset as usize);
        if piece.is_empty() {
            return Err(Unreadable::Missing);
        }
        let cell = (member, chunk, offset / there.cell_len());
        let mut seen = self.seen.borrow_mut();
        if !seen.right.contains(&cell) {
            if self.rules.graphs().sources_are_verified() && !there.verify(cell.2) {
                seen.rotten.push((member, chunk));
                return Err(Unreadable::Rotten);
            }
            seen.note(cell);
        }
        Ok(piece)
    }
}
