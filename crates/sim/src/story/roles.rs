//! Who is where.

use types::{GroupId, GroupView, RoleStatus};

use super::told::Story;

impl Story {
    /// The node that serves data role `role`.
    ///
    /// # Panics
    /// If nobody does.
    #[must_use]
    pub fn primary(&self, role: usize) -> usize {
        usize::from(self.view().data[role].primary.expect("the role is served").node.0)
    }

    /// The node of the parity in row `row`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn parity(&self, row: usize) -> usize {
        usize::from(self.view().parity[row].expect("the parity exists").node.0)
    }

    /// The coordinator's view of the group.
    ///
    /// # Panics
    /// If the cluster has not formed.
    #[must_use]
    pub fn view(&self) -> &GroupView {
        self.world.map().and_then(|map| map.group(GroupId(0))).expect("the cluster has formed")
    }

    /// Where data role `role` stands.
    #[must_use]
    pub fn status(&self, role: usize) -> RoleStatus {
        self.view().data[role].status
    }

    /// Which parity rows are in sync.
    #[must_use]
    pub fn in_sync(&self) -> Vec<usize> {
        let k = self.view().k();
        self.view().in_sync().map(|(role, _)| usize::from(role.0) - k).collect()
    }
}
