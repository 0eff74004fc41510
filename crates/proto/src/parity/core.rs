//! Who a parity is, and what each data role weighs in its sum. Only a view changes it.

use codec::Code;
use types::{GroupView, MemberId, RoleIndex};

use crate::outbox::Sender;
use crate::roles::RoleSet;

/// See the module.
pub(super) struct Core {
    member: MemberId,
    view: GroupView,
}

impl Core {
    pub(super) fn new(member: MemberId, view: GroupView) -> Self {
        Self { member, view }
    }

    pub(super) fn member(&self) -> MemberId {
        self.member
    }

    pub(super) fn view(&self) -> &GroupView {
        &self.view
    }

    pub(super) fn adopt(&mut self, view: &GroupView) {
        self.view = view.clone();
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
        match self.row() {
            Some(_) => RoleSet::all(self.view.k()).without(self.lost_roles()),
            None => RoleSet::only(self.member.role),
        }
    }

    /// Whether `role` is one of them.
    pub(super) fn takes(&self, role: RoleIndex) -> bool {
        match self.row() {
            Some(_) => self.view.data_role(role).is_some_and(|data| !data.status.is_lost()),
            None => role == self.member.role,
        }
    }

    /// What the bytes of `role` weigh in the sum.
    pub(super) fn coefficient(&self, code: &Code, role: RoleIndex) -> u8 {
        match self.row() {
            Some(row) => code.coefficient(row, usize::from(role.0)),
            None => u8::from(role == self.member.role),
        }
    }

    /// The data roles that are lost: nothing of them is in the sum.
    pub(super) fn lost_roles(&self) -> RoleSet {
        let mut lost = RoleSet::default();
        for (role, _) in self.view.data_roles().filter(|(_, data)| data.status.is_lost()) {
            lost.insert(role);
        }
        lost
    }
}
