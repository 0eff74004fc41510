//! Cells of groups whose view is newer than the one that is known here: chunks for roles that this host does not hold yet, and what is to be
//! multiplied for holders of parities that it does not know yet.

use std::collections::BTreeMap;

use types::{GroupId, HostId};
use wire::object::{Lend, ObjectMessage, PutShared};

/// See the module.
#[derive(Default)]
pub(super) struct Early {
    waiting: BTreeMap<GroupId, Vec<(HostId, EarlyCell)>>,
    bytes: usize,
}

/// What waits.
pub(super) enum EarlyCell {
    /// A cell for a role of this host.
    Put(PutShared),
    /// One that others are to have products of.
    Lent(Lend),
}

impl Early {
    /// Keeps a cell until there is a newer view of its group; drops it if too much waits: the writer puts it again, or what was to be made of
    /// it.
    pub(super) fn keep(&mut self, most_bytes: usize, from: HostId, cell: EarlyCell) {
        let bytes = self.bytes + cell.memory_bytes();
        if bytes <= most_bytes {
            self.bytes = bytes;
            self.waiting.entry(cell.group()).or_default().push((from, cell));
        }
    }

    /// What has waited for a view of `group`, in order.
    pub(super) fn take(&mut self, group: GroupId) -> Vec<(HostId, EarlyCell)> {
        let cells = self.waiting.remove(&group).unwrap_or_default();
        self.bytes -= cells.iter().map(|(_, cell)| cell.memory_bytes()).sum::<usize>();
        cells
    }

    /// What came from `peer` is put again on its next link.
    pub(super) fn forget(&mut self, peer: HostId) {
        let mut bytes = 0;
        self.waiting.retain(|_, cells| {
            cells.retain(|(from, _)| *from != peer);
            bytes += cells.iter().map(|(_, cell)| cell.memory_bytes()).sum::<usize>();
            !cells.is_empty()
        });
        self.bytes = bytes;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl EarlyCell {
    /// As it came.
    pub(super) fn into_message(self) -> ObjectMessage {
        match self {
            Self::Put(shared) => ObjectMessage::PutShared(shared.into()),
            Self::Lent(lend) => ObjectMessage::Lend(lend),
        }
    }

    fn group(&self) -> GroupId {
        match self {
            Self::Put(shared) => shared.put.member.group,
            Self::Lent(lend) => lend.member.group,
        }
    }

    fn memory_bytes(&self) -> usize {
        let cell = match self {
            Self::Put(shared) => &shared.put.cell,
            Self::Lent(lend) => &lend.cell,
        };
        cell.bytes.len() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use types::{Incarnation, MemberId, NodeId, RoleIndex, ViewVersion};
    use wire::object::{Checked, Shares};

    use super::*;

    fn lent(group: u32, len: usize) -> EarlyCell {
        let member = MemberId { group: GroupId(group), role: RoleIndex(0) };
        let cell = Checked::new(vec![0; len].into());
        EarlyCell::Lent(Lend { member, view: ViewVersion(2), row: 0, cell, shares: Shares::new() })
    }

    #[test]
    fn no_more_bytes_wait_than_may_and_all_are_given_back() {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let (mut early, most) = (Early::default(), 2 * (1_000 + size_of::<EarlyCell>()));
        for (node, group) in [(1, 7), (2, 8), (1, 9)] {
            early.keep(most, host(node), lent(group, 1_000));
        }
        assert_eq!(early.memory_bytes(), most);
        assert_eq!(
            (early.take(GroupId(9)).len(), early.take(GroupId(7)).len()),
            (0, 1),
            "the third was too much"
        );
        early.forget(host(2));
        assert_eq!((early.memory_bytes(), early.take(GroupId(8)).len()), (0, 0));
    }
}
