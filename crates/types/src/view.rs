//! A group's view: the coordinator's small versioned record of who serves what (group protocol, section 0).

use serde::{Deserialize, Serialize};

use thiserror::Error;

use crate::{GroupId, HostId, NodeId, Profile, RoleIndex, Seq, Term, ViewVersion};

/// Who serves the roles of one group; changed only by compare-and-swap on `version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupView {
    /// The group.
    pub group: GroupId,
    /// Grows by one with each change.
    pub version: ViewVersion,
    /// Data roles `0..k`.
    pub data: Vec<DataRole>,
    /// Who hosts the parity roles `k..n`, in order, and is in sync: its acks are required, its state may be used for
    /// recovery. None once it is lost and not yet replaced. The role index of `parity[p]` is `k + p`.
    pub parity: Vec<Option<HostId>>,
    /// Members being built, at most one for each role: new parities, and mirrors of data roles that move.
    pub learners: Vec<Learner>,
    /// Who served the data roles that have no primary.
    #[serde(default)]
    pub former: Vec<Former>,
    /// Who keeps the chunks of each role `0..n`; empty as long as no object has used the group.
    #[serde(default)]
    pub holders: Vec<Holders>,
}

/// Who keeps the chunks of one role: one process, or another one that gets them, or both while they move, or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// It has all that there are.
    pub whole: Option<Holder>,
    /// It gets them, and is sent what is new.
    pub filling: Option<Holder>,
}

/// A process that keeps the chunks of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub host: HostId,
    /// The view that has named it: another one is another holder, even on the same host.
    pub since: ViewVersion,
}

impl Holders {
    /// Both, where there are.
    pub fn iter(&self) -> impl Iterator<Item = Holder> + use<> {
        self.whole.into_iter().chain(self.filling)
    }
}

/// A data role in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRole {
    /// The process that serves it; none between the loss of one primary and the appointment of the next.
    pub primary: Option<HostId>,
    /// The term of `primary`, or the term that will be the next primary's while the role is fenced.
    pub term: Term,
    /// The first term of its present life, whose primary started from nothing. Whatever was written before is no more.
    pub origin: Term,
    /// Where the role stands.
    pub status: RoleStatus,
}

/// Where a data role stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleStatus {
    /// The primary has all its pages.
    Full,
    /// The primary is lost; its parities are being fenced at the view's term.
    Fenced,
    /// The stream ends at this record; a stand-in is to be appointed.
    Orphan(Seq),
    /// A stand-in serves, its stream started after `start`; pages come back on demand and by a sweep.
    Rebuilding {
        /// The last record of the terms before; the stand-in's first record is the next one.
        start: Seq,
        /// For how long from now on, in microseconds, the former primary may still hold a read lease; 0 if it
        /// surely does not.
        wait_us: u64,
    },
    /// More members were lost than the code can make up for: answered with an error, named in `status`. No parity in sync has
    /// anything of it.
    Lost,
    /// Lost, and that is accepted: it begins anew, empty, as soon as nobody can serve what it was.
    Accepted,
}

/// A member being built: the parity that replaces or relieves another one, or the mirror of a data role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learner {
    /// The role it is built for.
    pub role: RoleIndex,
    /// Where; a node without a role in the group, or with the other role of an [`Exchange`].
    pub host: HostId,
    /// The view that appointed it: another one is another learner, even on the same host.
    pub since: ViewVersion,
    /// Of a mirror: it has everything that was acknowledged, its acks are required, and it may take the role over. A parity
    /// in this state is no learner any more.
    pub whole: bool,
}

/// A data role and a parity of a group that change places. First the mirror of the data role is built beside the parity; once it
/// is whole the parity is built beside the primary, and then the mirror takes the role over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The data role.
    pub data: RoleIndex,
    /// Its primary; the parity is to be there.
    pub from: HostId,
    /// The parity.
    pub parity: RoleIndex,
    /// Its host, and the mirror's.
    pub to: HostId,
    /// Whether the mirror is whole, so that the parity may be built beside the primary.
    pub is_mirrored: bool,
}

