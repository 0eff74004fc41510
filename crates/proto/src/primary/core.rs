//! Who a primary is. All of its parts read this; only a view changes it.

use std::sync::Arc;

use cluster::Protection;
use smallvec::SmallVec;
use store::{Budget, StoreConfig};
use types::{DataRole, GroupView, HostId, MemberId, RoleIndex, RoleStatus, Term, ViewVersion};

use super::stream::Versions;
use crate::Rules;
use crate::outbox::{Means, Peer, Sender};

/// See the module.
pub(crate) struct Core {
    member: MemberId,
    host: HostId,
    term: Term,
    view: GroupView,
    /// As the view says. Kept, because it is asked for with every request, and a view is spread over memory.
    is_rebuilding: bool,
    config: StoreConfig,
    budget: Budget,
    rules: Rules,
    /// The parity roles whose rows cover this role.
    covering: SmallVec<[RoleIndex; 4]>,
    protection: Arc<Protection>,
    versions: Versions,
}

impl Core {
    /// The primary of `member` that `view` names.
    pub(super) fn new(member: MemberId, host: HostId, view: &GroupView, means: Means<'_>) -> Self {
        let role = view.data_role(member.role).expect("the caller found itself in this view");
        let Means { config, budget, pool, protection, rules } = means;
        let rows = (view.k()..view.k() + view.m()).map(|row| RoleIndex(row as u8));
        let is_rebuilding = is_rebuilding(role);
        let covering = rows.filter(|row| protection.covers(*row, member.role)).collect();
        Self {
            member,
            host,
            term: role.term,
            view: view.clone(),
            is_rebuilding,
            config: config.clone(),
            budget: budget.clone(),
            rules,
            covering,
            protection: Arc::clone(protection),
            versions: Versions::of(pool, member),
        }
    }

    /// The code of its group, and what it makes up for.
    pub(super) fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Which versions its records give.
    pub(super) fn versions(&self) -> Versions {
        self.versions
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

    /// The parities in sync, whether their rows cover this role or not.
    pub(super) fn in_sync(&self) -> impl Iterator<Item = Peer> {
        self.view.in_sync().map(|(role, host)| Peer { role, host })
    }

    /// Those that are in sync and cover this role: they are waited for.
    pub(super) fn covering_in_sync(&self) -> impl Iterator<Item = Peer> {
        self.in_sync().filter(|parity| self.covering.contains(&parity.role))
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
        self.is_rebuilding = view.data_role(self.member.role).is_some_and(is_rebuilding);
    }

    /// Whether `view` still has this member as the primary of this term.
    pub(crate) fn is_named_by(&self, view: &GroupView) -> bool {
        view.data_role(self.member.role)
            .is_some_and(|role| role.primary == Some(self.host) && role.term == self.term)
    }

    /// Whether it is a stand-in whose pages are not all here.
    pub(super) fn is_rebuilding(&self) -> bool {
        self.is_rebuilding
    }

    /// Whether the mirror that was named with view `since` has all that this role has.
    pub(super) fn has_whole_mirror(&self, since: ViewVersion) -> bool {
        let mirror = self.view.learner(self.member.role);
        mirror.is_some_and(|learner| learner.whole && learner.since == since)
    }

    /// Those of `parities` that are in sync.
    pub(super) fn in_sync_of(&self, parities: &[RoleIndex]) -> SmallVec<[Peer; 4]> {
        self.in_sync().filter(|parity| parities.contains(&parity.role)).collect()
    }

    /// The other data roles that somebody serves.
    pub(super) fn other_primaries(&self) -> impl Iterator<Item = Peer> {
        let others = self.view.data_roles().filter(|(role, _)| *role != self.member.role);
        others.filter_map(|(role, data)| data.primary.map(|host| Peer { role, host }))
    }
}

fn is_rebuilding(role: &DataRole) -> bool {
    matches!(role.status, RoleStatus::Rebuilding { .. })
}
