//! Lost data roles at a parity: nothing of them is in its sum.
//!
//! A parity that has taken in anything of a role leaves its view with that role's data, and is worth nothing from then on. One
//! that was built since knows the role as lost; when the role begins anew it takes that stream from its first record.

use cluster::GroupView;

use super::{Parity, Stream};
use crate::roles::RoleSet;

impl Parity {
    /// The data roles that are lost.
    pub(super) fn lost_roles(&self) -> RoleSet {
        let mut lost = RoleSet::default();
        for (role, _) in self.view.data_roles().filter(|(_, data)| data.status.is_lost()) {
            lost.insert(role);
        }
        lost
    }

    /// Whether everything that is in its sum is still somebody's, going by `view`: else nobody can take it out.
    pub(crate) fn has_nothing_lost(&self, view: &GroupView) -> bool {
        let mut streams = self.streams.iter().zip(&view.data);
        let is_well = |(stream, role): (&Stream, &cluster::DataRole)| {
            stream.is_blank() || stream.is_of_life(role) && !role.status.is_lost()
        };
        streams.all(is_well) || crate::planted(crate::Bug::DormantOutlivesLoss)
    }

    /// Roles that were lost begin anew: so do their streams here.
    pub(super) fn begin_new_lives(&mut self) {
        for (stream, role) in self.streams.iter_mut().zip(&self.view.data) {
            if !stream.is_of_life(role) {
                if !stream.is_blank() {
                    tracing::error!(member = %self.member, "a parity has the former life of a role in its sum");
                }
                *stream = Stream::new(role, self.budget.clone());
            }
        }
    }
}