/// Why a view cannot be.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ImpossibleView {
    /// More roles than a group may have, or no data role.
    #[error("{data} data and {parity} parity roles")]
    Roles {
        /// Data roles.
        data: usize,
        /// Parity roles.
        parity: usize,
    },
    /// A served role without a primary, or the other way round.
    #[error("the status of {0} does not fit its primary")]
    Status(RoleIndex),
    /// Terms begin with 1.
    #[error("{0} has no term")]
    NoTerm(RoleIndex),
    /// A data role that does not exist was served, or one with more parities than there are.
    #[error("{0} was served, which does not exist or had more parities than there are")]
    Former(RoleIndex),
    /// A learner for a role that does not exist, or has one already.
    #[error("{0} has two learners, or does not exist")]
    Learner(RoleIndex),
    /// A learner appointed by a later view than this one.
    #[error("the learner of {0} is of a later view")]
    LearnerOfTheFuture(RoleIndex),
    /// Versions begin with 1.
    #[error("it has no version")]
    NoVersion,
    /// Chunks are kept for as many roles as there are, by holders that this view or an earlier one has named.
    #[error("holders for other roles than there are, or of a later view")]
    Holders,
}

impl GroupView {
    /// Whether any group can have this view, whatever there was before. What this accepts can be indexed by its roles.
    ///
    /// # Errors
    /// Why none can.
    pub fn check(&self) -> Result<(), ImpossibleView> {
        let (data, parity) = (self.k(), self.m());
        if data == 0 || data > usize::from(Profile::MAX_K) || parity > usize::from(Profile::MAX_M) {
            return Err(ImpossibleView::Roles { data, parity });
        }
        if self.version == ViewVersion(0) {
            return Err(ImpossibleView::NoVersion);
        }
        for (index, role) in self.data_roles() {
            let served = matches!(role.status, RoleStatus::Full | RoleStatus::Rebuilding { .. });
            if served != role.primary.is_some() {
                return Err(ImpossibleView::Status(index));
            }
            if role.origin == Term(0) || role.term < role.origin {
                return Err(ImpossibleView::NoTerm(index));
            }
        }
        // Its parities, and a mirror.
        let is_none =
            |former: &&Former| usize::from(former.role.0) >= data || former.witnesses.len() > parity + 1;
        if let Some(former) = self.former.iter().find(is_none) {
            return Err(ImpossibleView::Former(former.role));
        }
        let named = |holder: Holder| holder.since <= self.version;
        if !matches!(self.holders.len(), len if len == 0 || len == data + parity)
            || !self.all_holders().all(|(_, holder)| named(holder))
        {
            return Err(ImpossibleView::Holders);
        }
        self.check_learners()
    }

    fn check_learners(&self) -> Result<(), ImpossibleView> {
        let n = self.k() + self.m();
        for (at, learner) in self.learners.iter().enumerate() {
            let again = self.learners.iter().take(at).any(|other| other.role == learner.role);
            if again || usize::from(learner.role.0) >= n {
                return Err(ImpossibleView::Learner(learner.role));
            }
            if learner.since > self.version {
                return Err(ImpossibleView::LearnerOfTheFuture(learner.role));
            }
        }
        Ok(())
    }

    /// Number of data roles.
    #[must_use]
    pub fn k(&self) -> usize {
        self.data.len()
    }

    /// Number of parity roles.
    #[must_use]
    pub fn m(&self) -> usize {
        self.parity.len()
    }

    /// The data roles with their indices.
    pub fn data_roles(&self) -> impl Iterator<Item = (RoleIndex, &DataRole)> {
        self.data.iter().enumerate().map(|(i, role)| (RoleIndex(i as u8), role))
    }

