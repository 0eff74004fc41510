//! Who a primary is. All of its parts read this; only a view changes it.

use cluster::Protection;
use smallvec::SmallVec;
use store::{Budget, StoreConfig};
use types::{GroupView, HostId, MemberId, RoleIndex, RoleStatus, Term, ViewVersion};

use crate::Rules;
use crate::outbox::Sender;

/// See the module.
pub(crate) struct Core {
    member: MemberId,
    host: HostId,
    term: Term,
    view: GroupView,
    config: StoreConfig,
    budget: Budget,
    rules: Rules,
    /// The parity roles whose rows cover this role.
    covering: SmallVec<[RoleIndex; 4]>,
}

impl Core {
    /// The primary of `member` that `view` names.
    pub(super) fn new(
        member: MemberId,
        host: HostId,
        view: &GroupView,
        (config, budget): (&StoreConfig, &Budget),
        (protection, rules): (&Protection, Rules),
    ) -> Self {
        let role = view.data_role(member.role).expect("the caller found itself in this view");
        let (config, budget) = (config.clone(), budget.clone());
        let rows = (view.k()..view.k() + view.m()).map(|row| RoleIndex(row as u8));
        let covering = rows.filter(|row| protection.covers(*row, member.role)).collect();
        Self { member, host, term: role.term, view: view.clone(), config, budget, rules, covering }
    }

    pub(crate) fn member(&self) -> MemberId {
        self.member
    }

    pub(super) fn host(&self) -> HostId {
        self.host
    }

    pub(crate) fn term(&self) -> Term {
        self.term
    }

    pub(super) fn view(&self) -> &GroupView {
        &self.view
    }

    /// The parity roles whose rows cover this role: in sync or not, these and no others have anything of it.
    pub(super) fn covering(&self) -> &[RoleIndex] {
        &self.covering
    }

    /// Those of them that are in sync: they are waited for.
    pub(super) fn covering_in_sync(&self) -> impl Iterator<Item = (RoleIndex, HostId)> {
        self.view.in_sync().filter(|(parity, _)| self.covering.contains(parity))
    }

    pub(super) fn config(&self) -> &StoreConfig {
        &self.config
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    pub(super) fn sender(&self) -> Sender {
        Sender { group: self.member.group, role: self.member.role, view: self.view.version }
    }

    pub(super) fn adopt(&mut self, view: &GroupView) {
        debug_assert!(self.is_named_by(view) && view.version > self.view.version);
        self.view = view.clone();
    }

    /// Whether `view` still has this member as the primary of this term.
    pub(crate) fn is_named_by(&self, view: &GroupView) -> bool {
        view.data_role(self.member.role)
            .is_some_and(|role| role.primary == Some(self.host) && role.term == self.term)
    }

    /// Whether it is a stand-in whose pages are not all here.
    pub(super) fn is_rebuilding(&self) -> bool {
        matches!(self.view.data_role(self.member.role).map(|r| r.status), Some(RoleStatus::Rebuilding { .. }))
    }

    /// Whether the mirror that was named with view `since` has all that this role has.
    pub(super) fn has_whole_mirror(&self, since: ViewVersion) -> bool {
        let mirror = self.view.learner(self.member.role);
        mirror.is_some_and(|learner| learner.whole && learner.since == since)
    }

    /// Those of `parities` that are in sync, with their hosts.
    pub(super) fn hosts_of(&self, parities: &[RoleIndex]) -> SmallVec<[(RoleIndex, HostId); 4]> {
        self.view.in_sync().filter(|(role, _)| parities.contains(role)).collect()
    }

    /// The other data roles that somebody serves.
    pub(super) fn other_primaries(&self) -> impl Iterator<Item = (RoleIndex, HostId)> {
        let others = self.view.data_roles().filter(|(role, _)| *role != self.member.role);
        others.filter_map(|(role, data)| data.primary.map(|host| (role, host)))
    }
}
