//! Who a parity is, and what each data role weighs in its sum. Only a view changes it.

use std::sync::Arc;

use cluster::Protection;
use types::{GroupView, MemberId, RoleIndex};

use crate::outbox::Sender;
use crate::roles::RoleSet;

/// See the module.
pub(super) struct Core {
    member: MemberId,
    view: GroupView,
    /// The data roles that weigh something in its row; of a mirror, the role itself.
    covered: RoleSet,
    /// Those of them whose streams it takes. Kept, because it is asked for with every message, and a view is spread over memory.
    support: RoleSet,
    protection: Arc<Protection>,
}

impl Core {
    pub(super) fn new(member: MemberId, view: GroupView, protection: &Arc<Protection>) -> Self {
        let mut covered = RoleSet::default();
        for (role, _) in view.data_roles() {
            if role == member.role || protection.covers(member.role, role) {
                covered.insert(role);
            }
        }
        let (support, protection) = (RoleSet::default(), Arc::clone(protection));
        let mut core = Self { member, view, covered, support, protection };
        core.support = core.covered_and_not_lost();
        core
    }

    pub(super) fn member(&self) -> MemberId {
        self.member
    }

    pub(super) fn view(&self) -> &GroupView {
        &self.view
    }

    pub(super) fn adopt(&mut self, view: &GroupView) {
        self.view = view.clone();
        self.support = self.covered_and_not_lost();
    }

    pub(super) fn sender(&self) -> Sender {
        Sender { group: self.member.group, role: self.member.role, view: self.view.version }
    }

    /// Row of this role in the parity part of the code; none for a mirror.
    pub(super) fn row(&self) -> Option<usize> {
        usize::from(self.member.role.0).checked_sub(self.view.k())
    }

    /// The data roles whose streams it takes: those that weigh something in its row, and are not lost.
    pub(super) fn support(&self) -> RoleSet {
        self.support
    }

    fn covered_and_not_lost(&self) -> RoleSet {
        match self.row() {
            Some(_) => self.covered.without(self.lost_roles()),
            // A role that is lost has no mirror: the view that says so takes its learners out.
            None => self.covered,
        }
    }

    /// Whether `role` is one of them.
    pub(super) fn takes(&self, role: RoleIndex) -> bool {
        self.support().contains(role)
    }

    /// What the bytes of `role` weigh in the sum.
    pub(super) fn coefficient(&self, role: RoleIndex) -> u8 {
        match self.row() {
            Some(row) => self.protection.code().coefficient(row, usize::from(role.0)),
            None => u8::from(role == self.member.role),
        }
    }

    /// The data roles of which nothing is in the sum: those that are lost, and those that its row does not cover.
    pub(super) fn absent_roles(&self) -> RoleSet {
        RoleSet::all(self.view.k()).without(self.support())
    }

    /// The data roles that are lost.
    fn lost_roles(&self) -> RoleSet {
        let mut lost = RoleSet::default();
        for (role, _) in self.view.data_roles().filter(|(_, data)| data.status.is_lost()) {
            lost.insert(role);
        }
        lost
    }
}