    /// The in-sync parities: role index and host, in role order.
    pub fn in_sync(&self) -> impl Iterator<Item = (RoleIndex, HostId)> + '_ {
        let k = self.k();
        let hosts = self.parity.iter().enumerate();
        hosts.filter_map(move |(p, host)| host.map(|host| (RoleIndex((k + p) as u8), host)))
    }

    /// The learner of `role`, if one is being built.
    #[must_use]
    pub fn learner(&self, role: RoleIndex) -> Option<&Learner> {
        self.learners.iter().find(|learner| learner.role == role)
    }

    /// The mirror that may take `role` over, if there is one.
    #[must_use]
    pub fn mirror(&self, role: RoleIndex) -> Option<HostId> {
        self.learner(role).filter(|learner| learner.whole).map(|learner| learner.host)
    }

    /// The exchange that the learner of `role` is the mirror of, as long as the parity is where it was.
    #[must_use]
    pub fn exchange(&self, role: RoleIndex) -> Option<Exchange> {
        let learner = self.learner(role)?;
        let (from, to) = (self.data_role(role)?.primary?, learner.host);
        let (parity, _) = self.in_sync().find(|(_, host)| *host == to)?;
        let apart = from.node != to.node;
        apart.then_some(Exchange { data: role, from, parity, to, is_mirrored: learner.whole })
    }

    /// All exchanges whose parities are where they were.
    pub fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.learners.iter().filter_map(|learner| self.exchange(learner.role))
    }

    /// Whether `role` may be built on `host`: on a node without a role of the group, or by the steps of an [`Exchange`].
    #[must_use]
    pub fn may_learn(&self, role: RoleIndex, host: HostId) -> bool {
        if self.learner(role).is_some() {
            return false;
        }
        match self.roles_on(host.node) {
            0 => true,
            1 => self.may_begin_exchange(role, host) || self.may_complete_exchange(role, host),
            _ => false,
        }
    }

    /// Whether a mirror of `role` beside the parity on `host` would be the first step of an exchange.
    fn may_begin_exchange(&self, role: RoleIndex, host: HostId) -> bool {
        let primary = self.data_role(role).and_then(|data| data.primary);
        let is_alone = primary.is_some_and(|primary| self.roles_on(primary.node) == 1);
        let is_whole = self.learners.is_empty() && self.in_sync().count() == self.m();
        is_alone && is_whole && self.in_sync().any(|(_, parity)| parity == host)
    }

    /// Whether the parity `role` beside the primary on `host` would be the second step of an exchange. Without the whole mirror the
    /// loss of that node would cost two members.
    fn may_complete_exchange(&self, role: RoleIndex, host: HostId) -> bool {
        self.exchanges().any(|known| (known.parity, known.from, known.is_mirrored) == (role, host, true))
    }

    /// Whether the mirror of `role` may take it over: it is whole, and not beside another role of the group.
    #[must_use]
    pub fn may_hand_over(&self, role: RoleIndex) -> bool {
        self.mirror(role).is_some_and(|mirror| self.roles_on(mirror.node) == 1)
    }

    /// Whether the node of `role`'s primary has a parity of the group, too.
    #[must_use]
    pub fn is_beside_parity(&self, role: RoleIndex) -> bool {
        let primary = self.data_role(role).and_then(|data| data.primary);
        primary.is_some_and(|primary| self.in_sync().any(|(_, host)| host.node == primary.node))
    }

    /// The data role at `role`, none if that is no data role of this group.
    #[must_use]
    pub fn data_role(&self, role: RoleIndex) -> Option<&DataRole> {
        self.data.get(role.0 as usize)
    }

    /// The in-sync host of the parity role `role` (`k..n`), if there is one.
    #[must_use]
    pub fn parity_host(&self, role: RoleIndex) -> Option<HostId> {
        *self.parity.get((role.0 as usize).checked_sub(self.k())?)?
    }

    /// Whether objects may lie in this group: its roles have had holders.
    #[must_use]
    pub fn takes_chunks(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Who keeps the chunks of `role`, whole or filling, and under which since.
    #[must_use]
    pub fn holders_of(&self, role: RoleIndex) -> Holders {
        self.holders.get(usize::from(role.0)).copied().unwrap_or_default()
    }

    /// Every holder with its role: the whole one of a role before the filling one.
    pub fn all_holders(&self) -> impl Iterator<Item = (RoleIndex, Holder)> + '_ {
        let of = |(role, holders): (usize, &Holders)| {
            let role = RoleIndex(role as u8);
            holders.iter().map(move |holder| (role, holder))
        };
        self.holders.iter().enumerate().flat_map(of)
    }

    /// Those whose chunks count for quotas, with their roles: who has all of a role's. Where nobody in the group has, who gets them.
    pub fn counted_holders(&self) -> impl Iterator<Item = (RoleIndex, Holder)> + '_ {
        let has_whole = self.holders.iter().any(|holders| holders.whole.is_some());
        let counts = move |(role, holder): &(RoleIndex, Holder)| {
            !has_whole || self.holders_of(*role).whole == Some(*holder)
        };
        self.all_holders().filter(counts)
    }

    /// Since when `host` keeps the chunks of `role`, if it does.
    #[must_use]
    pub fn holds_since(&self, role: RoleIndex, host: HostId) -> Option<ViewVersion> {
        self.holders_of(role).iter().find(|holder| holder.host == host).map(|holder| holder.since)
    }

    /// The host of the member for `role` that there is, or is to be: a learner before whoever it relieves.
    #[must_use]
    pub fn member_host(&self, role: RoleIndex) -> Option<HostId> {
        let learner = self.learner(role).map(|learner| learner.host);
        let primary = || self.data_role(role).and_then(|data| data.primary);
        learner.or_else(primary).or_else(|| self.parity_host(role))
    }

    /// Whether every data role is served by a primary that has all its pages.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.data.iter().all(|role| role.status == RoleStatus::Full)
    }

    /// Whether nothing is under way: every data role is full or lost, and some are full. Members can be built and moved then.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let is_full = |role: &DataRole| role.status == RoleStatus::Full;
        self.data.iter().any(is_full) && self.data.iter().all(|role| is_full(role) || role.status.is_lost())
    }

    /// Who served `role`, which has no primary now.
    #[must_use]
    pub fn former(&self, role: RoleIndex) -> Option<&Former> {
        self.former.iter().find(|former| former.role == role)
    }

    /// Data roles whose bytes are in the sums of the parities and may not all be present at a primary: fenced, orphaned or
    /// rebuilding. A role without a primary whose mirror is whole misses nothing; one that is lost is in no sum.
    pub fn in_play(&self) -> impl Iterator<Item = RoleIndex> + '_ {
        let in_play = move |(role, data): &(RoleIndex, &DataRole)| match data.status {
            RoleStatus::Full | RoleStatus::Lost | RoleStatus::Accepted => false,
            RoleStatus::Fenced | RoleStatus::Orphan(_) => self.mirror(*role).is_none(),
            RoleStatus::Rebuilding { .. } => true,
        };
        self.data_roles().filter(in_play).map(|(role, _)| role)
    }

    /// Number of those data roles.
    #[must_use]
    pub fn roles_in_play(&self) -> usize {
        self.in_play().count()
    }

    /// Who hosts a role of any kind here, or is to host one; as often as it has roles.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        let primaries = self.data.iter().filter_map(|role| role.primary);
        let parities = self.parity.iter().copied().flatten();
        let learners = self.learners.iter().map(|learner| learner.host);
        primaries.chain(parities).chain(learners)
    }

    /// Every process that hosts a role here, is to host one, or keeps chunks of one, as often as it does.
    pub fn keepers(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts().chain(self.all_holders().map(|(_, holder)| holder.host))
    }

    /// Roles of any kind that `node` hosts here, or is to host.
    #[must_use]
    pub fn roles_on(&self, node: NodeId) -> usize {
        self.hosts().filter(|host| host.node == node).count()
    }

    /// Roles that `node` hosts here, is to host, or has the chunks of until another host has got them.
    #[must_use]
    pub fn roles_left_on(&self, node: NodeId) -> usize {
        let is_elsewhere = |role| self.member_host(role).is_none_or(|host| host.node != node);
        let held =
            self.all_holders().filter(|(role, holder)| holder.host.node == node && is_elsewhere(*role));
        self.roles_on(node) + held.count()
    }

    /// Parities in sync beyond one for each role in play: by it groups are ordered, the most endangered first. What it means the
    /// code says.
    #[must_use]
    pub fn spare_parities(&self) -> usize {
        self.in_sync().count().saturating_sub(self.roles_in_play())
    }

    /// The whole mirror of `role` that may take it over at once, while its primary's node has a parity, too.
    #[must_use]
    pub fn mirror_apart(&self, role: RoleIndex) -> Option<HostId> {
        self.mirror(role).filter(|_| self.is_beside_parity(role) && self.may_hand_over(role))
    }

    /// As it will be once the nodes `gone` are lost and nothing has been done about it.
    #[must_use]
    pub fn without(&self, gone: &[NodeId]) -> Self {
        let mut view = self.clone();
        for role in &mut view.data {
            if role.primary.is_some_and(|host| gone.contains(&host.node)) {
                role.primary = None;
                role.status = RoleStatus::Fenced;
            }
        }
        for parity in &mut view.parity {
            *parity = parity.filter(|host| !gone.contains(&host.node));
        }
        view.learners.retain(|learner| !gone.contains(&learner.host.node));
        let is_here = |holder: &Holder| !gone.contains(&holder.host.node);
        for Holders { whole, filling } in &mut view.holders {
            *whole = whole.filter(is_here);
            *filling = filling.filter(is_here);
        }
        view
    }
}

/// Who served a data role that nobody serves now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// The role.
    pub role: RoleIndex,
    /// The process that was its primary last.
    pub primary: HostId,
    /// The parities whose acknowledgements that one needed, for its writes and for its read lease: all of them. Where it
    /// had none it needed nobody.
    pub witnesses: Vec<HostId>,
}
