//! What is asked of all views so often that it is kept, and not looked for.

use std::collections::BTreeSet;

use cluster::RoleTally;
use types::{GroupView, MemberId, RoleIndex, RoleStatus};

/// See the module. Of views that are added and removed one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ViewIndex {
    roles: RoleTally,
    whole: BTreeSet<MemberId>,
    lost: BTreeSet<MemberId>,
    accepted: BTreeSet<MemberId>,
}

impl ViewIndex {
    pub(super) fn of(groups: &[GroupView]) -> Self {
        let mut index = Self::default();
        groups.iter().for_each(|view| index.add(view));
        index
    }

    pub(super) fn add(&mut self, view: &GroupView) {
        self.roles.add(view);
        self.whole.extend(whole_of(view));
        self.lost.extend(with_status(view, RoleStatus::Lost));
        self.accepted.extend(with_status(view, RoleStatus::Accepted));
    }

    pub(super) fn remove(&mut self, view: &GroupView) {
        self.roles.remove(view);
        whole_of(view).for_each(|member| _ = self.whole.remove(&member));
        with_status(view, RoleStatus::Lost).for_each(|member| _ = self.lost.remove(&member));
        with_status(view, RoleStatus::Accepted).for_each(|member| _ = self.accepted.remove(&member));
    }

    /// What each node has to do.
    pub(super) fn roles(&self) -> &RoleTally {
        &self.roles
    }

    /// The roles whose learners have everything and wait for their primaries to make way.
    pub(super) fn whole(&self) -> &BTreeSet<MemberId> {
        &self.whole
    }

    /// Data roles that are lost, and nobody has accepted that.
    pub(super) fn lost(&self) -> &BTreeSet<MemberId> {
        &self.lost
    }

    /// Data roles that are lost, and to begin anew.
    pub(super) fn accepted(&self) -> &BTreeSet<MemberId> {
        &self.accepted
    }
}

fn whole_of(view: &GroupView) -> impl Iterator<Item = MemberId> + '_ {
    let whole = view.learners.iter().filter(|learner| learner.whole);
    whole.map(|learner| member(view, learner.role))
}

fn with_status(view: &GroupView, status: RoleStatus) -> impl Iterator<Item = MemberId> + '_ {
    let roles = view.data_roles().filter(move |(_, data)| data.status == status);
    roles.map(|(role, _)| member(view, role))
}

fn member(view: &GroupView, role: RoleIndex) -> MemberId {
    MemberId { group: view.group, role }
}
